"""Every answer has one shape, and resources look as clients know them."""

import re

import pytest

from edgestead.model.refusals import EdgeError
from tests.rest.conftest import AT_NEWEST, WWW

BORN = "2026-01-02T03:04:05.678902Z"  # the second request of this API's clock
# What clients try again by themselves. Everything else that is refused stays refused: never one of these.
TRIED_AGAIN = {
    408: {"HeadTooSlow"},
    429: {"KvBusy", "RateLimited", "OverBudget", "TooManyGuesses", "TooManyRequests"},
    500: {"InternalError"},
    501: {"NoWebSocket", "NotOffered"},  # RFC 9110 §15.6.2: no client of the API asks so
    503: {
        *("NotReady", "ServerEnds", "ServerFull", "Unavailable", "KeysSealed", "TsigSealed"),
        *("Busy", "Quarantined", "Unsure", "WasReset"),  # of calls of objects, which did nothing or are gone
    },
    505: {"VersionRefused"},  # the same; RFC 9110 §15.6.6
    507: {"DiskFull"},  # answered with x-should-retry: false, which the SDKs obey
}
META = {"auto_added": False, "managed_by_apps": False, "managed_by_edge_tunnel": False, "source": "primary"}


@AT_NEWEST
@pytest.mark.inside("invented time")
def test_a_created_record_is_answered_in_the_recorded_order_of_members(api, records):
    answer = api.post(records, WWW)

    record = {
        "id": answer.result["id"],
        "name": "www.example.com",
        "type": "A",
        "content": "192.0.2.1",
        "proxiable": True,
        "proxied": False,
        "ttl": 3600,
        "settings": {},
        "meta": META,
        "comment": None,
        "tags": [],
        "created_on": BORN,
        "modified_on": BORN,
    }
    assert answer.status == 200
    assert answer.json == {"result": record, "success": True, "errors": [], "messages": []}
    assert list(answer.result) == list(record)


@AT_NEWEST
def test_an_srv_record_shows_its_priority_twice_and_its_content_without(api, records):
    data = {"priority": 10, "weight": 5, "port": 5223, "target": "server.example.com."}

    result = api.post(records, {"type": "SRV", "name": "_xmpp._tcp", "data": data}).result

    assert result["content"] == "5 5223 server.example.com"
    assert (result["priority"], result["proxiable"], result["ttl"]) == (10, False, 1)
    assert list(result["data"].items()) == [
        ("port", 5223),
        ("priority", 10),
        ("target", "server.example.com"),
        ("weight", 5),
    ]


def test_an_empty_list_has_one_page(api, records):
    assert api.get(records).body == (
        b'{"result":[],"success":true,"errors":[],"messages":[],'
        b'"result_info":{"page":1,"per_page":100,"count":0,"total_count":0,"total_pages":1}}'
    )


def test_a_refusal_has_a_null_result_and_at_least_one_error(api, records, www):
    answer = api.post(records, WWW)

    assert answer.status == 400
    assert answer.json == {
        "result": None,
        "success": False,
        "errors": [{"code": 81058, "message": "An identical record already exists."}],
        "messages": [],
    }


@AT_NEWEST
def test_a_refusal_points_at_the_member_that_is_wrong(api, records):
    data = {"priority": 10, "weight": 5, "port": 70000, "target": "a.example.com"}

    answer = api.post(records, {"type": "SRV", "name": "_sip._tcp", "data": data})

    assert answer.codes == [9102]
    assert answer.json["errors"][0]["source"] == {"pointer": "/data/port"}


def test_a_deletion_answers_the_id_alone(api, records, www):
    assert api.delete(www).json == {
        "result": {"id": www.rpartition("/")[2]},
        "success": True,
        "errors": [],
        "messages": [],
    }


def test_every_answer_has_a_request_id_and_says_that_it_is_json(api, zone_id):
    answers = [api.get("/zones"), api.get("/no/such/route"), api.get("/zones", auth={})]

    ids = {answer.headers["cf-ray"] for answer in answers}
    assert len(ids) == 3
    assert all(re.fullmatch(r"[0-9a-f]{16}-[A-Z]{3}", one) for one in ids)
    assert {answer.headers["content-type"] for answer in answers} == {"application/json"}
    assert all(int(answer.headers["content-length"]) == len(answer.body) for answer in answers)
    assert not any("cf-mitigated" in answer.headers for answer in answers)


def test_answers_are_compact_and_resources_begin_with_their_id(api, zone_id, www):
    for path in ("/zones", "/accounts", "/memberships", "/user", f"/zones/{zone_id}", www):
        body = api.get(path).body
        assert b", " not in body.replace(b"Administrator - All", b"")
        assert b'": ' not in body
        assert re.match(rb'\{"result":\[?\{"id":"[0-9a-f]{32}"', body)


def test_a_fault_of_ours_is_answered_in_the_envelope_and_told_in_the_log(api, monkeypatch):
    def fail(*_):
        raise RuntimeError("the disk is upside down")

    monkeypatch.setattr("edgestead.usecases.account.accounts.user", fail)
    answer = api.get("/user")

    assert answer.status == 500
    assert b"upside down" not in answer.body
    assert answer.headers["cf-ray"] in answer.json["errors"][0]["message"]
    assert b"upside down" in api.lines[-1]


OF_THE_API = ("edgestead.model.", "edgestead.usecases.", "edgestead.rest.")


def test_only_what_may_succeed_later_has_a_status_that_clients_try_again():
    def every(kind):
        for child in kind.__subclasses__():
            yield child
            yield from every(child)

    tried_again: dict[int, set[str]] = {}
    for error in every(EdgeError):
        if not error.__module__.startswith(OF_THE_API):
            continue  # of another test in this process
        if error.status in (408, 409, 425, 429) or error.status >= 500:
            tried_again.setdefault(error.status, set()).add(error.__name__)

    assert tried_again == TRIED_AGAIN
