"""What a missing value does: absent fields, keys and places in arrays."""

from collections.abc import Callable

import pytest

TRUE = [
    'http.referer ne "a"',
    'http.request.headers["nope"][0] != "a"',
    'http.request.headers["accept"][9] ne "a"',
    'http.request.headers["x-empty"][0] ne "a"',
    'not http.referer == "a"',
    'lower(http.referer) ne "a"',
    'all(http.request.headers["x-empty"][*] == "a")',
    'not starts_with(http.referer, "a")',
    'concat("a", http.referer) eq "a"',
    'lookup_json_integer(http.request.body.raw, "huge") ne 1',
]
FALSE = [
    'http.referer eq "a"',
    'http.referer < "a"',
    'http.referer >= ""',
    'http.referer contains ""',
    'http.referer matches ".*"',
    'http.referer matches "a"',
    'http.referer wildcard "*"',
    'http.referer in {"a"}',
    'ip.src.metro_code eq "1"',
    "cf.edge.server_ip in {0.0.0.0/0 ::/0}",
    "len(http.referer) ge 0",
    'starts_with(http.referer, "")',
    'any(http.request.headers["nope"][*] != "a")',
    'all(http.request.headers["nope"][*] != "a")',
    'any(not http.request.headers["nope"][*] == "a")',
    'any(lower(http.request.headers["nope"][*])[*] != "a")',
    'any(http.request.headers["accept"][*] != "a" and http.request.headers["nope"][*] != "a")',
    'any(http.request.headers["x-empty"][*] != "a")',
    "cf.client.bot",
    'decode_base64(http.host) ne "" and false',
]


@pytest.mark.parametrize("text", TRUE)
def test_only_unequal_holds(holds: Callable[[str], bool], text: str) -> None:
    assert holds(text) is True


@pytest.mark.parametrize("text", FALSE)
def test_every_other_comparison_is_false(holds: Callable[[str], bool], text: str) -> None:
    assert holds(text) is False


def test_a_value_expression_of_a_missing_value_is_missing(value_of: Callable[[str], object]) -> None:
    assert value_of("http.referer") is None
    assert value_of("lower(http.referer)") is None
    assert value_of('concat("a", http.referer, "b")') == b"ab"
    assert value_of("concat(http.referer)") is None
