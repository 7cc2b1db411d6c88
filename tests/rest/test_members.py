"""Members, their roles, what their tokens may hold, and further accounts."""

import pytest

from edgestead.model.roles import ROLES, SUPER_ADMINISTRATOR
from edgestead.tables import people
from edgestead.usecases.access import member_rights
from edgestead.usecases.access.authorise import secret_hash
from edgestead.usecases.access.identities import FedAccess
from tests.rest import test_tokens
from tests.rest.conftest import AT_NEWEST
from tests.rest.tokens import RESTRICTED, put_token
from tests.rest.tokens import policy as token_policy
from tests.support.api import BEARER, CREDENTIALS, FIRST_US, KEY_PAIR

pytestmark = AT_NEWEST

ACCOUNT = f"/accounts/{CREDENTIALS.account_id}"
MEMBERS = f"{ACCOUNT}/members"
IDS = {role.name: role.id for role in ROLES}
READ_ONLY = "Administrator Read Only"
DAY_US = 86_400_000_000


def add(api, email="ann@example.com", role="DNS", **options):
    return api.post(MEMBERS, {"email": email, "roles": [IDS[role]]}, **options)


def change(api, member, role, **options):
    return api.put(f"{MEMBERS}/{member['id']}", {"roles": [IDS[role]]}, **options)


def session(api, member):
    """What a session of the dashboard asks with, once the member has a password."""
    secret = f"session-of-{member['user']['id']}"
    call = api.app.context

    def write(tx):
        for one in api.get("/memberships").result and [member]:
            tx.run("update memberships set status = 'accepted' where id = ?", (one["id"],))
        people.set_password(tx, member["user"]["id"], "15$8$3$AA==$AA==", FIRST_US)
        member_rights.open_session(_Now(call.now_us()), tx, member["user"]["id"], secret_hash(secret))

    api.store.write(write).result()
    return {"authorization": f"Bearer {secret}"}


class _Now:
    def __init__(self, now_us):
        self.now_us = now_us


@pytest.fixture
def ann(api):
    """A member with the role DNS."""
    return add(api).result


def test_an_invited_member_is_pending_and_its_code_is_told_once(api):
    made = add(api, "Ann@Example.com").result

    assert (made["status"], made["email"], len(made["code"])) == ("pending", "Ann@Example.com", 32)
    assert [role["name"] for role in made["roles"]] == ["DNS"]
    assert made["user"]["email"] == "Ann@Example.com"
    shown = api.get(f"{MEMBERS}/{made['id']}").result
    assert shown == {key: value for key, value in made.items() if key != "code"}
    assert [one["id"] for one in api.get(MEMBERS).result][1:] == [made["id"]]


def test_roles_are_those_of_the_table_with_what_they_permit(api):
    found = {one["name"]: one["permissions"] for one in api.get(f"{ACCOUNT}/roles").result}

    assert list(found) == [role.name for role in ROLES]
    assert found["DNS"]["dns_records"] == {"read": True, "write": True}
    assert found["DNS"]["waf"] == {"read": False, "write": False}
    assert found[READ_ONLY]["settings"] == {"read": True, "write": False}
    assert all(area["write"] for area in found[SUPER_ADMINISTRATOR.name].values())


def test_roles_are_changed_by_identifiers_and_by_objects_as_clients_send_them(api, ann):
    body = {**ann, "roles": [{"id": IDS["Firewall"]}, {"id": IDS["DNS"]}]}
    changed = api.put(f"{MEMBERS}/{ann['id']}", body).result

    assert [role["name"] for role in changed["roles"]] == ["Firewall", "DNS"]
    assert [role["name"] for role in change(api, ann, "Editor").result["roles"]] == ["Editor"]


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"email": "ann", "roles": [IDS["DNS"]]}, "/email"),
        ({"email": "a@b@c", "roles": [IDS["DNS"]]}, "/email"),
        ({"email": "a b@example.com", "roles": [IDS["DNS"]]}, "/email"),
        ({"email": "ä@example.com", "roles": [IDS["DNS"]]}, "/email"),
        ({"email": f"{'a' * 90}@example.com", "roles": [IDS["DNS"]]}, "/email"),
        ({"roles": [IDS["DNS"]]}, "/email"),
        ({"email": "ann@example.com"}, "/roles"),
        ({"email": "ann@example.com", "roles": []}, "/roles"),
        ({"email": "ann@example.com", "roles": ["f" * 32]}, "/roles"),
        ({"email": "ann@example.com", "roles": [IDS["DNS"]], "status": "rejected"}, "/status"),
        ({"email": CREDENTIALS.email, "roles": [IDS["DNS"]]}, "/email"),
    ],
)
def test_a_member_that_cannot_be_is_refused_and_nothing_is_there(api, body, pointer):
    refused = api.post(MEMBERS, body)

    assert (refused.status, refused.codes) == (400, [1001])
    assert refused.json["errors"][0]["source"]["pointer"] == pointer
    assert len(api.get(MEMBERS).result) == 1
    assert api.store.read(lambda reader: len(reader.rows("select * from users"))) == 1


RECORD = {"type": "A", "name": "new", "content": "192.0.2.9"}
RULES = {"rules": [{"action": "log", "expression": "true"}]}
ENTRY = "rulesets/phases/http_request_firewall_custom/entrypoint"
ROOT_ENTRY = "rulesets/phases/http_request_firewall_managed/entrypoint"
ASKED = {
    "records": ("POST", "/zones/{zone}/dns_records", RECORD),
    "rules": ("PUT", "/zones/{zone}/" + ENTRY, RULES),
    "account rules": ("PUT", f"{ACCOUNT}/{ROOT_ENTRY}", {"rules": []}),
    "zones": ("POST", "/zones", {"name": "new.example", "account": {"id": CREDENTIALS.account_id}}),
    "values": ("POST", f"{ACCOUNT}/storage/kv/namespaces", {"title": "t"}),
    "account tokens": ("POST", f"{ACCOUNT}/tokens", test_tokens.body()),
    "members": ("POST", MEMBERS, {"email": "b@example.com", "roles": [IDS["DNS"]]}),
    "account": ("PUT", ACCOUNT, {"name": "Mine"}),
    "read records": ("GET", "/zones/{zone}/dns_records", None),
    "read log": ("GET", f"{ACCOUNT}/audit_logs", None),
}
MAY = {
    SUPER_ADMINISTRATOR.name: set(ASKED),
    "Administrator": set(ASKED) - {"members", "account"},
    "Editor": {"records", "rules", "account rules", "zones", "values", "read records", "read log"},
    "DNS": {"records", "read records"},
    "Firewall": {"rules", "account rules", "read records"},
    "Objects and Key-Value": {"values"},
    READ_ONLY: {"read records", "read log"},
}


@pytest.mark.parametrize("role", MAY)
def test_each_role_may_do_what_it_says_and_no_more(api, zone_id, role):
    auth = session(api, add(api, role=role).result)

    done = {
        what
        for what, (method, path, body) in ASKED.items()
        if api.call(method, path.format(zone=zone_id), body, auth=auth).status == 200
    }

    assert done == MAY[role]
    assert api.get("/user", auth=auth).result["email"] == "ann@example.com"


def token_of(api, auth, *policies):
    return api.post("/user/tokens", test_tokens.body(*policies), auth=auth)


ALL_ZONES = {
    f"com.cloudflare.api.account.{CREDENTIALS.account_id}": {"com.cloudflare.api.account.zone.*": "*"}
}


def test_a_member_makes_tokens_within_the_roles_alone(api, zone_id, ann):
    auth = session(api, ann)
    records = f"/zones/{zone_id}/dns_records"

    made = token_of(api, auth, token_policy("DNS Write", resources=ALL_ZONES)).result
    wider = token_of(api, auth, token_policy("Zone Settings Write", resources=ALL_ZONES))
    elsewhere = token_of(
        api, auth, token_policy("DNS Write", resources={"com.cloudflare.api.account.zone.*": "*"})
    )

    assert (wider.status, elsewhere.status) == (403, 403)
    bearer = {"authorization": f"Bearer {made['value']}"}
    assert api.post(records, RECORD, auth=bearer).status == 200
    change(api, ann, READ_ONLY)
    assert api.post(records, {**RECORD, "name": "b"}, auth=bearer).status == 403
    assert api.get(records, auth=bearer).status == 200
    change(api, ann, "DNS")
    assert api.post(records, {**RECORD, "name": "b"}, auth=bearer).status == 200


def test_a_token_is_switched_off_rolled_and_deleted_though_a_zone_that_it_names_is_gone(api, zone_id):
    auth = session(api, add(api, role=SUPER_ADMINISTRATOR.name).result)
    zone = {f"com.cloudflare.api.account.zone.{zone_id}": "*"}
    nested = {f"com.cloudflare.api.account.{CREDENTIALS.account_id}": zone}
    policies = [token_policy("DNS Write", resources=one) for one in (zone, nested)]
    body = test_tokens.body(*policies)
    tokens = f"{ACCOUNT}/tokens"
    made = api.post(tokens, body).result
    own = api.post("/user/tokens", body, auth=auth).result
    other = api.post(tokens, test_tokens.body()).result
    api.delete(f"/zones/{zone_id}")
    off = body | {"status": "disabled"}

    done = [
        api.put(f"{tokens}/{made['id']}", off, auth=auth),
        api.put(f"{tokens}/{made['id']}/value", {}, auth=auth),
        api.delete(f"{tokens}/{made['id']}", auth=auth),
        api.put(f"/user/tokens/{own['id']}", off, auth=auth),
    ]

    assert [answer.codes for answer in done] == [[]] * len(done)
    assert [done[at].result["status"] for at in (0, 3)] == ["disabled"] * 2
    plain = api.post(
        "/user/tokens", test_tokens.body(token_policy("DNS Write", resources=ALL_ZONES)), auth=auth
    )
    begun = test_tokens.body(policies[0])
    for answer in (
        api.post("/user/tokens", begun, auth=auth),
        api.put(f"/user/tokens/{plain.result['id']}", begun, auth=auth),
    ):
        assert (answer.status, answer.codes) == (403, [9109])
    for answer in (api.post(tokens, body), api.put(f"{tokens}/{other['id']}", body)):
        assert answer.json["errors"][0]["source"]["pointer"] == "/policies/0/resources"


def test_removing_a_member_ends_the_session_and_every_token_of_the_line(api, zone_id):
    boss = add(api, role=SUPER_ADMINISTRATOR.name).result
    auth = session(api, boss)
    rights = token_policy("Zone Read", resources=ALL_ZONES)
    mine = token_of(
        api,
        auth,
        rights,
        token_policy("API Tokens Write", resources=f"com.cloudflare.api.user.{boss['user']['id']}"),
    ).result
    child = token_of(api, {"authorization": f"Bearer {mine['value']}"}, rights).result
    accounts_own = api.post(f"{ACCOUNT}/tokens", test_tokens.body(rights), auth=auth).result
    bearers = [{"authorization": f"Bearer {one['value']}"} for one in (mine, child, accounts_own)]
    assert [api.get("/zones", auth=one).status for one in bearers] == [200, 200, 200]

    assert api.delete(f"{MEMBERS}/{boss['id']}").result == {"id": boss["id"]}

    assert {api.get("/zones", auth=one).status for one in (*bearers, auth)} == {403}
    kept = api.store.read(lambda reader: [row[0] for row in reader.rows("select name from tokens")])
    assert kept == ["First token"]
    for table in ("passwords", "passkeys", "invitations", "memberships", "users"):
        rows = api.store.read(lambda reader, table=table: reader.rows(f"select * from {table}"))
        assert len(rows) == (table in ("memberships", "users")), table
    assert add(api).status == 200, "the address is free again"


@pytest.mark.parametrize("how", ["removed", "narrowed"])
def test_a_request_under_way_is_refused_when_its_member_goes(api, zone_id, ann, how):
    auth = session(api, ann)

    def meanwhile():
        def write(tx):
            if how == "removed":
                tx.run("delete from memberships where id = ?", (ann["id"],))
            else:
                roles = f'["{IDS[READ_ONLY]}"]'
                tx.run("update memberships set roles = ? where id = ?", (roles, ann["id"]))
            member_rights.settle(_call(api), tx, api.platform, ann["user"]["id"])

        api.store.write(write).result()

    refused = api.post(f"/zones/{zone_id}/dns_records", RECORD, auth=auth, meanwhile=meanwhile)

    assert refused.status in (401, 403)
    assert api.get(f"/zones/{zone_id}/dns_records").result == []


def _call(api):
    """As a request of the operator has one."""
    from edgestead.changes import NEWEST
    from edgestead.model.call import Actor, Call, Profile

    return Call(
        actor=Actor(kind="user", id="0" * 32),
        as_of=NEWEST,
        profile=Profile.SPEC,
        now_us=api.app.context.now_us(),
        request_id="",
    )


def test_the_token_of_a_member_is_in_no_list_and_no_route_finds_it(api, ann):
    auth = session(api, ann)
    id_ = member_rights.token_id_of(ann["user"]["id"])

    for credentials in (auth, KEY_PAIR):
        assert id_ not in [one["id"] for one in api.get("/user/tokens", auth=credentials).result]
        for method, path in (("GET", ""), ("DELETE", ""), ("PUT", "/value"), ("PUT", "")):
            body = test_tokens.body() if (method, path) == ("PUT", "") else None
            found = api.call(method, f"/user/tokens/{id_}{path}", body, auth=credentials)
            assert found.status == 404
    assert api.get("/user", auth=auth).status == 200


def test_nobody_gives_or_takes_more_than_they_have(api, ann):
    other = add(api, "boss@example.com", SUPER_ADMINISTRATOR.name).result
    put_token(
        api,
        token_policy(
            *("Account Settings Write", "Account DNS Settings Write"),
            resources=f"com.cloudflare.api.account.{CREDENTIALS.account_id}",
        ),
        token_policy("Zone Settings Read", "DNS Write", "Zone Read", resources=ALL_ZONES),
    )

    assert add(api, "new@example.com", "DNS", auth=RESTRICTED).status == 200
    assert change(api, ann, "DNS", auth=RESTRICTED).status == 200
    refused = [
        add(api, "b@example.com", "Editor", auth=RESTRICTED),
        change(api, ann, "Editor", auth=RESTRICTED),
        change(api, other, "DNS", auth=RESTRICTED),
        api.delete(f"{MEMBERS}/{other['id']}", auth=RESTRICTED),
        api.post(f"{MEMBERS}/{other['id']}/invitation", None, auth=RESTRICTED),
    ]
    assert [(one.status, one.codes) for one in refused] == [(403, [9109])] * 5
    assert api.delete(f"{MEMBERS}/{ann['id']}", auth=RESTRICTED).status == 200


def test_the_servers_own_user_stays_as_they_are(api):
    first = api.get(MEMBERS).result[0]

    for refused in (
        change(api, first, "DNS"),
        api.delete(f"{MEMBERS}/{first['id']}"),
        api.post(f"{MEMBERS}/{first['id']}/invitation", None),
    ):
        assert (refused.status, refused.codes) == (400, [1001])
    assert api.get("/user", auth=KEY_PAIR).status == 200


def test_what_is_not_there_is_not_found(api):
    for answer in (
        api.get(f"{MEMBERS}/{'f' * 32}"),
        api.put(f"{MEMBERS}/{'f' * 32}", {"roles": [IDS["DNS"]]}),
        api.delete(f"{MEMBERS}/{'f' * 32}"),
        api.post(f"{MEMBERS}/{'f' * 32}/invitation", None),
        api.get(f"{ACCOUNT}/roles/{'f' * 32}"),
    ):
        assert (answer.status, answer.codes) == (404, [1003])
    assert api.post(f"/accounts/{'f' * 32}/members", {"email": "a@b.c", "roles": [IDS["DNS"]]}).status == 403


def test_a_reset_of_the_credentials_ends_members_sessions_and_tokens(api, zone_id, ann):
    auth = session(api, ann)
    made = token_of(api, auth, token_policy("DNS Write", resources=ALL_ZONES)).result
    renewed = CREDENTIALS.__class__(
        account_id=CREDENTIALS.account_id,
        email=CREDENTIALS.email,
        api_key="f" * 37,
        api_token="Other-token_0123456789ABCDEFabcdef012345",
    )
    api.install(renewed, revoke_others=True)

    for bearer in (auth, BEARER, {"authorization": f"Bearer {made['value']}"}):
        assert api.get("/zones", auth=bearer).status == 403
    again = session_again(api, ann)
    assert api.get(f"/zones/{zone_id}/dns_records", auth=again).status == 200


def session_again(api, member):
    secret = f"another-session-of-{member['user']['id']}"

    def write(tx):
        member_rights.open_session(
            _Now(api.app.context.now_us()), tx, member["user"]["id"], secret_hash(secret)
        )

    api.store.write(write).result()
    return {"authorization": f"Bearer {secret}"}


class TestAccounts:
    @pytest.fixture(autouse=True)
    def later(self, api):
        """The first account is older than any other: the test's clock moves with each request."""
        api.get("/accounts")

    def test_another_account_is_made_by_who_may_do_everything(self, api):
        made = api.post("/accounts", {"name": "Second"}).result

        assert (made["name"], made["type"], len(made["id"])) == ("Second", "standard", 32)
        assert [one["name"] for one in api.get("/accounts").result][1:] == ["Second"]
        zone = api.post("/zones", {"name": "second.example", "account": {"id": made["id"]}}).result
        assert zone["account"]["id"] == made["id"]
        assert [one["account"]["name"] for one in api.get("/memberships").result][1:] == ["Second"]

    def test_nobody_else_makes_one(self, api):
        auth = session(api, add(api, role=SUPER_ADMINISTRATOR.name).result)
        refused = api.post("/accounts", {"name": "Second"}, auth=auth)

        assert (refused.status, refused.codes) == (403, [1002])

    @pytest.mark.parametrize(
        "body", [{}, {"name": ""}, {"name": "x" * 101}, {"name": "x", "type": "enterprise"}]
    )
    def test_one_that_cannot_be_is_refused(self, api, body):
        assert api.post("/accounts", body).status == 400

    def test_they_are_limited(self, api, monkeypatch):
        monkeypatch.setattr("edgestead.usecases.account.accounts.ACCOUNTS_MAX", 2)
        assert api.post("/accounts", {"name": "Second"}).status == 200
        assert api.post("/accounts", {"name": "Third"}).status == 400

    def test_a_member_of_one_sees_nothing_of_the_other(self, api, zone_id):
        second = api.post("/accounts", {"name": "Second"}).result["id"]
        api.post("/zones", {"name": "second.example", "account": {"id": second}})
        body = {"email": "ann@example.com", "roles": [SUPER_ADMINISTRATOR.id]}
        member = api.post(f"/accounts/{second}/members", body).result
        auth = session(api, member)

        assert [one["id"] for one in api.get("/accounts", auth=auth).result] == [second]
        assert [one["name"] for one in api.get("/zones", auth=auth).result] == ["second.example"]
        for path in (ACCOUNT, MEMBERS, f"{ACCOUNT}/audit_logs", f"/zones/{zone_id}"):
            assert api.get(path, auth=auth).status == 403, path
        log = api.get(f"/accounts/{second}/audit_logs", auth=auth).result
        assert [one["resource"]["type"] for one in log] == ["member", "zone", "account"]

    def test_who_has_a_password_accepts_a_further_account_themselves(self, api, ann):
        auth = session(api, ann)
        second = api.post("/accounts", {"name": "Second"}).result["id"]
        put_token(
            api,
            token_policy(
                "Account Settings Write",
                "Account DNS Settings Write",
                resources={f"com.cloudflare.api.account.{second}": "*"},
            ),
            token_policy(
                "Zone Read",
                "DNS Write",
                "Zone Settings Read",
                resources={
                    f"com.cloudflare.api.account.{second}": {"com.cloudflare.api.account.zone.*": "*"}
                },
            ),
        )
        body = {"email": "ANN@example.com", "roles": [IDS["DNS"]], "status": "accepted"}
        made = api.post(f"/accounts/{second}/members", body, auth=RESTRICTED).result
        assert made["status"] == "pending"
        for code in ("", "x", ann["code"]):
            refused = api.put(f"/memberships/{made['id']}", {"status": "accepted", "code": code}, auth=auth)
            assert refused.json["errors"][0]["source"]["pointer"] == "/code"
        again = api.post(f"/accounts/{second}/members/{made['id']}/invitation", {}, auth=RESTRICTED)
        assert again.codes == [9109]
        assert len(api.get("/accounts", auth=auth).result) == 1

        accepted = {"status": "accepted", "code": made["code"]}
        assert api.put(f"/memberships/{made['id']}", accepted, auth=auth).status == 200

        assert [one["name"] for one in api.get("/accounts", auth=auth).result][1:] == ["Second"]
        api.delete(f"{MEMBERS}/{ann['id']}")
        assert [one["name"] for one in api.get("/accounts", auth=auth).result] == ["Second"]

    def test_who_invites_somebody_too_gets_no_code_for_a_password(self, api):
        first = add(api, role=SUPER_ADMINISTRATOR.name).result
        second = api.post("/accounts", {"name": "Second"}).result["id"]
        members = f"/accounts/{second}/members"
        put_token(
            api,
            token_policy(
                "Account Settings Write",
                "Account DNS Settings Write",
                resources={f"com.cloudflare.api.account.{second}": "*"},
            ),
            token_policy(
                "Zone Read",
                "DNS Write",
                "Zone Settings Read",
                resources={
                    f"com.cloudflare.api.account.{second}": {"com.cloudflare.api.account.zone.*": "*"}
                },
            ),
        )
        body = {"email": "ann@example.com", "roles": [IDS["DNS"]]}
        made = api.post(members, body, auth=RESTRICTED).result

        assert api.post(f"{members}/{made['id']}/invitation", {}, auth=RESTRICTED).codes == [9109]
        rows = api.store.read(
            lambda reader: reader.rows("select account_id, sets_password from invitations order by made_us")
        )
        assert sorted(map(tuple, rows)) == sorted([(CREDENTIALS.account_id, 1), (second, 0)])
        assert first["user"]["id"] == made["user"]["id"]

    def test_objects_belong_to_the_first_one_alone(self, api):
        api.post("/accounts", {"name": "Second"})
        fed = FedAccess()
        api.store.read(fed.refresh)

        assert fed.accounts == (CREDENTIALS.account_id,)
