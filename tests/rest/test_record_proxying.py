"""Proxied or DNS only: TTL, what can be proxied, what an answer says."""

import pytest

from tests.rest.conftest import WWW
from tests.support.api import LocalApi

PRIVATE = ("127.0.0.1", "10.1.2.3", "172.31.0.1", "192.168.1.1", "169.254.1.1", "::1", "fd00::1", "fe80::1")
PUBLIC = ("192.0.2.1", "172.32.0.1", "8.8.8.8", "2001:db8::2")


@pytest.fixture(params=[("A", "192.0.2.1"), ("AAAA", "2001:db8::2"), ("CNAME", "a.test")])
def type_and_content(request):
    return request.param


def test_a_proxied_record_has_the_automatic_ttl_whatever_was_sent(api, records, type_and_content):
    type_, content = type_and_content

    made = api.post(records, {"type": type_, "name": "a", "content": content, "proxied": True, "ttl": 3600})

    assert (made.result["proxied"], made.result["ttl"], made.result["proxiable"]) == (True, 1, True)


def test_settings_show_what_was_set_and_none_comes_by_itself(api, records, type_and_content):
    type_, content = type_and_content
    always = {"flatten_cname": False} if type_ == "CNAME" else {}
    made = api.post(records, {"type": type_, "name": "a", "content": content}).result

    proxied = api.patch(f"{records}/{made['id']}", {"proxied": True}).result
    chosen = api.patch(f"{records}/{made['id']}", {"settings": {"ipv6_only": False}}).result

    assert made["settings"] == proxied["settings"] == always
    assert chosen["settings"] == {**always, "ipv6_only": False}


def test_dns_only_to_proxied_stores_ttl_1_and_back_keeps_it(api, www):
    assert api.patch(www, {"proxied": True, "ttl": 600}).result["ttl"] == 1
    assert api.patch(www, {"proxied": False}).result["ttl"] == 1
    assert api.patch(www, {"proxied": True}).result["ttl"] == 1
    assert api.patch(www, {"proxied": False, "ttl": 600}).result["ttl"] == 600


def test_not_proxied_is_accepted_on_every_type(api, records):
    body = {"type": "TXT", "name": "a", "content": "x", "proxied": False}

    assert api.post(records, body).status == 200


@pytest.mark.parametrize("address", PRIVATE + PUBLIC)
def test_a_private_target_is_not_proxiable_until_it_is_proxied(api, records, address):
    type_ = "AAAA" if ":" in address else "A"
    made = api.post(records, {"type": type_, "name": "a", "content": address}).result
    assert made["proxiable"] is (address in PUBLIC)

    proxied = api.patch(f"{records}/{made['id']}", {"proxied": True}).result

    assert (proxied["proxied"], proxied["proxiable"]) == (True, True)


def test_a_plain_cname_says_that_it_is_not_flattened(api, records):
    made = api.post(records, {"type": "CNAME", "name": "a", "content": "a.test"}).result

    assert made["settings"] == {"flatten_cname": False}


def test_without_an_edge_address_nothing_can_be_proxied(tmp_path):
    api = LocalApi(tmp_path, edge_addresses=(), own_addresses=frozenset())
    try:
        records = f"/zones/{api.post('/zones', {'name': 'example.com'}).result['id']}/dns_records"

        answer = api.post(records, {**WWW, "proxied": True})

        assert (answer.status, answer.codes) == (400, [9004])
        assert "--edge-address" in answer.json["errors"][0]["message"]
        assert api.post(records, WWW).status == 200
    finally:
        api.close()


def test_a_setting_of_the_proxy_is_shown_while_it_waits_for_it(api, records):
    path = f"{records}/{api.post(records, {**WWW, 'settings': {'ipv4_only': True}}).result['id']}"

    assert api.get(path).result["settings"] == {"ipv4_only": True}
    assert api.patch(path, {"proxied": True}).result["settings"] == {"ipv4_only": True}
    off = {"ipv4_only": False}
    assert api.patch(path, {"settings": off, "proxied": False}).result["settings"] == off
