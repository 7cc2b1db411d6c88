"""The audit log: who changed what, in the transaction of the change, and nothing that is secret."""

import json
import re

import pytest

from edgestead.rest import audited
from edgestead.rest.routing import BASE_PATH, CONTROL, rows_of
from edgestead.tables import accounts
from edgestead.usecases import audit
from tests.rest import test_tokens
from tests.rest.conftest import AT_NEWEST
from tests.rest.test_matrix import EVERYTHING, PRIVATE, ask, ask_async, known, named  # noqa: F401
from tests.rest.test_revocation import WITHOUT_WRITE
from tests.rest.tokens import RESTRICTED, put_token
from tests.rest.tokens import policy as token_policy
from tests.support.api import CREDENTIALS, FIRST_US, KEY_PAIR

pytestmark = AT_NEWEST

LOG = f"/accounts/{CREDENTIALS.account_id}/audit_logs"
# Values of keys are data, in a database of their own; what ended or is refused writes nothing.
DATA = re.compile(r"/namespaces/\{namespace\}/(bulk|values)")


def entries(api, query=""):
    return api.get(LOG + query).result


def test_every_route_that_writes_leaves_one_entry(api, ask):  # noqa: F811
    for row in PRIVATE:
        if row.adds is None or DATA.search(row.path) or named(row) in WITHOUT_WRITE:
            continue
        before = api.get("/user/audit_logs?per_page=1").json["result_info"]["total_count"]
        answer = ask(row, KEY_PAIR)
        found = api.get("/user/audit_logs?per_page=1").json

        written = found["result_info"]["total_count"] - before
        assert written == (answer.status in (200, 204)), (named(row), answer.body)
        if written:
            (entry,) = found["result"]
            assert entry["resource"]["type"] in audited.RESOURCES.values(), named(row)
            assert entry["resource"]["id"], named(row)
            assert entry["action"]["type"] in {*audited.VERBS.values(), "create", "update", "delete"}
            assert entry["metadata"]["request_id"], named(row)


@pytest.mark.inside("what earlier tests did is told, too")
def test_an_entry_says_who_what_where_and_how_it_was_called(api, zone_id, records):
    made = api.post(records, {"type": "A", "name": "www", "content": "192.0.2.1"}).result
    api.patch(f"{records}/{made['id']}", {"name": "web"}, auth=KEY_PAIR)
    api.delete(f"{records}/{made['id']}")

    gone, changed, created, zone = entries(api)

    user = api.get("/user").result
    assert zone["resource"] == {"id": zone_id, "type": "zone"}
    assert zone["metadata"]["zone_name"] == "example.com"
    assert created["action"] == {"result": True, "type": "create"}
    assert created["actor"] == {"id": user["id"], "email": user["email"], "ip": "127.0.0.1", "type": "user"}
    assert created["metadata"]["token_name"] == "First token"
    assert created["newValueJson"] == {"id": made["id"], "name": "www.example.com", "type": "A"}
    assert (created["oldValue"], created["oldValueJson"], created["interface"]) == ("", None, "API")
    assert created["owner"] == {"id": user["id"]}
    assert "token_id" not in changed["metadata"]
    assert changed["oldValueJson"]["name"] == "www.example.com A"
    assert changed["newValueJson"]["name"] == "web.example.com"
    assert (gone["action"]["type"], gone["newValue"]) == ("delete", "")
    assert gone["resource"] == {"id": made["id"], "type": "record"}
    assert gone["metadata"]["zone_name"] == "example.com"
    assert json.loads(gone["oldValue"]) == {"id": made["id"], "name": "web.example.com A"}
    history = api.get(f"/zones/{zone_id}/history").result
    assert history[0]["request_id"] == gone["metadata"]["request_id"]


@pytest.mark.inside("what earlier tests did is told, too")
def test_a_deleted_token_keeps_its_name_in_the_log(api):
    rights = token_policy("Zone Write", resources={**EVERYTHING})
    made = api.post("/user/tokens", test_tokens.body(rights)).result
    bearer = {"authorization": f"Bearer {made['value']}"}
    api.post("/zones", {"name": "other.example"}, auth=bearer)
    api.delete(f"/user/tokens/{made['id']}")

    gone, zone, token = entries(api)

    assert zone["metadata"]["token_name"] == token["newValueJson"]["name"] == "ours"
    assert (zone["metadata"]["token_id"], gone["resource"]["id"]) == (made["id"], made["id"])


def test_nothing_that_is_refused_is_told(api, zone_id, records):
    count = len(entries(api))
    api.post(records, {"type": "A", "name": "www", "content": "none"})
    api.delete(f"{records}/{'f' * 32}")
    api.post("/zones", {"name": "new.example"}, auth={})

    assert len(entries(api)) == count


def test_it_holds_no_secret_of_any_request(api):
    made = api.post("/user/tokens", test_tokens.body()).result
    rolled = api.put(f"/user/tokens/{made['id']}/value", {}).result
    api.put(f"/accounts/{CREDENTIALS.account_id}", {"name": "Mine"})

    text = json.dumps(entries(api))

    for secret in (made["value"], rolled, CREDENTIALS.api_token, CREDENTIALS.api_key):
        assert secret not in text
    assert "permission_groups" not in text


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ("", 3),
        ("?zone.name=example.com", 1),
        ("?zone.name=other.example", 1),
        ("?action.type=create", 3),
        ("?action.type=delete", 0),
        ("?actor.email=ADMIN@example.com", 3),
        ("?actor.email=nobody@example.com", 0),
        ("?actor.ip=127.0.0.1", 3),
        ("?actor.ip=127.0.0.0/8", 3),
        ("?actor.ip=2001:db8::/32", 0),
        ("?since=2026-01-02", 3),
        ("?since=2026-01-03", 0),
        ("?before=2026-01-02", 0),
        ("?before=2026-01-02T03:05:00Z&since=2026-01-02T04:04:05%2B01:00", 3),
        ("?hide_user_logs=true", 2),
        ("?id=nothing", 0),
        ("?per_page=2&page=2", 1),
    ],
)
@pytest.mark.inside("invented time")
def test_filters(api, zone_id, query, count):
    api.post("/zones", {"name": "other.example"})
    api.post("/user/tokens", test_tokens.body())

    assert len(entries(api, query)) == count


@pytest.mark.parametrize(
    "query", ["since=yesterday", "before=2026-13-01", "actor.ip=house", "direction=up", "hide_user_logs=1"]
)
def test_a_filter_that_cannot_be_is_refused(api, query):
    assert api.get(f"{LOG}?{query}").status == 400


@pytest.mark.inside("what earlier tests did is told, too")
def test_one_entry_is_found_by_its_id_and_the_oldest_can_come_first(api, zone_id):
    api.post("/zones", {"name": "other.example"})
    newest, oldest = entries(api)

    assert entries(api, f"?id={newest['id']}") == [newest]
    assert entries(api, "?direction=asc") == [oldest, newest]
    assert api.get("/user/audit_logs").result == [newest, oldest]


def test_an_import_in_portions_is_one_entry(api, zone_id, records, monkeypatch):
    monkeypatch.setattr("edgestead.usecases.zone.importing.PORTION_RECORDS_MAX", 2)
    file = "\n".join(f"r{number} 60 IN A 192.0.2.1" for number in range(9))
    form = f'--b\r\nContent-Disposition: form-data; name="file"\r\n\r\n{file}\r\n--b--\r\n'.encode()
    api.call("POST", f"{records}/import", form, headers={"content-type": "multipart/form-data; boundary=b"})

    assert [entry["action"]["type"] for entry in entries(api)] == ["import", "create"]


def test_who_may_not_read_the_account_does_not_read_its_log(api, zone_id):
    account = f"com.cloudflare.api.account.{CREDENTIALS.account_id}"
    put_token(api, token_policy("DNS Write", resources=account))
    assert api.get(LOG, auth=RESTRICTED).status == 403
    assert api.get(f"/accounts/{'b' * 32}/audit_logs").status == 403


def test_what_is_too_old_or_too_much_is_forgotten_from_the_oldest_on(api):
    for number in range(6):
        api.post("/zones", {"name": f"z{number}.example"})
    whole = api.store.read(lambda reader: reader.row("select sum(octets) from audit")[0])

    def forget(octets_max, older_than_us):
        floor = api.store.read(lambda reader: audit.due(reader, octets_max, older_than_us))
        api.store.write(lambda tx: audit.forget(tx, floor)).result()
        return [entry["metadata"]["zone_name"] for entry in entries(api)]

    assert len(forget(whole, 0)) == 6
    assert forget(whole // 2, 0) == ["z5.example", "z4.example", "z3.example"]
    assert forget(whole, FIRST_US * 2) == []
    api.post("/zones", {"name": "later.example"})
    assert len(entries(api)) == 1


def test_a_command_of_the_operator_is_told(api):
    account_id = api.store.read(accounts.all_accounts)[0].id
    api.store.write(lambda tx: audit.note_command(tx, FIRST_US, "rotate", "credentials", account_id)).result()

    (entry,) = entries(api)

    assert entry["actor"] == {"id": "", "email": None, "ip": None, "type": "admin"}
    assert (entry["interface"], entry["action"]["type"]) == ("edgecli", "rotate")


def test_verbs_and_resources_are_those_of_routes(api):
    parts = {part for row in rows_of(CONTROL) for part in row.path.removeprefix(BASE_PATH).split("/")}

    assert parts >= set(audited.RESOURCES)


def test_outgoing_transfers_are_told_by_what_was_done(api, zone_id):
    account = f"/accounts/{CREDENTIALS.account_id}"
    dns, outgoing = f"{account}/secondary_dns", f"/zones/{zone_id}/secondary_dns/outgoing"
    peer = api.post(f"{dns}/peers", {"name": "p", "ip": "192.0.2.1"}).result["id"]
    api.post(f"{dns}/acls", {"name": "a", "ip_range": "192.0.2.0/24"})
    api.post(outgoing, {"name": "o", "peers": [peer]})
    for verb in ("enable", "force_notify", "disable"):
        api.post(f"{outgoing}/{verb}", {})

    found = [
        (one["action"]["type"], one["resource"]["type"]) for one in api.get(f"{account}/audit_logs").result
    ]
    assert sorted(found[:5]) == [
        ("create", "outgoing_transfer"),
        ("create", "transfer_acl"),
        ("disable", "outgoing_transfer"),
        ("enable", "outgoing_transfer"),
        ("notify", "outgoing_transfer"),
    ]
