"""A name with records exists, and hides wildcards, whatever is served of them: random zones by the API, as
DNS answers them, beside a reference that looks at the records alone."""

import random

import pytest

from edgestead.dns.table import Table
from tests.dns.serving import Asker

APEX = "example.com"
LABELS = ("a", "b", "*")
BODIES = (
    {"type": "A", "content": "192.0.2.1"},
    {"type": "TXT", "content": '"text"'},
    {"type": "CNAME", "content": "nowhere.b.a.b.example.com"},  # flattened to nothing, most of the time
    {"type": "A", "content": "192.0.2.2", "proxied": True, "settings": {"ipv6_only": True}},
)


class Zone:
    """A zone behind the API with every alias flattened, and the table of a DNS process that follows."""

    def __init__(self, api):
        self._api, self._table, self._taken = api, Table(), 0
        zone_id = api.post("/zones", {"name": APEX}).result["id"]
        api.patch(f"/zones/{zone_id}/dns_settings", {"flatten_all_cnames": True})
        self._path = f"/zones/{zone_id}/dns_records"
        self.records = {}

    def change(self, chosen):
        if self.records and chosen.random() < 0.4:
            record_id = chosen.choice(sorted(self.records))
            self._api.delete(f"{self._path}/{record_id}")
            del self.records[record_id]
            return
        labels, body = _labels(chosen), chosen.choice(BODIES)
        answer = self._api.post(self._path, body | {"name": _text(labels)})
        if answer.status == 200:
            self.records[answer.result["id"]] = labels

    def asker(self):
        changes = self._api.changes
        self._table.apply(changes[self._taken :])
        self._taken = len(changes)
        return Asker(self._table)


def exists(owners, labels):
    """Itself, above another one, or through the asterisk under its closest encloser (RFC 4592)."""
    every = {owner[i:] for owner in owners for i in range(len(owner) + 1)} | {()}
    encloser = next(labels[i:] for i in range(len(labels) + 1) if labels[i:] in every)
    return encloser == labels or ("*", *encloser) in every


def _labels(chosen):
    return tuple(chosen.choice(LABELS) for _ in range(chosen.randint(1, 3)))


def _text(labels):
    return ".".join((*labels, APEX))


@pytest.mark.parametrize("number", range(3))
def test_names_exist_that_have_records_or_are_above_some_and_no_others(api, number):
    chosen, zone = random.Random(number), Zone(api)
    for _ in range(40):
        zone.change(chosen)
        ask, owners = zone.asker(), set(zone.records.values())
        for _ in range(10):
            asked = _labels(chosen)
            reply = ask(_text(asked), chosen.choice(("A", "TXT", "TYPE65535")))
            assert (reply.rcode() != 3) == exists(owners, asked), (asked, owners)
