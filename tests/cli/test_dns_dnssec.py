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
    ("pending", False, "others"): (SAID, True),
    ("active", False, "none"): (SAID, False),  # signed by its primary, whose keys are not looked at
    ("active", False, "others"): (SAID, False),
    ("pending", True, "none"): (SAID, False),
    ("pending", True, "unknown"): (SAID, False),
    ("pending", True, "ours"): ("The parent has it", False),
    ("pending", True, "others"): ("add the DS shown here", True),
    ("active", True, "ours"): (SAID, False),
    ("active", True, "unknown"): (SAID, False),
    ("active", True, "none"): ("no longer", False),
    ("active", True, "others"): ("add the DS shown here", True),
    ("pending-disabled", True, "ours"): (SAID, False),
    ("pending-disabled", True, "others"): (SAID, False),
    ("pending-disabled", True, "unknown"): (SAID, False),
    ("pending-disabled", True, "none"): (SAID, False),
}


def shown(status, has_key):
    keys = [{"ds": OURS}, {"ds": None}] if has_key else []
    return {"status": status, "ds": OURS if has_key else None, "keys": keys, "next": SAID, "is_bogus": False}


@pytest.mark.parametrize(("state", "told"), ADVICE.items(), ids=str)
def test_every_status_has_its_next_step(state, told):
    status, has_key, there = state
    finding = find(shown(status, has_key), FINDINGS[there])
    advice = advise("example.com", shown(status, has_key), finding)

    assert finding == there
    assert (told[0] in advice.words, advice.is_broken) == (True, told[1])


@pytest.mark.parametrize(("there", "is_broken"), [("others", True), ("unknown", True), ("none", False)])
def test_what_the_server_says_of_a_forged_zone_is_told_in_its_words(there, is_broken):
    advice = advise("example.com", shown("pending", has_key=True) | {"is_bogus": True}, there)

    assert advice == (SAID, is_broken)


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


@pytest.mark.parametrize(("flag", "is_on"), [("--multi-signer", True), ("--no-multi-signer", False)])
def test_another_signer_is_told_when_it_is_switched_on(edgecli, kv_server, flag, is_on):
    zone_id = kv_server.make_zone("signers.example")
    path = f"/zones/{zone_id}/dnssec"
    kv_server.call("PATCH", path, {"dnssec_multi_signer": not is_on})
    late = edgecli("dns", "dnssec", "signers.example", "off", flag)
    done = edgecli("dns", "dnssec", "signers.example", "on", flag, "--parent", "127.0.0.1:9")
    shown = kv_server.call("GET", path).result
    kv_server.call("DELETE", f"/zones/{zone_id}")

    assert (late.code, "--multi-signer goes with `on`" in late.err) == (2, True)
    assert (done.code, shown["status"], shown["dnssec_multi_signer"]) == (0, "pending", is_on), done.err
