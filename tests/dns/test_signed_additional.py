"""Addresses beside an answer of a signed zone come with their signatures, as far as there is room."""

import dns.flags
import dns.name
import pytest
from dns.rdatatype import RRSIG, A

from tests.dns.signed import Signed
from tests.dns.test_signed import APEX, judge_of

OURS, GLUE, ANY = f"ns9.{APEX}", f"ns1.kid.{APEX}", f"x.any.{APEX}"
REFERRAL, ALIAS = (f"x.kid.{APEX}", "A"), (f"alias.{APEX}", "A")


@pytest.fixture(scope="module")
def signed(tmp_path_factory):
    made = Signed(tmp_path_factory.mktemp("signed"), nameservers=(OURS, ANY))
    made.zone(APEX)
    for name, kind, content in (
        (OURS, "A", "192.0.2.9"),
        (OURS, "AAAA", "2001:db8::9"),
        (GLUE, "A", "192.0.2.1"),
        ("*.any", "A", "192.0.2.2"),
        ("kid", "NS", OURS),
        ("kid", "NS", GLUE),
        ("kid", "NS", ANY),
        ("alias", "CNAME", f"x.kid.{APEX}"),
        ("servers", "CNAME", APEX),
        ("big", "NS", f"many.{APEX}"),
        ("big", "NS", f"ns1.big.{APEX}"),
        (f"ns1.big.{APEX}", "A", "192.0.2.1"),
        *(("many", "A", f"198.51.100.{number}") for number in range(1, 41)),  # 640 octets
    ):
        assert made.add(APEX, name, kind, content).status == 200
    made.set(APEX, "active")
    yield made
    made.close()


def beside(reply):
    """What the additional section has: addresses, and names with signatures of them."""
    addresses = {(str(one.name)[:-1], one[0].to_text()) for one in reply.additional if one.rdtype != RRSIG}
    signatures = {(str(one.name)[:-1], one.covers) for one in reply.additional if one.rdtype == RRSIG}
    return addresses, signatures


ADDRESSES = {(OURS, "192.0.2.9"), (OURS, "2001:db8::9"), (GLUE, "192.0.2.1"), (ANY, "192.0.2.2")}


@pytest.mark.parametrize("question", [REFERRAL, ALIAS], ids=["a referral", "an alias to one"])
def test_what_the_zone_answers_for_is_signed_and_glue_is_not(signed, question):
    ask = signed.asker()
    reply = ask(*question, want_dnssec=True, payload=4096)
    addresses, signatures = beside(reply)

    assert addresses == ADDRESSES
    assert {name for name, _ in signatures} == {OURS, ANY}
    assert len(signatures) == 3
    judge = judge_of(signed, ask)
    for rrset in reply.additional:
        if rrset.rdtype != RRSIG and rrset.name != dns.name.from_text(GLUE):
            judge.verify(reply.additional, rrset)
    assert beside(ask(*question, payload=4096)) == (ADDRESSES, set())


@pytest.mark.parametrize("question", [REFERRAL, ALIAS], ids=["a referral", "an alias to one"])
def test_signatures_are_left_out_before_addresses(signed, question):
    ask = signed.asker()
    whole = len(ask(*question, want_dnssec=True, payload=4096).to_wire())
    seen = []
    for payload in range(512, whole + 40):
        reply = ask(*question, want_dnssec=True, payload=payload)
        assert not reply.flags & dns.flags.TC
        if (found := beside(reply)) not in seen:
            seen.append(found)

    (few, none), (all_addresses, signatures) = seen[-2:]
    assert (few, none) == (ADDRESSES, set())
    assert (all_addresses, len(signatures)) == (ADDRESSES, 3)


@pytest.mark.parametrize("name", [APEX, f"servers.{APEX}"], ids=["the apex", "an alias of it"])
def test_an_answer_with_name_servers_has_signed_addresses(signed, name):
    ask = signed.asker()
    addresses = {one for one in ADDRESSES if one[0] != GLUE}
    reply = ask(name, "NS", want_dnssec=True, payload=4096)
    found, signatures = beside(reply)
    assert (found, {name for name, _ in signatures}, len(signatures)) == (addresses, {OURS, ANY}, 3)
    judge = judge_of(signed, ask)
    for rrset in reply.additional:
        if rrset.rdtype != RRSIG:
            judge.verify(reply.additional, rrset)

    assert beside(ask(name, "NS", payload=4096)) == (addresses, set())
    smaller = len(reply.to_wire()) - 1
    assert beside(ask(name, "NS", want_dnssec=True, payload=smaller)) == (addresses, set())


def test_at_last_only_glue_stays(signed):
    ask = signed.asker()
    question = (f"x.big.{APEX}", "A")
    reply = ask(*question, want_dnssec=True, payload=512)
    assert not reply.flags & dns.flags.TC
    assert beside(reply) == ({(f"ns1.big.{APEX}", "192.0.2.1")}, set())
    (covers,) = beside(ask(*question, want_dnssec=True, payload=4096))[1]
    assert covers == (f"many.{APEX}", A)
