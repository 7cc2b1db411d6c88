"""What `edgecli dns dnssec` tells an operator, for each status and each finding at the parent."""

import pytest

from edgestead.cli.zone.dnssec import _address, advise, find

OURS = "example.com. 3600 IN DS 4711 13 2 " + "AB" * 32
PARENTS = "4711 13 2 " + "ab" * 32
OTHERS = "4712 13 2 " + "ab" * 32
SAID = "What the server says."
FINDINGS = {"ours": frozenset({PARENTS}), "others": frozenset({OTHERS}), "none": frozenset(), "unknown": None}
ADVICE = {  # (status, has a key, what the parent has): words, whether it is broken
    ("disabled", False, "none"): ("edgecli dns dnssec example.com on", False),
    ("disabled", False, "unknown"): ("edgecli dns dnssec example.com on", False),
    ("disabled", False, "others"): ("have the registrar remove it", True),
    ("pending", False, "none"): (SAID, False),
    ("pending", True, "none"): (SAID, False),
    ("pending", True, "unknown"): (SAID, False),
    ("pending", True, "ours"): ("The parent has it", False),
    ("pending", True, "others"): ("replace it", True),
    ("active", True, "ours"): (SAID, False),
    ("active", True, "unknown"): (SAID, False),
    ("active", True, "none"): ("no longer", False),
    ("active", True, "others"): ("replace it", True),
    ("pending-disabled", True, "ours"): (SAID, False),
    ("pending-disabled", True, "others"): (SAID, False),
    ("pending-disabled", True, "unknown"): (SAID, False),
    ("pending-disabled", True, "none"): (SAID, False),
}


def shown(status, has_key):
    keys = [{"ds": OURS}, {"ds": None}] if has_key else []
    return {"status": status, "ds": OURS if has_key else None, "keys": keys, "next": SAID}


@pytest.mark.parametrize(("state", "told"), ADVICE.items(), ids=str)
def test_every_status_has_its_next_step(state, told):
    status, has_key, there = state
    finding = find(shown(status, has_key), FINDINGS[there])
    advice = advise("example.com", shown(status, has_key), finding)

    assert finding == there
    assert (told[0] in advice.words, advice.is_broken) == (True, told[1])


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("192.0.2.1", (["192.0.2.1"], 53)),
        ("192.0.2.1:5353", (["192.0.2.1"], 5353)),
        ("2001:db8::1", (["2001:db8::1"], 53)),
        ("[2001:db8::1]:5353", (["2001:db8::1"], 5353)),
    ],
)
def test_a_parents_address_may_have_a_port(text, place):
    assert _address(text) == place
