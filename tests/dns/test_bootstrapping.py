"""Signals of keys under name servers' names (RFC 9615), as a parent's program looks for them."""

import dns.name
import dns.rdatatype
import pytest

from edgestead.model import dnssec, names
from edgestead.usecases.change.edit import ZoneEdit
from edgestead.usecases.serving import bootstrapping, keyset
from edgestead.usecases.zone import signing
from tests.dns.signed import DAY_US, Signed, verify, zone_text
from tests.dns.test_signed import judge_of

ZONE, HOSTS = "example.com", "edge.internal"
SERVERS = ("ns1.edge.internal", "ns2.edge.internal")


@pytest.fixture(params=["csk", "ksk-zsk"])
def signed(tmp_path, request):
    made = Signed(tmp_path)
    made.later(-14 * DAY_US)  # verifiers know the machine's clock alone
    made.zone(HOSTS)
    for server in SERVERS:
        made.add(HOSTS, server, "A", "192.0.2.53")
    made.zone(ZONE)
    made.add(ZONE, "www", "A", "192.0.2.1")
    made.layout = request.param
    yield made
    made.close()


def sign(signed, zone):
    body = {"status": "active", "key_layout": signed.layout}
    assert signed.api.patch(f"/zones/{signed.ids[zone]}/dnssec", body).status == 200
    signed.take()


def offer(signed):
    """Until the zone asks its parent for a DS."""
    signed.later(2 * DAY_US)
    signed.work()


def unsign(signed):
    signed.set(HOSTS, "disabled")
    signed.parent_says(HOSTS)
    signed.later(3 * DAY_US)
    signed.parent_says(HOSTS)
    signed.work()
    assert signed.state(HOSTS) is None


def signals(signed, zone=ZONE):
    """What a validating resolver finds, by name server and type; each is proven."""
    ask = signed.asker()
    judge = judge_of(signed, ask)
    found = {}
    for server in SERVERS:
        for kind in ("CDS", "CDNSKEY"):
            name = dns.name.from_text(f"_dsboot.{zone}._signal.{server}.")
            reply = ask(name, kind, want_dnssec=True, payload=4096)
            rrset = next((one for one in reply.answer if one.rdtype == dns.rdatatype.from_text(kind)), None)
            if rrset is not None:
                judge.verify(reply.answer, rrset)
                found[server, kind] = sorted(one.to_text() for one in rrset)
    return found


def names_of(signed):
    """The names with records that secondaries of the zone of the name servers have."""
    return {line.split()[0].rstrip(".") for line in zone_text(signed.table, f"{HOSTS}.").splitlines()}


def verify_hosts(signed, folder):
    """By those that know CDS elsewhere than at an apex: kzonecheck 3.2 looks for the DNSKEY there."""
    programs = ("dnssec-verify", "ldns-verify-zone")
    verify(zone_text(signed.table, f"{HOSTS}."), f"{HOSTS}.", folder, programs)


def at_apex(signed, zone=ZONE):
    ask, found = signed.asker(), {}
    for kind in ("CDS", "CDNSKEY"):
        reply = ask(zone, kind)
        if reply.answer:
            found[kind] = sorted(one.to_text() for one in reply.answer[0])
    return found


def wanted(signed, zone=ZONE):
    said = at_apex(signed, zone)
    assert said
    return {(server, kind): said[kind] for server in SERVERS for kind in said}


@pytest.mark.parametrize("order", [(HOSTS, ZONE), (ZONE, HOSTS)])
def test_a_zone_says_the_same_below_its_name_servers_names(signed, tmp_path, order):
    sign(signed, order[0])
    if order[0] == ZONE:
        offer(signed)
    sign(signed, order[1])
    offer(signed)

    assert signals(signed) == wanted(signed)
    verify_hosts(signed, tmp_path)
    signed.verify(ZONE, tmp_path)


def test_the_key_of_the_zone_signs_them_as_any_other_record(signed):
    """The key that the parent knows signs the keys of its own zone, and no others."""
    sign(signed, HOSTS)
    sign(signed, ZONE)
    offer(signed)
    (zone_key,) = (keyset.tag(row) for row in signed.keys(HOSTS) if keyset.signs_zone(row))
    name = f"_dsboot.{ZONE}._signal.{SERVERS[0]}".removesuffix(f".{HOSTS}")
    found = signed.signatures(HOSTS)
    tags = {dnssec.tag_of_rrsig(found[name, type_]) for type_ in (dnssec.CDS, dnssec.CDNSKEY)}
    assert tags == {zone_key}


def test_they_follow_the_keys_and_go_with_them(signed, tmp_path):
    sign(signed, HOSTS)
    sign(signed, ZONE)
    offer(signed)
    first = signals(signed)
    signed.api.post(f"/zones/{signed.ids[ZONE]}/dnssec/roll", {})
    for _ in range(4):
        offer(signed)
    assert signals(signed) == wanted(signed) != first

    rows = signed.keys(ZONE)
    signed.parent_says(ZONE, *keyset.digests(names.wire_from_text(ZONE), rows))
    signed.set(ZONE, "disabled")
    assert at_apex(signed)["CDS"] == ["0 0 0 00"]
    assert signals(signed) == {}, "a signal is for a parent without a DS"
    verify_hosts(signed, tmp_path)


def test_a_zone_that_goes_takes_its_signals_along(signed, tmp_path):
    sign(signed, HOSTS)
    sign(signed, ZONE)
    offer(signed)
    assert "_dsboot" in zone_text(signed.table, f"{HOSTS}.")
    signed.api.delete(f"/zones/{signed.ids[ZONE]}")
    signed.take()
    assert "_dsboot" not in zone_text(signed.table, f"{HOSTS}.")
    verify_hosts(signed, tmp_path)


def test_a_zone_that_is_signed_no_longer_vouches_for_nobody(signed):
    sign(signed, ZONE)
    offer(signed)
    assert "_dsboot" not in zone_text(signed.table, f"{HOSTS}."), "it is not signed yet"
    sign(signed, HOSTS)
    offer(signed)
    assert signals(signed)
    unsign(signed)
    assert "_dsboot" not in zone_text(signed.table, f"{HOSTS}.")


def test_many_zones_names_come_and_go_a_few_in_a_transaction(signed, monkeypatch, tmp_path):
    """A server's own name servers may be those of ten thousand zones, and have as many below them."""
    monkeypatch.setattr(signing, "OTHERS_AT_ONCE", 2)
    monkeypatch.setattr(signing, "LOOKED_AT_ONCE", 3)
    monkeypatch.setattr(signing, "SIGNED_AT_ONCE", 4)
    others, refresh, counts = [f"n{number}.test" for number in range(5)], ZoneEdit.refresh, []
    for zone in others:
        signed.zone(zone)
        sign(signed, zone)
    for number in range(5):
        signed.zone(f"kid{number}.{HOSTS}")
    signed.work()
    offer(signed)
    monkeypatch.setattr(
        ZoneEdit, "refresh", lambda edit, found: (counts.append(len(found)), refresh(edit, found))
    )

    sign(signed, HOSTS)
    assert signed.state(HOSTS) == "listing", "the request has done some of it"
    signed.work_once()
    signed.zone("n5.test")
    sign(signed, "n5.test")
    signed.zone(f"a.kid0.{HOSTS}")
    signed.work()
    offer(signed)

    assert all(signals(signed, zone) == wanted(signed, zone) for zone in (*others, "n5.test"))
    text = zone_text(signed.table, f"{HOSTS}.")
    assert [f"kid{number}.{HOSTS}. " in text for number in range(5)] == [True] * 5
    assert f"a.kid0.{HOSTS}. " not in text, "kid0 has it"
    verify_hosts(signed, tmp_path)

    unsign(signed)
    assert not any(word in zone_text(signed.table, f"{HOSTS}.") for word in ("_dsboot", "kid", "RRSIG"))
    assert signed.counts(signed.ids[HOSTS]) == (0, 0)
    assert max(counts) <= 2 * len(SERVERS)


def test_what_somebody_wrote_at_the_name_wins(signed, tmp_path):
    sign(signed, HOSTS)
    signed.add(HOSTS, f"_dsboot.{ZONE}._signal.{SERVERS[0]}", "CNAME", "elsewhere.test")
    signed.add(HOSTS, f"_dsboot.{ZONE}._signal.{SERVERS[1]}", "TXT", '"beside"')
    sign(signed, ZONE)
    offer(signed)

    assert {server for server, _ in signals(signed)} == {SERVERS[1]}
    verify_hosts(signed, tmp_path)


@pytest.mark.parametrize("is_first", [True, False])
def test_a_delegation_hides_signals_below_it_while_it_is_there(signed, tmp_path, is_first):
    sign(signed, HOSTS)
    if not is_first:
        sign(signed, ZONE)
    made = signed.add(HOSTS, f"_signal.{SERVERS[0]}", "NS", "ns.other.test")
    if is_first:
        sign(signed, ZONE)
    offer(signed)
    verify_hosts(signed, tmp_path)
    assert {server for server, _ in signals(signed)} == {SERVERS[1]}

    signed.remove(HOSTS, made.result["id"])
    assert signals(signed) == wanted(signed)
    verify_hosts(signed, tmp_path)


@pytest.mark.parametrize("is_first", [True, False])
@pytest.mark.parametrize("cut", [f"_signal.{SERVERS[0]}", f"lab.{HOSTS}"])
def test_what_a_delegation_hides_of_other_zones_is_not_left_when_signing_ends(signed, cut, is_first):
    """Names of the chain are those that lose what others have there: a hidden name has to have none of it."""
    below = {f"_dsboot.{ZONE}._signal.{SERVERS[0]}", f"kid.lab.{HOSTS}"}
    below = {name for name in below if name.endswith(cut)}
    signed.zone(f"kid.lab.{HOSTS}")
    sign(signed, ZONE)
    offer(signed)
    if not is_first:
        sign(signed, HOSTS)
        assert names_of(signed) >= below
    made = signed.add(HOSTS, cut, "NS", "ns.other.test")
    if is_first:
        sign(signed, HOSTS)
    assert not names_of(signed) & below

    unsign(signed)
    signed.remove(HOSTS, made.result["id"])
    assert names_of(signed) == {HOSTS, *SERVERS}


def test_a_delegation_that_goes_shows_the_zones_of_ours_below_it(signed, tmp_path):
    """Those that begin at no other of ours; it may have come before them."""
    made = signed.add(HOSTS, f"lab.{HOSTS}", "NS", "ns.other.test")
    sign(signed, HOSTS)
    signed.zone(f"kid.lab.{HOSTS}")
    signed.zone(f"a.kid.lab.{HOSTS}")
    signed.remove(HOSTS, made.result["id"])
    assert names_of(signed) == {HOSTS, *SERVERS, f"kid.lab.{HOSTS}"}
    verify_hosts(signed, tmp_path)


def test_a_zone_of_ours_that_begins_above_another_has_it_while_it_is_there(signed, tmp_path):
    sign(signed, HOSTS)
    signed.zone(f"kid.lab.{HOSTS}")
    signed.zone(f"lab.{HOSTS}")
    assert names_of(signed) == {HOSTS, *SERVERS, f"lab.{HOSTS}"}
    verify_hosts(signed, tmp_path)
    signed.api.delete(f"/zones/{signed.ids[f'lab.{HOSTS}']}")
    signed.take()
    assert names_of(signed) == {HOSTS, *SERVERS, f"kid.lab.{HOSTS}"}
    verify_hosts(signed, tmp_path)


def test_a_zone_of_ours_that_begins_between_takes_the_signals_while_it_is_there(signed, tmp_path):
    below = SERVERS[0]
    sign(signed, HOSTS)
    sign(signed, ZONE)
    offer(signed)
    signed.zone(below)
    verify_hosts(signed, tmp_path)
    assert {server for server, _ in signals(signed)} == {SERVERS[1]}, "it is not signed yet"

    sign(signed, below)
    offer(signed)
    assert f"_dsboot.{ZONE}._signal." in zone_text(signed.table, f"{below}.")
    signed.api.delete(f"/zones/{signed.ids[below]}")
    signed.take()
    assert signals(signed) == wanted(signed)
    verify_hosts(signed, tmp_path)


def test_a_zone_does_not_vouch_for_itself(signed):
    sign(signed, HOSTS)
    offer(signed)
    assert at_apex(signed, HOSTS)
    assert signals(signed, HOSTS) == {}


def test_nobody_puts_names_into_a_zone_of_another_account(signed):
    """By calling its hosts name servers of theirs; the server's own are everybody's."""
    sign(signed, HOSTS)
    store, renderer = signed.api.store, signed.api.platform.renderer
    zones = store.read(lambda reader: [bootstrapping._zone_of(reader, name) for name in (ZONE, HOSTS)])
    zone, hosts = zones
    stranger = zone._replace(account_id="another")
    for host, is_said in (("ns1.edge.internal", True), ("www.edge.internal", False)):
        wire = names.wire_from_text(host)
        places = store.read(
            lambda reader, wire=wire: bootstrapping.places(reader, renderer, stranger, [wire])
        )
        assert bool(places) == is_said
        ours = store.read(lambda reader, wire=wire: bootstrapping.places(reader, renderer, zone, [wire]))
        assert list(ours) == [hosts.id]


def test_a_name_that_would_be_too_long_is_left_out(signed):
    sign(signed, HOSTS)
    (zone,) = signed.api.store.read(lambda reader: [bootstrapping._zone_of(reader, ZONE)])
    long = zone._replace(name=".".join(["x" * 56] * 4) + ".test")
    wire = names.wire_from_text(SERVERS[0])
    renderer = signed.api.platform.renderer
    read = signed.api.store.read
    assert read(lambda reader: bootstrapping.places(reader, renderer, long, [wire])) == {}
    assert dnssec.CDS == dns.rdatatype.CDS
