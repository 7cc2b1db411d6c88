"""The SOA record: at most one, at the apex, a second view of the DNS setting `soa`."""

import pytest

from edgestead.model import names, served
from edgestead.model.records import from_wire

CONTENT = "ns.other.test admin.other.test 7 9000 2000 500000 900"
BODY = {"type": "SOA", "name": "@", "content": CONTENT}
SETTING = {
    "mname": "ns.other.test",
    "rname": "admin.other.test",
    "refresh": 9000,
    "retry": 2000,
    "expire": 500000,
    "min_ttl": 900,
    "ttl": 3600,
}
REFUSED = {
    "below the apex": ({"name": "sub"}, 9000),
    "proxied": ({"proxied": True}, 9004),
    "refresh": ({"content": "a.b c.d 1 599 600 500000 900"}, 9007),
    "retry": ({"content": "a.b c.d 1 9000 3601 500000 900"}, 9007),
    "expire": ({"content": "a.b c.d 1 9000 2000 86399 900"}, 9007),
    "minimum": ({"content": "a.b c.d 1 9000 2000 500000 59"}, 9007),
    "retry above refresh": ({"content": "a.b c.d 1 1000 2000 500000 900"}, 9007),
    "too few words": ({"content": "a.b c.d 1 1000"}, 9007),
    "ttl": ({"ttl": 299}, 9021),
    "long ttl": ({"ttl": 86401}, 9021),
}


@pytest.fixture
def settings(zone_id):
    return f"/zones/{zone_id}/dns_settings"


@pytest.fixture
def soa_served(api):
    """What DNS serves now: TTL, and the record without its serial."""

    def last():
        document = [change.doc for change in api.changes if change.kind == served.KIND_ZONE][-1]
        zone = served.decode_zone(document)
        mname, rname, _, *times = from_wire("SOA", zone.soa_rdata).to_content().split()
        return zone.soa_ttl_seconds, " ".join([mname, rname, *times])

    return last


def test_a_record_becomes_the_setting_and_is_served(api, records, settings, soa_served):
    made = api.post(records, BODY).result

    assert (made["content"], made["name"], made["ttl"]) == (CONTENT, "example.com", 1)
    assert api.get(settings).result["soa"] == SETTING
    assert soa_served() == (3600, CONTENT.replace(" 7 ", " "))
    assert api.get(f"{records}?type=SOA").result == [made]
    names_served = [change for change in api.changes if change.kind == served.KIND_NAME and change.doc]
    (apex,) = [one for one in names_served if one.key == names.wire_from_text("example.com").hex()][-1:]
    assert 6 not in [rrset.type for rrset in served.decode_name(apex.doc).rrsets]


def test_the_setting_becomes_the_record(api, records, settings, soa_served):
    path = f"{records}/{api.post(records, {**BODY, 'comment': 'kept'}).result['id']}"

    api.patch(settings, {"soa": {"mname": None, "refresh": 8000, "ttl": 1800}})

    changed = api.get(path).result
    assert changed["content"] == "ns2.edge.internal admin.other.test 7 8000 2000 500000 900"
    assert (changed["ttl"], changed["comment"]) == (1800, "kept")
    assert soa_served() == (1800, changed["content"].replace(" 7 ", " "))


def test_a_change_of_the_record_changes_the_setting(api, records, settings, soa_served):
    path = f"{records}/{api.post(records, BODY).result['id']}"

    api.patch(path, {"content": CONTENT.replace("9000", "9001"), "ttl": 600})

    assert api.get(settings).result["soa"] == {**SETTING, "refresh": 9001, "ttl": 600}
    assert soa_served()[0] == 600


def test_without_the_record_the_server_chooses_again(api, records, settings, soa_served):
    before = api.get(settings).result["soa"]
    path = f"{records}/{api.post(records, BODY).result['id']}"

    api.delete(path)

    assert api.get(settings).result["soa"] == before
    assert soa_served()[1].startswith("ns2.edge.internal hostmaster.edge.internal")


def test_there_is_at_most_one(api, records):
    made = api.post(records, BODY).result

    assert api.post(records, BODY).codes == [81058]
    assert api.post(records, {**BODY, "content": CONTENT.replace("9000", "9001")}).codes == [81057]
    assert api.get(f"{records}?type=SOA").result == [made]


@pytest.mark.parametrize(("change", "code"), REFUSED.values(), ids=REFUSED)
def test_what_the_setting_cannot_be_is_refused(api, records, settings, change, code):
    before = api.get(settings).result

    assert api.post(records, {**BODY, **change}).causes == [code]
    assert api.get(settings).result == before
    assert api.get(records).result == []


def test_undo_takes_both_views_back(api, zone_id, records, settings):
    before = api.get(settings).result
    api.post(records, BODY)

    assert api.post(f"/zones/{zone_id}/history/1/undo", {}).status == 200
    assert api.get(settings).result == before
    assert api.get(records).result == []
    assert api.post(f"/zones/{zone_id}/history/2/undo", {}).status == 200
    assert api.get(settings).result["soa"] == SETTING
    assert [record["content"] for record in api.get(records).result] == [CONTENT]


@pytest.mark.parametrize("way", ["3/undo", "2/restore"])
def test_a_record_that_comes_back_names_nothing_that_was_the_servers_choice(
    api, records, settings, zone_id, way
):
    made = api.post(records, BODY).result
    before = api.patch(settings, {"soa": {"mname": None}}).result
    shown = api.get(f"{records}/{made['id']}").result["content"]
    api.delete(f"{records}/{made['id']}")

    answer = api.post(f"/zones/{zone_id}/history/{way}", {})

    assert answer.status == 200
    assert api.get(f"{records}/{made['id']}").result["content"] == shown
    assert api.get(settings).result == before


def test_an_export_has_one_soa(api, records):
    api.post(records, BODY)

    text = api.get(f"{records}/export").body.decode()

    assert text.count("\tSOA\t") + text.count(" SOA ") == 1
    assert "ns.other.test. admin.other.test." in text
