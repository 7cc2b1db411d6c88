"""REST: keys, values and metadata."""

import json

import pytest

from edgestead.model.call import Profile
from edgestead.model.kv import KEY_BYTES_MAX, METADATA_BYTES_MAX, VALUE_BYTES_MAX
from edgestead.store.kv import INLINE_BYTES_MAX

from .api import NOW_S, blob_ids, form

KEYS = (
    *("k", "a/b", "ü", "a?b&c=d#e", "%41", "a+b", "😀"),
    *("x" * (KEY_BYTES_MAX - 1), "x" * KEY_BYTES_MAX, "é" * (KEY_BYTES_MAX // 2)),
)

BAD_KEYS = (
    (".", 400, "may not be"),
    ("..", 400, "may not be"),
    ("a b", 400, "blanks"),
    ("a\tb", 400, "printable"),
    ("a\x00", 400, "printable"),
    ("\x7f", 400, "printable"),
    ("\u00a0", 400, "printable"),
    ("a\u2028b", 400, "printable"),
    ("x" * (KEY_BYTES_MAX + 1), 414, "UTF-8 encoded length of 513 exceeds key length limit of 512."),
    ("é" * (KEY_BYTES_MAX // 2) + "x", 414, "UTF-8 encoded length of 513 exceeds"),
)

EXPIRIES = (
    ("?expiration_ttl=60", NOW_S + 60),
    ("?expiration_ttl=61", NOW_S + 61),
    (f"?expiration={NOW_S + 60}", NOW_S + 60),
    (f"?expiration_ttl=100&expiration={NOW_S + 999}", NOW_S + 100),
    ("?expiration_ttl=", None),
    ("", None),
)

BAD_EXPIRIES = (
    (
        "?expiration_ttl=59",
        10034,
        "Invalid expiration_ttl of 59. Expiration TTL must be at least 60.",
    ),
    ("?expiration_ttl=0", 10034, "at least 60"),
    ("?expiration_ttl=-1", 10034, "at least 60"),
    ("?expiration_ttl=999999999999", 10034, "after the year 9999"),
    (f"?expiration={NOW_S + 59}", 10033, "at least 60 seconds in the future"),
    ("?expiration=1", 10033, "at least 60 seconds in the future"),
    ("?expiration=99999999999999", 10033, "after the year 9999"),
    ("?expiration=soon", 1001, "a whole number is expected"),
    ("?expiration_ttl=1.5", 1001, "a whole number is expected"),
)

METADATA = (
    *(b"null", b"{}", b'{"a":[1,2]}', b"7", b'"text"', '{"é":"😀"}'.encode()),
    *(b'"' + b"x" * (length - 2) + b'"' for length in (METADATA_BYTES_MAX - 1, METADATA_BYTES_MAX)),
)
BAD_METADATA = (
    (b"", 400, "must be JSON"),
    (b"{", 400, "must be JSON"),
    (b"NaN", 400, "must be JSON"),
    (b'"\\ud800"', 400, "must be JSON"),
    (b"[" * 5000, 400, "must be JSON"),
    (b'"' + b"x" * (METADATA_BYTES_MAX - 1) + b'"', 413, "1025 bytes of JSON; the limit is 1024"),
    ('"é'.encode() + b"x" * (METADATA_BYTES_MAX - 3) + b'"', 413, "1025 bytes"),
    (b" " * 20_000, 413, "limit"),
)


@pytest.mark.parametrize("key", KEYS)
def test_a_key_is_one_encoded_segment_of_the_path(namespace, key):
    assert namespace.put(key, key.encode()).result == {}

    answer = namespace.get(key)
    assert (answer.status, answer.body) == (200, key.encode())
    assert [found["name"] for found in namespace.keys().result] == [key]


@pytest.mark.parametrize(("key", "status", "reason"), BAD_KEYS)
def test_a_key_that_is_none_is_refused_and_nothing_is_written(namespace, key, status, reason):
    answer = namespace.put(key)

    assert (answer.status, answer.codes) == (status, [10030])
    assert reason in answer.json["errors"][0]["message"]
    assert namespace.get(key).codes == namespace.delete(key).codes == namespace.metadata(key).codes == [10030]
    assert namespace.keys().result == []


class TestWithRealClients:
    @pytest.fixture
    def profile(self):
        return Profile.CLIENTS

    def test_a_key_may_hold_blanks(self, namespace):
        namespace.put("dir/key two", b"v")

        assert namespace.get("dir/key two").body == b"v"

    @pytest.mark.parametrize("key", ["a\tb", "a\u2028b", ".", "x" * 513])
    def test_other_bad_keys_are_still_refused(self, namespace, key):
        assert namespace.put(key).codes == [10030]


@pytest.mark.parametrize(
    "length", [0, 1, INLINE_BYTES_MAX, INLINE_BYTES_MAX + 1, VALUE_BYTES_MAX - 1, VALUE_BYTES_MAX]
)
def test_a_value_of_any_length_up_to_the_limit_comes_back(namespace, length):
    content = bytes(range(251)) * (length // 251 + 1)

    assert namespace.put("k", content[:length]).status == 200

    answer = namespace.get("k")
    assert answer.body == content[:length]
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["content-length"] == str(length)


@pytest.mark.inside("a follower does not say that the connection ends")
def test_a_longer_value_is_refused_and_the_old_one_stays(api, namespace):
    namespace.put("k", b"old")

    answer = namespace.put("k", bytes(VALUE_BYTES_MAX + 1))

    assert (answer.status, answer.codes, answer.headers["connection"]) == (413, [10047], "close")
    assert namespace.get("k").body == b"old"
    assert blob_ids(api) == []


def test_a_head_of_a_value_has_its_length_and_no_body(api, namespace):
    namespace.put("k", bytes(INLINE_BYTES_MAX + 1))

    answer = api.call("HEAD", namespace.value_path("k"))

    assert (answer.headers["content-length"], answer.body) == (str(INLINE_BYTES_MAX + 1), b"")


def test_an_absent_key_is_not_found_in_the_words_that_clients_match(namespace):
    for answer in (namespace.get("nope"), namespace.metadata("nope")):
        assert (answer.status, answer.codes) == (404, [10009])
        assert answer.json["errors"][0]["message"] == "key not found"


def test_deleting_is_done_also_when_there_is_no_such_key(namespace):
    namespace.put("k")

    assert namespace.delete("k").result == namespace.delete("k").result == {}
    assert namespace.get("k").status == 404


@pytest.mark.parametrize(("query", "expiry"), EXPIRIES)
@pytest.mark.inside("invented time")
def test_expiry_stands_in_the_query_and_a_ttl_wins(namespace, query, expiry):
    namespace.put("k", b"v", query)

    assert namespace.get("k").headers.get("expiration") == (expiry and str(expiry))
    assert namespace.keys().result == [
        {"name": "k"} if expiry is None else {"name": "k", "expiration": expiry}
    ]


@pytest.mark.parametrize(("query", "code", "reason"), BAD_EXPIRIES)
def test_an_expiry_that_cannot_be_is_refused_and_nothing_is_written(namespace, query, code, reason):
    answer = namespace.put("k", b"v", query)

    assert (answer.status, answer.codes) == (400, [code])
    assert reason in answer.json["errors"][0]["message"]
    assert namespace.keys().result == []


def test_a_write_without_expiry_or_metadata_takes_the_old_ones_away(namespace):
    body, headers = form(value=b"v", metadata=b"{}")
    namespace.put("k", body, "?expiration_ttl=60", headers=headers)

    namespace.put("k", b"new")

    assert namespace.keys().result == [{"name": "k"}]
    assert namespace.metadata("k").result is None


@pytest.mark.parametrize("metadata", METADATA)
@pytest.mark.parametrize("value_first", [True, False])
def test_a_form_holds_value_and_metadata_in_any_order(namespace, metadata, value_first):
    parts = {"value": b"\x00\xff\r\n--x", "metadata": b" " + metadata + b"\n"}
    body, headers = form(**dict(sorted(parts.items(), reverse=value_first)))

    assert namespace.put("k", body, headers=headers).status == 200

    assert namespace.get("k").body == parts["value"]
    assert namespace.metadata("k").result == json.loads(metadata)


def test_a_form_may_hold_the_largest_value_and_metadata(namespace):
    metadata = b'"' + b"x" * (METADATA_BYTES_MAX - 2) + b'"'
    body, headers = form(metadata=metadata, value=bytes(VALUE_BYTES_MAX))

    assert namespace.put("k", body, headers=headers).status == 200
    assert namespace.get("k").headers["content-length"] == str(VALUE_BYTES_MAX)

    body, headers = form(metadata=metadata, value=bytes(VALUE_BYTES_MAX + 1))
    assert namespace.put("k", body, headers=headers).codes == [10047]


@pytest.mark.parametrize(("metadata", "status", "reason"), BAD_METADATA)
def test_metadata_that_is_none_is_refused_and_nothing_is_written(namespace, metadata, status, reason):
    body, headers = form(value=b"v", metadata=metadata)

    answer = namespace.put("k", body, headers=headers)

    assert (answer.status, answer.codes) == (status, [10147])
    assert reason in answer.json["errors"][0]["message"]
    assert namespace.keys().result == []


FORM, FORM_HEADERS = form(value=b"v")
BAD_FORMS = (
    (form(metadata=b"{}")[0], FORM_HEADERS, "no part named value"),
    (FORM[:-4], FORM_HEADERS, "cut short"),
    (b"", FORM_HEADERS, "cut short"),
    (b"nothing like a form", FORM_HEADERS, "no form"),
    (FORM, {"content-type": "multipart/form-data"}, "no boundary"),
    (form(**{f"p{i}": b"" for i in range(17)})[0], FORM_HEADERS, "more than 16 parts"),
    (
        b"--x-boundary\r\nX: " + b"y" * 9000 + b"\r\n\r\nv\r\n--x-boundary--\r\n",
        FORM_HEADERS,
        "header size",
    ),
)


@pytest.mark.parametrize(("body", "headers", "reason"), BAD_FORMS)
def test_a_form_that_is_none_is_refused_and_nothing_is_written(namespace, body, headers, reason):
    answer = namespace.put("k", body, headers=headers)

    assert (answer.status, answer.codes) == (400, [10012])
    assert reason in answer.json["errors"][0]["message"]
    assert namespace.keys().result == []


@pytest.mark.parametrize(
    "content_type", ["text/plain", "application/json", "", "application/x-www-form-urlencoded"]
)
def test_a_raw_body_is_the_value_whatever_its_type(namespace, content_type):
    namespace.put("k", b'{"a":1}', headers={"content-type": content_type})

    assert namespace.get("k").body == b'{"a":1}'


# Listings


def names(answer):
    return [key["name"] for key in answer.result]


def test_keys_are_listed_in_byte_order_by_pages(namespace):
    for key in ("b", "a", "é", "a/1", "Z"):
        namespace.put(key)

    first = namespace.keys("?limit=2")
    assert names(first) == ["Z", "a"]
    assert first.json["result_info"]["count"] == 2
    second = namespace.keys(f"?limit=2&cursor={first.json['result_info']['cursor']}")
    assert names(second) == ["a/1", "b"]
    third = namespace.keys(f"?limit=2&cursor={second.json['result_info']['cursor']}")
    assert (names(third), third.json["result_info"]) == (["é"], {"count": 1, "cursor": ""})


def test_a_listing_takes_a_prefix_also_an_empty_one(namespace):
    for key in ("a", "a/1", "a/2", "b"):
        namespace.put(key)

    assert names(namespace.keys("?prefix=a%2F")) == ["a/1", "a/2"]
    assert names(namespace.keys("?prefix=")) == ["a", "a/1", "a/2", "b"]
    assert names(namespace.keys("?prefix=zz")) == []


@pytest.mark.inside("invented time")
def test_an_expired_key_is_in_no_answer(api, namespace):
    namespace.put("k", b"v", "?expiration_ttl=60")

    api._clock_us = iter(range((NOW_S + 61) * 1_000_000, (NOW_S + 99) * 1_000_000))
    object.__setattr__(api.app.context, "now_us", api._clock_us.__next__)

    assert namespace.get("k").status == namespace.metadata("k").status == 404
    assert namespace.keys().result == []


def test_a_listing_shows_metadata(namespace):
    body, headers = form(value=b"v", metadata=b'{"a": 1}')
    namespace.put("k", body, headers=headers)

    assert namespace.keys().result == [{"name": "k", "metadata": {"a": 1}}]


@pytest.mark.parametrize(("query", "code"), [("limit=x", 1001), ("cursor=x", 10012), ("cursor=%FF", 1001)])
def test_a_listing_query_that_means_nothing_is_refused(namespace, query, code):
    answer = namespace.keys(f"?{query}")

    assert (answer.status, answer.codes) == (400, [code])


@pytest.mark.parametrize(
    ("limit", "count"), [("0", 1), ("1", 1), ("1000", 1000), ("1001", 1000), ("9" * 30, 1000)]
)
def test_the_size_of_a_page_is_clamped(namespace, limit, count):
    namespace.bulk([{"key": f"{i}", "value": ""} for i in range(1001)])

    assert len(namespace.keys(f"?limit={limit}").result) == count
