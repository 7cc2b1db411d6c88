"""Tokens that may little, or be used from few places: the dashboard shows what they may see."""

import pytest

from tests.web.local import LocalSite
from tests.web.local import LocalVisitor as Visitor
from tests.web.walking import Read

ZONE = "one.example"


@pytest.fixture
def server(tmp_path):
    made = LocalSite(tmp_path)
    made.zone_id = made.make_zone(ZONE)
    yield made
    made.close()


def token(server, resource, group="DNS Write", **members):
    """A token of the user's that has one right."""
    groups = {one["name"]: one["id"] for one in server.api.get("/user/tokens/permission_groups").result}
    policy = {"effect": "allow", "permission_groups": [{"id": groups[group]}], "resources": resource}
    made = server.api.post("/user/tokens", {"name": "small", "policies": [policy], **members})
    return made.result["value"]


def of_zone(server):
    return {f"com.cloudflare.api.account.zone.{server.zone_id}": "*"}


@pytest.mark.parametrize("group", ["DNS Write", "Zone Read"])
def test_a_token_of_one_zone_signs_in_to_what_it_sees(server, group):
    visitor = Visitor(server)
    entered = visitor.sign_in(token(server, of_zone(server), group))
    assert entered.status == 303

    page = visitor.get(entered.to)

    assert (page.status, "Health" in page.words) == (200, True)
    assert "namespace" not in page.words
    assert visitor.get("/ui/zones").status == 200


def test_a_token_of_other_addresses_is_refused_on_the_form(server):
    elsewhere = {"condition": {"request_ip": {"in": ["192.0.2.0/24"]}}}
    secret = token(server, of_zone(server), **elsewhere)

    visitor = Visitor(server)
    refused = visitor.sign_in(secret)

    assert (refused.status, visitor.cookie) == (403, "")
    assert "127.0.0.1" in refused.words
    assert Visitor(server, "192.0.2.9").sign_in(secret).status == 303
    assert server.guesses == 0


@pytest.mark.parametrize(
    "change",
    [{"status": "disabled"}, {"condition": {"request_ip": {"in": ["192.0.2.0/24"]}}}],
    ids=["disabled", "of another place"],
)
def test_a_session_and_its_stream_end_when_its_token_is_of_no_use_there(server, change):
    visitor = Visitor(server)
    visitor.sign_in(token(server, of_zone(server), "Zone Read"))
    (row,) = [one for one in server.api.get("/user/tokens").result if one["name"] == "small"]
    stream = server.open_stream("/ui/live?span=hour", visitor.cookie)
    assert b"Health" in server.next_of(stream)

    kept = {name: row[name] for name in ("name", "policies", "status")}
    assert server.api.put(f"/user/tokens/{row['id']}", kept | change).status == 200

    assert server.next_of(stream) == b""
    assert visitor.get("/ui").to == "/ui/sign-in"


def test_one_of_several_accounts_is_chosen(server):
    other = server.api.post("/accounts", {"name": "A customer"}).result["id"]
    server.api.post(f"/accounts/{other}/storage/kv/namespaces", {"title": "theirs"})
    server.api.post(f"{server.account}/storage/kv/namespaces", {"title": "ours"})
    visitor = Visitor(server)
    visitor.sign_in(server.ready["api_token"])
    assert "ours" in visitor.get("/ui/values").words

    chosen = visitor.post("/ui/account", visitor.get("/ui"), account=other)

    assert f'<option value="{other}" selected>A customer</option>' in chosen.text
    theirs = visitor.get("/ui/values").words
    assert ("theirs" in theirs, "ours" in theirs) == (True, False)
    visitor.post("/ui/zones", name="theirs.example")
    (zone,) = server.api.get("/zones?name=theirs.example").result
    assert zone["account"]["id"] == other
    visitor.post("/ui/account", visitor.get("/ui"), account="f" * 32)  # not one of theirs
    assert "ours" in visitor.get("/ui/values").words


def test_a_second_account_is_made_on_the_page_you_and_looked_at(server):
    visitor = Visitor(server)
    visitor.sign_in(server.ready["api_token"])
    visitor.get("/ui/profile")

    refused = visitor.post("/ui/profile", what="account", name="n" * 500)
    made = visitor.post("/ui/profile", what="account", name="A customer")

    assert (refused.status, 'id="account-error"' in refused.text) == (400, True)
    assert "The account A customer is made" in made.words
    other = next(one["id"] for one in server.api.get("/accounts").result if one["name"] == "A customer")
    visitor.post("/ui/zones", made, name="new.example")
    (zone,) = server.api.get("/zones?name=new.example").result
    assert zone["account"]["id"] == other


def test_who_may_not_make_an_account_is_told(server):
    groups = server.api.get("/user/tokens/permission_groups").result
    everything = {f"com.cloudflare.api.{server.account.strip('/').replace('accounts/', 'account.')}": "*"}
    policy = {"effect": "allow", "permission_groups": [{"id": one["id"]} for one in groups]}
    body = {"name": "most", "policies": [policy | {"resources": everything}]}
    visitor = Visitor(server)
    visitor.sign_in(server.api.post("/user/tokens", body).result["value"])
    page = visitor.get("/ui/zones")

    refused = visitor.post("/ui/profile", page, what="account", name="Mine")

    assert (refused.status, "Account creation is forbidden" in refused.words) == (403, True)
    assert len(server.api.get("/accounts").result) == 1


def test_where_there_is_one_account_there_is_no_choice(server):
    visitor = Visitor(server)
    visitor.sign_in(server.ready["api_token"])

    assert "/ui/account" not in visitor.get("/ui").text


def test_a_page_below_says_which_part_it_belongs_to(server):
    visitor = Visitor(server)
    visitor.sign_in(server.ready["api_token"])

    for path in ("/ui/zones", f"/ui/zones/{ZONE}", f"/ui/zones/{ZONE}/rules/try"):
        head = visitor.get(path).text.partition("</header>")[0]
        marked = [held["href"] for tag, held in Read(head).elements if "aria-current" in held]
        assert marked == ["/ui/zones"], path
