"""The regex of NAPTR: its shape, and what its replacement may refer to (RFC 3402 §3.2)."""

import pytest

from edgestead.model.records import parse
from edgestead.model.refusals.record import ContentRefused

GOOD = (
    "",
    "!^.*$!sip:info@example.com!",
    r"!^(.*)$!sip:\1@example.com!",
    r"/^(a)(b)/\2\1/i",
    r"!^(a)(b)(c)(d)(e)(f)(g)(h)(i)$!\9!",
    r"!a\!b!c\!d!",
    r"!\(!x!",
    r"!(a)!\\2!",
    "!([]()])!\\1!",
    "![^](]x!y!",
    "![[:digit:](]+!y!",
    "!!!",
)
BAD = (
    "!",
    "!a!",
    "!a!b",
    "!a!b!c!",
    "!a!b!x",
    "!a!b!ii2",
    "1a1b1",
    "iaibi",
    "\\a\\b\\",
    "éaébé",
    r"!^.*$!\1!",
    r"!^(.*)$!\2!",
    r"!\((.)!\2!",
    r"![(]!\1!",
    r"![[:alpha:](]!\1!",
    r"!(a)!\0!",
    "!(a!b!\\",
    "![a!b!",
    "![[:alpha]!b!",
)
REST = {"order": 1, "preference": 1, "flags": "u", "service": "E2U+sip", "replacement": "."}


@pytest.mark.parametrize("regex", GOOD)
def test_a_substitution_that_is_right_is_kept_as_it_is(regex):
    rdata = parse("NAPTR", data={**REST, "regex": regex})

    assert rdata.to_data()["regex"] == regex
    assert parse("NAPTR", content=rdata.to_content()) == rdata


@pytest.mark.parametrize("regex", BAD)
def test_one_that_other_servers_would_refuse_is_refused(regex):
    with pytest.raises(ContentRefused, match="regex"):
        parse("NAPTR", data={**REST, "regex": regex})
