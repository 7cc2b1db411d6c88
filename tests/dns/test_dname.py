"""DNAME (RFC 6672): what is served below one, and that NSD, Knot and BIND say the same."""

import contextlib
import itertools
import random
import socket

import dns.message
import dns.rdatatype
import pytest

from edgestead.dns.trace import trace
from tests.dns import peers
from tests.dns.facts import facts
from tests.dns.serving import Asker, said, table_of, wire

LONG = ".".join(["x" * 60] * 3)
ZONE = f"""
example.test. 3600 SOA ns1.example.test. hostmaster.example.test. 1 7200 900 86400 600
example.test. 3600 NS ns1.example.test.
ns1.example.test. 3600 A 192.0.2.53
old.example.test. 300 DNAME new.example.test.
old.example.test. 300 TXT "here"
old.example.test. 300 MX 10 www.new.example.test.
www.new.example.test. 60 A 192.0.2.1
a.new.example.test. 60 CNAME www.new.example.test.
back.new.example.test. 60 CNAME www.old.example.test.
*.wild.new.example.test. 60 A 192.0.2.2
deep.new.example.test. 60 DNAME far.example.test.
www.far.example.test. 60 AAAA 2001:db8::1
out.example.test. 300 DNAME elsewhere.invalid.
ring.example.test. 300 DNAME ring.example.test.
first.example.test. 300 DNAME second.example.test.
second.example.test. 300 DNAME first.example.test.
long.example.test. 300 DNAME {LONG}.example.test.
cut.example.test. 300 NS ns.cut.example.test.
ns.cut.example.test. 300 A 192.0.2.54
into.example.test. 300 DNAME sub.cut.example.test.
alias.example.test. 300 CNAME www.old.example.test.
ghost.example.test. 300 DNAME nobody.example.test.
"""
APEX = """
apex.test. 3600 SOA ns1.example.test. hostmaster.example.test. 1 7200 900 86400 600
apex.test. 3600 NS ns1.example.test.
apex.test. 300 DNAME old.example.test.
apex.test. 300 A 192.0.2.9
"""
ZONES = {"example.test.": ZONE, "apex.test.": APEX}
YXDOMAIN = 6
REDIRECTED = "old.example.test. 300 dname new.example.test."
SOA = "example.test. 600 soa ns1.example.test. hostmaster.example.test. 1 7200 900 86400 600"


@pytest.fixture(scope="module")
def ask():
    asker = Asker(table_of(ZONES))

    def ask(name, kind="A"):
        return said(dns.message.from_wire(asker.raw(dns.message.make_query(name, kind).to_wire())))

    return ask


def test_a_name_below_is_looked_up_below_the_target(ask):
    assert ask("www.old.example.test.") == (
        "NOERROR",
        "AA",
        [
            REDIRECTED,
            "www.new.example.test. 60 a 192.0.2.1",
            "www.old.example.test. 300 cname www.new.example.test.",
        ],
        [],
        [],
    )


def test_the_name_itself_has_its_own_records(ask):
    assert ask("old.example.test.", "TXT")[2] == ['old.example.test. 300 txt "here"']
    assert ask("old.example.test.", "DNAME")[2] == [REDIRECTED]
    assert ask("old.example.test.", "A") == ("NOERROR", "AA", [], [SOA], [])


def test_an_alias_that_is_asked_for_is_made_and_not_followed(ask):
    for kind in ("CNAME", "ANY"):
        assert ask("www.old.example.test.", kind)[2] == [
            REDIRECTED,
            "www.old.example.test. 300 cname www.new.example.test.",
        ]


def test_the_end_of_the_chain_says_whether_the_name_exists(ask):
    rcode, _, answer, authority, _ = ask("no.old.example.test.")
    assert (rcode, len(answer), authority) == ("NXDOMAIN", 2, [SOA])
    rcode, _, answer, authority, _ = ask("www.old.example.test.", "TXT")
    assert (rcode, len(answer), authority) == ("NOERROR", 2, [SOA])


def test_a_name_that_gets_too_long_does_not_exist_and_says_why(ask):
    rcode, flags, answer, _, _ = ask(f"{'y' * 60}.long.example.test.")
    assert (rcode, flags, len(answer)) == ("YXDOMAIN", "AA", 1)


def test_the_apex_may_redirect_all_of_its_zone(ask):
    assert ask("apex.test.")[2] == ["apex.test. 300 a 192.0.2.9"]
    answer = ask("www.apex.test.")[2]
    assert answer[0] == "apex.test. 300 dname old.example.test."
    assert len(answer) == 5
    assert "www.new.example.test. 60 a 192.0.2.1" in answer


@pytest.mark.parametrize(
    "name", ["a.ring.example.test.", "a.first.example.test.", "b.back.old.example.test."]
)
def test_chains_without_an_end_end(ask, name):
    assert ask(name)[0] in ("NOERROR", "NXDOMAIN", "YXDOMAIN")


def test_a_redirection_that_is_removed_is_gone():
    table = table_of(ZONES)
    zone = table.view.zones[wire("example.test.")]
    zone.put(wire("old.example.test.")[:4], b"", cut=False)
    reply = dns.message.from_wire(
        Asker(table).raw(dns.message.make_query("www.old.example.test.", "A").to_wire())
    )
    assert said(reply)[0] == "NXDOMAIN"


def test_the_explanation_names_the_step():
    steps = trace(table_of(ZONES).view, wire("www.old.example.test."), dns.rdatatype.A)
    assert "old.example.test. redirects all names below it: this one to www.new.example.test." in steps
    assert "1 record with TTL 60" in steps
    (step,) = trace(table_of(ZONES).view, wire(f"{'y' * 60}.long.example.test."), dns.rdatatype.A)[1:]
    assert step.endswith("YXDOMAIN")


# Rings are left out: how often a server goes round one is its own affair.
LABELS = ("www", "a", "back", "x.wild", "wild", "deep", "www.deep", "nobody", "ns", "y" * 60)
OWNERS = ("old", "new", "out", "long", "into", "ghost", "far", "alias", "cut")
KINDS = ("A", "AAAA", "TXT", "MX", "CNAME", "DNAME", "NS", "SOA", "DS")


@pytest.mark.parametrize("peer", ["NSD", "Knot", "BIND"])
def test_other_servers_say_the_same(peer, tmp_path):
    if not peers.is_installed(peer):
        pytest.skip(f"NOT INSTALLED: {peer}. ANSWERS ARE NOT COMPARED WITH IT.")
    zones = {"example.test.": ZONE}
    ours = Asker(table_of(zones))
    names = [f"{owner}.example.test." for owner in OWNERS]
    names += [f"{label}.{name}" for label, name in itertools.product(LABELS, names)]
    with contextlib.ExitStack() as stack:
        started = stack.enter_context(peers.started(peer, tmp_path, zones))
        client = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        client.settimeout(60)
        client.connect((started.host, started.port))
        for name, kind in random.Random(1).sample(list(itertools.product(names, KINDS)), 600):
            query = dns.message.make_query(name, kind, use_edns=0, payload=1232).to_wire()
            client.send(query)
            theirs, mine = facts(client.recv(65_535)), facts(ours.raw(query))
            if peer == "Knot" and mine.rcode == YXDOMAIN:  # docs/differences.md
                mine, theirs = (reply._replace(rcode=0, authority=()) for reply in (mine, theirs))
            assert meaning(mine) == meaning(theirs), f"{name} {kind}\n ours   {mine}\n theirs {theirs}"


def meaning(reply):
    """Without addresses that somebody adds, and the authority of an answer."""
    return reply.rcode, reply.flags & 0x0400, reply.answer, () if reply.answer else reply.authority
