"""What an account says of transfers: the table on top of `dns.outgoing`, row by row and as a model."""

from ipaddress import ip_address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgestead.dns.keyring import Keyring
from edgestead.dns.outgoing import Outgoing, Word
from edgestead.model import names
from edgestead.model.transfers import KIND_ACL, KIND_OUTGOING, ServedAcl, ServedOutgoing, ServedPeer, encode
from tests.dns.serving import Change

APEX, OTHER = names.wire_from_text("example.com"), names.wire_from_text("example.net")
ACCOUNT, HOME, RANGE, AWAY = "a", "192.0.2.53", "198.51.100.0/24", "203.0.113.1"
NEAR = "198.51.100.7"


def peer(ip=HOME, key_id="", *, tls=False):
    return ServedPeer(ip, 53, key_id, tls)


def outgoing(*peers, enabled=True, ranges=()):
    made = Outgoing()
    made.take_zone(None, encode(ServedOutgoing(APEX, ACCOUNT, enabled, peers, 0)))
    made.take_ranges(ACCOUNT, encode(ServedAcl(ranges)))
    made.take_ranges("another", encode(ServedAcl((f"{AWAY}/32",))))
    return made


def says(made, address=HOME, key_id="", *, private=False, apex=APEX):
    return made.says(apex, ip_address(address), key_id, private=private)


ROWS = [
    # peers, ranges, address, key, private, word
    ((), (), HOME, "", False, Word.UNSAID),
    ((), (RANGE,), NEAR, "", False, Word.OPEN),
    ((), (RANGE,), AWAY, "", False, Word.UNSAID),
    ((peer(),), (), HOME, "", False, Word.OPEN),
    ((peer(),), (), AWAY, "", False, Word.UNSAID),
    ((peer(),), (RANGE,), NEAR, "", False, Word.OPEN),
    ((peer(key_id="k"),), (), HOME, "", False, Word.UNSAID),
    ((peer(key_id="k"),), (), HOME, "other", False, Word.UNSAID),
    ((peer(key_id="k"),), (), HOME, "k", False, Word.OPEN),
    ((peer(key_id="k"),), (), AWAY, "k", False, Word.UNSAID),
    ((peer(key_id="k"),), (RANGE,), NEAR, "", False, Word.UNSAID),
    ((peer(key_id="k"),), (RANGE,), NEAR, "k", False, Word.OPEN),
    ((peer(tls=True),), (), HOME, "", False, Word.REFUSED),
    ((peer(tls=True),), (), HOME, "", True, Word.OPEN),
    ((peer(tls=True),), (RANGE,), NEAR, "", False, Word.UNSAID),
    ((peer(tls=True),), (RANGE,), NEAR, "", True, Word.OPEN),
    ((peer(key_id="k", tls=True),), (), AWAY, "k", False, Word.REFUSED),
    ((peer(key_id="k", tls=True),), (), HOME, "k", True, Word.OPEN),
    ((peer("", "k"),), (), HOME, "k", False, Word.UNSAID),
    ((peer("", "k"),), (RANGE,), NEAR, "k", False, Word.OPEN),
]


@pytest.mark.parametrize(("peers", "ranges", "address", "key_id", "private", "word"), ROWS)
def test_a_zone_is_open_to_whom_its_peers_and_ranges_name(peers, ranges, address, key_id, private, word):
    assert says(outgoing(*peers, ranges=ranges), address, key_id, private=private) is word


def test_of_other_zones_nothing_is_said_and_of_a_closed_one_only_tls():
    made = outgoing(peer(), peer("192.0.2.54", tls=True), enabled=False, ranges=(RANGE,))

    assert says(made, apex=OTHER) is Word.UNSAID
    assert {says(made, address) for address in (HOME, NEAR, AWAY)} == {Word.CLOSED}
    assert says(made, "192.0.2.54") is Word.REFUSED
    assert made.targets(APEX) == {}


def test_addresses_in_ipv6_form_are_the_ipv4_addresses_that_they_are():
    made = outgoing(peer(f"::ffff:{HOME}"), ranges=(f"::ffff:{NEAR}/128",))
    assert {says(made, address) for address in (HOME, NEAR)} == {Word.OPEN}
    assert says(made, AWAY) is Word.UNSAID
    assert made.targets(APEX) == {(HOME, 53): ""}


def test_peers_with_an_address_are_told():
    made = outgoing(peer(), peer("", "k"), ServedPeer("2001:db8::53", 5353, "k", False))

    assert made.targets(APEX) == {(HOME, 53): "", ("2001:db8::53", 5353): "k"}


def test_documents_come_go_with_their_zone_and_outlive_a_warm_start():
    document = encode(ServedOutgoing(APEX, ACCOUNT, True, (peer(),), 0))
    ring = Keyring()
    ring.take(
        [
            Change("zone", KIND_OUTGOING, "", document),
            Change("tsig", KIND_ACL, ACCOUNT, encode(ServedAcl((RANGE,)))),
        ]
    )
    warm = Keyring()
    warm.restore(ring.rows())
    for one in (ring, warm):
        assert says(one.outgoing, NEAR) is Word.OPEN

    ring.take([Change("tsig", KIND_ACL, ACCOUNT, None)])
    assert says(ring.outgoing, NEAR) is Word.UNSAID
    ring.take([Change("zone", "", "", None)])
    assert says(ring.outgoing) is Word.UNSAID
    assert ring.rows() == []


ADDRESSES = st.sampled_from([HOME, NEAR, AWAY])
PEERS = st.builds(peer, st.sampled_from([HOME, AWAY, ""]), st.sampled_from(["", "k", "l"]), tls=st.booleans())


@given(
    st.lists(PEERS, max_size=3),
    st.booleans(),
    st.booleans(),
    ADDRESSES,
    st.sampled_from(["", "k", "l"]),
    st.booleans(),
)
def test_nothing_that_a_peer_asks_for_is_left_out(peers, enabled, ranged, address, key_id, private):
    made = outgoing(*peers, enabled=enabled, ranges=(RANGE,) if ranged else ())
    word = says(made, address, key_id, private=private)

    named = [one for one in peers if one.ip == address or (one.key_id and one.key_id == key_id)]
    if any(one.tls for one in named) and not private:
        assert word is Word.REFUSED
    elif not enabled:
        assert word is Word.CLOSED
    elif word is Word.OPEN:
        from_range = ranged and ip_address(address) in ip_network(RANGE)
        assert (from_range and not peers) or any(
            (from_range or one.ip == address)
            and (not one.key_id or one.key_id == key_id)
            and (private or not one.tls)
            for one in peers
        )
