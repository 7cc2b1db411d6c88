"""Every route with each way of saying who calls. A new route needs `known` ids and an example of its body."""

import pytest

from edgestead.changes import CHANGES, NEWEST, OLDEST
from edgestead.model.permissions import BY_NAME
from edgestead.model.roles import ROLES
from edgestead.rest import examples
from edgestead.rest.routing import BASE_PATH, CONTROL, rows_of
from edgestead.usecases.access.authorise import PLATFORM, TOKENS, VERIFY
from tests.rest import test_tokens
from tests.rest.conftest import AT_NEWEST
from tests.rest.test_origin_certificates import CSR
from tests.rest.tokens import ALL_ZONES, RESTRICTED, policy, put_token
from tests.support.api import BEARER, CREDENTIALS, KEY_PAIR
from tests.support.pairs import issued

PAIRS = [issued("example.com"), issued("www.example.com")]
EVERYTHING = {ALL_ZONES: "*", "com.cloudflare.api.account.*": "*"}
USER = "com.cloudflare.api.user.{}"
# What ended before this server began is asked in tests/changes, the objects' address in tests/server.
PRIVATE = [row for row in rows_of(CONTROL) if not (row.public or row.has_ended)]
# Every other family: 403, 10000.
STRANGER = {PLATFORM: (403, 9109), TOKENS: (401, 1000), VERIFY: (401, 1000)}
RECORD = {"type": "A", "name": "new", "content": "192.0.2.9"}
RULE = {"action": "log", "expression": "true"}
RULESETS = {  # one of each scope; and one that a POST makes
    "accounts": {
        "name": "matrix",
        "kind": "custom",
        "phase": "http_request_firewall_custom",
        "rules": [RULE],
    },
    "zones": {"name": "matrix", "kind": "zone", "phase": "http_request_firewall_custom", "rules": [RULE]},
}
PHASE = {"accounts": "http_request_firewall_managed", "zones": "http_request_firewall_custom"}
NOT_THERE = "/by_tag/{tag}"  # only a managed ruleset has tags, and none is loaded here
ZONE_FILE = b'--b\r\nContent-Disposition: form-data; name="file"\r\n\r\na A 192.0.2.1\r\n--b--\r\n'
HEADERS = {"POST import": {"content-type": "multipart/form-data; boundary=b"}}
# What the descriptions show is sent, with what they shorten made whole, and other words for what is taken.
BODIES = examples.BODIES | {
    "POST tokens": test_tokens.body(),
    "PUT tokens": test_tokens.body(),
    "PUT values": b"value",
    "POST members": {"email": "new@example.com", "roles": [ROLES[0].id]},
    "PUT members": {"roles": [ROLES[0].id]},
    "POST custom_certificates": {"certificate": PAIRS[0].chain, "private_key": PAIRS[0].key},
    "POST certificates": {"csr": CSR, "hostnames": ["example.com"]},
    "POST import": ZONE_FILE,
    "POST secondary_dns/catalogs": {"name": "other.matrix.test", "peers": []},
}
# What even the first token is refused: a setting of long ago, an empty account, a server without its user.
REFUSED = {
    **{
        f"{method} /accounts/{{account_id}}/members/{{member_id}}{more}": (400, 1001)  # the server's own user
        for method, more in (("PUT", ""), ("DELETE", ""), ("POST", "/invitation"))
    },
    "DELETE /memberships/{membership_id}": (400, 1001),
    "GET /certificates": (400, 1455),  # of no zone
    "PUT /zones/{zone_id}/custom_certificates/prioritize": (404, 1003),  # of one that is not there
    "POST /zones/{zone_id}/dnssec/roll": (400, 1001),  # of a zone that is not signed
    "POST /accounts/{account_id}/secondary_dns/catalogs": (400, 9610),  # without a peer
    "PUT /accounts/{account_id}/secondary_dns/catalogs/{catalog_id}": (400, 9610),
    "POST /zones/{zone_id}/secondary_dns/keep": (400, 9611),  # of a zone that no catalog made
    **{  # of a zone that is full
        f"{method} /zones/{{zone_id}}/secondary_dns/{what}": (400, 9607)
        for what in ("incoming", "force_axfr")
        for method in ("GET", "POST", "PUT", "DELETE")
    },
}
REFUSED_LATELY = {  # and answered at the oldest date
    f"{method} /zones/{{zone_id}}/settings/{change.setting}": (400, 1006)
    for change in CHANGES
    for method in ("GET", "PATCH", "POST")
    if change.setting and change.removed
}


def named(row):
    return f"{row.method} {row.path.removeprefix(BASE_PATH)}"


@pytest.fixture
def known(api, zone_id, www):
    """Something to find for every parameter of a path."""
    namespaces = f"/accounts/{CREDENTIALS.account_id}/storage/kv/namespaces"
    namespace = api.post(namespaces, {"title": "matrix"}).result["id"]
    api.put(f"{namespaces}/{namespace}/values/k", b"value", headers={"content-type": "text/plain"})
    api.post(f"/accounts/{CREDENTIALS.account_id}/custom_ns", {"ns_name": "ns1.matrix.test"})
    api.post(f"/zones/{zone_id}/hold", None)
    object.__setattr__(api.platform, "orders_certificates", True)
    api.put(f"/accounts/{CREDENTIALS.account_id}/secondary_dns/catalog", {"name": "catalog.test.example"})
    tsigs = f"/accounts/{CREDENTIALS.account_id}/secondary_dns/tsigs"
    acls = f"/accounts/{CREDENTIALS.account_id}/secondary_dns/acls"
    api.post(f"/zones/{zone_id}/secondary_dns/outgoing", {"peers": []})
    api.post(f"/zones/{zone_id}/secondary_dns/outgoing/enable", {})
    producer = api.post(tsigs.replace("tsigs", "peers"), {"name": "producer", "ip": "192.0.2.1"}).result["id"]
    followed = {"name": "followed.test.example", "peers": [producer]}
    values = {
        "zone_id": zone_id,
        "catalog_id": api.post(tsigs.replace("tsigs", "catalogs"), followed).result["id"],
        "dns_record_id": www.rpartition("/")[2],
        "account_id": CREDENTIALS.account_id,
        "namespace": namespace,
        "key": "k",
        "tag": "paranoia-level-1",
        "version": "1",
        "setting": "ipv6",
        "plan": "free",
        "peer_id": api.post(
            f"/accounts/{CREDENTIALS.account_id}/secondary_dns/peers", {"name": "primary"}
        ).result["id"],
        "acl_id": api.post(acls, {"name": "home", "ip_range": "192.0.2.7"}).result["id"],
        "ns_name": "ns1.matrix.test",
        "tsig_id": api.post(tsigs, {"name": "key1.matrix.test"}).result["id"],
        "membership_id": api.get("/memberships").result[0]["id"],
        "member_id": api.get(f"/accounts/{CREDENTIALS.account_id}/members").result[0]["id"],
        "role_id": api.get(f"/accounts/{CREDENTIALS.account_id}/roles").result[0]["id"],
        "sequence": "1",
        "certificate_pack_id": api.post(
            f"/zones/{zone_id}/ssl/certificate_packs/order", {"hosts": ["example.com"]}
        ).result["id"],
        "certificate_id": api.post(
            f"/zones/{zone_id}/custom_certificates",
            {"certificate": PAIRS[1].chain, "private_key": PAIRS[1].key},
        ).result["id"],
        "origin_certificate_id": api.post("/certificates", BODIES["POST certificates"]).result["id"],
        "token_ids": {
            path: api.post(path, test_tokens.body()).result["id"] for path in test_tokens.OWNERS.values()
        },
    }
    known = {scope: {**values, **_ruleset(api, scope, values)} for scope in RULESETS}
    return known | {"user": known["accounts"]}  # whose access rules those of /user are


def _ruleset(api, scope, values):
    """A ruleset of two versions and one rule in this scope, and where it stands."""
    path = f"/{scope}/{values[scope[:-1] + '_id']}/rulesets"
    made = api.post(path, RULESETS[scope]).result
    api.put(f"{path}/{made['id']}", {"rules": [*made["rules"], RULE]})
    access_rule = {"mode": "block", "configuration": {"target": "ip", "value": "192.0.2.7"}}
    access_rules = path.removesuffix("rulesets") + "firewall/access_rules/rules"
    phase = PHASE[scope]
    found = {"ruleset_id": made["id"], "rule_id": made["rules"][0]["id"], "phase": phase}
    if scope == "accounts":
        api.put(f"{path}/phases/{phase}/entrypoint", {"rules": []})
        return found | {"access_rule_id": api.post(access_rules, access_rule).result["id"]}
    agent_rule = {"mode": "block", "configuration": {"target": "ua", "value": "bot"}}
    agent_rules = path.removesuffix("rulesets") + "firewall/ua_rules"
    lockdowns = path.removesuffix("rulesets") + "firewall/lockdowns"
    return found | {
        "access_rule_id": api.post(access_rules, access_rule).result["id"],
        "ua_rule_id": api.post(agent_rules, agent_rule).result["id"],
        "lockdown_id": api.post(lockdowns, BODIES["POST lockdowns"]).result["id"],
    }


@pytest.fixture
def ask(api, ask_async):
    """Call a route with everything that it needs to succeed, and these credentials."""

    def call(row, auth, **options):
        (answer,) = api.together(ask_async(row, auth, **options))
        return answer

    return call


@pytest.fixture
def ask_async(api, known):
    """The same, for several at a time."""

    def call(row, auth, **options):
        path = row.path.removeprefix(BASE_PATH)
        literals = [part for part in path.split("/") if not part.startswith("{")]
        scope = literals[1] if literals[1] in known else "zones"
        what = "PATCH setting" if path.endswith("/settings/{setting}") else examples.key_of(row)
        body = BODIES.get(what)
        owner = "account" if row.account_at is not None else "user"
        token_id = known[scope]["token_ids"][test_tokens.OWNERS[owner]]
        path = path.format(token_id=token_id, **known[scope])
        return api.call_async(row.method, path, body, auth=auth, headers=HEADERS.get(what), **options)

    return call


# Dates choose shapes of data, never authentication: one of them is enough for the second scheme.
@pytest.mark.parametrize(
    ("as_of", "auth"),
    [(NEWEST, BEARER), (OLDEST, BEARER), (NEWEST, KEY_PAIR)],
    indirect=["as_of"],
    ids=["token", "token, oldest date", "key pair"],
)
@pytest.mark.parametrize("row", PRIVATE, ids=named)
def test_every_route_takes_both_schemes(ask, as_of, row, auth):
    answer = ask(row, auth)
    refused = REFUSED if as_of == OLDEST else {**REFUSED, **REFUSED_LATELY}

    if row.family is VERIFY and (auth is KEY_PAIR or row.account_at is not None):
        assert (answer.status, answer.codes) == (401, [1000])  # no token, or not the account's
    elif named(row) in refused:
        assert (answer.status, *answer.codes) == refused[named(row)]
    else:
        assert answer.status in ((404,) if row.path.endswith(NOT_THERE) else (200, 204)), answer.body
        is_json = answer.headers.get("content-type") == "application/json" and answer.status == 200
        assert not is_json or answer.body.count(b'"success":true')


@AT_NEWEST
def test_no_route_takes_nobody_or_a_stranger(api, ask):
    before = api.store.feed.head()
    for row in PRIVATE:
        nobody = ask(row, {})
        stranger = ask(row, {"authorization": "Bearer " + "x" * 40})
        wrong_key = ask(row, {**KEY_PAIR, "x-auth-key": "f" * 37})

        assert (nobody.status, nobody.codes) == (400, [9106]), named(row)
        assert (stranger.status, *stranger.codes) == STRANGER.get(row.family, (403, 10000)), named(row)
        assert (wrong_key.status, wrong_key.codes) == (403, [9103]), named(row)
    assert api.store.feed.head() == before


@pytest.mark.parametrize("row", [row for row in rows_of(CONTROL) if row.public], ids=named)
def test_the_servers_own_routes_ask_nobody(api, row):
    assert api.call(row.method, row.path, base="", auth={}).status == 200


ASKING = [row for row in PRIVATE if row.permission is not None]


@AT_NEWEST
def test_every_route_asks_for_its_permission_group(api, ask):
    put_token(api, policy("Objects Invoke", resources=EVERYTHING))
    for row in ASKING:
        answer = ask(row, RESTRICTED)
        assert (answer.status, answer.codes) == (403, [row.family.denied.code]), named(row)


@AT_NEWEST
def test_who_may_read_everything_writes_nothing(api, ask):
    reads = [group for group in BY_NAME if group.endswith(" Read")]
    put_token(api, policy(*reads, resources={**EVERYTHING, USER.format(api.get("/user").result["id"]): "*"}))
    for row in ASKING:
        if row.permission.endswith(" Read"):
            assert ask(row, RESTRICTED).status in (200, 400, 404), named(row)
        else:
            assert ask(row, RESTRICTED).status == 403, named(row)
