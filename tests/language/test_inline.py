"""Many filters as one function: the same answers as each filter by itself."""

import random

import pytest

from edgestead.language import FIELDS, STRING, Filter, Shortcuts, compile_filter, fixed_view, matching
from edgestead.language.inline import DEPTH_MAX
from tests.language.conftest import FILTERS, REQUEST

TEXTS = [
    "true",
    "false",
    "ssl",
    "not ssl",
    "cf.client.bot",
    'http.host eq "www.Example.com"',
    'http.host ne "www.Example.com"',
    'http.referer eq "x"',
    'http.referer ne "x"',  # missing: true
    'http.referer contains "x"',
    'http.referer contains ""',
    'http.referer contains "\\xff"',
    'http.request.uri.path contains "cart"',
    'http.request.uri.path matches "^/shop/[a-z]+"',
    'http.request.uri.path matches "(?i)CART.PHP$"',
    'http.request.uri.path matches "/c[a-z]+\\.ph"',
    'http.request.uri.path matches "/c[a-z]+\\.asp"',
    'http.referer matches "."',
    'http.host wildcard "*.EXAMPLE.com"',
    'http.host strict wildcard "*.EXAMPLE.com"',
    'http.request.method in {"GET" "POST"}',
    'http.referer in {"a"}',
    "ip.src in {192.0.2.0/24 2001:db8::/32}",
    "ip.src in {192.0.2.1..192.0.2.9}",
    "ip.src.asnum ge 64500 and ip.src.asnum lt 64501",
    "ip.src.asnum & 4",
    'starts_with(http.request.uri.path, "/shop")',
    'ends_with(http.request.uri.path, ".asp") or ends_with(http.request.uri.path, ".php")',
    'starts_with(http.referer, "")',
    'not starts_with(http.referer, "")',
    'any(http.request.headers["accept"][*] eq "*/*")',
    'lower(http.host) eq "www.example.com"',
    'len(http.request.uri.path) gt 3 xor http.request.method eq "POST"',
    'http.request.headers["x-token"][0] eq "aGk="',
    'http.request.headers["x-token"][0] ne "aGk="',
    'lower(http.request.headers["x-token"][0]) eq "agk="',
    'all(http.request.headers["x-token"][*] ne "a")',
    'any(http.request.headers["x-token"][*] contains "k")',
    'not any(http.request.headers["x-token"][*] matches "^a")',
    'any(not http.request.headers["x-token"][*] in {"a"})',
    '(http.host eq "a" or ssl) and not (http.request.method eq "GET" or ip.src eq 192.0.2.1)',
    "not (" * 50 + "ssl" + ")" * 50,
    'http.user_agent eq "\\"; import os; #" or http.host contains "\\x0a"',
]


def marks_alone(request, marks):
    return marks


def found(filters, marks, *short, about):
    run = matching(filters, marks, marks_alone, *short)
    return list(run(about) or ())


def filters():
    return [compile_filter(text, FILTERS) for text in TEXTS]


def test_the_marks_of_those_that_hold_come_in_order(request_view):
    expected = [text for text, one in zip(TEXTS, filters(), strict=True) if one(request_view)]
    assert 10 < len(expected) < len(TEXTS) - 5
    assert found(filters(), TEXTS, about=request_view) == expected


@pytest.mark.parametrize("seed", range(20))
def test_other_requests_are_answered_alike(seed):
    chance = random.Random(seed)
    view = fixed_view({name: value for name, value in REQUEST.items() if chance.random() < 0.5})
    expected = [text for text, one in zip(TEXTS, filters(), strict=True) if one(view)]
    assert found(filters(), TEXTS, about=view) == expected


def test_nothing_is_asked_before_it_is_wanted(request_view):
    class Counting(dict):
        asked = 0

        def __missing__(self, slot):
            self.asked += 1
            return request_view[slot]

    view = Counting()
    run = matching(filters(), TEXTS, marks_alone)(view)
    assert next(run) == "true"
    assert view.asked == 0
    assert next(run) == "ssl"
    assert view.asked == 1


def test_a_filter_with_a_list_keeps_it(request_view):
    def lists(name, type_):
        return {b"www.Example.com"} if (name, type_) == ("hosts", STRING) else None

    with_list = compile_filter("ssl and http.host in $hosts", FILTERS, lists=lists)
    assert isinstance(with_list, Filter)
    assert found([with_list], [1], about=request_view) == [1]


def test_no_filters_yield_nothing_and_depth_is_no_limit(request_view):
    assert found([], [], about=request_view) == []
    deep = "not (" * (3 * DEPTH_MAX) + "ssl" + ")" * (3 * DEPTH_MAX)
    assert found([compile_filter(deep, FILTERS)], [1], about=request_view) == [1]


class Held:
    """A request of which some fields are at hand, and a view of it."""

    def __init__(self, view):
        self.view = view
        self.host = view[FIELDS["http.host"].slot]
        self.address = view[FIELDS["ip.src"].slot]
        self.referer = view[FIELDS["http.referer"].slot]
        self.path = view[FIELDS["http.request.uri.path"].slot]
        self.names = view[FIELDS["http.request.headers"].slot] or {}


SHORT = Shortcuts(
    "r.view",
    {
        "http.host": "same(r.host)",
        "ip.src": "r.address",
        "http.referer": "r.referer",
        "http.request.uri.path": "r.path",
    },
    {"http.request.headers": "r.names"},
    {"same": lambda value: value},
)


@pytest.mark.parametrize("seed", range(20))
def test_what_a_holder_says_in_python_is_answered_alike(seed):
    chance = random.Random(seed)
    view = fixed_view({name: value for name, value in REQUEST.items() if chance.random() < 0.5})
    expected = [text for text, one in zip(TEXTS, filters(), strict=True) if one(view)]
    assert found(filters(), TEXTS, SHORT, about=Held(view)) == expected


def test_a_map_is_not_loaded_for_a_key_that_it_lacks():
    text = 'any(http.request.headers["x-token"][*] eq "a") or http.host eq "b"'
    holder = Held(fixed_view({"http.host": b"b"}))
    holder.view = None
    assert found([compile_filter(text, FILTERS)], [1], SHORT, about=holder) == [1]
