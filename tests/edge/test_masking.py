"""What an event keeps of a stranger's bytes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgestead.edge import masking


def pairs(table):
    """What was sent and what is kept of it, a line each."""
    lines = table.strip().splitlines()
    return [tuple(side.strip().encode() for side in line.split("=>")) for line in lines]


QUERIES = """
a=1&b=2                                    =>  a=1&b=2
user=me&password=hunter2&x=1               =>  user=me&password=***&x=1
api_key=k&API-Key=k&apikey=k               =>  api_key=***&API-Key=***&apikey=***
access_token=a.b.c&session%49d=1           =>  access_token=***&session%49d=***
p%61ssword=x                               =>  p%61ssword=***
code=abc&key=1&sid=2&sig=3&pw=4            =>  code=***&key=***&sid=***&sig=***&pw=***
keyboard=qwerty&decode=1&shipping=2        =>  keyboard=qwerty&decode=1&shipping=2
token=                                     =>  token=
q=password%3Dx&next=/a?token=abc           =>  q=password%3D***&next=/a?token=***
to=https%3A%2F%2Fx%2F%3Ftoken%3Dab%26a%3D1 =>  to=https%3A%2F%2Fx%2F%3Ftoken%3D***%26a%3D1
to=%2Fa%253Ftoken%253Dab%2526b%253D1&c=2   =>  to=%2Fa%253Ftoken%253D***%2526b%253D1&c=2
q=%7B%22password%22%3A%22x%22%7D           =>  q=%7B%22password%22%3A%22***%22%7D
a=Bearer%20abc.def&b=%3Cb%3E               =>  a=Bearer%20***&b=%3Cb%3E
a=100%&b=%zz%3&keyboard%3Dq=1              =>  a=100%&b=%zz%3&keyboard%3Dq=1
jwt=x&data=eyJhbGciOiJIUzI1NiJ9.e30.abc-_  =>  jwt=***&data=***
a=%3Cscript%3E' or 1=1--                   =>  a=%3Cscript%3E' or 1=1--
"""
TEXTS = r"""
nothing to hide: 1 = 1                 =>  nothing to hide: 1 = 1
{"password": "hunter2", "a": 1}        =>  {"password": "***", "a": 1}
{'Secret':'x y'}                       =>  {'Secret':'***'}
Authorization: Bearer abc.def-ghi      =>  Authorization: ***
x Bearer abc.def== y                   =>  x Bearer *** y
basic dXNlcjpwYXNz                     =>  basic ***
see eyJhbGciOiJIUzI1NiJ9.e30.x, there  =>  see ***, there
eyJ short                              =>  eyJ short
token                                  =>  token
token is nice                          =>  token is nice
pwd=a;b                                =>  pwd=***;b
https://x.example/?to=%2F%3Fsid%3Dabc  =>  https://x.example/?to=%2F%3Fsid%3D***
"""


@pytest.mark.parametrize(
    ("hide", "sent", "kept"),
    [
        *((masking.hidden_query, *pair) for pair in pairs(QUERIES)),
        *((masking.hidden, *pair) for pair in pairs(TEXTS)),
        (masking.hidden, b"", b""),
    ],
)
def test_secrets_are_hidden_and_nothing_else(hide, sent, kept):
    assert hide(sent) == kept


MATCHES = [
    (b"ARGS:q", b"' or 1=1", b"' or 1=1"),
    (b"ARGS:password", b"' or 1=1", b"***"),
    (b"REQUEST_HEADERS:Authorization", b"Basic x", b"***"),
    (b"REQUEST_HEADERS:User-Agent", b"sqlmap", b"sqlmap"),
    (b"REQUEST_COOKIES", b"a=b", b"***"),
    (b"REQUEST_COOKIES:a", b"b", b"***"),
    (b"REQUEST_HEADERS:Cookie", b"a=b", b"***"),
    (b"REQUEST_BODY", b"user=a&password=b&c=d", b"user=a&password=***&c=d"),
]


@pytest.mark.parametrize(("variable", "matched", "kept"), MATCHES)
def test_a_match_in_a_secret_variable_is_hidden(variable, matched, kept):
    assert masking.hidden_match(variable, matched) == kept


SHOWN = [
    (b"plain", "plain"),
    ("ü".encode(), "ü"),
    (b"\x1b[31mred\r\n\x00", "\\x1b[31mred\\r\\n\\x00"),
    (b"\xff\xfe", "\\xff\\xfe"),
    ("\u202egnp.exe".encode(), "\\u202egnp.exe"),
    (b"0123456789abc", "0123456789…"),
]


@pytest.mark.parametrize(("octets", "text"), SHOWN)
def test_bytes_become_text_that_no_terminal_obeys(octets, text):
    assert masking.shown(octets, 13 if len(octets) < 13 else 10 if octets.isalnum() else 64) == text


PIECES = [
    *(
        b"token",
        b"key",
        b"CODE",
        b"pass",
        b"word",
        b"bearer",
        b"Basic ",
        b"eyJ" + b"x" * 20,
        b"a",
        b"/",
        b"\xff",
    ),
    *(b"=", b":", b"&", b" ", b"-", b".", b"_", b'"', b"[", b"%", b"%25", b"%3D", b"%253D", b"%20"),
    *(b"%6bey", b"%256bey", b"%25256bey", b"%2525256bey", b"%65yJ" + b"x" * 20),
]


@given(st.lists(st.sampled_from(PIECES), max_size=9).map(b"".join))
def test_what_is_let_through_without_a_walk_has_nothing_to_hide(text):
    if not masking.may_hold_secrets(text):
        assert masking._walked(text, masking.ENCODINGS_MAX) == text
        assert not any(
            masking.is_secret(pair.partition(b"=")[0]) for pair in text.split(b"&") if b"=" in pair
        )


def test_hiding_is_one_walk_however_the_text_is_made():
    for text in (
        b"token=" * 50_000,
        b"a" * 300_000,
        b"=:" * 150_000,
        b"bearer " * 40_000,
        b"eyJ" * 100_000,
        b"%25" * 100_000,
        b"token%253D%26" * 30_000,
    ):
        masking.hidden(text)
