"""Configurations of Terraform's provider 5 as its requests: what a plan compares is in the answers.

Owns  the configurations: each a way of writing, a body, and where the state is read.
Not   asking (tests/rest/test_terraform.py); spellings of records (tests/sent_and_answered.py).

The provider decodes an answer into the resource's schema, and a plan differs where a member of the
configuration is not in the state as it was written. So `differs` names the members that a server of this API
answers otherwise whatever is sent: the hosted service does the same.
"""

from typing import Any, NamedTuple

Json = Any
HEX = "ab" * 32
RATE = {
    "characteristics": ["ip.src"],
    "period": 60,
    "requests_per_period": 5,
    "mitigation_timeout": 60,
}


class Configuration(NamedTuple):
    """`path` takes the writes; `one` is the created resource's own path, "" where it is `path`."""

    name: str
    method: str
    path: str
    body: Json
    one: str = ""
    differs: tuple[str, ...] = ()
    only_clients: bool = False
    again: str = "PUT"


def record(name: str, body: Json, **more: Any) -> Configuration:
    whole = {"ttl": 300, **body} if "ttl" not in body and not body.get("proxied") else body
    path = "/zones/{zone}/dns_records"
    return Configuration(f"dns_record {name}", "POST", path, whole, f"{path}/{{id}}", **more)


def setting(name: str, value: Json) -> Configuration:
    path = f"/zones/{{zone}}/settings/{name}"
    return Configuration(f"zone_setting {name}", "PATCH", path, {"value": value}, again="PATCH")


def ruleset(name: str, phase: str, *rules: Json, account: bool = False) -> Configuration:
    owner = "/accounts/{account}" if account else "/zones/{zone}"
    body = {
        "name": name,
        "kind": "custom" if account else "zone",
        "phase": phase,
        "description": "by terraform",
        "rules": [
            {"expression": "true", "enabled": True, "description": "", "ref": f"r{number}", **rule}
            for number, rule in enumerate(rules)
        ],
    }
    return Configuration(f"ruleset {name}", "POST", f"{owner}/rulesets", body, f"{owner}/rulesets/{{id}}")


def headers(**more: Json) -> Json:
    return {"action": "rewrite", "action_parameters": {"headers": {"X-A": {"operation": "set", **more}}}}


CUSTOM, MANAGED = "http_request_firewall_custom", "http_request_firewall_managed"
SRV = {"priority": 10, "weight": 5, "port": 5060, "target": "sip.example.net"}
CONFIGURATIONS = (
    record("A", {"type": "A", "name": "a.{name}", "content": "192.0.2.1"}),
    record("A, private", {"type": "A", "name": "b.{name}", "content": "10.0.0.1"}),
    record("A of the apex", {"type": "A", "name": "{name}", "content": "192.0.2.1"}),
    record("A, short name", {"type": "A", "name": "short", "content": "192.0.2.1"}, differs=("name",)),
    record(
        "A, proxied", {"type": "A", "name": "c.{name}", "content": "192.0.2.1", "proxied": True, "ttl": 1}
    ),
    record("AAAA", {"type": "AAAA", "name": "a.{name}", "content": "2001:db8::10"}),
    record(
        "AAAA, long",
        {"type": "AAAA", "name": "b.{name}", "content": "2001:DB8:0::2"},
        differs=("content",),
    ),
    record("CNAME", {"type": "CNAME", "name": "d.{name}", "content": "target.example.net"}),
    record(
        "CNAME, flattened",
        {
            "type": "CNAME",
            "name": "e.{name}",
            "content": "target.example.net",
            "settings": {"flatten_cname": True},
        },
    ),
    record("MX", {"type": "MX", "name": "{name}", "content": "mx.example.net", "priority": 10}),
    record("MX, first", {"type": "MX", "name": "f.{name}", "content": "mx.example.net", "priority": 0}),
    record("NS", {"type": "NS", "name": "sub.{name}", "content": "ns1.example.net"}),
    record(
        "DS",
        {
            "type": "DS",
            "name": "sub.{name}",
            "data": {"key_tag": 1, "algorithm": 13, "digest_type": 2, "digest": HEX},
        },
    ),
    record("PTR", {"type": "PTR", "name": "g.{name}", "content": "host.example.net"}),
    record("TXT, in quotes", {"type": "TXT", "name": "h.{name}", "content": '"v=spf1 -all"'}),
    record("TXT, without", {"type": "TXT", "name": "i.{name}", "content": "v=spf1 -all"}, only_clients=True),
    record(
        "TXT, two strings",
        {"type": "TXT", "name": "j.{name}", "content": '"' + "k" * 255 + '" "' + "k" * 100 + '"'},
    ),
    record(
        "CAA",
        {"type": "CAA", "name": "{name}", "data": {"flags": 0, "tag": "issue", "value": "ca.example"}},
    ),
    record("SRV", {"type": "SRV", "name": "_a._tcp.{name}", "data": SRV, "priority": 10}),
    record(
        "TLSA",
        {
            "type": "TLSA",
            "name": "_443._tcp.{name}",
            "data": {"usage": 3, "selector": 1, "matching_type": 1, "certificate": HEX},
        },
    ),
    record(
        "SSHFP",
        {"type": "SSHFP", "name": "k.{name}", "data": {"algorithm": 4, "type": 2, "fingerprint": HEX}},
    ),
    record(
        "HTTPS",
        {"type": "HTTPS", "name": "l.{name}", "data": {"priority": 1, "target": ".", "value": 'alpn="h2"'}},
    ),
    record(
        "SVCB",
        {"type": "SVCB", "name": "m.{name}", "data": {"priority": 1, "target": ".", "value": 'alpn="h2"'}},
    ),
    record(
        "URI",
        {
            "type": "URI",
            "name": "n.{name}",
            "priority": 5,
            "data": {"weight": 1, "target": "https://a.test/"},
        },
    ),
    record(
        "NAPTR",
        {
            "type": "NAPTR",
            "name": "o.{name}",
            "data": {
                "order": 30,
                "preference": 100,
                "flags": "S",
                "service": "SIP+D2T",
                "regex": "",
                "replacement": "_sip._tcp.example.net",
            },
        },
    ),
    record(
        "LOC",
        {
            "type": "LOC",
            "name": "p.{name}",
            "data": {
                "lat_degrees": 52,
                "lat_minutes": 31,
                "lat_seconds": 12,
                "lat_direction": "N",
                "long_degrees": 13,
                "long_minutes": 24,
                "long_seconds": 18,
                "long_direction": "E",
                "altitude": 34,
                "size": 1,
                "precision_horz": 100,
                "precision_vert": 10,
            },
        },
    ),
    record(
        "CERT",
        {
            "type": "CERT",
            "name": "q.{name}",
            "data": {"type": 1, "key_tag": 2, "algorithm": 8, "certificate": "AQID"},
        },
    ),
    record(
        "SMIMEA",
        {
            "type": "SMIMEA",
            "name": "r.{name}",
            "data": {"usage": 3, "selector": 1, "matching_type": 1, "certificate": HEX},
        },
    ),
    record("OPENPGPKEY", {"type": "OPENPGPKEY", "name": "s.{name}", "content": "mQINBFit2jsBEAE="}),
    record(
        "with a comment",
        {"type": "A", "name": "t.{name}", "content": "192.0.2.1", "comment": "by terraform"},
    ),
    record(
        "with tags", {"type": "A", "name": "u.{name}", "content": "192.0.2.1", "tags": ["owner:dns", "b:c"]}
    ),
    setting("ssl", "full"),
    setting("browser_cache_ttl", 14_400),
    setting(
        "security_header",
        {
            "strict_transport_security": {
                "enabled": True,
                "max_age": 86_400,
                "include_subdomains": True,
                "preload": False,
                "nosniff": True,
            }
        },
    ),
    setting("ciphers", ["ECDHE-RSA-AES128-GCM-SHA256"]),
    setting("development_mode", "on"),
    setting("http3", "on"),
    setting("min_tls_version", "1.2"),
    setting("tls_1_3", "on"),
    setting("always_use_https", "on"),
    setting("automatic_https_rewrites", "on"),
    setting("security_level", "high"),
    setting("challenge_ttl", 3_600),
    setting("websockets", "on"),
    Configuration("zone, paused", "PATCH", "/zones/{zone}", {"paused": True}, again="PATCH"),
    Configuration("zone, unpaused", "PATCH", "/zones/{zone}", {"paused": False}, again="PATCH"),
    Configuration(
        "zone_dns_settings",
        "PATCH",
        "/zones/{zone}/dns_settings",
        {
            "flatten_all_cnames": False,
            "foundation_dns": False,
            "multi_provider": False,
            "ns_ttl": 86_400,
            "secondary_overrides": False,
            "zone_mode": "standard",
        },
        again="PATCH",
    ),
    Configuration(
        "zone_hold",
        "POST",
        "/zones/{zone}/hold?include_subdomains=true",
        {"include_subdomains": True},
        "/zones/{zone}/hold",
        again="PATCH",
    ),
    ruleset("custom", CUSTOM, {"action": "block"}, {"action": "log", "enabled": False}),
    ruleset(
        "custom, skip",
        CUSTOM,
        {"action": "skip", "action_parameters": {"ruleset": "current"}, "logging": {"enabled": True}},
    ),
    ruleset(
        "custom, response",
        CUSTOM,
        {
            "action": "block",
            "action_parameters": {
                "response": {"status_code": 418, "content": "no", "content_type": "text/plain"}
            },
        },
    ),
    ruleset(
        "managed",
        MANAGED,
        {
            "action": "execute",
            "action_parameters": {
                "id": "{managed}",
                "version": "latest",
                "overrides": {"categories": [{"category": "paranoia-level-4", "enabled": False}]},
            },
        },
    ),
    ruleset("rate limit", "http_ratelimit", {"action": "block", "ratelimit": RATE}),
    ruleset(
        "redirect",
        "http_request_dynamic_redirect",
        {
            "action": "redirect",
            "action_parameters": {
                "from_value": {
                    "status_code": 301,
                    "preserve_query_string": False,
                    "target_url": {"value": "https://example.net/"},
                }
            },
        },
    ),
    ruleset(
        "transform",
        "http_request_transform",
        {"action": "rewrite", "action_parameters": {"uri": {"path": {"value": "/a"}}}},
    ),
    ruleset("late transform", "http_request_late_transform", headers(value="1")),
    ruleset("response headers", "http_response_headers_transform", headers(expression="cf.zone.name")),
    ruleset(
        "origin",
        "http_request_origin",
        {"action": "route", "action_parameters": {"origin": {"host": "b.example.net", "port": 8443}}},
    ),
    ruleset(
        "cache",
        "http_request_cache_settings",
        {
            "action": "set_cache_settings",
            "action_parameters": {
                "cache": True,
                "edge_ttl": {"mode": "override_origin", "default": 60},
                "browser_ttl": {"mode": "respect_origin"},
            },
        },
    ),
    ruleset(
        "config",
        "http_config_settings",
        {"action": "set_config", "action_parameters": {"ssl": "full", "mirage": False}},
    ),
    ruleset(
        "compression",
        "http_response_compression",
        {"action": "compress_response", "action_parameters": {"algorithms": [{"name": "gzip"}]}},
    ),
    ruleset(
        "custom errors",
        "http_custom_errors",
        {
            "action": "serve_error",
            "action_parameters": {"content": "x", "content_type": "text/plain", "status_code": 500},
        },
    ),
    ruleset(
        "log fields",
        "http_log_custom_fields",
        {"action": "log_custom_field", "action_parameters": {"request_fields": [{"name": "user-agent"}]}},
    ),
    ruleset("account custom", CUSTOM, {"action": "block"}, account=True),
    Configuration(
        "workers_kv_namespace",
        "POST",
        "/accounts/{account}/storage/kv/namespaces",
        {"title": "by terraform"},
        "/accounts/{account}/storage/kv/namespaces/{id}",
    ),
    Configuration(
        "api_token",
        "POST",
        "/user/tokens",
        {
            "name": "by terraform",
            "not_before": "2026-01-02T03:04:05Z",
            "expires_on": "2027-01-02T03:04:05Z",
            "condition": {"request_ip": {"in": ["192.0.2.0/24"], "not_in": ["192.0.2.7/32"]}},
            "policies": [
                {
                    "effect": "allow",
                    "permission_groups": [{"id": "4755a26eedb94da69e1066d98aa820be"}],
                    "resources": {"com.cloudflare.api.account.zone.{zone}": "*"},
                }
            ],
        },
        "/user/tokens/{id}",
    ),
)
