"""The catalog zone of an account by the API; what the feed is told of it."""

import pytest

from edgestead.model.served import KIND_JOURNAL, KIND_NAME, KIND_ZONE, decode_change, decode_name, decode_zone
from edgestead.usecases import limits
from tests.support.api import CREDENTIALS

ACCOUNT_ID = CREDENTIALS.account_id
CATALOG = f"/accounts/{ACCOUNT_ID}/secondary_dns/catalog"
SCOPE = f"catalog:{ACCOUNT_ID}"
NAME = "catalog.example"
_TXT = 16


def newest(api, kind, key=""):
    return api.store.write(lambda tx: tx.newest(SCOPE, kind, key)).result(60).value


def serial(api):
    zone = decode_zone(newest(api, KIND_ZONE))
    assert zone.private
    return int.from_bytes(zone.soa_rdata[-20:-16], "big")


def rdatas(api, *labels):
    """What one of its names has."""
    owner = b"".join(bytes((len(one),)) + one.encode() for one in (*labels, *NAME.split("."))) + b"\0"
    document = newest(api, KIND_NAME, owner.hex())
    return {rdata for rrset in decode_name(document).rrsets for rdata in rrset.rdatas} if document else None


@pytest.mark.inside("the account's own catalog zone stays")
def test_a_catalog_lists_zones_that_are_there_and_come_and_go(api, zone_id):
    assert (api.get(CATALOG).status, api.get(CATALOG).codes) == (404, [9600])

    made = api.put(CATALOG, {"name": "Catalog.Example."}).result
    assert made == {"name": NAME, "version": 2, "serial": serial(api), "zones": 1}
    assert rdatas(api, "version") == {b"\x012"}
    assert rdatas(api, zone_id, "zones") == {b"\7example\3com\0"}

    other = api.post("/zones", {"name": "example.org"}).result["id"]
    assert rdatas(api, other, "zones") == {b"\7example\3org\0"}
    api.delete(f"/zones/{zone_id}")
    assert rdatas(api, zone_id, "zones") is None
    assert api.get(CATALOG).result == made | {"serial": made["serial"] + 2}
    assert serial(api) == made["serial"] + 2

    assert api.delete(CATALOG).result == {"name": NAME}
    assert newest(api, KIND_ZONE) is None
    assert api.delete(CATALOG).codes == [9600]


def test_a_change_is_in_the_journal(api, zone_id):
    api.put(CATALOG, {"name": NAME})
    api.changes.clear()
    api.put(f"/zones/{zone_id}/secondary_dns/catalog", {"groups": ["first"]})

    assert [change.kind for change in api.changes] == [KIND_NAME, KIND_JOURNAL, KIND_ZONE]
    row = decode_change(api.changes[1].doc)

    assert row.whole
    assert row.removed == ()
    assert [rrset.type for _, rrsets in row.added for rrset in rrsets] == [_TXT]


@pytest.mark.inside("the account's own catalog zone stays")
def test_groups_are_of_a_zone_and_wait_for_a_catalog(api, zone_id):
    member = f"/zones/{zone_id}/secondary_dns/catalog"
    assert api.get(member).result == {"catalog": None, "groups": []}

    api.put(member, {"groups": ["signed", "fast", "signed"]})
    api.put(CATALOG, {"name": NAME})
    assert api.get(member).result == {"catalog": NAME, "groups": ["signed", "fast"]}
    assert rdatas(api, "group", zone_id, "zones") == {b"\6signed", b"\4fast"}

    before = serial(api)
    api.put(member, {"groups": ["fast", "signed"]})
    assert serial(api) == before
    api.put(member, {"groups": []})
    assert rdatas(api, "group", zone_id, "zones") is None
    assert serial(api) == before + 1


@pytest.mark.parametrize(
    "name",
    [
        *(None, "", "invalid", "a..b", "with space.example", f"{'a.' * 100}example"),
        *("example.com", "www.example.com", "a.b.example.com"),
    ],
)
@pytest.mark.inside("the account's own catalog zone stays")
def test_a_name_that_cannot_be_one_is_refused(api, zone_id, name):
    assert api.put(CATALOG, {"name": name}).codes == [9601]
    assert api.get(CATALOG).codes == [9600]


@pytest.mark.parametrize("groups", [["a b"], [""], ["x" * 64], [f"g{n}" for n in range(11)], ["ä"]])
def test_a_group_that_cannot_be_one_is_refused(api, zone_id, groups):
    assert api.put(f"/zones/{zone_id}/secondary_dns/catalog", {"groups": groups}).codes == [9601]


def test_a_zone_cannot_have_the_name_of_a_catalog_or_one_above(api):
    api.put(CATALOG, {"name": f"a.{NAME}"})

    assert api.post("/zones", {"name": f"a.{NAME}"}).codes == [1061]
    assert api.post("/zones", {"name": NAME}).codes == [1061]
    assert api.post("/zones", {"name": f"other.{NAME}"}).status == 200


def test_another_name_is_another_catalog(api, zone_id):
    api.put(CATALOG, {"name": "other.example"})
    api.put(CATALOG, {"name": NAME})

    assert rdatas(api, zone_id, "zones") == {b"\7example\3com\0"}
    assert decode_zone(newest(api, KIND_ZONE)).apex == b"\7catalog\7example\0"
    api.post("/zones", {"name": "other.example"})


def test_an_account_with_too_many_zones_has_none(api, zone_id, monkeypatch):
    monkeypatch.setattr(limits, "CATALOG_MEMBERS_MAX", 0)

    assert api.put(CATALOG, {"name": NAME}).codes == [9601]


def test_a_catalog_made_again_goes_on_with_later_serials(api, zone_id):
    first = api.put(CATALOG, {"name": NAME}).result["serial"]
    for n in range(3):
        api.post("/zones", {"name": f"example{n}.com"})
    api.delete(CATALOG)

    assert api.put(CATALOG, {"name": NAME}).result["serial"] == first + 4
