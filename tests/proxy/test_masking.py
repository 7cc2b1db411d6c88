"""What an event keeps of a stranger's bytes."""

import pytest

from edgestead.proxy import masking

QUERIES = [
    (b"a=1&b=2", b"a=1&b=2"),
    (b"user=me&password=hunter2&x=1", b"user=me&password=***&x=1"),
    (b"api_key=k&API-Key=k&apikey=k", b"api_key=***&API-Key=***&apikey=***"),
    (b"access_token=a.b.c&session%49d=1", b"access_token=***&session%49d=***"),
    (b"p%61ssword=x", b"p%61ssword=***"),
    (b"code=abc&key=1&sid=2&sig=3&pw=4", b"code=***&key=***&sid=***&sig=***&pw=***"),
    (b"keyboard=qwerty&decode=1&shipping=2", b"keyboard=qwerty&decode=1&shipping=2"),
    (b"token=", b"token="),
    (b"q=password%3Dx&next=/a?token=abc", b"q=password%3Dx&next=/a?token=***"),
    (b"jwt=x&data=eyJhbGciOiJIUzI1NiJ9.e30.abc-_", b"jwt=***&data=***"),
    (b"a=%3Cscript%3E' or 1=1--", b"a=%3Cscript%3E' or 1=1--"),
]


@pytest.mark.parametrize(("query", "kept"), QUERIES)
def test_values_of_secret_names_are_hidden_in_queries(query, kept):
    assert masking.hidden_query(query) == kept


TEXTS = [
    (b"nothing to hide: 1 = 1", b"nothing to hide: 1 = 1"),
    (b'{"password": "hunter2", "a": 1}', b'{"password": "***", "a": 1}'),
    (b"{'Secret':'x y'}", b"{'Secret':'***'}"),
    (b"Authorization: Bearer abc.def-ghi", b"Authorization: ***"),
    (b"x Bearer abc.def== y", b"x Bearer *** y"),
    (b"basic dXNlcjpwYXNz", b"basic ***"),
    (b"see eyJhbGciOiJIUzI1NiJ9.e30.x, there", b"see ***, there"),
    (b"eyJ short", b"eyJ short"),
    (b"token", b"token"),
    (b"token is nice", b"token is nice"),
    (b"pwd=a;b", b"pwd=***;b"),
    (b"", b""),
]


@pytest.mark.parametrize(("text", "kept"), TEXTS)
def test_secrets_are_hidden_in_texts(text, kept):
    assert masking.hidden(text) == kept


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


def test_hiding_is_one_walk_however_the_text_is_made():
    for text in (b"token=" * 50_000, b"a" * 300_000, b"=:" * 150_000, b"bearer " * 40_000, b"eyJ" * 100_000):
        masking.hidden(text)
