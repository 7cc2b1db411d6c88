"""Addresses with stars, as interfaces older than rulesets name pages: host and path without a scheme.

Owns  the expression of one, and reading it from there again.
Not   which requests are counted or blocked.
"""

import re

from edgestead.usecases.limits import URL_PATTERN_CHARACTERS_MAX

_BEFORE, _BEHIND = 'concat(http.host, http.request.uri.path) wildcard "', '"'
_FORM = re.compile(r'[^\s"\\/?#][^\s"\\?#]*', re.ASCII)
FORM = (
    f"host and path of at most {URL_PATTERN_CHARACTERS_MAX} characters, as www.example.com/login*, without"
    " scheme, query, quotes and double stars"
)


def is_pattern(text: str) -> bool:
    is_short = len(text) <= URL_PATTERN_CHARACTERS_MAX
    return is_short and "**" not in text and "://" not in text and _FORM.fullmatch(text) is not None


def as_test(pattern: str) -> str:
    """The expression of a pattern that is one.

    >>> as_test("www.example.com/login*")
    'concat(http.host, http.request.uri.path) wildcard "www.example.com/login*"'
    """
    return f"{_BEFORE}{pattern}{_BEHIND}"


def from_test(expression: str) -> str | None:
    """The pattern of an expression of `as_test`, None of any other."""
    pattern = expression.removeprefix(_BEFORE).removesuffix(_BEHIND)
    return pattern if is_pattern(pattern) and as_test(pattern) == expression else None
