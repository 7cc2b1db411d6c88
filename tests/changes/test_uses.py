"""Who still uses what a date ended: counted by credential, kept over a restart, bounded."""

import asyncio

import pytest

from edgestead.changes.members import found, watched
from edgestead.rest.routing import ROUTES
from edgestead.server.control.uses import UsesPart
from edgestead.store.writes import Writes
from edgestead.usecases.account import dated_uses
from edgestead.usecases.account.dated_uses import DatedUses, Key
from tests.changes.conftest import ACCOUNT
from tests.rest.tokens import ALL_ZONES, RESTRICTED, policy, put_token
from tests.support.api import KEY_PAIR, LocalApi
from tests.support.barrier import StoreBarrier

USAGE = f"{ACCOUNT}/deprecations/usage"
RECORDS = "/zones/{zone_id}/dns_records"
WWW = {"type": "A", "name": "www", "content": "192.0.2.1"}
SRV = {"priority": 1, "weight": 2, "port": 3, "target": "a.example.net"}
USES = (  # method, path below the zone, body; subject and member of what is counted
    ("GET", "/firewall/rules", None, [("firewall-rules", None)]),
    ("BREW", "/filters", None, [("firewall-rules", None)]),
    ("GET", "/settings/brotli", None, [("setting-brotli", None)]),
    ("PATCH", "/dns_settings/use_apex_ns", {"value": True}, [("dns-settings-endpoints", None)]),
    ("POST", "/dns_records", {**WWW, "zone_id": "x"}, [("record-zone-fields", "zone_id")]),
    ("POST", "/dns_records", {**WWW, "locked": False}, [("record-locked", "locked")]),
    (
        "POST",
        "/dns_records",
        {"type": "SRV", "name": "_sip._tcp", "data": {**SRV, "service": "_sip", "name": "x"}},
        [("srv-data-members", "data/name"), ("srv-data-members", "data/service")],
    ),
    (
        "POST",
        "/dns_records/batch",
        {"posts": [WWW, {**WWW, "name": "a", "locked": True}], "patches": [{"id": "e" * 32, "zone_id": "x"}]},
        [("record-locked", "locked"), ("record-zone-fields", "zone_id")],
    ),
    (
        "POST",
        "/dns_records/batch",
        {"puts": [{"id": "e" * 32, "type": "SRV", "name": "_sip._tcp", "data": {**SRV, "proto": "_tcp"}}]},
        [("srv-data-members", "data/proto")],
    ),
    (
        "PATCH",
        "/settings",
        {"items": [{"id": "ipv6", "value": "on"}, {"id": "minify", "value": {"css": "on"}}]},
        [("setting-minify", "items")],
    ),
)
NOT_USES = (
    ("POST", "/dns_records", {**WWW, "comment": "locked"}),
    ("POST", "/dns_records", {**WWW, "zone_id": None}),
    ("POST", "/dns_records", {"type": "SRV", "name": "_sip._tcp", "data": SRV}),
    ("POST", "/dns_records", {**WWW, "data": {"name": None}}),
    ("POST", "/dns_records/batch", {"posts": [{**WWW, "comment": "locked", "zone_id": None}]}),
    ("POST", "/dns_records/batch", {"posts": [{"type": "SRV", "name": "_sip._tcp", "data": SRV}]}),
    ("PATCH", "/settings", {"items": [{"id": "ipv6", "value": "minify"}]}),
    ("GET", "/settings", None),
    ("GET", "/dns_settings", None),
    ("GET", "/filters/a/b/c", None),
)


@pytest.fixture
def api(tmp_path):
    """An API of its own: what is counted here, nobody else asked for."""
    made = LocalApi(tmp_path)
    yield made
    made.close()


@pytest.fixture
def zone_id(api):
    return api.post("/zones", {"name": "example.com"}).result["id"]


def places(api, **options):
    """What was counted, by credential."""
    listed = api.get(USAGE, **options).result
    return [sorted((use["subject"], use["member"]) for use in one["uses"]) for one in listed]


@pytest.mark.parametrize(("method", "path", "body", "counted"), USES)
def test_a_use_is_counted_whatever_became_of_it(api, zone_id, method, path, body, counted):
    api.call(method, f"/zones/{zone_id}{path}", body)

    assert places(api) == [counted]


@pytest.mark.parametrize(("method", "path", "body"), NOT_USES)
def test_what_is_not_dated_is_not_counted(api, zone_id, method, path, body):
    api.call(method, f"/zones/{zone_id}{path}", body)

    assert places(api) == []


def test_an_account_setting_is_a_use(api):
    name = api.get(ACCOUNT).result["name"]
    api.call("PUT", ACCOUNT, {"name": name, "settings": {"default_nameservers": "edge.standard"}})

    assert places(api) == [[("account-nameserver-settings", "settings/default_nameservers")]]


def test_uses_are_told_by_credential_the_latest_first(api, zone_id):
    token_id = put_token(api, policy("DNS Write", resources=ALL_ZONES))
    for _ in range(3):
        api.get(f"/zones/{zone_id}/filters/1", auth=RESTRICTED)
    api.get(f"/zones/{zone_id}/rate_limits", auth=KEY_PAIR)

    key, token = api.get(USAGE).result

    assert key["credential"] == {
        "id": key["credential"]["id"],
        "type": "key",
        "name": KEY_PAIR["x-auth-email"],
    }
    assert token["credential"] == {"id": token_id, "type": "token", "name": "restricted"}
    (use,) = token["uses"]
    assert token["count"] == use["count"] == 3
    assert use["first_used_on"] < use["last_used_on"] == token["last_used_on"] < key["last_used_on"]
    assert {name: use[name] for name in ("subject", "date", "endpoint", "member")} == {
        "subject": "firewall-rules",
        "date": "2025-06-15",
        "endpoint": "GET /zones/{zone_id}/filters/{filter}",
        "member": None,
    }
    assert "ruleset engine" in use["replacement"]


def test_the_list_has_pages_and_a_filter(api, zone_id):
    token_id = put_token(api, policy("DNS Write", resources=ALL_ZONES))
    for auth in (RESTRICTED, KEY_PAIR):
        api.get(f"/zones/{zone_id}/filters", auth=auth)

    second = api.get(f"{USAGE}?per_page=1&page=2").json
    only = api.get(f"{USAGE}?token_id={token_id}").result

    assert second["result_info"] == {
        "page": 2,
        "per_page": 1,
        "count": 1,
        "total_count": 2,
        "total_pages": 2,
    }
    assert [one["credential"]["id"] for one in only] == [token_id]
    assert [one["credential"]["id"] for one in second["result"]] == [token_id]
    assert api.get(f"{USAGE}?token_id={'e' * 32}").result == []


def test_who_is_refused_has_used_nothing(api, zone_id):
    api.get(f"/zones/{zone_id}/filters", auth={})
    api.get(f"/zones/{zone_id}/filters", auth={"authorization": "Bearer " + "x" * 40})
    put_token(api, policy("Zone Read", resources=ALL_ZONES))
    api.get(f"/zones/{zone_id}/settings/brotli", auth=RESTRICTED)

    assert places(api) == []
    refused = api.get(USAGE, auth=RESTRICTED)
    assert (refused.status, refused.codes) == (403, [9109])


def test_counts_survive_a_restart_and_go_with_their_token(api):
    kept, gone = put_token(api), "b" * 32
    put_token(api, id=gone, hash=b"other")

    async def use(now_us, *token_ids):
        part = UsesPart(StoreBarrier(api.store, Writes(api.store)))
        part.open()
        for token_id in token_ids:
            part.dated.note(Key(token_id, "tunnels", "GET /x", ""), now_us)
        await part.close()
        return part.dated

    asyncio.run(use(1, kept, gone))
    api.delete(f"/user/tokens/{gone}")
    second = asyncio.run(use(2, kept))

    later = DatedUses()
    api.store.read(later.load)
    for uses in (second, later):
        rows = api.store.read(uses.rows)
        assert [(*row[:2], *row[4:]) for row in rows] == [(kept, "tunnels", 2, 1, 2)]
        assert uses.unwritten() == []


def test_a_use_while_others_are_written_down_is_written_next(api):
    uses, key = DatedUses(), Key(put_token(api), "tunnels", "GET /x", "")
    uses.note(key, 1)
    new = uses.unwritten()
    api.store.write(lambda tx: dated_uses.write(tx, new)).result()
    uses.note(key, 2)
    api.store.read(lambda reader: uses.written(new, reader))

    assert [(row.uses, row.last_us) for row in uses.unwritten()] == [(1, 2)]
    assert [row.uses for row in api.store.read(uses.rows)] == [2]


def test_counts_are_bounded(api, monkeypatch):
    monkeypatch.setattr(dated_uses, "USE_ROWS_MAX", 3)
    uses = DatedUses()
    for number in range(5):
        uses.note(Key("t", "tunnels", f"GET /{number}", ""), 1)
    uses.note(Key("t", "tunnels", "GET /0", ""), 2)

    assert [(row.endpoint, row.uses) for row in api.store.read(uses.rows)] == [
        ("GET /0", 2),
        ("GET /1", 1),
        ("GET /2", 1),
    ]


def test_only_routes_with_dated_members_look_into_bodies():
    looking = {(row.method, row.path.removeprefix("/client/v4")) for row in ROUTES if row.watches}

    assert looking == {
        ("POST", RECORDS),
        ("POST", f"{RECORDS}/batch"),
        ("PATCH", f"{RECORDS}/{{dns_record_id}}"),
        ("PUT", f"{RECORDS}/{{dns_record_id}}"),
        ("PATCH", "/zones/{zone_id}/settings"),
        ("POST", "/accounts"),
        ("PUT", "/accounts/{account_id}"),
    }


def test_a_name_that_stands_elsewhere_in_a_body_is_not_found():
    watches = watched("POST", RECORDS)

    for body in (b"[]", b'{"tags":["zone_id"]}', b'{"meta":{"zone_id":"x"}}', b'{"data":"name"}', b"5"):
        assert list(found(watches, body)) == []
    assert [watch.member for watch in found(watches, b'{"zone_id":"x"}')] == ["zone_id"]
