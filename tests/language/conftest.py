"""One request that the tables of this room ask about."""

from collections.abc import Callable

import pytest

from edgestead.language import Value, View, compile_filter, compile_value, fixed_view, ip_value

FILTERS = "http_request_firewall_custom"
VALUES = "http_request_transform"
REQUEST: dict[str, Value] = {
    "http.host": b"www.Example.com",
    "http.request.method": b"POST",
    "http.request.uri.path": b"/shop/cart.php",
    "http.request.uri.query": b"item=7&colour=red&item=8",
    "http.request.full_uri": b"https://www.Example.com/shop/cart.php?item=7&colour=red&item=8",
    "http.request.uri.args": {b"item": [b"7", b"8"], b"colour": [b"red"]},
    "http.request.uri.args.names": [b"item", b"colour", b"item"],
    "http.request.headers": {b"accept": [b"text/html", b"*/*"], b"x-token": [b"aGk="], b"x-empty": []},
    "http.request.headers.names": [b"Accept", b"X-Token"],
    "http.request.body.raw": b'{"order": {"lines": [{"sku": "a-1", "n": 2}]}, "huge": 99999999999999999999}',
    "http.request.body.multipart.filenames": [[b"a.txt"], [b"b.php", b"c.php"], []],
    "http.request.timestamp.sec": 1_700_000_000,
    "ip.src": ip_value("192.0.2.77"),
    "ip.src.asnum": 64_500,
    "cf.random_seed": bytes(range(16)),
    "ssl": True,
}


@pytest.fixture(scope="session")
def request_view() -> View:
    return fixed_view(REQUEST)


@pytest.fixture
def holds(request_view: View) -> Callable[[str], bool]:
    """Whether a filter holds for the request above."""
    return lambda text: compile_filter(text, FILTERS)(request_view)


@pytest.fixture
def value_of(request_view: View) -> Callable[[str], object]:
    """What a value expression makes of the request above."""
    return lambda text: compile_value(text, VALUES)(request_view)
