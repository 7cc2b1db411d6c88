"""Dynamic updates against RFC 2136, by messages that dnspython makes: rcodes, order, rules, history."""

import dns.message
import dns.name
import dns.rdataclass
import dns.rdatatype
import dns.update
import pytest

from edgestead.changes import NEWEST
from edgestead.dns import update as wire
from edgestead.model.call import Actor, Call, Profile
from edgestead.model.update import (
    FORMERR,
    NOTAUTH,
    NOTZONE,
    NXDOMAIN,
    NXRRSET,
    REFUSED,
    YXDOMAIN,
    YXRRSET,
    Line,
    NotDone,
)
from edgestead.usecases import limits
from edgestead.usecases.record import updates
from edgestead.usecases.record.updates import Rights
from tests.support.api import CREDENTIALS, LocalApi

ZONE = "example.com"
CALL = Call(
    actor=Actor(kind="account", id=CREDENTIALS.account_id, email="TSIG key test"),
    as_of=NEWEST,
    profile=Profile.SPEC,
    now_us=1_800_000_000_000_000,
    request_id="r",
)

EVERYTHING = Rights()


@pytest.fixture
def api(tmp_path):
    made = LocalApi(tmp_path, as_of=NEWEST)
    yield made
    made.close()


@pytest.fixture
def zone_id(api):
    return api.post("/zones", {"name": ZONE}).result["id"]


@pytest.fixture
def run(api, zone_id):
    """Do what a message says; returns the rcode."""

    def do(message, rights=EVERYTHING, changed=None):
        wanted = wire.read(message.to_wire()) if changed is None else changed(wire.read(message.to_wire()))

        def write(tx):
            return updates.run(CALL, tx, api.platform, zone_id, wanted, rights)

        try:
            api.store.write(write).result(60)
        except NotDone as refusal:
            return refusal.rcode
        return 0

    return do


@pytest.fixture
def shown(api, zone_id):
    return lambda: sorted(
        f"{one['name']} {one['ttl']} {one['type']} {one['content']}"
        for one in api.get(f"/zones/{zone_id}/dns_records?per_page=1000").result
    )


def new():
    return dns.update.UpdateMessage(ZONE)


def test_records_come_change_and_go(run, shown, api, zone_id):
    made = new()
    made.add("www", 300, "A", "192.0.2.1")
    made.add("www", 300, "A", "192.0.2.2")
    made.add("_acme-challenge", 120, "TXT", "token")
    made.add("mail", 3600, "MX", "10 mx.example.com.")
    made.add("_sip._tcp", 3600, "SRV", "1 2 5060 sip.example.com.")
    made.add("h", 3600, "HTTPS", "1 . alpn=h2")
    made.add("d", 3600, "DHCID", "AAIBY2/AuCccgoJbsaxcQc9TUapptP69lOjxfNuVAA2kjEA=")
    assert run(made) == 0
    assert len(shown()) == 7
    assert "www.example.com 300 A 192.0.2.1" in shown()

    changed = new()
    changed.add("www", 600, "A", "192.0.2.1")  # there already: the TTL
    changed.delete("www", "A", "192.0.2.2")
    changed.delete("_acme-challenge", "TXT")
    changed.delete("mail")
    changed.delete("_sip._tcp", "SRV", "1 2 5060 SIP.example.com.")
    changed.delete("nobody")
    assert run(changed) == 0
    assert [line for line in shown() if "DHCID" not in line and "HTTPS" not in line] == [
        "www.example.com 600 A 192.0.2.1"
    ]
    history = api.get(f"/zones/{zone_id}/history").result
    assert len(history) == 2
    assert "TSIG key test" in str(history)
    assert api.post(f"/zones/{zone_id}/history/{history[0]['sequence']}/undo", {}).status == 200
    assert len(shown()) == 7


PREREQUISITES = {  # what a message wants, and the rcode beside www A 192.0.2.1, 192.0.2.2 and txt TXT
    "name in use": (lambda m: m.present("www"), 0),
    "no name in use": (lambda m: m.present("no"), NXDOMAIN),
    "empty non-terminal": (lambda m: m.present("deep"), NXDOMAIN),
    "apex in use": (lambda m: m.present("@"), 0),
    "name not in use": (lambda m: m.absent("no"), 0),
    "a name that is": (lambda m: m.absent("www"), YXDOMAIN),
    "RRset": (lambda m: m.present("www", "A"), 0),
    "no RRset": (lambda m: m.present("www", "AAAA"), NXRRSET),
    "SOA": (lambda m: m.present("@", "SOA"), 0),
    "NS": (lambda m: m.present("@", "NS"), 0),
    "RRset that is not": (lambda m: m.absent("www", "AAAA"), 0),
    "RRset that is": (lambda m: m.absent("www", "A"), YXRRSET),
    "equal RRset": (lambda m: m.present("www", "A", "192.0.2.2", "192.0.2.1"), 0),
    "a part of an RRset": (lambda m: m.present("www", "A", "192.0.2.1"), NXRRSET),
    "more than an RRset": (
        lambda m: m.present("www", "A", "192.0.2.1", "192.0.2.2", "192.0.2.3"),
        NXRRSET,
    ),
    "another case": (lambda m: m.present("MX", "MX", "10 Mail.Example.COM."), 0),
    "text": (lambda m: m.present("txt", "TXT", '"Text"'), 0),
    "text in another case": (lambda m: m.present("txt", "TXT", '"text"'), NXRRSET),
    "outside": (lambda m: m.present(dns.name.from_text("example.net")), NOTZONE),
}


@pytest.mark.parametrize("wanted", PREREQUISITES)
def test_a_prerequisite_decides_before_anything_is_done(run, shown, wanted):
    first = new()
    first.add("www", 300, "A", "192.0.2.1")
    first.add("www", 300, "A", "192.0.2.2")
    first.add("txt", 300, "TXT", '"Text"')
    first.add("mx", 300, "MX", "10 mail.example.com.")
    first.add("a.deep", 300, "A", "192.0.2.1")
    assert run(first) == 0
    before = shown()
    require, rcode = PREREQUISITES[wanted]
    message = new()
    require(message)
    message.add("new", 300, "A", "192.0.2.9")

    assert run(message) == rcode
    assert (shown() == before) is (rcode != 0)


def with_lines(*, prerequisites=(), lines=()):
    return lambda wanted: wanted._replace(
        prerequisites=(*wanted.prerequisites, *prerequisites), updates=(*wanted.updates, *lines)
    )


OWNER = b"\x03www\x07example\x03com\0"
FORMS = {
    "a prerequisite with a TTL": (with_lines(prerequisites=[Line(OWNER, 1, 255, 1, b"")]), FORMERR),
    "a prerequisite of class ANY with data": (
        with_lines(prerequisites=[Line(OWNER, 1, 255, 0, b"\1\2\3\4")]),
        FORMERR,
    ),
    "a prerequisite of another class": (with_lines(prerequisites=[Line(OWNER, 1, 3, 0, b"")]), FORMERR),
    "an update of type ANY": (with_lines(lines=[Line(OWNER, 255, 1, 60, b"")]), FORMERR),
    "an update of type AXFR": (with_lines(lines=[Line(OWNER, 252, 255, 0, b"")]), FORMERR),
    "a deletion with a TTL": (with_lines(lines=[Line(OWNER, 1, 255, 1, b"")]), FORMERR),
    "a deletion of an RRset with data": (with_lines(lines=[Line(OWNER, 1, 255, 0, b"\1\2\3\4")]), FORMERR),
    "a deletion of a record of type ANY": (with_lines(lines=[Line(OWNER, 255, 254, 0, b"")]), FORMERR),
    "another class": (with_lines(lines=[Line(OWNER, 1, 3, 0, b"\1\2\3\4")]), FORMERR),
    "outside": (with_lines(lines=[Line(b"\x03net\0", 1, 1, 60, b"\1\2\3\4")]), NOTZONE),
    "an unknown type": (with_lines(lines=[Line(OWNER, 65280, 1, 60, b"\1")]), REFUSED),
    "data of another form": (with_lines(lines=[Line(OWNER, 1, 1, 60, b"\1\2\3")]), REFUSED),
    "a type that only we write": (with_lines(lines=[Line(OWNER, 46, 1, 60, b"\1" * 40)]), REFUSED),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_line_of_another_form_undoes_the_whole_message(run, shown, form):
    message = new()
    message.add("first", 300, "A", "192.0.2.1")
    changed, rcode = FORMS[form]

    assert run(message, changed=changed) == rcode
    assert shown() == []


def test_aliases_and_the_apex_follow_the_rfc(run, shown, api, zone_id):
    message = new()
    message.add("alias", 300, "CNAME", "one.example.net.")
    message.add("alias", 300, "A", "192.0.2.1")  # beside an alias: ignored
    message.add("alias", 300, "CNAME", "two.example.net.")  # replaces it
    message.add("www", 300, "A", "192.0.2.1")
    message.add("www", 300, "CNAME", "three.example.net.")  # beside data: ignored
    message.add("@", 300, "SOA", "ns.example.com. host.example.com. 4000000000 1 2 3 4")
    message.add("@", 300, "TXT", "kept")
    assert run(message) == 0
    assert shown() == [
        "alias.example.com 300 CNAME two.example.net",
        'example.com 300 TXT "kept"',
        "www.example.com 300 A 192.0.2.1",
    ]
    gone = new()
    gone.delete("@")
    gone.delete("@", "SOA")
    gone.delete("@", "NS")
    assert run(gone) == 0
    assert shown()[1:] == ["www.example.com 300 A 192.0.2.1"]
    still = new()
    still.present("@", "SOA")
    still.present("@", "NS")
    assert run(still) == 0


def test_a_ttl_outside_the_limits_becomes_the_nearest_inside(run, shown):
    message = new()
    message.add("short", 0, "A", "192.0.2.1")
    message.add("long", 604800, "A", "192.0.2.1")
    assert run(message) == 0
    assert [line.split()[1] for line in shown()] == ["86400", "60"]


def test_the_rules_of_every_write_hold_and_nothing_of_the_message_stays(run, shown):
    message = new()
    message.add("first", 300, "A", "192.0.2.1")
    message.add("loop", 300, "A", "203.0.113.1")  # the edge's own

    assert run(message) == REFUSED
    assert shown() == []


@pytest.mark.parametrize(
    ("rights", "rcode"),
    [
        (Rights(), 0),
        (Rights(names=("_acme-challenge.www.example.com",), types=("TXT",)), 0),
        (Rights(names=("*.example.com",)), 0),
        (Rights(names=("*.www.example.com",)), 0),
        (Rights(names=("www.example.com",)), REFUSED),
        (Rights(names=("*.mail.example.com",)), REFUSED),
        (Rights(types=("A",)), REFUSED),
    ],
)
def test_a_key_changes_its_names_and_types_alone(run, shown, rights, rcode):
    message = new()
    message.add("_acme-challenge.www", 120, "TXT", "x")

    assert run(message, rights) == rcode
    assert bool(shown()) is (rcode == 0)


@pytest.mark.parametrize("address", ["192.0.2.1", "192.0.2.2"])
def test_a_key_learns_no_origin_of_another_name(api, zone_id, run, address):
    body = {"type": "A", "name": "www", "content": "192.0.2.1", "proxied": True}
    assert api.post(f"/zones/{zone_id}/dns_records", body).status == 200
    guess, is_there = new(), new()
    guess.present("www", "A", address)
    is_there.present("www")

    narrow = Rights(names=("_acme-challenge.www.example.com",))
    assert run(guess, narrow) == REFUSED
    assert run(is_there, narrow) == 0
    assert run(guess, Rights(names=("www.example.com",))) == (0 if address == "192.0.2.1" else NXRRSET)


def test_a_dot_inside_a_label_is_none_between_two(run, shown):
    lines = [Line(b"\x08evil.dyn\7example\3com\0", 16, 1, 300, b"\1x")]

    assert run(new(), Rights(names=("*.dyn.example.com",)), changed=with_lines(lines=lines)) == REFUSED
    assert run(new(), Rights(names=("*.example.com",)), changed=with_lines(lines=lines)) == 0


@pytest.mark.parametrize("change", ["add", "delete"])
def test_a_secondary_zone_is_changed_at_its_primary(api, change):
    id_ = api.post("/zones", {"name": "secondary.example", "type": "secondary"}).result["id"]
    message = dns.update.UpdateMessage("secondary.example")
    getattr(message, change)("www", *((60, "A", "192.0.2.1") if change == "add" else ()))
    wanted = wire.read(message.to_wire())

    with pytest.raises(NotDone) as refused:
        api.store.write(lambda tx: updates.run(CALL, tx, api.platform, id_, wanted, EVERYTHING)).result(60)

    assert refused.value.rcode == NOTAUTH
    assert api.get(f"/zones/{id_}/dns_records").result == []


def test_a_message_that_would_hold_up_every_write_is_refused(run, shown, monkeypatch):
    """Lines times the records and lines at their names."""

    def adds(name, first, count):
        message = new()
        for number in range(first, first + count):
            message.add(name, 300, "A", f"192.0.2.{number}")
        return message

    monkeypatch.setattr(limits, "UPDATE_WORK_MAX", 100)
    assert run(adds("www", 1, 11)) == REFUSED
    assert shown() == []
    assert run(adds("www", 1, 10)) == 0
    assert run(adds("www", 11, 7)) == REFUSED
    assert run(adds("www", 11, 6)) == 0
    asks = new()
    for kind in ("AAAA", "TXT", "MX", "SRV", "CAA"):
        asks.absent("www", kind)
    assert run(asks) == REFUSED
    many = new()
    for number in range(50):
        many.add(f"n{number}", 300, "A", "192.0.2.1")
    assert run(many) == 0


def dhcp_add(name, address, dhcid):
    """Kea and ISC dhcpd, RFC 4703 §5.3.1: a name that nobody has."""
    message = new()
    message.absent(name)
    message.add(name, 1200, "A", address)
    message.add(name, 1200, "DHCID", dhcid)
    return message


def dhcp_replace(name, address, dhcid):
    """§5.3.2: a name of the same client."""
    message = new()
    message.present(name)
    message.present(name, "DHCID", dhcid)
    message.delete(name, "A")
    message.add(name, 1200, "A", address)
    return message


def test_the_requests_of_a_dhcp_server(run, shown):
    ours, others = (
        "AAIBY2/AuCccgoJbsaxcQc9TUapptP69lOjxfNuVAA2kjEA=",
        "AAEBOSD+XR3Os/0LozeXVqcNc7FwCfQdWL3b/NaiUDlW2No=",
    )

    assert run(dhcp_add("host", "192.0.2.7", ours)) == 0
    assert run(dhcp_add("host", "192.0.2.8", others)) == YXDOMAIN
    assert run(dhcp_replace("host", "192.0.2.8", others)) == NXRRSET
    assert run(dhcp_replace("host", "192.0.2.9", ours)) == 0
    assert [line for line in shown() if " A " in line] == ["host.example.com 1200 A 192.0.2.9"]
    release = new()
    release.present("host", "DHCID", ours)
    release.delete("host", "A", "192.0.2.9")
    assert run(release) == 0
    last = new()
    last.present("host", "DHCID", ours)
    last.absent("host", "A")
    last.absent("host", "AAAA")
    last.delete("host")
    assert run(last) == 0
    assert shown() == []


def test_the_requests_of_external_dns(run, shown):
    """Insert, and remove record by record, with the registry's text beside each name (miekg/dns)."""
    owner = '"heritage=external-dns,external-dns/owner=cluster,external-dns/resource=ingress/default/web"'
    made = new()
    for name in ("web", "*.apps"):
        made.add(name, 0, "A", "192.0.2.1")
        made.add(f"a-{name}" if name[0] != "*" else "a-any.apps", 0, "TXT", owner)
    assert run(made) == 0
    assert len(shown()) == 4
    moved = new()
    moved.delete("web", "A", "192.0.2.1")
    moved.add("web", 0, "A", "192.0.2.2")
    moved.delete("a-web", "TXT", owner)
    moved.add("a-web", 0, "TXT", owner)
    assert run(moved) == 0
    assert "web.example.com 60 A 192.0.2.2" in shown()
    assert len(shown()) == 4
