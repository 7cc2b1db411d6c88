"""Signed tokens and clearances: for whom they are valid, and for how long."""

import pytest

from edgestead.edge.tools import clearance
from edgestead.edge.tools.clearance import KINDS, TOKEN_SECONDS, Clearances, Key, Subject, is_solution

NOW = 1_700_000_000
OLD, NEW = Key("00000001", bytes(32)), Key("00000002", bytes(range(32)))
SUBJECT = Subject("5" * 32, "192.0.2.7", b"Browser/1.0")


def with_keys(*keys):
    return Clearances(lambda: keys)


@pytest.fixture
def clearances():
    return with_keys(NEW, OLD)


def solved(token, bits):
    number = 0
    while not is_solution(token.encode(), b"%d" % number, bits):
        number += 1
    return b"%d" % number


@pytest.mark.parametrize("kind", KINDS)
def test_a_solution_of_the_token_is_taken_until_its_end(clearances, kind):
    token = clearances.token(kind, SUBJECT, NOW)
    solution = solved(token, KINDS[kind].bits)

    assert clearances.solves(kind, token.encode(), solution, SUBJECT, NOW)
    assert clearances.solves(kind, token.encode(), solution, SUBJECT, NOW + TOKEN_SECONDS - 1)
    assert not clearances.solves(kind, token.encode(), solution, SUBJECT, NOW + TOKEN_SECONDS)


@pytest.mark.parametrize("solution", [b"", b"x", b"-1", b"1 ", b"1" * 21, b"\xc2\xb2"])
def test_a_solution_is_a_short_number(clearances, solution):
    token = clearances.token("challenge", SUBJECT, NOW).encode()
    assert clearances.solves("challenge", token, b"0", SUBJECT, NOW)
    assert not clearances.solves("challenge", token, solution, SUBJECT, NOW)


def test_work_is_what_makes_a_solution(clearances):
    token = clearances.token("managed_challenge", SUBJECT, NOW).encode()
    wrong = [number for number in range(100) if not is_solution(token, b"%d" % number, 17)]
    assert len(wrong) >= 99
    assert not clearances.solves("managed_challenge", token, b"%d" % wrong[0], SUBJECT, NOW)


OTHERS = [
    Subject("6" * 32, "192.0.2.7", b"Browser/1.0"),
    Subject("5" * 32, "192.0.3.7", b"Browser/1.0"),
    Subject("5" * 32, "2001:db8::1", b"Browser/1.0"),
    Subject("5" * 32, "192.0.2.7", b"Browser/1.1"),
    Subject("5" * 32, "192.0.2.7", b""),
]


@pytest.mark.parametrize("other", OTHERS)
def test_a_clearance_is_no_use_to_anybody_else(clearances, other):
    value = clearances.clearance("js_challenge", SUBJECT, NOW, 300).encode()
    assert clearances.clears("js_challenge", value, SUBJECT, NOW, 300)
    assert not clearances.clears("js_challenge", value, other, NOW, 300)
    token = clearances.token("challenge", SUBJECT, NOW).encode()
    assert not clearances.solves("challenge", token, b"0", other, NOW)


NETWORKS = [
    ("192.0.2.7", "192.0.2.250", True),
    ("192.0.2.7", "192.0.3.7", False),
    ("2001:db8::1", "2001:db8:0:ff::2", True),
    ("2001:db8::1", "2001:db8:0:100::2", False),
]


@pytest.mark.parametrize(("one", "other", "same"), NETWORKS)
def test_who_moves_within_a_network_stays_cleared(clearances, one, other, same):
    value = clearances.clearance("challenge", SUBJECT._replace(client=one), NOW, 300).encode()
    assert clearances.clears("challenge", value, SUBJECT._replace(client=other), NOW, 300) is same


def test_a_clearance_ends(clearances):
    value = clearances.clearance("challenge", SUBJECT, NOW, 300).encode()
    assert clearances.clears("challenge", value, SUBJECT, NOW + 299, 300)
    assert not clearances.clears("challenge", value, SUBJECT, NOW + 300, 300)


TTL = 300
GRACE = 10
ENDS = [
    # the key, its end, and whether the clearance counts at NOW
    (NEW, NOW + TTL, True),
    (NEW, NOW + TTL + 1, False),
    (NEW._replace(signs_until_s=NOW + GRACE), NOW + TTL, True),
    (NEW._replace(signs_until_s=NOW), NOW + TTL, True),
    (NEW._replace(signs_until_s=NOW - 1), NOW + TTL, False),
    (NEW._replace(signs_until_s=NOW - 1), NOW + TTL - 1, True),
    (NEW._replace(signs_until_s=NOW - TTL), NOW + 1, False),
]


@pytest.mark.parametrize(("key", "end_s", "counts"), ENDS)
def test_a_stolen_key_gains_no_more_than_what_a_clearance_lasts_after_its_last_day(key, end_s, counts):
    forged = with_keys(key).clearance("challenge", SUBJECT, end_s - 86_400, 86_400).encode()
    assert with_keys(OLD, key).clears("challenge", forged, SUBJECT, NOW, TTL) is counts


def test_a_retired_key_makes_no_challenge_that_can_be_answered():
    retired = NEW._replace(signs_until_s=NOW - 1)
    late, timely = (with_keys(NEW).token("challenge", SUBJECT, at_s).encode() for at_s in (NOW, NOW - 1))
    assert not with_keys(OLD, retired).solves("challenge", late, b"1", SUBJECT, NOW)
    assert with_keys(OLD, retired).solves("challenge", timely, b"1", SUBJECT, NOW)


def test_nothing_of_it_can_be_changed(clearances):
    value = clearances.clearance("challenge", SUBJECT, NOW, 300)
    key, end, signature = value.split(".")
    later = f"{key}.{int(end) + 1}.{signature}"
    for wrong in (
        later,
        f"{OLD.id}.{end}.{signature}",
        f"{key}.{end}.{signature[:-1]}0",
        value + ".1",
        f"{key}.{end}.",
        f"{key}.0{end}x.{signature}",
        "..",
        "",
        "x" * 4_096,
        f"{key}.{'9' * 90}.a",
    ):
        assert not clearances.clears("challenge", wrong.encode(), SUBJECT, NOW, 300), wrong


@pytest.mark.parametrize("kind", KINDS)
def test_a_clearance_is_of_its_kind_and_no_token(clearances, kind):
    value = clearances.clearance(kind, SUBJECT, NOW, 300).encode()
    token = clearances.token(kind, SUBJECT, NOW).encode()
    assert not clearances.clears(kind, token, SUBJECT, NOW, 300)
    for other in KINDS.keys() - {kind}:
        assert not clearances.clears(other, value, SUBJECT, NOW, 300)


def test_a_new_key_leaves_old_clearances_valid_and_a_forgotten_one_does_not(clearances):
    before = with_keys(OLD).clearance("challenge", SUBJECT, NOW, 300).encode()
    after = clearances.clearance("challenge", SUBJECT, NOW, 300).encode()

    assert clearances.clears("challenge", before, SUBJECT, NOW, 300)
    assert after.startswith(NEW.id.encode())
    assert not with_keys(NEW).clears("challenge", before, SUBJECT, NOW, 300)


def test_a_key_that_another_worker_signs_with_already_is_looked_for():
    answers = [[OLD], [NEW, OLD], None]
    clearances = Clearances(lambda: answers.pop(0))
    token = with_keys(NEW).token("challenge", SUBJECT, NOW).encode()

    assert clearances.solves("challenge", token, b"1", SUBJECT, NOW)
    assert clearances.token("challenge", SUBJECT, NOW).startswith(NEW.id)
    unknown = with_keys(Key("00000003", bytes(32))).token("challenge", SUBJECT, NOW).encode()
    assert not clearances.solves("challenge", unknown, b"1", SUBJECT, NOW)
    assert answers == []


def test_keys_that_are_none_change_nothing():
    answers = [[NEW], [], None]
    clearances = Clearances(lambda: answers.pop(0))
    with pytest.raises(ValueError, match="32 octets"):
        clearances.renew()
    clearances.renew()
    assert clearances.token("challenge", SUBJECT, NOW).startswith(NEW.id)


@pytest.mark.parametrize("keys", [[], [Key("a", b"short")]])
def test_there_is_a_key_of_full_length(keys):
    with pytest.raises(ValueError, match="32 octets"):
        with_keys(*keys)


def test_who_has_a_managed_clearance_needs_no_js_challenge():
    assert KINDS["js_challenge"].accepts == ("js_challenge", "managed_challenge")
    assert [kind.accepts for kind in KINDS.values() if kind.name != "js_challenge"] == [
        ("managed_challenge",),
        ("challenge",),
    ]
    assert clearance.cookie_name("js_challenge") == b"edge_clearance_js"
