"""Rules that change requests and answers: redirects, origins, transforms."""

import re

import pytest

from tests.edge.bench import GET, Bench
from tests.edge.made import answer, rule

REDIRECT, ROUTE = "http_request_dynamic_redirect", "http_request_origin"
TRANSFORM, RESPONSE = "http_request_transform", "http_response_headers_transform"


def redirect(target, expression="true", **more):
    return rule("redirect", expression, action_parameters={"from_value": {"target_url": target, **more}})


def rewrite(expression="true", **parameters):
    return rule("rewrite", expression, action_parameters=parameters)


STATIC = {"value": "https://new.test/a"}
REDIRECTS = [  # target, more, asked, status and Location
    (STATIC, {}, "/x", 301, b"https://new.test/a"),
    (STATIC, {"status_code": 308}, "/x?a=1", 308, b"https://new.test/a"),
    (STATIC, {"preserve_query_string": True}, "/x?a=1", 301, b"https://new.test/a?a=1"),
    (STATIC, {"preserve_query_string": True}, "/x", 301, b"https://new.test/a"),
    ({"value": "/b?c=1#f"}, {"preserve_query_string": True}, "/x?a=1", 301, b"/b?c=1&a=1#f"),
    (
        {"expression": 'concat("https://new.test", http.request.uri.path)'},
        {},
        "/old",
        301,
        b"https://new.test/old",
    ),
    ({"expression": 'wildcard_replace(http.request.uri.path, "/a/*", "/b/${1}")'}, {}, "/a/c", 301, b"/b/c"),
    (
        {"expression": 'concat("/x", http.request.uri.args["q"][0])'},
        {},
        "/?q=a\r\nb: c",
        301,
        b"/xa%0D%0Ab:%20c",
    ),
]


@pytest.mark.parametrize(("target", "more", "asked", "status", "location"), REDIRECTS)
def test_a_redirect_answers_its_target(edge, target, more, asked, status, location):
    found = edge.serve(REDIRECT, zone=[redirect(target, **more)]).ask(asked)
    assert (found.status, found.headers) == (status, [(b"location", location)])


def test_a_redirect_whose_target_is_computed_from_nothing_does_not_act(edge):
    edge.serve(REDIRECT, zone=[redirect({"expression": 'http.request.uri.args["to"][0]'})])
    assert edge.ask("/") is None
    assert edge.ask("/?to=/a").status == 301


def test_a_redirect_from_a_list_never_acts(edge):
    from_list = {"from_list": {"name": "a", "key": "http.request.full_uri"}}
    edge.serve(REDIRECT, zone=[rule("redirect", action_parameters=from_list)])
    assert edge.ask() is None


def test_a_redirect_comes_before_the_firewall(edge):
    edge.serve(
        REDIRECT,
        zone=[redirect(STATIC, 'http.host eq "www.example.com"')],
        more={"http_request_firewall_custom": [rule("block")]},
    )
    assert edge.ask().status == 301
    assert edge.seen.actions == ["redirect"]


def test_always_use_https_comes_before_every_rule(edge):
    edge.serve(REDIRECT, zone=[redirect(STATIC)], settings={"always_use_https": "on"})
    assert edge.ask("/a?b").headers == [(b"location", b"https://www.example.com/a?b")]
    assert edge.ask("/a", scheme=b"https").headers == [(b"location", b"https://new.test/a")]


def route(**parameters):
    return rule("route", 'starts_with(http.request.uri.path, "/api")', action_parameters=parameters)


def test_a_route_names_host_port_host_header_and_sni(edge):
    edge.serve(
        ROUTE,
        zone=[
            route(host_header="In.test", origin={"host": "10.0.0.1", "port": 8443}, sni={"value": "s.test"})
        ],
    )
    origin = edge.send("/api/x").origin
    assert (origin.host_header, origin.host, origin.port, origin.sni) == (
        b"in.test",
        b"10.0.0.1",
        8443,
        b"s.test",
    )
    assert edge.send("/").origin is None


def test_of_two_routes_the_later_one_wins_where_it_says_something(edge):
    edge.serve(ROUTE, account=[route(origin={"host": "a.test", "port": 1})], zone=[route(origin={"port": 2})])
    origin = edge.send("/api").origin
    assert (origin.host, origin.port) == (b"a.test", 2)


URIS = [
    ({"path": {"value": "/new"}}, "/old?a=1", b"/new?a=1"),
    ({"query": {"value": "b=2"}}, "/old?a=1", b"/old?b=2"),
    ({"query": {"value": ""}}, "/old?a=1", b"/old"),
    (
        {"path": {"value": "/n"}, "query": {"expression": 'concat("p=", http.request.uri.path)'}},
        "/o",
        b"/n?p=/o",
    ),
    ({"path": {"expression": 'regex_replace(http.request.uri.path, "^/v1", "/v2")'}}, "/v1/x", b"/v2/x"),
    (
        {"path": {"expression": 'http.request.uri.args["p"][0]'}},
        "/o?p=x y\r\nA: b",
        b"/x%20y%0D%0AA:%20b?p=x y\r\nA: b",
    ),
    ({"path": {"expression": 'http.request.uri.args["p"][0]'}}, "/o", b"/o"),
    ({"origin": True}, "/o", b"/o"),
    ({"path": {"value": "/new"}, "origin": True}, "/o", b"/new"),
    ({"path": {"value": "/new"}, "origin": False}, "/o?a", b"/o?a"),
]


@pytest.mark.parametrize(("uri", "asked", "target"), URIS)
def test_a_rewrite_changes_the_target_for_the_origin(edge, uri, asked, target):
    exchange = edge.serve(TRANSFORM, zone=[rewrite(uri=uri)]).send(asked)
    assert exchange.target == target
    assert exchange.raw_target == asked.encode("latin-1")


def test_a_rewrite_that_is_not_for_the_origin_is_for_later_rules(edge):
    later = rule("log", 'http.request.uri.path eq "/new"')
    rules = [rewrite(uri={"path": {"value": "/new"}, "origin": False})]
    edge.serve(TRANSFORM, zone=rules, more={"http_request_firewall_custom": [later]})
    assert edge.send("/o").target == b"/o"
    assert edge.seen.actions == ["log"]


def test_rules_of_one_phase_all_see_what_came_and_the_later_one_wins(edge):
    by_path = 'http.request.uri.path eq "/a"'
    edge.serve(
        TRANSFORM,
        zone=[
            rewrite(by_path, uri={"path": {"value": "/b"}}),
            rewrite(by_path, uri={"path": {"value": "/c"}}),
            rewrite('http.request.uri.path eq "/c"', uri={"path": {"value": "/d"}}),
        ],
        more={"http_request_firewall_custom": [rule("log", 'http.request.uri.path eq "/c"')]},
    )
    assert edge.send("/a").target == b"/c"
    assert edge.seen.actions == ["log"]  # the next phase sees the new path


HEADERS = [  # operation and source, then what becomes of `x-a: 1` and `x-a: 2`
    ({"operation": "set", "value": "new"}, [b"new"]),
    ({"operation": "add", "value": "new"}, [b"1", b"2", b"new"]),
    ({"operation": "remove"}, []),
    ({"operation": "set", "expression": "cf.ray_id"}, [b"ray-1"]),
    ({"operation": "set", "expression": 'http.request.uri.args["q"][0]'}, [b"ab: c"]),
    ({"operation": "set", "expression": 'http.request.uri.args["none"][0]'}, []),
    ({"operation": "add", "expression": 'http.request.uri.args["none"][0]'}, [b"1", b"2"]),
    ({"operation": "set", "value": ""}, [b""]),
]


@pytest.mark.parametrize(("change", "left"), HEADERS)
def test_request_headers_are_set_added_and_removed(edge, change, left):
    edge.serve(TRANSFORM, zone=[rewrite(headers={"X-A": change})])
    exchange = edge.send("/?q=a\r\nb: c", headers=[(b"x-a", b"1"), (b"x-b", b"3"), (b"x-a", b"2")])

    assert [value for name, value in exchange.to_send if name == b"x-a"] == left
    assert (b"x-b", b"3") in exchange.to_send
    assert exchange.header(b"x-a") == b"1"  # what came stays as it was


@pytest.mark.parametrize(("change", "left"), HEADERS)
def test_response_headers_are_set_added_and_removed(edge, change, left):
    edge.serve(RESPONSE, zone=[rewrite(headers={"X-A": change})])
    exchange = edge.send("/?q=a\r\nb: c")
    answer(exchange, 200, [(b"x-a", b"1"), (b"x-b", b"3"), (b"x-a", b"2")])

    assert edge.pipeline.response(exchange) is None
    assert [value for name, value in exchange.response.headers if name == b"x-a"] == left
    assert (b"x-b", b"3") in exchange.response.headers


def test_response_rules_see_the_answer(edge):
    edge.serve(
        RESPONSE,
        zone=[rewrite("http.response.code ge 500", headers={"x-bad": {"operation": "set", "value": "1"}})],
    )
    for status, count in ((200, 0), (502, 1)):
        exchange = answer(edge.send(), status)
        edge.pipeline.response(exchange)
        assert len(exchange.response.headers) == count


SAID = [
    b"X-Real-IP: 203.0.113.6",
    b"Connection: x-key, x-real-ip, x-hop",
    b"X-Hop: 1",
    b"X-Forwarded-For: ::1",
]


def test_what_a_rule_sets_reaches_the_origin_whatever_the_client_says():
    sets = {
        "X-Real-IP": {"operation": "set", "expression": "to_string(ip.src)"},
        "X-Key": {"operation": "set", "value": "secret"},
    }
    for rules, expected in (({}, []), ({TRANSFORM: [rewrite(headers=sets)]}, [b"192.0.2.9", b"secret"])):
        bench = Bench(rules)
        bench.connection.data_received(GET[:-2] + b"\r\n".join((*SAID, b"", b"")))
        head = bench.server.written
        assert re.findall(rb"(?:x-real-ip|x-key): (\S+)", head) == expected
        assert b"x-hop" not in head
        assert re.findall(rb"x-forwarded-for: (\S+)", head) == [b"192.0.2.9"]


def test_changes_alone_decide_nothing(edge):
    edge.serve(TRANSFORM, zone=[rewrite(headers={"x-a": {"operation": "set", "value": "1"}})])
    edge.send()
    assert edge.seen.actions == []
