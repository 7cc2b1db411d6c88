"""The feed's changes in, and what queries see of them and when."""

import threading

import msgspec
import pytest

from edgestead.dns.table import SLICE, Table
from edgestead.model.served import ServedName, ServedRRset, ServedZone, decode_zone, encode
from tests.dns.serving import Asker, Change, gone, name_change, said, wire, zone_change

APEX = "example.test."
SOA = "example.test. 600 soa ns1.example.net. hostmaster.example.net. 1 7200 900 86400 600"
NXDOMAIN = ("NXDOMAIN", "AA", [], [SOA], [])
NODATA = ("NOERROR", "AA", [], [SOA], [])
REFUSED = ("REFUSED", "", [], [], [])


def a(owner, address="192.0.2.1"):
    return name_change("z", APEX, f"{owner}.{APEX}", ("A", 300, address))


def answer(owner, address="192.0.2.1"):
    return ("NOERROR", "AA", [f"{owner}.{APEX} 300 a {address}"], [], [])


@pytest.fixture
def table():
    table = Table()
    table.apply([zone_change("z", APEX), name_change("z", APEX, APEX, ("NS", 300, "ns1.example.net."))])
    return table


@pytest.fixture
def ask(table):
    asker = Asker(table)
    return lambda name, kind="A": said(asker(f"{name}.{APEX}" if name else APEX, kind))


def test_a_change_is_in_the_next_answer_however_often_the_old_one_was_given(table, ask):
    table.apply([a("www")])
    before = [ask("www") for _ in range(3)]

    table.apply([a("www", "192.0.2.2")])

    assert before == [answer("www")] * 3
    assert [ask("www") for _ in range(2)] == [answer("www", "192.0.2.2")] * 2


RRSIG = ("RRSIG", 300, "A 13 3 300 20300101000000 20290101000000 1 example.test. AAAA")
NSEC = ("NSEC", 300, "example.test. A RRSIG NSEC")
OF_NSEC = ("RRSIG", 300, "NSEC 13 3 300 20300101000000 20290101000000 1 example.test. AAAA")


def test_signatures_that_are_not_given_out_yet_leave_every_cache(table, ask):
    table.apply([a("www")])
    ask("www")
    before = table.view

    both = ("RRSIG", 300, RRSIG[2], OF_NSEC[2])
    signed = name_change("z", APEX, f"www.{APEX}", ("A", 300, "192.0.2.1"), NSEC, both)
    table.apply([signed, zone_change("z", APEX)])
    assert table.view is before

    zone = decode_zone(zone_change("z", APEX, serial=2).doc)
    table.apply([Change("z", "zone", "", encode(msgspec.structs.replace(zone, soa_rrsigs=(b"\0\6" * 20,))))])
    assert table.view is not before
    before = table.view
    table.apply([signed])
    assert table.view is not before, "they are given out now"


def test_a_name_that_goes_is_nxdomain(table, ask):
    table.apply([a("www")])
    ask("www")

    table.apply([gone("z", f"www.{APEX}")])

    assert ask("www") == NXDOMAIN


def test_a_name_without_rrsets_is_gone_too(table, ask):
    table.apply([a("www")])

    table.apply([name_change("z", APEX, f"www.{APEX}")])

    assert ask("www") == NXDOMAIN


def test_what_depends_on_a_name_changes_with_it(table, ask):
    alias = name_change("z", APEX, f"alias.{APEX}", ("CNAME", 60, f"www.{APEX}"))
    table.apply([alias, a("www")])
    ask("alias")

    table.apply([a("www", "192.0.2.7")])

    assert ask("alias")[2][1] == "www.example.test. 300 a 192.0.2.7"


def test_a_new_serial_is_in_soa_and_denials(table, ask):
    ask("", "SOA"), ask("nothing")

    table.apply([zone_change("z", APEX, serial=2)])

    assert " 2 7200" in ask("", "SOA")[2][0]
    assert " 2 7200" in ask("nothing")[3][0]


@pytest.mark.parametrize(
    ("soa_ttl_seconds", "minimum_seconds", "ttl"), [(3600, 60, 60), (30, 600, 30), (0, 600, 0)]
)
def test_a_denial_lives_for_the_smaller_of_the_soas_times(table, ask, soa_ttl_seconds, minimum_seconds, ttl):
    change = zone_change("z", APEX, soa_ttl_seconds=soa_ttl_seconds, minimum_seconds=minimum_seconds)
    table.apply([change])

    assert ask("nothing")[3][0].startswith(f"example.test. {ttl} soa")
    assert ask("", "SOA")[2][0].startswith(f"example.test. {soa_ttl_seconds} soa")


def test_non_terminals_come_and_go_with_the_names_below(table, ask):
    table.apply([a("x.y.z"), a("w.y.z")])
    with_both = [ask(name) for name in ("y.z", "z")]
    table.apply([gone("z", f"x.y.z.{APEX}")])
    with_one = [ask(name) for name in ("x.y.z", "y.z", "z")]
    table.apply([gone("z", f"w.y.z.{APEX}")])

    assert with_both == [NODATA, NODATA]
    assert with_one == [NXDOMAIN, NODATA, NODATA]
    assert [ask(name) for name in ("w.y.z", "y.z", "z")] == [NXDOMAIN] * 3
    assert table.names == 1


def test_a_name_with_names_below_becomes_a_non_terminal(table, ask):
    table.apply([a("z"), a("x.z")])

    table.apply([gone("z", f"z.{APEX}")])
    table.apply([gone("z", f"z.{APEX}")])

    assert (ask("z"), ask("x.z")) == (NODATA, answer("x.z"))


def test_wildcards_come_and_go(table, ask):
    table.apply([a("*.wild"), a("*.a.*.odd"), a("here.stays"), a("*.stays")])
    with_them = [ask(name) for name in ("x.wild", "x.odd", "wild", "x.stays")]

    table.apply([gone("z", f"{owner}.{APEX}") for owner in ("*.wild", "*.a.*.odd", "*.stays")])

    assert with_them == [answer("x.wild"), NODATA, NODATA, answer("x.stays")]
    assert [ask(name) for name in ("x.wild", "x.odd", "wild", "x.stays")] == [NXDOMAIN] * 4


def test_delegations_come_and_go(table, ask):
    table.apply([a("host.cut"), name_change("z", APEX, f"cut.{APEX}", ("NS", 300, f"host.cut.{APEX}"))])
    with_it = ask("host.cut")

    table.apply([a("cut")])

    assert with_it[1:4] == ("", [], ["cut.example.test. 300 ns host.cut.example.test."])
    assert (ask("host.cut"), ask("cut")) == (answer("host.cut"), answer("cut"))


def test_an_aliass_target_zone_may_come_and_go(table, ask):
    away = "away.invalid."
    table.apply([name_change("z", APEX, f"alias.{APEX}", ("CNAME", 60, f"www.{away}"))])
    alone = ask("alias")
    table.apply([zone_change("y", away), name_change("y", away, f"www.{away}", ("A", 60, "192.0.2.9"))])
    with_target = ask("alias")
    table.apply([Change("y")])

    assert [len(alone[2]), len(with_target[2]), len(ask("alias")[2])] == [1, 2, 1]


@pytest.mark.parametrize("order", [1, -1])
def test_a_zone_is_served_when_it_is_complete(order):
    table = Table()
    asker = Asker(table)
    changes = [zone_change("z", APEX), a("www")][::order]

    table.apply(changes[:1])
    early = said(asker("www.example.test."))
    table.apply(changes[1:])

    assert early == (NXDOMAIN if order == 1 else REFUSED)
    assert said(asker("www.example.test.")) == answer("www")


@pytest.mark.parametrize("drop", [Change("z"), Change("z", "zone")], ids=["scope", "zone document"])
def test_a_dropped_zone_is_refused(table, ask, drop):
    table.apply([a("www")])
    ask("www")

    table.apply([drop])

    assert (ask("www"), table.zones, table.names) == (REFUSED, 0, 0)


def test_a_zone_sent_again_in_one_batch_holds_only_what_was_sent_again(table, ask):
    table.apply([a("old"), a("www")])

    table.apply(
        [a("older"), Change("z"), a("www"), zone_change("z", APEX), a("new"), gone("z", f"www.{APEX}")]
    )

    assert [ask(name) for name in ("old", "older", "www", "new")] == [NXDOMAIN] * 3 + [answer("new")]


def test_of_two_scopes_with_one_apex_the_later_is_served_until_it_goes(table, ask):
    table.apply([a("www")])
    table.apply([zone_change("y", APEX), name_change("y", APEX, f"www.{APEX}", ("A", 300, "192.0.2.2"))])
    later = ask("www")

    table.apply([Change("z")])

    assert later == answer("www", "192.0.2.2")
    assert ask("www") == answer("www", "192.0.2.2")


def test_changes_for_others_and_for_what_is_not_there_change_nothing(table, ask):
    table.apply([a("www")])

    table.apply(
        [
            Change("z", "setting", "x", b"\xc1"),
            Change("nobody"),
            gone("nobody", f"www.{APEX}"),
            gone("z", f"nothing.{APEX}"),
        ]
    )

    assert ask("www") == answer("www")
    assert (table.zones, table.names) == (1, 2)


def document(owner, kind=1, ttl=300, rdatas=(b"abcd",), apex=APEX):
    served = ServedName(wire(apex), owner, (ServedRRset(kind, ttl, rdatas),))
    return Change("z", "name", owner.hex(), encode(served))


def soa_document(apex, rdata):
    return Change("z", "zone", "", encode(ServedZone(apex, 60, rdata)))


BAD = {
    "no msgpack": Change("z", "name", "", b"\xc1"),
    "another shape": Change("z", "name", "", encode(7)),
    "another apex": document(wire("a.test."), apex="test."),
    "an SOA cut": soa_document(wire(APEX), b"\0\0" + b"1" * 19),
    "an apex that is no name": soa_document(b"\7example", b"\0\0" + b"1" * 20),
    "an apex with octets behind": soa_document(wire(APEX) + b"\0", b"\0\0" + b"1" * 20),
    "a key that is no name": Change("z", "name", "zz", None),
}
UNSERVABLE = {
    "a name outside the zone": document(wire("www.example.invalid.")),
    "a name that only ends in the same octets": document(b"\x0bwww" + wire(APEX)),
    "a name cut": document(wire("www.example.test.")[:-1]),
    "octets behind the name": document(wire("www.example.test.") + b"\0"),
    "a meta type": document(wire("www.example.test."), kind=255),
    "an OPT record": document(wire("www.example.test."), kind=41),
    "a negative TTL": document(wire("www.example.test."), ttl=-1),
    "a TTL over RFC 2181's": document(wire("www.example.test."), ttl=2**31),
    "a CNAME that is no name": document(wire("www.example.test."), kind=5, rdatas=(b"\x05abc",)),
    "an MX with octets behind": document(wire("www.example.test."), kind=15, rdatas=(b"\0\x0a\0\0",)),
    "rdata too long": document(wire("www.example.test."), kind=16, rdatas=(b"x" * 65536,)),
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
def test_a_bad_document_stops_its_batch_before_anything_happens(table, ask, bad):
    table.apply([a("www")])

    with pytest.raises((ValueError, msgspec.ValidationError)):
        table.apply([a("new"), a("www", "192.0.2.66"), zone_change("z", APEX, serial=9), bad])

    assert (ask("new"), ask("www")) == (NXDOMAIN, answer("www"))


@pytest.mark.parametrize("bad", UNSERVABLE.values(), ids=UNSERVABLE)
def test_a_name_that_cannot_be_served_stops_its_zone_alone(table, ask, bad):
    table.apply([a("www"), bad, zone_change("z", APEX, serial=9)])

    assert ask("www")[0] == "SERVFAIL"


def test_a_batch_of_many_slices_is_applied_whole_and_in_order(table, ask):
    names = [f"n{i}" for i in range(3 * SLICE + 7)]

    table.apply([a(name) for name in names] + [a(names[0], "192.0.2.2"), gone("z", f"{names[1]}.{APEX}")])

    assert ask(names[0]) == answer(names[0], "192.0.2.2")
    assert ask(names[1]) == NXDOMAIN
    assert {ask(name)[0] for name in names[2:]} == {"NOERROR"}


def test_no_query_sees_half_a_batch_and_none_after_the_return_sees_the_old(table):
    """Two names change together, over and over, while another thread asks for both under one lock."""
    rounds, seen, bad = 300, [], []
    applied = [0]
    done = threading.Event()

    def watch():
        asker = Asker(table)
        while not done.is_set():
            least = applied[0]
            with table.lock:
                both = [asker(f"{name}.{APEX}").answer for name in ("one", "two")]
            numbers = {int(str(rrset[0][0]).rpartition(".")[2]) for rrset in both if rrset}
            if len(numbers) > 1 or (numbers and min(numbers) < least % 250):
                bad.append((least, both))
            seen.append(numbers)

    watcher = threading.Thread(target=watch)
    watcher.start()
    for i in range(1, min(rounds, 250)):
        table.apply([a("one", f"192.0.2.{i}"), a("two", f"192.0.2.{i}")])
        applied[0] = i
    done.set()
    watcher.join()

    assert not bad
    assert len(seen) > 1


def test_caches_are_bounded(table, ask, monkeypatch):
    monkeypatch.setattr("edgestead.dns.kept.ENTRIES_MAX", 10)
    names = [f"n{i}" for i in range(40)]
    table.apply([a(name) for name in names])
    asker = Asker(table)

    for name in names * 2:
        assert said(asker(f"{name}.{APEX}")) == answer(name)

    assert len(asker.responder.exact) <= 10


def test_only_replies_of_rcode_0_to_existing_names_in_lower_case_are_kept(table):
    alias = name_change("z", APEX, f"alias.{APEX}", ("CNAME", 60, f"nothing.{APEX}"))
    cut = name_change("z", APEX, f"cut.{APEX}", ("NS", 60, "ns1.example.net."))
    table.apply([a("www"), a("*.wild"), alias, cut])
    asker = Asker(table)

    for name in ("wWw", "nothing", "x.wild", "alias", "cut", "x.cut", "www") * 2:
        asker(f"{name}.{APEX}")

    assert len(asker.responder.exact) == 1


def test_what_was_kept_for_an_older_table_is_freed_bit_by_bit(table):
    names = [f"n{i}" for i in range(600)]
    table.apply([a(name) for name in names])
    asker = Asker(table)
    for name in names:
        asker(f"{name}.{APEX}")
    old = asker.responder.exact

    table.apply([a("n0", "192.0.2.2")])
    asker("n0.example.test.")
    at_once = 600 - len(old)
    for _ in range(8):
        asker("n0.example.test.")

    assert at_once < 600
    assert len(old) == 0
