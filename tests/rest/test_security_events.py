"""A zone's security events over the API."""

import os

import pytest

from edgestead.edge.events import EventFiles, EventLog
from edgestead.model.events import Contribution, Decision
from tests.edge.made import ask
from tests.rest.conftest import AT_NEWEST

NOW_US = 1_700_000_000_000_000
SECOND_US = 1_000_000


@pytest.fixture
def written(api, zone_id):
    """Five events of the zone, a second apart, and one of another zone."""
    now = iter(range(NOW_US, NOW_US + 60 * SECOND_US, SECOND_US))
    api.events_folder.mkdir()
    folder_fd = os.open(api.events_folder, os.O_RDONLY | os.O_DIRECTORY)
    log = EventLog(EventFiles(folder_fd, 0), now_us=lambda: next(now))
    for number in range(5):
        exchange = ask(f"/path/{number}", client=f"192.0.2.{number}")
        exchange.zone = type(exchange.zone)(zone_id, b"example.com", "a" * 32, "free", {})
        decision = Decision(
            "http_request_firewall_custom", ("block", "log")[number % 2], (403, 0)[number % 2]
        )
        log.decided(exchange, decision)
    log.decided(ask("/other"), Decision("http_ratelimit", "block", 429))
    log.close()
    os.close(folder_fd)


def get(api, zone_id, query=""):
    return api.get(f"/zones/{zone_id}/security/events{query}")


def paths(answer):
    return [event["path"].removeprefix("/path/") for event in answer.result]


@AT_NEWEST
def test_events_are_listed_newest_first(api, zone_id, written):
    answer = get(api, zone_id)
    assert paths(answer) == ["4", "3", "2", "1", "0"]
    assert answer.json["result_info"] == {"count": 5}
    event = answer.result[0]
    assert next(iter(event)) == "id"
    assert (event["zone_id"], event["occurred_on"]) == (zone_id, "2023-11-14T22:13:24.000000Z")


FILTERS = [
    ("action=block", ["4", "2", "0"]),
    ("action=log&client=192.0.2.3", ["3"]),
    ("status=0", ["3", "1"]),
    ("phase=http_ratelimit", []),
    ("path_prefix=/path/2", ["2"]),
    ("since=2023-11-14T22:13:22Z", ["4", "3", "2"]),
    ("until=2023-11-14T23:13:22%2B01:00", ["1", "0"]),
    ("direction=asc&per_page=2", ["0", "1"]),
    ("direction=asc&since=2023-11-14T22:13:23.5Z", ["4"]),
    ("ray_id=ray-1&method=GET&host=www.example.com&action=", ["4", "3", "2", "1", "0"]),
    ("rule_id=none", []),
    ("per_page=0", ["4"]),
]


@AT_NEWEST
@pytest.mark.parametrize(("query", "expected"), FILTERS)
def test_filters_choose(api, zone_id, written, query, expected):
    assert paths(get(api, zone_id, f"?{query}")) == expected


@AT_NEWEST
def test_a_cursor_goes_on(api, zone_id, written):
    first = get(api, zone_id, "?per_page=3")
    after = first.json["result_info"]["cursors"]["after"]
    second = get(api, zone_id, f"?per_page=3&cursor={after}")
    assert (paths(first), paths(second)) == (["4", "3", "2"], ["1", "0"])
    assert "cursors" not in second.json["result_info"]


REFUSED = [
    "since=yesterday",
    "until=2023-11-14T22:13:22",
    "cursor=x",
    "direction=up",
    "status=x",
    "per_page=x",
]


@AT_NEWEST
@pytest.mark.parametrize("query", REFUSED)
def test_a_query_that_means_nothing_is_refused(api, zone_id, written, query):
    answer = get(api, zone_id, f"?{query}")
    assert answer.status == 400
    assert query.partition("=")[0] in answer.body.decode()


def test_a_zone_without_events_has_an_empty_list_and_an_unknown_one_is_refused(api, zone_id):
    assert get(api, zone_id).result == []
    assert get(api, "9" * 32).status == 404


@AT_NEWEST
@pytest.mark.parametrize(("query", "expected"), FILTERS)
def test_filters_choose_the_same_where_the_files_are_known(api, zone_id, written, query, expected):
    context = api.app.context
    assert context.event_index.follow(api.events_folder, context.now_us())

    assert paths(get(api, zone_id, f"?{query}")) == expected


@AT_NEWEST
def test_what_the_managed_rules_scored_is_told_by_kinds(api, zone_id):
    """Of the last day, for those who may read events."""
    api.events_folder.mkdir()
    folder_fd = os.open(api.events_folder, os.O_RDONLY | os.O_DIRECTORY)
    log = EventLog(EventFiles(folder_fd, 0), now_us=api.app.context.now_us)
    scores = (
        Contribution("a" * 32, "one", 5, "ARGS:q", "x"),
        Contribution("b" * 32, "two", 3, "ARGS:q", "x"),
    )
    for number in range(3):
        exchange = ask(f"/path/{number}")
        exchange.zone = type(exchange.zone)(zone_id, b"example.com", "a" * 32, "free", {})
        exchange.ray = b"ray-%d" % number
        decision = Decision(
            "http_request_firewall_managed", "block", 403, score=8, threshold=5, contributions=scores
        )
        log.decided(exchange, decision)
    log.close()
    os.close(folder_fd)

    found = get(api, zone_id, "/scores").result

    assert (found["complete"], found["uncounted"]) == (True, 0)
    (kind,) = found["kinds"]
    assert (kind["count"], kind["stopped"], kind["newest"]["path"]) == (3, True, "/path/2")
    assert kind["scores"] == [{"rule_id": "a" * 32, "score": 5}, {"rule_id": "b" * 32, "score": 3}]
    assert api.get(f"/zones/{'0' * 32}/security/events/scores").status == 404
