"""Zones: made, listed, shown, deleted."""

import asyncio

import pytest

from edgestead.model.refusals import DiskFull, Unavailable
from edgestead.server.control.upkeep import Upkeep
from edgestead.tables import zones
from tests.rest.tokens import RESTRICTED, policy, put_token, zone
from tests.support.api import CREDENTIALS, FIRST_US

GOOD_NAMES = {
    "example.com": "example.com",
    "EXAMPLE.Com.": "example.com",
    " example.com ": "example.com",
    "a.b.c.example.com": "a.b.c.example.com",
    "xn--mnchen-3ya.de": "münchen.de",
    "München.DE": "münchen.de",
    "10.in-addr.arpa": "10.in-addr.arpa",
}
BAD_NAMES = (
    None,
    "",
    "com",
    ".",
    "a..com",
    "-a.com",
    "a-.com",
    "a_b.com",
    "a b.com",
    "*.com",
    "a/b.com",
    "a" * 64 + ".com",
    ".".join(["a" * 60] * 5),
    "a\\.b.com",
    "straße.de",
)


@pytest.mark.parametrize(("sent", "shown"), GOOD_NAMES.items())
def test_a_new_zone_is_active_at_once(api, sent, shown):
    made = api.post("/zones", {"name": sent, "jump_start": False, "type": "full", "organization": {}}).result

    assert (made["name"], made["status"], made["type"], made["paused"]) == (shown, "active", "full", False)
    assert made["activated_on"] == made["created_on"] == made["modified_on"]
    assert made["account"] == {"id": CREDENTIALS.account_id, "name": "admin@example.com's Account"}
    assert made["owner"] == {"id": made["owner"]["id"], "type": "user", "email": CREDENTIALS.email}
    assert made["name_servers"] == ["ns1.edge.internal", "ns2.edge.internal"]
    assert (made["plan"]["name"], made["plan"]["legacy_id"]) == ("Free Website", "free")
    assert made["meta"]["step"] == 4
    assert api.get(f"/zones/{made['id']}").result == made


@pytest.mark.parametrize("name", BAD_NAMES)
def test_what_is_no_zone_name_is_refused(api, name):
    answer = api.post("/zones", {"name": name})

    assert (answer.status, answer.codes) == (400, [1001])
    assert answer.json["errors"][0]["source"] == {"pointer": "/name"}
    assert api.get("/zones").result == []


def test_a_zone_exists_once(api, zone_id):
    answer = api.post("/zones", {"name": "Example.COM"})

    assert (answer.status, answer.codes) == (400, [1061])
    assert "example.com already exists" in answer.json["errors"][0]["message"]
    assert len(api.get("/zones").result) == 1


def test_a_zone_below_another_is_a_zone_of_its_own(api, zone_id):
    assert api.post("/zones", {"name": "sub.example.com"}).status == 200


@pytest.mark.parametrize("type_", ["partial", "internal", "nonsense"])
def test_only_full_zones_are_offered(api, type_):
    assert api.post("/zones", {"name": "example.com", "type": type_}).codes == [1001]


@pytest.mark.parametrize("account", [None, {}, {"id": CREDENTIALS.account_id, "name": "ignored"}])
def test_the_account_may_be_left_out_where_there_is_one(api, account):
    assert api.post("/zones", {"name": "example.com", "account": account}).status == 200


def test_another_account_is_refused(api):
    answer = api.post("/zones", {"name": "example.com", "account": {"id": "b" * 32}})

    assert (answer.status, answer.codes) == (403, [9109])


def test_an_unknown_zone_is_404(api, zone_id):
    for method, path in (
        ("GET", ""),
        ("DELETE", ""),
        ("GET", "/dns_records"),
        ("GET", f"/dns_records/{zone_id}"),
        ("DELETE", f"/dns_records/{zone_id}"),
    ):
        answer = api.call(method, f"/zones/{'e' * 32}{path}")
        assert (answer.status, answer.codes) == (404, [1001]), path


@pytest.fixture
def three(api):
    return {name: api.post("/zones", {"name": name}).result["id"] for name in ("b.test", "a.test", "c.test")}


LISTS = {  # a query, and the first letters of the zones that it finds
    "": "abc",
    "direction=desc": "cba",
    "order=status": "abc",
    "order=account.id&direction=asc": "abc",
    "name=a.test": "a",
    "name=A.TEST.": "a",
    "name=nothing.test": "",
    "name=test": "",
    "name=not%20a%20name": "",
    "status=active": "abc",
    "status=pending": "",
    f"account.id={CREDENTIALS.account_id}": "abc",
    f"account.id={'b' * 32}": "",
    "name=b.test&status=active&per_page=1": "b",
    "name=": "abc",
    "name=equal:a.test": "a",
    "name=equal:A.Test": "a",
    "name=equal_case_sensitive:A.Test": "",
    "name=equal_case_sensitive:a.test": "a",
    "name=not_equal:a.test": "bc",
    "name=starts_with:B.": "b",
    "name=starts_with_case_sensitive:B.": "",
    "name=ends_with:.TEST": "abc",
    "name=ends_with:xxxxxxxxxxxxa.test": "",
    "name=ends_with_case_sensitive:c.test": "c",
    "name=contains:c.t": "c",
    "name=contains_case_sensitive:C.t": "",
    "name=contains:%25": "",
    "name=contains:": "abc",
    "name=unknown:a.test": "",
    "name=a.test,c.test": "ac",
    "name=a.test&name=b.test": "ab",
    "status=active,pending": "abc",
    "status=active&status=moved": "abc",
    "status=initializing,moved": "",
    "type=full": "abc",
    "type=partial,full": "abc",
    "type=internal": "",
    "account.name=ADMIN@example.com's%20Account": "abc",
    "account.name=starts_with:Admin": "abc",
    "account.name=starts_with_case_sensitive:Admin": "",
    "account.name=contains:nobody": "",
    "account.name=not_equal:nobody": "abc",
    "name=a.test&status=pending&match=any": "a",
    "name=a.test&status=pending&match=all": "",
    "account.name=nobody&name=c.test&match=any": "c",
    "order=plan.id": "abc",
    "order=account.name&direction=desc": "cba",
    "organization.name=ignored&owner.id=ignored": "abc",
}


def test_zones_are_found_and_ordered_as_the_query_says(api, three):
    for query, names in LISTS.items():
        answer = api.get(f"/zones?{query}").json

        assert [zone["name"][0] for zone in answer["result"]] == list(names), query
        assert answer["result_info"]["total_count"] == len(names), query


def test_zones_are_ordered_by_their_plans_rank(api, three):
    api.patch(f"/zones/{three['a.test']}", {"plan": {"id": "enterprise"}})
    api.patch(f"/zones/{three['b.test']}", {"plan": {"id": "pro"}})

    assert [zone["name"][0] for zone in api.get("/zones?order=plan.id").result] == ["c", "b", "a"]


@pytest.mark.parametrize("query", ["order=nothing", "match=some", "direction=up", "page=x", "page=0"])
def test_a_list_refuses_what_it_does_not_know(api, query):
    assert (api.get(f"/zones?{query}").status, api.get(f"/zones?{query}").codes) == (400, [1001])


def test_a_page_past_the_end_is_empty_and_sizes_are_clamped(api, three):
    past = api.get("/zones?page=9&per_page=2").json
    assert (past["result"], past["result_info"]["total_pages"]) == ([], 2)
    assert api.get("/zones?per_page=5000").json["result_info"]["per_page"] == 1000
    assert api.get("/zones?per_page=0").json["result_info"]["per_page"] == 1


def test_a_zone_is_paused_and_gets_a_plan(api, zone_id):
    path = f"/zones/{zone_id}"
    paused = api.patch(path, {"paused": True, "type": "full"}).result
    paid = api.patch(path, {"plan": {"id": "94f3b7b768b0458b56d2cac4fe5ec0f9"}}).result

    assert (paused["paused"], paid["paused"]) == (True, True)
    assert paused["modified_on"] > paused["created_on"]
    assert (paid["plan"]["legacy_id"], paid["plan"]["name"]) == ("enterprise", "Enterprise Website")
    assert api.get(path).result == paid
    assert api.patch(path, {}).result == paid


@pytest.mark.parametrize(
    ("body", "status"),
    [({"type": "partial"}, 400), ({"plan": {"id": "platinum"}}, 400), ({"plan": {}}, 400)],
)
def test_a_patch_is_whole_or_nothing(api, zone_id, body, status):
    answer = api.patch(f"/zones/{zone_id}", {"paused": True, "vanity_name_servers": ["a.b.test"], **body})

    assert (answer.status, answer.codes) == (status, [1001])
    shown = api.get(f"/zones/{zone_id}").result
    assert (shown["paused"], shown["vanity_name_servers"]) == (False, [])


def test_a_deleted_zone_is_gone_with_its_records_and_its_name_is_free(api, zone_id, www):
    assert api.delete(f"/zones/{zone_id}").result == {"id": zone_id}

    assert api.get(f"/zones/{zone_id}").codes == [1001]
    assert api.get(www).codes == [1001]
    assert api.get("/zones").json["result_info"]["total_count"] == 0
    again = api.post("/zones", {"name": "example.com"}).result["id"]
    assert again != zone_id
    assert api.get(f"/zones/{again}/dns_records").result == []


def test_a_deleted_zones_records_go_some_at_a_time(api, records, monkeypatch):
    monkeypatch.setattr("edgestead.usecases.zone.zones.SWEPT_ROWS_MAX", 2)
    for number in range(5):
        api.post(records, {"type": "A", "name": f"a{number}", "content": "192.0.2.1"})
    other = api.post("/zones", {"name": "other.test"}).result["id"]
    kept = api.post(f"/zones/{other}/dns_records", {"type": "A", "name": "b", "content": "192.0.2.1"}).result

    api.delete(records.removesuffix("/dns_records"))

    assert rows(api, "SELECT id FROM records") == [(kept["id"],)]
    assert rows(api, "SELECT id FROM deleted_zones") == []


def test_records_of_a_deleted_zone_are_out_of_sight_before_they_are_gone(api, zone_id, records, www):
    api.store.write(lambda tx: zones.delete(tx, zone_id)).result()  # a crash came before the sweep

    assert api.get(www).codes == [1001]
    assert api.get(records).codes == [1001]
    assert api.patch(www, {"ttl": 60}).codes == [1001]
    api.delete(f"/zones/{api.post('/zones', {'name': 'next.test'}).result['id']}")
    assert rows(api, "SELECT id FROM records") == rows(api, "SELECT id FROM deleted_zones") == []


@pytest.mark.parametrize("refusal", [Unavailable, DiskFull])
def test_a_deletion_whose_rows_cannot_be_swept_yet_has_succeeded(api, zone_id, www, monkeypatch, refusal):
    def refuse(tx):
        raise refusal

    with monkeypatch.context() as full:
        full.setattr("edgestead.usecases.zone.zones.sweep", refuse)
        assert api.delete(f"/zones/{zone_id}").result == {"id": zone_id}
    assert api.get(f"/zones/{zone_id}").codes == [1001]
    assert rows(api, "SELECT id FROM deleted_zones") == [(zone_id,)]

    upkeep = Upkeep(api.app.context.barrier, api.platform, None, api.page, lambda: FIRST_US)

    async def until_swept():
        upkeep.open()
        try:
            while rows(api, "SELECT id FROM deleted_zones"):  # noqa: ASYNC110  upkeep tells nobody
                await asyncio.sleep(0.01)
        finally:
            upkeep.close()

    api._loop.run_until_complete(asyncio.wait_for(until_swept(), 60))
    assert rows(api, "SELECT id FROM records") == []


def rows(api, sql):
    return api.store.read(lambda reader: reader.rows(sql))


def test_deleting_one_zone_leaves_the_others(api, three):
    api.delete(f"/zones/{three['b.test']}")

    assert [zone["name"] for zone in api.get("/zones").result] == ["a.test", "c.test"]
    assert api.get("/zones").json["result_info"]["total_count"] == 2


def test_a_deleted_zones_rulesets_and_settings_go_with_it(api, zone_id):
    own = f"/zones/{zone_id}"
    rules = [{"action": "log", "expression": "true"}]
    phase = "http_request_firewall_custom"
    assert api.put(f"{own}/rulesets/phases/{phase}/entrypoint", {"rules": rules}).status == 200
    api.patch(f"{own}/settings/ssl", {"value": "full"})
    api.post(f"{own}/hold", None)

    api.delete(own)

    for table in ("rulesets", "ruleset_versions", "ruleset_uses", "settings where scope_id <> 'serials'"):
        assert rows(api, f"select * from {table}") == []


# A query, and whether the event loop may wait for it.
LENGTHS = {
    "": True,
    "per_page=100": True,
    "per_page=101": False,
    "per_page=50&page=3": False,
    "order=name&direction=desc": True,
    "order=status": False,
    "name=a.test&per_page=1000": True,
    "name=a.test,b.test&order=status": True,
    "name=a.test&status=active&match=any": False,
    "name=contains:a": False,
    f"account.id={CREDENTIALS.account_id}": False,
}


@pytest.fixture
def threads(api, monkeypatch):
    """One entry for each read off the event loop."""
    barrier, seen = api.app.context.barrier, []
    read_long = barrier.read_long
    monkeypatch.setattr(barrier, "read_long", lambda read: seen.append(read) or read_long(read))
    return seen


@pytest.mark.parametrize(("query", "is_short"), LENGTHS.items())
def test_a_list_that_may_take_long_is_read_off_the_event_loop(api, three, threads, query, is_short):
    assert api.get(f"/zones?{query}").status == 200
    assert (threads == []) is is_short


def test_so_is_one_that_picks_what_a_caller_may_see(api, three, threads):
    put_token(api, policy("Zone Read", resources=zone(three["a.test"])))

    assert [one["name"] for one in api.get("/zones", auth=RESTRICTED).result] == ["a.test"]
    assert len(threads) == 1
    assert api.get("/zones?name=a.test", auth=RESTRICTED).result
    assert len(threads) == 1
