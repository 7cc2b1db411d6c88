"""`edgecli token` against a running server."""

import json

import pytest

from edgestead.model.ids import fixed_id


@pytest.fixture(scope="module")
def zone(kv_server):
    kv_server.make_zone("tokens.example")
    return "tokens.example"


def test_a_token_for_one_zone_may_do_there_what_it_says_and_no_more(edgecli, kv_server, zone):
    other = kv_server.make_zone("others.example")
    zone_id = json.loads(edgecli("zone", "get", zone, "--json").out)["id"]

    made = edgecli("token", "create", "bot", "-p", "DNS Write", "--zone", zone)

    assert made.code == 0
    assert made.err.startswith("Created token bot, id ")
    secret = made.out.strip()
    fields = {"type": "A", "name": "a", "content": "192.0.2.1"}
    path = "/zones/{}/dns_records"
    assert kv_server.call("POST", path.format(zone_id), fields, token=secret).status == 200
    assert kv_server.call("POST", path.format(other), fields, token=secret).status == 403
    assert kv_server.call("DELETE", f"/zones/{zone_id}", token=secret).status == 403


def test_permissions_of_every_kind_become_policies(edgecli):
    groups = ("dns read", "Zone Read", "Account Settings Read", "User Details Read")
    words = [word for group in groups for word in ("--permission", group)]

    made = json.loads(edgecli("token", "create", "kinds", *words, "--json").out)

    account, user = (made["policies"][at]["resources"] for at in (1, 2))
    (of_account,) = account
    assert [len(policy["permission_groups"]) for policy in made["policies"]] == [2, 1, 1]
    assert made["policies"][0]["resources"] == {of_account: {"com.edge.api.account.zone.*": "*"}}
    assert list(account.values()) == list(user.values()) == ["*"]
    assert len(made["value"]) == 40


def test_an_accounts_token_with_addresses_and_times(edgecli):
    words = ("--from", "192.0.2.0/24", "--from", "2001:db8::/32", "--expires-on", "2035-01-01T00:00:00Z")

    edgecli("token", "create", "office", "-p", "DNS Read", "--account", *words)

    lines = edgecli("token", "get", "office", "--account").out.splitlines()
    found = dict(line.split(maxsplit=1) for line in lines if not line.startswith("address"))
    assert found["expires_on"] == "2035-01-01T00:00:00Z"
    assert found["allow"] == "DNS Read"
    assert lines[-1].split() == ["address", "in", "192.0.2.0/24,", "2001:db8::/32"]
    (row,) = (line for line in edgecli("token", "list", "--account").out.splitlines() if "office" in line)
    assert row.split()[2:-1] == ["active", "2035-01-01T00:00:00Z", "DNS", "Read"]
    assert row.split()[-1] == fixed_id("token", "First token")
    assert "office" not in edgecli("token", "list").out


def test_a_rolled_token_has_another_secret_and_a_deleted_one_none(edgecli, kv_server):
    first = edgecli("token", "create", "rolled", "-p", "Zone Read").out.strip()

    second = edgecli("token", "roll", "rolled", "--yes").out.strip()

    def status(secret):
        return kv_server.call("GET", "/user/tokens/verify", token=secret).status

    assert (status(first), status(second)) == (401, 200)
    assert edgecli("token", "delete", "rolled", stdin="n\n").code == 0
    assert status(second) == 200
    assert edgecli("token", "delete", "rolled", "--yes").out == "Deleted token rolled.\n"
    assert status(second) == 401
    assert "There is no token rolled" in edgecli("token", "delete", "rolled", "--yes").err


def test_a_token_is_deleted_with_all_that_come_from_it(edgecli, kv_server):
    maker = edgecli("token", "create", "maker", "-p", "API Tokens Write", "-p", "Zone Read").out.strip()
    policies = json.loads(edgecli("token", "get", "maker", "--json").out)["policies"]
    made = kv_server.call("POST", "/user/tokens", {"name": "made", "policies": policies}, token=maker).result

    (row,) = (line for line in edgecli("token", "list").out.splitlines() if line.startswith("made "))
    deleted = edgecli("token", "delete", "maker", "--with-successors", "--yes")

    assert row.split()[-1] == "maker"
    assert deleted.out == "Deleted token maker, and 1 that came from it.\n"
    for secret in (maker, made["value"]):
        assert kv_server.call("GET", "/user/tokens/verify", token=secret).status == 401


def test_two_tokens_of_one_name_are_not_guessed_between(edgecli):
    for _ in range(2):
        edgecli("token", "create", "twin", "-p", "Zone Read")

    done = edgecli("token", "delete", "twin", "--yes")

    assert done.code == 1
    assert "2 tokens have this name" in done.err
    id_ = done.err.split()[-1]
    assert edgecli("token", "delete", id_, "-y").code == 0


def test_secrets_are_in_no_list(edgecli):
    secret = edgecli("token", "create", "hidden", "-p", "Zone Read").out.strip()

    shown = "".join(
        edgecli("token", *words).out
        for words in (("list",), ("list", "--json"), ("get", "hidden"), ("get", "hidden", "--json"))
    )

    assert "hidden" in shown
    assert secret not in shown


def test_permissions_are_listed_for_people_and_for_programs(edgecli):
    lines = edgecli("token", "permissions").out.splitlines()
    of_account = edgecli("token", "permissions", "--account", "--json").out

    assert lines[0].split() == ["name", "reaches", "id"]
    assert any(line.split()[:3] == ["DNS", "Write", "zone"] for line in lines)
    assert "User Details Read" not in of_account
    assert {"DNS Read"} <= {group["name"] for group in json.loads(of_account)}


WRONG = [
    (("create", "x"), 2),
    (("create", "x", "-p", "No Such Group"), 1),
    (("create", "x", "-p", "User Details Read", "--account"), 1),
    (("create", "x", "-p", "API Tokens Read", "--zone", "tokens.example"), 2),
    (("create", "x", "-p", "DNS Read", "--zone", "nowhere.example"), 1),
    (("create", "x", "-p", "DNS Read", "--from", "office"), 1),
    (("create", "x", "-p", "DNS Read", "--expires-on", "tomorrow"), 1),
    (("create", "", "-p", "DNS Read"), 1),
    (("get", "nobody"), 1),
]


def names_of_tokens(edgecli):
    """Not all of the list: the token that asks for it was used just now, maybe in another second."""
    return [(token["id"], token["name"]) for token in json.loads(edgecli("token", "list", "--json").out)]


@pytest.mark.parametrize(("arguments", "code"), WRONG)
def test_what_is_wrong_makes_no_token(edgecli, arguments, code):
    before = names_of_tokens(edgecli)

    done = edgecli("token", *arguments)

    assert (done.code, done.out) == (code, "")
    assert done.err
    assert names_of_tokens(edgecli) == before
