"""Bodies that are larger than a zone has inspected, or packed: refused, looked at in part, unpacked."""

import gzip
import tracemalloc
import zlib

import brotli
import pytest
import zstandard

from edgestead.edge.exchanges.later import finish
from edgestead.edge.managed import bodies
from edgestead.edge.managed import rules as managed_rules
from edgestead.edge.managed.bodies import Bounds, seen
from edgestead.edge.managed.rules import request_of
from edgestead.edge.tools.phase import ZoneRules
from tests.edge.made import ZONE_ID, ask, rule, ruleset
from tests.edge.test_managed_rules import PHASE, asked, execute, guarded, rules  # noqa: F401

FORM, JSON = b"application/x-www-form-urlencoded", b"application/json"
EVIL, GOOD = b"id=1+UNION+select", b"id=1"
EVIL_JSON = b'{"id": "1 UNION select"}'


def post(guarded, body, kind=FORM, coding=b"", complete=True, **settings):  # noqa: F811
    """(status or None, [(action, reason)])."""
    guarded.serve(PHASE, zone=[execute()], settings=settings)
    headers = [(b"content-type", kind), *((b"content-encoding", one) for one in coding.split(b"|") if one)]
    answer = asked(guarded, "/", method=b"POST", headers=headers, body=body, body_complete=complete)
    return answer and answer.status, [(one.action, one.reason) for one in guarded.seen.decisions]


BIG = {"waf_body_bytes": 1_024}
PASS = BIG | {"waf_body_rest": "pass"}
UNPACK = {"waf_packed_bodies": "unpack"}
ARGUMENTS, PACKED = [("refuse", "arguments")], [("refuse", "content-encoding")]
UNSEEN, IN_PART = [("log", "content-encoding")], [("log", "body-size")]
LONG = b"&a=" + b"x" * 2_000
CASES = {
    "within": (GOOD, FORM, b"", BIG, None, []),
    "over": (GOOD + LONG, FORM, b"", BIG, 413, [("refuse", "body-size")]),
    "over, passed": (GOOD + LONG, FORM, b"", PASS, None, IN_PART),
    "evil at the beginning": (EVIL + LONG, FORM, b"", PASS, 403, [("block", "")]),
    "evil in the rest": (GOOD + LONG + b"&" + EVIL, FORM, b"", PASS, None, IN_PART),
    "long JSON": (b'{"a": "' + b"x" * 2_000 + b'"}', JSON, b"", PASS, None, IN_PART),
    "one argument too many": (b"a=1&b=2&c=3", FORM, b"", {"waf_arguments": 2}, 413, ARGUMENTS),
    "JSON with as many": (b'{"a":1,"b":2,"c":3}', JSON, b"", {"waf_arguments": 2}, 413, ARGUMENTS),
    "more than the default": (b"a=1&" * 1_500 + b"b=", FORM, b"", {"waf_arguments": 2_000}, None, []),
    "packed": (gzip.compress(GOOD), FORM, b"gzip", {}, 415, PACKED),
    "packed, passed": (
        gzip.compress(EVIL), FORM, b"gzip", {"waf_packed_bodies": "pass"}, None, UNSEEN,
    ),
    "good, unpacked": (gzip.compress(GOOD), FORM, b"gzip", UNPACK, None, []),
    "evil, unpacked": (gzip.compress(EVIL), FORM, b"GZIP", UNPACK, 403, [("block", "")]),
    "evil of zlib": (zlib.compress(EVIL_JSON), JSON, b"deflate", UNPACK, 403, [("block", "")]),
    "damaged": (gzip.compress(GOOD)[:-4], FORM, b"gzip", UNPACK, 415, PACKED),
    "two in one": (
        gzip.compress(GOOD) + gzip.compress(EVIL), FORM, b"gzip", UNPACK, 415, PACKED,
    ),
    "packed twice": (
        gzip.compress(gzip.compress(EVIL)), FORM, b"gzip, gzip", UNPACK, 415, PACKED,
    ),
    "packed twice, stated twice": (
        gzip.compress(gzip.compress(EVIL)), FORM, b"gzip|gzip", UNPACK, 415, PACKED,
    ),
    "packed, and first said not to be": (
        gzip.compress(EVIL), FORM, b"identity|gzip", UNPACK, 415, PACKED,
    ),
    "packed, which is passed, and first said not to be": (
        gzip.compress(EVIL), FORM, b"identity|gzip", {"waf_packed_bodies": "pass"}, None, UNSEEN,
    ),
    "a window that is too wide": (
        brotli.compress(GOOD, lgwin=23), FORM, b"br", UNPACK, 415, PACKED,
    ),
    "the widest of encoders that were told nothing": (
        brotli.compress(GOOD, lgwin=22), FORM, b"br", UNPACK, None, [],
    ),
    "another coding": (b"x", FORM, b"compress", UNPACK, 415, PACKED),
    "what is no zstd": (b"x", FORM, b"zstd", UNPACK, 415, PACKED),
    "what is no brotli": (b"\xff" * 9, FORM, b"br", UNPACK, 415, PACKED),
    **{
        f"{name} of {coding.decode()}": (made(pack), FORM, coding, UNPACK, status, decisions)
        for coding, pack in ((b"br", brotli.compress), (b"zstd", zstandard.compress))
        for name, made, status, decisions in (
            ("good", lambda pack: pack(GOOD), None, []),
            ("evil", lambda pack: pack(EVIL), 403, [("block", "")]),
            ("damaged", lambda pack: pack(GOOD)[:-1], 415, PACKED),
            ("two in one", lambda pack: pack(GOOD) + pack(EVIL), 415, PACKED),
            ("more behind it", lambda pack: pack(GOOD) + b"x", 415, PACKED),
            ("a bomb", lambda pack: pack(bytes(50_000_000)), 413, [("refuse", "body-size")]),
        )
    },
    "a bomb": (gzip.compress(bytes(5_000_000)), FORM, b"gzip", UNPACK, 413, [("refuse", "body-size")]),
    "a bomb, passed": (
        gzip.compress(EVIL + b"&a=" + bytes(5_000_000)), FORM, b"gzip", PASS | UNPACK, 403, [("block", "")],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_a_body_is_inspected_as_the_zone_says(guarded, case):  # noqa: F811
    body, kind, coding, settings, status, decisions = CASES[case]
    assert post(guarded, body, kind, coding, **settings) == (status, decisions)


def test_what_is_behind_a_packed_body_that_has_ended_is_not_passed_unseen(guarded):  # noqa: F811
    """The body goes on beyond what the edge holds."""
    assert post(guarded, gzip.compress(GOOD), coding=b"gzip", complete=False, **UNPACK)[0] == 415


def test_a_packed_multipart_body_that_passes_has_no_later_parts(guarded):  # noqa: F811
    kind = b"multipart/form-data; boundary=b"
    packed = {"waf_packed_bodies": "pass"}
    assert post(guarded, b"\x1f\x8b", kind, b"gzip", complete=False, **packed) == (
        None,
        UNSEEN,
    )


def test_unpacking_stops_at_what_is_inspected():
    exchange = ask(
        headers=[(b"content-type", FORM), (b"content-encoding", b"gzip")],
        body=gzip.compress(bytes(50_000_000)),
    )
    assert len(seen(exchange, Bounds(packed="unpack", rest="pass")).body) == 131_072


@pytest.mark.parametrize(("settings", "octets"), [({}, 131_073), (BIG, 1_025), (BIG | UNPACK, 131_073)])
def test_the_edge_holds_no_more_than_it_has_inspected(settings, octets):
    facts = ask(zone=settings).zone
    made = ZoneRules(facts, zone={PHASE: ruleset(PHASE, [execute()])})
    assert facts.id == ZONE_ID
    assert managed_rules.octets(made) == octets
    assert managed_rules.octets(ZoneRules(facts, zone={PHASE: ruleset(PHASE, [rule("block")])})) == 0


@pytest.mark.parametrize(("coding", "pack"), [(b"br", brotli.compress), (b"zstd", zstandard.compress)])
def test_no_more_is_unpacked_than_is_looked_at(coding, pack):
    bomb = pack(bytes(200_000_000))
    tracemalloc.start()
    found = bodies._unpacked(bomb, coding, 100_000, True)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found == (bytes(100_001), False)
    assert most < 2_000_000


def test_unpacking_is_a_step_of_its_own(guarded, monkeypatch):  # noqa: F811
    """What takes long waits behind it, and with it whatever else comes from there."""
    inspected = []
    monkeypatch.setattr(
        managed_rules, "request_of", lambda *said: inspected.append(said) or request_of(*said)
    )
    guarded.serve(PHASE, zone=[execute()], settings=UNPACK)
    headers = [(b"content-type", FORM), (b"content-encoding", b"br")]
    later = guarded.ask("/", method=b"POST", headers=headers, body=brotli.compress(EVIL))
    assert later.go_on(0) is later
    assert inspected == []
    assert finish(later).status == 403
    assert len(inspected) == 1
