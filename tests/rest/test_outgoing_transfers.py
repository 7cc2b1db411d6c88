"""ACLs of an account and outgoing transfers of a zone, as clients of the original API use them."""

import pytest

from edgestead.model import names
from edgestead.model.transfers import (
    KIND_ACL,
    KIND_OUTGOING,
    ServedOutgoing,
    ServedPeer,
    decode_acl,
    decode_outgoing,
)
from edgestead.usecases import limits
from tests.rest.conftest import AT_NEWEST
from tests.support.api import CREDENTIALS

pytestmark = AT_NEWEST
ACCOUNT = f"/accounts/{CREDENTIALS.account_id}/secondary_dns"
UNKNOWN = "f" * 32


@pytest.fixture
def path(zone_id):
    return f"/zones/{zone_id}/secondary_dns/outgoing"


def served(api, zone_id):
    document = api.store.write(lambda tx: tx.newest(zone_id, KIND_OUTGOING, "")).result().value
    return decode_outgoing(document) if document else None


def ranges(api):
    document = api.store.write(lambda tx: tx.newest("tsig", KIND_ACL, CREDENTIALS.account_id)).result().value
    return decode_acl(document).ranges if document else None


def a_peer(api, **more):
    return api.post(f"{ACCOUNT}/peers", {"name": "ns", "ip": "192.0.2.53", **more}).result["id"]


def test_a_zone_is_told_and_transferred_once_it_is_enabled(api, zone_id, path):
    key = api.post(f"{ACCOUNT}/tsigs", {"name": "xfr.example"}).result["id"]
    peer = a_peer(api, port=5353, tsig_id=key, tls=True)
    assert api.get(path).codes == [9622]

    made = api.post(path, {"name": "example.com.", "peers": [peer]}).result
    assert made.keys() == {
        *("id", "name", "peers", "soa_serial"),
        *("checked_time", "created_time", "last_transferred_time"),
    }
    assert (made["name"], made["peers"]) == ("example.com.", [peer])
    assert api.get(path).result == made
    assert api.get(f"{path}/status").result == "Disabled"
    assert api.post(f"{path}/force_notify", {}).codes == [9623]

    assert api.post(f"{path}/enable", {}).result == "Enabled"
    apex, peers = names.wire_from_text("example.com"), (ServedPeer("192.0.2.53", 5353, key, True),)
    assert served(api, zone_id) == ServedOutgoing(apex, CREDENTIALS.account_id, True, peers, 0)
    assert api.post(f"{path}/force_notify", {}).result == "OK"
    assert served(api, zone_id).told == 1

    assert api.post(f"{path}/disable", {}).result == "Disabled"
    assert not served(api, zone_id).enabled
    assert api.put(path, {"name": "other", "peers": []}).result == made | {"name": "other", "peers": []}
    assert api.delete(path).result == {"id": made["id"]}
    assert served(api, zone_id) is None
    assert api.get(f"{path}/status").codes == [9622]


def test_a_peer_that_changes_is_told_and_one_in_use_stays(api, zone_id, path):
    peer = a_peer(api)
    api.post(path, {"peers": [peer]})
    api.put(f"{ACCOUNT}/peers/{peer}", {"name": "ns", "ip": "192.0.2.54", "tls": True})

    assert served(api, zone_id).peers == (ServedPeer("192.0.2.54", 53, "", True),)
    assert api.delete(f"{ACCOUNT}/peers/{peer}").codes == [9604]


def test_an_account_has_ranges(api):
    made = api.post(f"{ACCOUNT}/acls", {"name": "office", "ip_range": "192.0.2.53/28"}).result
    assert made == {"id": made["id"], "name": "office", "ip_range": "192.0.2.53/28"}
    acl = f"{ACCOUNT}/acls/{made['id']}"
    assert api.get(acl).result == made
    assert api.get(f"{ACCOUNT}/acls").result == [made]
    api.put(acl, {"name": "office", "ip_range": "2001:db8::/64"})
    assert ranges(api) == ("2001:db8::/64",)
    assert api.delete(acl).result == {"id": made["id"]}
    assert ranges(api) is None
    assert api.get(acl).codes == [9620]


BAD_ACLS = [
    ({"ip_range": "192.0.2.0/24"}, "/name"),
    ({"name": "x" * 300, "ip_range": "192.0.2.0/24"}, "/name"),
    ({"name": "a"}, "/ip_range"),
    ({"name": "a", "ip_range": "192.0.2.0/23"}, "/ip_range"),
    ({"name": "a", "ip_range": "2001:db8::/63"}, "/ip_range"),
    ({"name": "a", "ip_range": "example.com"}, "/ip_range"),
]


@pytest.mark.parametrize(("body", "pointer"), BAD_ACLS)
def test_a_range_that_is_none_is_refused(api, body, pointer):
    answer = api.post(f"{ACCOUNT}/acls", body)

    assert answer.codes == [9621]
    assert answer.json["errors"][0]["source"]["pointer"] == pointer
    assert ranges(api) is None


def test_peers_that_are_not_there_and_too_many_are_refused(api, path):
    assert api.post(path, {"peers": [UNKNOWN]}).codes == [9623]
    assert api.post(path, {"peers": [f"{n:032x}" for n in range(11)]}).codes == [9623]
    for number in range(limits.TRANSFER_ACLS_MAX):
        api.post(f"{ACCOUNT}/acls", {"name": str(number), "ip_range": "192.0.2.1"})
    assert api.post(f"{ACCOUNT}/acls", {"name": "more", "ip_range": "192.0.2.1"}).codes == [9621]


def test_a_deleted_zone_takes_its_outgoing_transfers_along(api, zone_id, path):
    peer = a_peer(api)
    api.post(path, {"peers": [peer]})
    api.delete(f"/zones/{zone_id}")

    assert api.delete(f"{ACCOUNT}/peers/{peer}").status == 200
