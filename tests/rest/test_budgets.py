"""What one caller and one zone may have on its way at a time at the API."""

import json
from random import Random

import pytest

from edgestead.model.budgets import table
from edgestead.model.budgets.ledger import Ledger
from edgestead.rest import body
from edgestead.rest.context import Draws
from tests.support.api import KEY_PAIR, LocalApi

BODY = {"type": "A", "name": "www", "content": "192.0.2.1"}


@pytest.fixture
def api(tmp_path):
    made = LocalApi(tmp_path)
    yield made
    made.close()


@pytest.fixture
def zones(api):
    return [api.post("/zones", {"name": f"{name}.test"}).result["id"] for name in ("one", "two")]


def together(api, zones, **options):
    """The answers to two new records in each zone, which are on their way at once."""
    answers = api.together(
        *(
            api.call_async("POST", f"/zones/{zone}/dns_records", BODY | {"name": f"n{number}"}, **options)
            for zone in zones
            for number in range(2)
        )
    )
    return [(answer.status, answer.codes) for answer in answers]


def narrow(api, **limits):
    draws = api.app.context.draws
    for name, limit in limits.items():
        getattr(draws, name).limit = limit
    return draws


def test_one_zone_has_its_share_of_the_writes_that_wait(api, zones):
    draws = narrow(api, zone_writes=1)

    assert together(api, zones) == [(200, []), (429, [10429])] * 2
    assert together(api, zones[:1])[0][0] != 429
    assert draws.zone_writes.held == {}


def test_one_caller_has_its_share_of_the_requests_that_wait_and_others_theirs(api, zones):
    draws = narrow(api, requests=1)

    by_token = together(api, zones[:1])
    assert [status for status, _ in by_token] == [200, 429]
    assert api.get("/user").status == 200  # which does not wait
    assert api.get("/user", auth=KEY_PAIR).status == 200
    assert draws.requests.held == {}


def test_what_was_refused_is_counted_by_its_name():
    ledger = Ledger(tell=lambda *_: None)
    draws = Draws(ledger)
    draws.zone_writes.limit = 0
    with draws.zone_writes.drawn("zone") as refusal:
        assert refusal.budget is table.ZONE_WRITES
    assert ledger.refused(table.ZONE_WRITES) == 1
    assert "more than 0 writes that wait for their commit of one zone" in refusal.reason


def separators(value):
    """Those outside of strings, counted octet by octet, and the text."""
    text, count, is_text, is_escaped = json.dumps(value, separators=(",", ":")), 0, False, False
    for char in text:
        if is_text:
            is_text, is_escaped = is_escaped or char != '"', char == "\\" and not is_escaped
        elif char == '"':
            is_text = True
        else:
            count += char in ",[{"
    return count, text.encode()


@pytest.mark.parametrize("slice_bytes", [7, 16, 64])
def test_values_are_counted_outside_of_strings_wherever_a_slice_ends(slice_bytes, monkeypatch):
    monkeypatch.setattr(body, "SLICE_BYTES", slice_bytes)
    random = Random(slice_bytes)
    parts = ["a,b", "\\", '"', '\\",[', '\\\\"', 1, [], {}, {"x,": [1]}]
    for _ in range(500):
        count, text = separators([random.choice(parts) for _ in range(random.randrange(40))])

        assert not body.has_more_values(text, count)
        assert body.has_more_values(text, count - 1)
