"""A body for each route that takes one: the descriptions show it, and a test sends it.

Owns  the bodies, by method and the last words of the path that are no parameters; a call as it is typed.
Not   which routes there are; what is answered.

What only somebody's own files could say, certificates and identifiers, is shortened to words.
"""

import json
import shlex
from typing import Any, Final

from edgestead.rest.routing import ANY, BASE_PATH, OBJECTS, Route

_RECORD: Final = {"type": "A", "name": "shop", "content": "192.0.2.1"}
_RULE: Final = {"action": "log", "expression": 'starts_with(http.request.uri.path, "/admin")'}
_TOKEN: Final = {
    "name": "certbot",
    "policies": [
        {
            "effect": "allow",
            "permission_groups": [{"id": "4755a26eedb94da69e1066d98aa820be"}],  # DNS Write
            "resources": {"com.edge.api.account.zone.ZONE_ID": "*"},
        }
    ],
}
_LOCKDOWN: Final = {
    "urls": ["www.example.com/admin*"],
    "configurations": [{"target": "ip", "value": "192.0.2.8"}],
}
_AGENT: Final = {"mode": "block", "configuration": {"target": "ua", "value": "BadBot/1.0"}}
_CALL: Final = {"args": ["1A"], "kwargs": {"who": "ann"}}
_QUERY: Final = {"query": "SELECT * FROM seats WHERE row = ?", "bindings": [1]}
PEM: Final = "-----BEGIN CERTIFICATE-----…"

BODIES: Final[dict[str, Any]] = {
    "POST zones": {"name": "example.org"},
    "PATCH zones": {"paused": True},
    "POST dns_records": _RECORD,
    "PATCH dns_records": {"ttl": 60},
    "PUT dns_records": _RECORD,
    "POST batch": {"posts": [_RECORD]},
    "POST review": {},
    "POST namespaces": {"title": "titles"},
    "PUT namespaces": {"title": "names"},
    "PUT bulk": [{"key": "greeting", "value": "hello"}],
    "DELETE bulk": ["greeting"],
    "POST delete": ["greeting"],
    "POST get": {"keys": ["greeting"]},
    "PUT values": "hello",
    "POST tokens": _TOKEN,
    "PUT tokens": _TOKEN,
    "POST zones/rulesets": {"name": "ours", "kind": "zone", "phase": "http_request_transform"},
    "POST rulesets": {"name": "ours", "kind": "custom", "phase": "http_request_firewall_custom"},
    "PUT rulesets": {"rules": [_RULE]},
    "POST rules": _RULE,
    "PATCH rules": _RULE,
    "PUT entrypoint": {"rules": []},
    "POST access_rules": {"mode": "block", "configuration": {"target": "ip", "value": "192.0.2.8"}},
    "PATCH access_rules": {"mode": "challenge"},
    "POST ua_rules": _AGENT,
    "PUT ua_rules": _AGENT | {"mode": "challenge"},
    "POST lockdowns": _LOCKDOWN,
    "PUT lockdowns": _LOCKDOWN,
    "POST accounts": {"name": "Second"},
    "PUT accounts": {"name": "Ours"},
    "PATCH user": {"first_name": "Ada"},
    "PUT memberships": {"status": "accepted"},
    "POST members": {"email": "ann@example.com", "roles": ["ROLE_ID"]},
    "PUT members": {"roles": ["ROLE_ID"]},
    "PATCH settings": {"items": [{"id": "always_use_https", "value": "on"}]},
    "PATCH universal/settings": {"enabled": True},
    "PATCH setting": {"value": "on"},  # of each setting by its own path
    "POST privacy_pass": {"value": "on"},
    "PATCH minify": {"value": {"css": "on"}},
    "PATCH mobile_redirect": {"value": {"status": "on"}},
    "PATCH dns_settings": {"flatten_all_cnames": True},
    "PATCH use_apex_ns": {"value": True},
    "PATCH secondary_overrides": {"value": True},
    "PATCH dnssec": {"dnssec_multi_signer": True},
    "POST roll": {},
    "POST custom_ns": {"ns_name": "ns2.example.com"},
    "PUT custom_ns": {"enabled": False},
    "POST tsigs": {"name": "xfr.example.com"},
    "PUT tsigs": {"transfer": False},
    "PATCH hold": {"include_subdomains": True},
    "POST subscription": {"rate_plan": {"id": "pro"}},
    "PUT subscription": {"rate_plan": {"id": "pro"}},
    "POST incoming": {"name": "example.com", "peers": []},
    "PUT incoming": {"name": "example.com", "peers": []},
    "POST outgoing": {"name": "example.com", "peers": []},
    "PUT outgoing": {"name": "example.com", "peers": []},
    "POST acls": {"name": "office", "ip_range": "192.0.2.0/24"},
    "PUT acls": {"name": "office", "ip_range": "192.0.2.53"},
    "POST peers": {"name": "ns2", "ip": "192.0.2.53"},
    "PUT peers": {"name": "ns2", "ip": "192.0.2.53"},
    "POST catalogs": {"name": "catalog.example.org", "peers": []},
    "PUT catalogs": {"peers": []},
    "PUT catalog": {"name": "catalog.invalid", "groups": ["first"]},
    "POST purge_cache": {"purge_everything": True},
    "POST restore": {},
    "POST order": {"hosts": ["www.example.com"]},
    "POST custom_certificates": {"certificate": PEM, "private_key": "-----BEGIN PRIVATE KEY-----…"},
    "PATCH custom_certificates": {"bundle_method": "force"},
    "PUT prioritize": {"certificates": [{"id": "CERTIFICATE_ID", "priority": 10}]},
    "POST certificates": {"csr": "-----BEGIN CERTIFICATE REQUEST-----…", "hostnames": ["example.com"]},
    "POST objects": _CALL,
    "POST call": _CALL,
    "POST sql": _QUERY,
    "POST sql-write": {"query": "UPDATE seats SET who = NULL", "bindings": []},
    "PUT alarm": {"time": "2030-01-02T03:04:05Z"},
}
FORM: Final = {"POST import": "-F file=@db.example.com"}  # what is no JSON, as curl sends it


def key_of(row: Route) -> str:
    """Of BODIES: the most exact key that is there. The names of settings are one: each takes a value."""
    literals = [part for part in row.path.removeprefix(BASE_PATH).split("/") if part and part[0] != "{"]
    if "access_rules" in literals:
        literals = literals[:-1]
    *above, last = literals or [""]
    words = [f"{above[0]}/{last}", f"{above[-1]}/{last}"] if above else []
    for word in (*words, last):
        if f"{row.method} {word}" in BODIES or f"{row.method} {word}" in FORM:
            return f"{row.method} {word}"
    return f"{row.method} setting" if above[-1:] == ["settings"] else f"{row.method} {last}"


def body_of(row: Route) -> Any:
    """What a route may be sent, None: it takes nothing, or no JSON."""
    if row.path.endswith("/settings/{setting}"):
        return BODIES["PATCH setting"] if row.method == "PATCH" else None
    return BODIES.get(key_of(row)) if row.takes else None


def command_of(row: Route) -> str:
    """A call as it is typed in a shell: `api` is curl with credentials, identifiers are variables."""
    base = "$EDGE_OBJECTS_ADDR" if row.face is OBJECTS else "$EDGE_API_BASE"
    path = row.path.removeprefix(BASE_PATH).replace("*}", "}").replace("{", "$").replace("}", "")
    form, body = FORM.get(key_of(row)), body_of(row)
    method = "GET" if row.method == ANY else row.method
    words = ["api", f'"{base}{path}"']
    usual = "GET" if form is None and body is None else "POST"
    if form is not None:
        words.append(form)
    elif isinstance(body, str):
        words += ["-d", shlex.quote(body)]
    elif body is not None:
        words += ["--json", shlex.quote(json.dumps(body, ensure_ascii=False))]
    return " ".join([*words, *(["-X", method] if method != usual else [])])
