"""What a missing value does: absent fields, keys and places in arrays."""

from collections.abc import Callable

import pytest

TRUE = [
    'http.request.body.mime ne "a"',
    'http.request.headers["nope"][0] != "a"',
    'http.request.headers["accept"][9] ne "a"',
    'http.request.headers["x-empty"][0] ne "a"',
    'not http.request.body.mime == "a"',
    'lower(http.request.body.mime) ne "a"',
    'all(http.request.headers["x-empty"][*] == "a")',
    'not starts_with(http.request.body.mime, "a")',
    'concat("a", http.request.body.mime) eq "a"',
    'lookup_json_integer(http.request.body.raw, "huge") ne 1',
]
FALSE = [
    'http.request.body.mime eq "a"',
    'http.request.body.mime < "a"',
    'http.request.body.mime >= ""',
    'http.request.body.mime contains ""',
    'http.request.body.mime matches ".*"',
    'http.request.body.mime matches "a"',
    'http.request.body.mime wildcard "*"',
    'http.request.body.mime in {"a"}',
    'ip.src.metro_code eq "1"',
    "cf.edge.server_ip in {0.0.0.0/0 ::/0}",
    "len(http.request.body.mime) ge 0",
    'starts_with(http.request.body.mime, "")',
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
    assert value_of("http.request.body.mime") is None
    assert value_of("lower(http.request.body.mime)") is None
    assert value_of('concat("a", http.request.body.mime, "b")') == b"ab"
    assert value_of("concat(http.request.body.mime)") is None
