"""Stock secondaries of a real server that prove who they are by a key, and those that cannot."""

import base64
import contextlib
import re
from functools import partial

import dns.message
import dns.name
import dns.query
import dns.rcode
import dns.tsig
import dns.xfr
import dns.zone
import pytest

from edgestead.testing.server import wait_until
from tests.dns.secondaries import WITH_KEYS, Secondary, SharedKey, new_place
from tests.support.asking import by_udp

ZONE = "example.com"
KEY, ALGORITHM = "xfr.example.com", "hmac-sha256"
WAIT_SECONDS = 300
INSTALLED = [kind for kind, binary in WITH_KEYS.items() if binary is not None]


def place_of(server):
    host, _, port = server.ready["dns"].rpartition(":")
    return host, int(port)


def make_key(server, name=KEY, **body):
    return server.call("POST", keys_of(server.ready["account_id"]), {"name": name, **body}).result


def keys_of(account_id):
    return f"/accounts/{account_id}/secondary_dns/tsigs"


def shared(made):
    return SharedKey(made["name"].rstrip("."), made["algo"].rstrip("."), made["secret"])


def transfer(server, made=None, zone=ZONE):
    """The names of a zone; raises what dnspython does when it is refused."""
    key = None
    if made is not None:
        key = dns.tsig.Key(made["name"], base64.b64decode(made["secret"]), made["algo"])
    host, port = place_of(server)
    query, _ = dns.xfr.make_query(found := dns.zone.Zone(zone), keyring=key)
    dns.query.inbound_xfr(host, found, query, port=port, timeout=300, lifetime=300)
    return sorted(map(str, found.nodes))


@pytest.mark.skipif(not INSTALLED, reason="NONE OF NSD, KNOT AND BIND IS INSTALLED")
def test_stock_secondaries_follow_with_a_key_and_get_nothing_without(new_server, tmp_path):
    places = {kind: new_place(kind) for kind in INSTALLED}
    notify = [part for place in places.values() for part in ("--notify", f"{KEY}@{place[0]}:{place[1]}")]
    server = new_server(*notify).start()
    zone_id = server.make_zone(ZONE)
    key = shared(make_key(server))
    wrong = key._replace(secret=base64.b64encode(b"x" * 32).decode())
    primary = place_of(server)
    with contextlib.ExitStack() as stack:
        followers, strangers = [], []
        for kind in INSTALLED:
            followers.append(Secondary(kind, tmp_path / kind, primary, [ZONE + "."], key, place=places[kind]))
            stack.callback(followers[-1].stop)
            for name, other in (("none", None), ("wrong", wrong)):
                folder = tmp_path / f"{kind}-{name}"
                strangers.append(Secondary(kind, folder, primary, [ZONE + "."], other, answers=False))
                stack.callback(strangers[-1].stop)
        for number in range(3):
            server.make_record(zone_id, "A", f"h{number}", "192.0.2.1")
            serial = serial_of(server)
            for follower in followers:
                wait_until(partial(has, follower, serial), WAIT_SECONDS)
        refused = 'edge_dns_transfers_total{process="dns-tcp",sent="refused"} '
        wait_until(lambda: counted(server, refused) >= len(strangers), WAIT_SECONDS)
        assert [stranger.serial(ZONE) for stranger in strangers] == [None] * len(strangers)
        answered = 'edge_dns_notifies_total{process="dns-tcp",outcome="answered"} '
        assert counted(server, answered) >= len(followers)


def has(follower, serial):
    return follower.serial(ZONE) == serial


def counted(server, start):
    found = re.search(re.escape(start) + r"(\d+)", server.call("GET", "//metrics").body)
    return int(found[1]) if found else 0


def serial_of(server):
    host, port = place_of(server)
    reply = by_udp(dns.message.make_query(ZONE, "SOA"), host, port)
    return reply.answer[0][0].serial


def test_a_key_counts_from_its_making_to_its_end_also_after_restarts(new_server):
    server = new_server().start()
    server.make_zone(ZONE)
    with pytest.raises(dns.xfr.TransferError, match="REFUSED"):
        transfer(server)

    made = make_key(server, algo="hmac-sha512")
    assert transfer(server, made) == ["@"]
    asked_with(server, made)
    server.stop()
    server.start()
    assert transfer(server, made) == ["@"]
    asked_with(server, made)

    weak = make_key(server, "weak.example", transfer=False)
    with pytest.raises(dns.xfr.TransferError, match="REFUSED"):
        transfer(server, weak)
    server.call("DELETE", f"{keys_of(server.ready['account_id'])}/{made['id']}")
    with pytest.raises(dns.tsig.PeerBadKey):
        transfer(server, made)
    with pytest.raises(dns.tsig.PeerBadKey):
        asked_with(server, made)


def asked_with(server, made):
    """A signed question by UDP has a signed answer, as BIND wants of its primaries."""
    host, port = place_of(server)
    query = dns.message.make_query(ZONE, "SOA")
    query.use_tsig(dns.tsig.Key(made["name"], base64.b64decode(made["secret"]), made["algo"]))
    reply = by_udp(query, host, port)

    assert reply.had_tsig
    assert reply.rcode() == dns.rcode.NOERROR
    assert reply.answer


def test_the_zones_of_another_account_are_not_a_keys(new_server):
    server = new_server().start()
    server.make_zone(ZONE)
    other = server.call("POST", "/accounts", {"name": "other"}).result["id"]
    made = server.call("POST", keys_of(other), {"name": "theirs.example"}).result

    with pytest.raises(dns.xfr.TransferError, match="REFUSED"):
        transfer(server, made)
