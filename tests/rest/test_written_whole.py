"""What a configuration tool writes of settings comes back as it was written, at every look.

Such a tool compares each member that it wrote with what a later GET answers, and takes a member that comes by
itself for a difference.
"""

import pytest

from edgestead.model.call import Profile
from tests.rest.conftest import AT_NEWEST
from tests.support.api import CREDENTIALS

HSTS = {"enabled": True, "max_age": 600, "include_subdomains": True, "preload": False, "nosniff": True}
SETTINGS = {
    "ssl": "strict",
    "browser_cache_ttl": 1_800,
    "security_header": {"strict_transport_security": HSTS},
    "ciphers": ["ECDHE-RSA-AES128-GCM-SHA256"],
    "development_mode": "on",
    "http3": "on",
    "min_tls_version": "1.2",
    "tls_1_3": "zrt",
    "aegis": {"enabled": False, "pool_id": None},
    "fonts": "on",
}
SOA = {
    "mname": "ns.other.test",
    "rname": "admin.other.test",
    "refresh": 9_000,
    "retry": 2_000,
    "expire": 500_000,
    "min_ttl": 900,
    "ttl": 3_600,
}
DNS = {
    "flatten_all_cnames": True,
    "foundation_dns": False,
    "multi_provider": False,
    "nameservers": {"type": "cloudflare.standard"},
    "ns_ttl": 86_400,
    "secondary_overrides": False,
    "soa": SOA,
    "zone_mode": "standard",
}
ADDRESSES = {"A": "192.0.2.1", "AAAA": "2001:db8::7", "CNAME": "target.example.net"}

pytestmark = AT_NEWEST


@pytest.fixture
def profile():
    return Profile.CLIENTS


@pytest.mark.parametrize("id_", SETTINGS)
def test_a_setting(api, zone_id, id_):
    path = f"/zones/{zone_id}/settings/{id_}"

    written = api.patch(path, {"value": SETTINGS[id_]}).result

    assert written["value"] == SETTINGS[id_]
    assert api.get(path).result["value"] == SETTINGS[id_]


def test_the_dns_settings_of_a_zone(api, zone_id):
    path = f"/zones/{zone_id}/dns_settings"

    written = api.patch(path, DNS).result

    assert written == api.get(path).result
    assert written.keys() == DNS.keys()
    shown = {**written, "nameservers": {"type": written["nameservers"]["type"]}}
    assert shown == DNS


def test_the_dns_settings_of_an_account(api):
    path = f"/accounts/{CREDENTIALS.account_id}/dns_settings"

    written = api.patch(path, {"zone_defaults": DNS}).result["zone_defaults"]

    assert written == api.get(path).result["zone_defaults"]
    assert written.keys() == DNS.keys()


@pytest.mark.parametrize("type_", ADDRESSES)
def test_no_member_comes_by_itself_when_a_record_is_proxied_and_back(api, records, type_):
    body = {"type": type_, "name": "www.example.com", "content": ADDRESSES[type_], "ttl": 1}
    before = api.post(records, {**body, "proxied": False}).result
    path = f"{records}/{before['id']}"

    for proxied in (True, False, True):
        after = api.put(path, {**body, "proxied": proxied}).result
        assert {**after, "proxied": False, "modified_on": before["modified_on"]} == before
        assert after["proxied"] is proxied
        assert api.get(path).result == after
