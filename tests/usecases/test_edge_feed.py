"""What the edge hears of zones and proxied names, and in which order with DNS."""

from ipaddress import ip_address

import pytest

from edgestead.model import edge, names, served
from edgestead.model.edge import KIND_EDGE_NAME, KIND_EDGE_ZONE
from edgestead.usecases.serving import edge_feed

WWW = names.wire_from_text("www.example.com")
A = {"type": "A", "name": "www", "content": "192.0.2.1", "proxied": True}


@pytest.fixture
def zone_id(api):
    return api.post("/zones", {"name": "example.com"}).result["id"]


@pytest.fixture
def records(api, zone_id):
    api.changes.clear()
    return f"/zones/{zone_id}/dns_records"


def name_told(api):
    """The newest document of www; None when the name is gone."""
    found = [change for change in api.changes if change.kind == KIND_EDGE_NAME and change.key == WWW.hex()]
    return None if found[-1].doc is None else edge.decode_name(found[-1].doc)


def order(api):
    """Which of the two documents of www came when, and who hears first."""
    kinds = {KIND_EDGE_NAME: "origins", served.KIND_NAME: "answers"}
    found = [
        (kinds[change.kind], change.first)
        for change in api.changes
        if change.kind in kinds and change.key == WWW.hex()
    ]
    api.changes.clear()
    return found


def packed(text):
    return ip_address(text).packed


def test_every_address_of_a_proxied_name_is_an_origin(api, records):
    api.post(records, A)
    api.post(records, {**A, "content": "192.0.2.2", "proxied": False})
    api.post(records, {**A, "type": "AAAA", "content": "2606:4700::1"})
    found = set(name_told(api).addresses)
    assert found == {packed("192.0.2.1"), packed("192.0.2.2"), packed("2606:4700::1")}
    assert name_told(api).alias is None


def test_a_proxied_alias_names_its_target(api, records):
    api.post(records, {"type": "CNAME", "name": "www", "content": "Origin.Example.Net", "proxied": True})
    assert name_told(api).alias == names.wire_from_text("origin.example.net")
    assert name_told(api).addresses == ()


def test_a_name_that_is_not_proxied_is_not_told(api, records):
    made = api.post(records, {**A, "proxied": False}).result
    api.patch(f"{records}/{made['id']}", {"content": "192.0.2.3"})
    assert not [change for change in api.changes if change.kind == KIND_EDGE_NAME]


def test_the_edge_has_a_names_origins_before_dns_leads_there_and_until_it_does_not(api, records):
    made = api.post(records, A).result
    assert order(api) == [("origins", ""), ("answers", "edge")]
    api.patch(f"{records}/{made['id']}", {"proxied": False})
    assert order(api) == [("answers", "dns"), ("origins", "")]
    api.patch(f"{records}/{made['id']}", {"proxied": True})
    assert order(api) == [("origins", ""), ("answers", "edge")]
    api.delete(f"{records}/{made['id']}")
    assert order(api) == [("answers", "dns"), ("origins", "")]


def zone_told(api):
    found = [change for change in api.changes if change.kind == KIND_EDGE_ZONE]
    api.changes.clear()
    return [edge.decode_zone(change.doc) for change in found]


def test_a_zone_is_told_when_it_is_made_and_when_a_setting_changes(api, zone_id):
    (born,) = zone_told(api)
    assert (born.name, born.paused, born.settings) == ("example.com", False, {})
    api.patch(f"/zones/{zone_id}/settings/ssl", {"value": "full"})
    assert [zone.settings for zone in zone_told(api)] == [{"ssl": "full"}]
    api.patch(f"/zones/{zone_id}", {"paused": True})
    assert [zone.paused for zone in zone_told(api)] == [True]


def test_a_change_that_is_none_of_the_edges_business_is_not_told(api, zone_id, records):
    api.post(records, {"type": "TXT", "name": "www", "content": '"hello"'})
    api.patch(f"/zones/{zone_id}/dns_settings", {"ns_ttl": 3600})
    assert zone_told(api) == []


def test_a_database_from_before_the_edge_is_told_once(api, zone_id, records):
    api.post(records, A)

    def forget(tx):
        tx.emit(zone_id, KIND_EDGE_NAME, WWW.hex(), None)
        tx.emit(zone_id, KIND_EDGE_ZONE, "", None)

    api.store.write(forget).result()
    api.changes.clear()
    api.store.write(edge_feed.settle).result()
    assert name_told(api).addresses == (packed("192.0.2.1"),)
    assert [zone.name for zone in zone_told(api)] == ["example.com"]
    api.store.write(edge_feed.settle).result()
    assert not api.changes
