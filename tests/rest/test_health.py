"""The server's own routes, and what it writes down of each request."""

import json

import pytest

from tests.rest.tokens import ACCOUNT, RESTRICTED, policy, put_token
from tests.support.api import BEARER, KEY_PAIR, LocalApi


def test_live_as_long_as_it_answers(api):
    api.reasons = ("no DNS process answers",)

    answer = api.get("/health/live", base="", auth={})

    assert answer.result == {"status": "live"}


@pytest.mark.inside("a node has warnings of its own")
def test_ready_says_why_not(api):
    assert api.get("/health/ready", base="", auth={}).result == {"status": "ready", "checks": []}

    api.reasons = ("no DNS process answers", "the disk is full")
    answer = api.get("/health/ready", base="", auth={})

    assert (answer.status, answer.codes) == (503, [1504])
    assert "no DNS process answers; the disk is full" in answer.json["errors"][0]["message"]
    assert answer.json["result"]["status"] == "not ready"
    assert [row["message"] for row in answer.json["result"]["checks"]] == list(api.reasons)


@pytest.mark.inside("its own counters")
def test_metrics_count_answers_by_their_class(api):
    api.get("/zones")
    api.get("/no/such/route")

    answer = api.get("/metrics", base="", auth={})

    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert b'edge_api_requests_total{process="control",status="2xx"} 1\n' in answer.body
    assert b'edge_api_requests_total{process="control",status="4xx"} 1\n' in answer.body
    assert b'edge_api_request_seconds_count{process="control"} 2\n' in answer.body


@pytest.fixture
def reachable(tmp_path):
    """An API that others than this machine's programs reach."""
    made = LocalApi(tmp_path, metrics_open=False)
    yield made
    made.close()


UNKNOWN = {"authorization": f"Bearer {'x' * 40}"}


@pytest.mark.parametrize(("auth", "status"), [({}, 400), (UNKNOWN, 403), (BEARER, 200), (KEY_PAIR, 200)])
def test_metrics_that_others_reach_take_credentials(reachable, auth, status):
    answer = reachable.get("/metrics", base="", auth=auth)

    assert answer.status == status
    assert answer.body.startswith(b"# HELP" if status == 200 else b'{"result":null,"success":false')


@pytest.mark.parametrize(
    ("group", "status"),
    [
        ("Metrics Read", 200),
        ("User Details Read", 403),
        ("Account Settings Read", 403),
        ("Account Settings Write", 403),
    ],
)
def test_metrics_of_all_accounts_are_no_accounts_to_give_away(reachable, group, status):
    user = f"com.cloudflare.api.user.{reachable.get('/user', auth=KEY_PAIR).result['id']}"
    put_token(reachable, policy(group, resources=ACCOUNT if group.startswith("Account") else user))

    assert reachable.get("/metrics", base="", auth=RESTRICTED).status == status


def test_strangers_hear_which_check_fails_and_no_more(reachable):
    reachable.reasons = ("the disk is full",)

    (row,) = reachable.get("/health/ready", base="", auth={}).json["result"]["checks"]

    assert {name for name, value in row.items() if value} == {"check", "state", "since_us"}
    assert (row["check"], row["state"]) == ("store", "fail")


def test_health_is_for_whoever_asks(reachable):
    for path in ("/health/live", "/health/ready"):
        assert reachable.get(path, base="", auth={}).status == 200


def test_the_servers_routes_do_not_stand_under_the_apis_path(api):
    assert api.get("/health/live", auth={}).status == 404
    assert api.get("/zones", base="").status == 404


def test_a_request_is_one_line_with_what_an_operator_asks_for(api, www):
    api.lines.clear()
    answer = api.get(f"{www}?unknown=parameter")

    line = json.loads(api.lines.pop())
    assert not api.lines
    assert line["event"] == "request"
    assert line["request_id"] == answer.headers["cf-ray"]
    assert (line["method"], line["status"], line["bytes"]) == ("GET", 200, len(answer.body))
    assert line["path"] == f"/client/v4{www}"
    assert line["route"] == "/client/v4/zones/{zone_id}/dns_records/{dns_record_id}"
    assert line["client"] == "127.0.0.1"
    assert len(line["actor"]) == len(line["token"]) == 32
    assert line["duration_us"] >= 0


def test_the_line_of_a_refusal_names_its_codes(api):
    api.get('/no"such\\route')

    line = json.loads(api.lines.pop())
    assert line["errors"] == [7003, 7000]
    assert line["path"] == '/client/v4/no"such\\route'
    assert "actor" not in line
