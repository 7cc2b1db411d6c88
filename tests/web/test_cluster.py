"""The page of a cluster: who leads, who is behind or silent; on a node alone, and not for everybody."""

import json

import pytest

from tests.web.local import LocalSite
from tests.web.local import LocalVisitor as Visitor
from tests.web.test_narrow import groups, token


def node(name, state, behind=None, **more):
    usual = {"roles": "control,edge", "region": "ams", "address": "192.0.2.1:8790", "release": "1.0"}
    return {
        "name": name,
        "state": state,
        "behind": behind,
        **usual,
        "wait": True,
        "stale": "serve",
        "objects": None,
        **more,
    }


SHARE = {"processes": 2, "silent": 0, "drains": True, "slots": 1365}
FOUND = {
    "cluster": "c" * 32,
    "generation": 1,
    "schema": 2,
    "copies": "primary and synchronous standbys (s1; 1 answering)",
    "leader": "a",
    "log_sequence": 40,
    "log_octets": 1_000,
    "base_sequence": 12,
    "database_octets": 9 << 20,
    "free_slots": 0,
    "nodes": [
        node("a", "leads", objects=SHARE),
        node("b", "follows", 1),
        node("c", "silent", stale="stop", wait=False),
    ],
    "troubles": ["c is silent"],
    "error": "",
}


@pytest.fixture
def server(tmp_path):
    made = LocalSite(tmp_path)
    yield made
    made.close()


@pytest.fixture
def visitor(server):
    made = Visitor(server)
    assert made.sign_in(server.ready["api_token"]).status == 303
    return made


def joined(server, found=FOUND):
    async def look():
        return found

    server.site._cluster = look


def test_a_server_of_its_own_has_no_such_page(visitor):
    page = visitor.get("/ui/cluster")

    assert (page.status, "no node of a cluster" in page.words) == (404, True)
    assert "/ui/cluster" not in visitor.get("/ui").text


def test_who_leads_who_is_behind_and_what_is_not_well(server, visitor):
    joined(server)
    assert 'href="/ui/cluster"' in visitor.get("/ui").text
    page = visitor.get("/ui/cluster")

    assert "c is silent" in page.words
    assert "a leads 0 control, edge" in page.words
    assert "b follows 1 entry" in page.words
    assert "c silent unknown" in page.words
    assert "1.0 1365, drains keeps serving" in page.words
    assert "stops; no write waits for it" in page.words
    assert "entry 40" in page.words
    assert json.loads(visitor.get("/ui/cluster.json").text)["found"] == FOUND


def test_a_database_that_is_away_is_said(server, visitor):
    joined(server, {"error": "the cluster's database: it does not answer"})
    page = visitor.get("/ui/cluster")

    assert (page.status, "it does not answer" in page.words) == (503, True)


def test_a_token_of_one_zone_does_not_see_the_machines(server):
    joined(server)
    zone = server.make_zone("mine.example")
    narrow = Visitor(server)
    mine = {f"com.cloudflare.api.account.zone.{zone}": "*"}
    narrow.sign_in(token(server, groups(server, "Zone Read"), mine))

    page = narrow.get("/ui/cluster")
    assert page.status == 403
    assert "192.0.2.1" not in page.text
