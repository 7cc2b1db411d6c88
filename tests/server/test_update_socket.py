"""Control's end of dynamic updates, over a store without processes: when keys change, what is remembered."""

import asyncio
import base64
import time

import dns.tsig
import dns.update
import pytest

from edgestead.changes import NEWEST
from edgestead.model.call import Profile
from edgestead.model.update import NOERROR, NOTAUTH, NXDOMAIN, SERVFAIL
from edgestead.server.control import updates
from edgestead.server.control.updates import UpdateSocket
from tests.support.api import CREDENTIALS, LocalApi

ZONE = "example.com"
KEYS = f"/accounts/{CREDENTIALS.account_id}/secondary_dns/tsigs"
CLIENT = b"\x09127.0.0.1"
OTHER_SECRET = base64.b64encode(b"other" * 8).decode()


class Data:
    """A store; `first` is done before the next write, as another request's would be."""

    def __init__(self, store):
        self.read, self._store = store.read, store
        self.first = None

    async def write(self, fn):
        first, self.first = self.first, None
        if first is not None:
            await asyncio.to_thread(first)
        return await asyncio.wrap_future(self._store.write(fn))


@pytest.fixture
def api(tmp_path):
    made = LocalApi(tmp_path, as_of=NEWEST)
    made.zone_id = made.post("/zones", {"name": ZONE}).result["id"]
    made.data = Data(made.store)
    made.socket = make_socket(made)
    yield made
    made.close()


def make_socket(api):
    return UpdateSocket(api.data, api.platform, Profile.SPEC, lambda: time.time_ns() // 1000)


def make_key(api, name):
    return api.post(KEYS, {"name": name, "update": {}}).result


def signed(made, zone=ZONE, away=False, when=None):
    """A message that adds a name, or takes it away; `when` is one that has to be there."""
    key = dns.tsig.Key(made["name"], base64.b64decode(made["secret"]), made["algo"])
    message = dns.update.UpdateMessage(zone, keyring=key)
    if when:
        message.present(when)
    message.delete("www") if away else message.add("www", 300, "A", "192.0.2.1")
    return message.to_wire()


def answers(api, *messages):
    async def ask():
        return [(await api.socket.answer(CLIENT + message))[0] for message in messages]

    return asyncio.run(ask())


def names_in(api):
    return len(api.get(f"/zones/{api.zone_id}/dns_records").result)


MEANWHILE = {
    "the same key changes": (lambda api, key: api.put(key, {"transfer": False}), NOERROR),
    "another secret": (lambda api, key: api.put(key, {"secret": OTHER_SECRET}), NOTAUTH),
    "no key": (lambda api, key: api.delete(key), NOTAUTH),
    "another key of its name": (lambda api, key: (api.delete(key), make_key(api, "a.example")), NOTAUTH),
}


@pytest.mark.parametrize("happens", MEANWHILE)
def test_an_update_is_done_with_the_key_that_signed_it_or_not_at_all(api, happens):
    """The key is another one between the judgement of the signature and the write."""
    made = make_key(api, "a.example")
    change, rcode = MEANWHILE[happens]
    api.data.first = lambda: change(api, f"{KEYS}/{made['id']}")

    assert answers(api, signed(made)) == [rcode]
    assert names_in(api) == (rcode == NOERROR)


def fail():
    raise OSError("the disk is full")


def test_a_failure_that_passes_is_not_remembered(api):
    message = signed(make_key(api, "a.example"))
    api.data.first = fail

    assert answers(api, message, message, message) == [SERVFAIL, NOERROR, NOERROR]
    assert names_in(api) == 1


def test_a_refusal_is_remembered(api):
    """Else whoever heard the message could repeat it until its prerequisite holds."""
    made = make_key(api, "a.example")
    message, add = signed(made, away=True, when="www"), signed(made)

    assert answers(api, message, add, message) == [NXDOMAIN, NOERROR, NXDOMAIN]
    assert names_in(api) == 1


def test_nobody_pushes_out_what_another_key_has_sent(api, monkeypatch):
    monkeypatch.setattr(updates, "REMEMBERED_MAX", 8)
    api.socket = make_socket(api)
    victim, busy = make_key(api, "a.example"), make_key(api, "b.example")
    kept, away = signed(victim), signed(victim, away=True)
    for_no_zone = [signed(busy, f"zone{number}.test") for number in range(20)]

    first, second, *refused, again = answers(api, kept, away, *for_no_zone, kept)
    assert (first, second, set(refused), again) == (NOERROR, NOERROR, {NOTAUTH}, NOERROR)
    assert names_in(api) == 0
