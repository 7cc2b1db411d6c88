"""REST: many keys at once."""

import base64
import json
import tracemalloc

import pytest

from edgestead.model.kv import (
    BULK_BYTES_MAX,
    BULK_GET_KEYS_MAX,
    BULK_PAIRS_MAX,
    METADATA_BYTES_MAX,
    VALUE_BYTES_MAX,
)
from edgestead.store.kv import INLINE_BYTES_MAX
from edgestead.usecases.kv.values import ITEM_BYTES_MAX, READ_BYTES, STRING_BYTES_MAX, _json

from .api import NOW_S, blob_ids

LONG = STRING_BYTES_MAX + READ_BYTES  # so long that it is left out of its item, wherever that begins


def item(**members):
    return {"key": "k", "value": "v", **members}


GOOD = (
    (item(), b"v", None, None),
    (item(value="é😀"), "é😀".encode(), None, None),
    (item(value=""), b"", None, None),
    (item(value="AAH/", base64=True), b"\x00\x01\xff", None, None),
    (item(value="AAH/", base64=False), b"AAH/", None, None),
    (item(value="", base64=True), b"", None, None),
    (item(expiration=NOW_S + 60), b"v", NOW_S + 60, None),
    (item(expiration=float(NOW_S + 60)), b"v", NOW_S + 60, None),
    (item(expiration_ttl=60, expiration=NOW_S + 999), b"v", NOW_S + 60, None),
    (item(metadata={"a": [1, "é"]}), b"v", None, {"a": [1, "é"]}),
    (item(metadata={"x": "y" * (METADATA_BYTES_MAX - 8)}), b"v", None, {"x": "y" * (METADATA_BYTES_MAX - 8)}),
    (item(expiration=None, expiration_ttl=None, metadata=None, base64=None), b"v", None, None),
    (item(something="else"), b"v", None, None),
    (item(value="x" * (INLINE_BYTES_MAX + 1)), b"x" * (INLINE_BYTES_MAX + 1), None, None),
)

BAD = (
    ({"value": "v"}, "missing required field `key`"),
    ({"key": "k"}, "missing required field `value`"),
    ("k", "Expected `object`"),
    (item(key=""), "The key is empty."),
    (item(key="a b"), "may not hold blanks"),
    (item(key="x" * 513), "UTF-8 encoded length of 513"),
    (item(key=7), "Expected `str`"),
    (item(value=7), "Expected `str`"),
    (item(value={"a": 1}), "Expected `str`"),
    (item(base64="yes"), "Expected `bool | null`"),
    (item(value="AAH", base64=True), "not base64"),
    (item(value="AA-_", base64=True), "not base64"),
    (item(value="AAH/\n", base64=True), "not base64"),
    (item(value="AA==AA==", base64=True), "not base64"),
    (item(value="é", base64=True), "not base64"),
    (item(expiration_ttl=59), "Invalid expiration_ttl of 59"),
    (item(expiration_ttl=60.5), "whole number"),
    (item(expiration=NOW_S + 59), "Invalid expiration"),
    (item(expiration="soon"), "Expected `int | float | null`"),
    (item(metadata="text"), "must be a JSON object"),
    (item(metadata={"x": "y" * (METADATA_BYTES_MAX - 7)}), "1025 bytes of JSON"),
)

BAD_BODIES = (
    (b"", "ends before"),
    (b"{}", "not a JSON array"),
    (b'[{"key":"a","value":"b"}', "ends inside"),
    (b"[] x", "more text"),
    (b"[,]", "item 0 is empty"),
    (b'[{"key":"a","value":"\\ud800"}]', "item 0"),
    (b'[{"key":"a","value":"\xff"}]', "item 0"),
)


@pytest.mark.parametrize(("pair", "content", "expiry", "metadata"), GOOD)
@pytest.mark.inside("invented time")
def test_a_pair_is_stored_as_it_says(namespace, pair, content, expiry, metadata):
    assert namespace.bulk([pair]).result == {"successful_key_count": 1, "unsuccessful_keys": []}

    assert namespace.get("k").body == content
    line = {"name": "k", "expiration": expiry, "metadata": metadata}
    assert namespace.keys().result == [{name: value for name, value in line.items() if value is not None}]


def test_a_value_over_the_limit_is_a_bad_item(api, namespace):
    refused(
        api, namespace, item(value="x" * (VALUE_BYTES_MAX + 1)), "The value is larger than 26214400 bytes."
    )


@pytest.mark.parametrize(("bad", "reason"), BAD)
def test_a_bad_item_fails_the_request_with_its_index_and_nothing_is_written(api, namespace, bad, reason):
    refused(api, namespace, bad, reason)


def refused(api, namespace, bad, reason):
    large = item(key="large", value="x" * (INLINE_BYTES_MAX + 1))

    answer = namespace.bulk([item(key="good"), large, bad])

    assert (answer.status, answer.codes) == (400, [10012])
    (error,) = answer.json["errors"]
    assert error["message"].startswith("invalid request body: item 2: ")
    assert reason in error["message"]
    assert error["source"] == {"pointer": "/2"}
    assert namespace.keys().result == []
    assert blob_ids(api) == []


@pytest.mark.parametrize(("body", "reason"), BAD_BODIES)
def test_a_body_that_is_no_array_is_refused(api, namespace, body, reason):
    for answer in (namespace.bulk(body), api.post(f"{namespace.path}/bulk/delete", body)):
        assert (answer.status, answer.codes) == (400, [10012])
        assert reason in answer.json["errors"][0]["message"]


def test_an_empty_array_is_done(api, namespace):
    assert namespace.bulk([]).result["successful_key_count"] == 0
    assert api.post(f"{namespace.path}/bulk/delete", []).result["successful_key_count"] == 0


def coded(octets):
    """The body with one value of that many octets. As an object it would be in memory three times more."""
    return b'[{"key":"k","base64":true,"value":"%b"}]' % base64.b64encode(bytes(octets))


def test_the_limit_of_a_value_counts_what_is_decoded(namespace):
    assert namespace.bulk(coded(VALUE_BYTES_MAX)).status == 200
    assert namespace.get("k").headers["content-length"] == str(VALUE_BYTES_MAX)
    assert namespace.bulk(coded(VALUE_BYTES_MAX + 1)).codes == [10012]


LONG_VALUES = (
    (b'{"key":"k","value":"%b"}' % (b"x" * LONG), b"x" * LONG),
    (b'{"value":"%b","key":"k"}' % ("😀é".encode() * LONG), "😀é".encode() * LONG),
    (rb'{"key":"k","value":"%b"}' % (rb"\ud83d\ude00\u00e9\\" * LONG), "😀é\\".encode() * LONG),
    (b'{"value":"%b","key":"k","base64":true}' % (b"AAH/" * LONG), b"\x00\x01\xff" * LONG),
    (rb'{"value":"%b","key":"k","base64":true}' % (rb"\u0041AH\/" * LONG), b"\x00\x01\xff" * LONG),
    (b'{"value":"%b","value":"v","key":"k"}' % (b"x" * LONG), b"v"),
    (rb'{"\u0076alue":"%b","key":"k"}' % (b"x" * LONG), b"x" * LONG),
    (b'{"key":"k","note":"%b","value":"0"}' % (b"x" * LONG), b"0"),
    (b'{"%b":1,"key":"k","value":"v"}' % (b"x" * LONG), b"v"),
    (b'{"note":["%b"],"key":"k","value":"%b"}' % (b"x" * LONG, b"y" * LONG), b"y" * LONG),
    (rb'{"key":"k","value":"%b"}' % (rb"\u0041" * (LONG // 6)), b"A" * (LONG // 6)),
)

LONG_BAD = (
    (b'{"key":"k","value":"%b\xff"}', "it is not UTF-8"),
    (rb'{"key":"k","value":"\ud800%b"}', "surrogate pair"),
    (b'{"key":"k","value":"%b\n"}', "invalid character"),
    (rb'{"key":"k","value":"%b\x"}', "invalid escape character"),
    (rb'{"key":"k","note":"%b\x","value":"v"}', "invalid escape character"),
    (b'{"key":"k","base64":true,"value":"AA==%b"}', "not base64"),
    (b'{"key":"%b","value":"v"}', f"UTF-8 encoded length of {LONG} exceeds"),
    (b'{"key":"k","value":"v","metadata":{"a":"%b"}}', f"metadata is {LONG} bytes"),
    (b'{"key":"k","value":["%b"]}', "Expected `str`"),
    (b'{"key":"k","value":"v","expiration":"%b"}', "Expected `int | float | null`"),
    (b'{"key":"k","value":"v","base64":"%b"}', "Expected `bool | null`"),
    (b'{"key":"a b","value":"%b"}', "may not hold blanks"),
    (b'{"value":"%b"}', "missing required field `key`"),
    (b'{"key":"k","value":"v","note":[%b]}' % (b'"xxx",' * (ITEM_BYTES_MAX // 4)), "it is longer than"),
)


@pytest.mark.parametrize("pair", range(len(LONG_VALUES)))
def test_a_long_value_is_stored_as_it_says(namespace, pair):
    text, content = LONG_VALUES[pair]

    answer = namespace.bulk(b'[{"key":"first","value":"1"}, %b, {"key":"last","value":"2"}]' % text)

    assert answer.result == {"successful_key_count": 3, "unsuccessful_keys": []}
    assert namespace.get("k").body == content
    assert [namespace.get(key).body for key in ("first", "last")] == [b"1", b"2"]


@pytest.mark.parametrize("pair", range(len(LONG_BAD)))
def test_a_bad_item_with_a_long_string_is_refused_with_its_index_and_nothing_is_written(api, namespace, pair):
    text, reason = LONG_BAD[pair]
    long = b"x" * LONG

    answer = namespace.bulk(b'[{"key":"large","value":"%b"}, %b]' % (long, text.replace(b"%b", long)))

    assert (answer.status, answer.codes) == (400, [10012])
    (error,) = answer.json["errors"]
    assert error["message"].startswith("invalid request body: item 1: ")
    assert reason in error["message"]
    assert error["source"] == {"pointer": "/1"}
    assert namespace.keys().result == []
    assert blob_ids(api) == []


def test_the_last_pair_of_a_key_wins(namespace):
    namespace.bulk([item(value="1"), item(value="2")])

    assert namespace.get("k").body == b"2"


@pytest.mark.parametrize("route", [("PUT", ""), ("POST", "/delete"), ("DELETE", "")])
def test_as_many_items_as_the_limit_and_no_more(api, namespace, route):
    method, path = route
    keys = [f"{i}" for i in range(BULK_PAIRS_MAX + 1)]
    items = [{"key": key, "value": ""} for key in keys] if method == "PUT" else keys

    fewer = api.call(method, f"{namespace.path}/bulk{path}", items[:-2])
    most = api.call(method, f"{namespace.path}/bulk{path}", items[:-1])
    more = api.call(method, f"{namespace.path}/bulk{path}", items)

    assert fewer.result["successful_key_count"] == BULK_PAIRS_MAX - 1
    assert most.result == {"successful_key_count": BULK_PAIRS_MAX, "unsuccessful_keys": []}
    assert (more.status, more.codes) == (400, [10012])
    assert "more than 10000 items" in more.json["errors"][0]["message"]


def test_a_larger_body_is_refused_unread(namespace):
    answer = namespace.api.call(
        "PUT", f"{namespace.path}/bulk", b"[]", headers={"content-length": str(BULK_BYTES_MAX + 1)}
    )

    assert (answer.status, answer.codes) == (413, [1413])


# Get


def get(namespace, **body):
    return namespace.api.post(f"{namespace.path}/bulk/get", body)


def test_values_are_read_together_and_absent_ones_are_null(namespace):
    namespace.bulk([item(key="a", value="1"), item(key="b", value="é")])

    assert get(namespace, keys=["b", "a", "no", "a"]).result == {"values": {"b": "é", "a": "1", "no": None}}


@pytest.mark.inside("invented time")
def test_values_come_with_metadata_when_asked(namespace):
    namespace.bulk([item(key="a", metadata={"m": 1}, expiration=NOW_S + 90), item(key="b")])

    assert get(namespace, keys=["a", "b", "no"], withMetadata=True).result["values"] == {
        "a": {"value": "v", "metadata": {"m": 1}, "expiration": NOW_S + 90},
        "b": {"value": "v", "metadata": None},
        "no": None,
    }


def test_values_come_as_json_when_asked(namespace):
    namespace.bulk([item(key="a", value='{"x": [1]}'), item(key="b", value="not json")])

    assert get(namespace, keys=["a"], type="json").result["values"] == {"a": {"x": [1]}}
    assert get(namespace, keys=["b"], type="json").codes == [10012]


@pytest.mark.parametrize("text", [b"[1,]", b'"\xff"', b'"\xc3', b'"\\ud800"', b"", b"[" * 100_000, b"1 2"])
def test_what_is_no_json_is_not_read_as_json(namespace, text):
    namespace.put("k", text)

    assert get(namespace, keys=["k"], type="json").codes == [10012]


def test_json_is_looked_through_and_nothing_is_made_of_it():
    content = b"[" + b'{"":[]},' * 100_000 + b"0]"
    tracemalloc.start()
    found = _json("k", content)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert bytes(found) == content
    assert most <= 3 * len(content)


def test_bytes_that_are_no_text_are_shown_as_far_as_they_are(namespace):
    namespace.put("k", b"a\xffb")

    assert get(namespace, keys=["k"]).result["values"] == {"k": "a\ufffdb"}


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"keys": []}, 10029),
        ({}, 10029),
        ({"keys": ["k"] * (BULK_GET_KEYS_MAX + 1)}, 10012),
        ({"keys": "k"}, 10012),
        ({"keys": ["k"], "type": "xml"}, 10012),
        ({"keys": ["a b"]}, 10030),
    ],
)
def test_a_bulk_get_that_cannot_be_is_refused(namespace, body, code):
    answer = get(namespace, **body)

    assert (answer.status, answer.codes) == (400, [code])


@pytest.mark.parametrize("bad", ["", "a b", "x" * 513])
def test_a_bad_key_fails_the_bulk_get_with_its_place(namespace, bad):
    answer = get(namespace, keys=["a", "b", bad])

    assert answer.codes == [10030]
    assert answer.json["errors"][0]["source"] == {"pointer": "/keys/2"}


def test_values_that_are_too_large_together_are_refused(namespace):
    namespace.put("a", b"x" * (VALUE_BYTES_MAX - 1))
    namespace.put("b", b"xy")

    assert get(namespace, keys=["a"]).status == 200
    assert get(namespace, keys=["a", "b"]).codes == [10047]


# Delete


@pytest.mark.parametrize("route", [("POST", "/bulk/delete"), ("DELETE", "/bulk")])
def test_keys_are_deleted_together_in_both_forms(api, namespace, route):
    method, path = route
    namespace.bulk([item(key=key) for key in ("a", "b/c", "d")])

    answer = api.call(method, namespace.path + path, ["a", "b/c", "no"])

    assert answer.result == {"successful_key_count": 3, "unsuccessful_keys": []}
    assert [key["name"] for key in namespace.keys().result] == ["d"]


@pytest.mark.parametrize("bad", [7, {"name": "a"}, "", "a b", "x" * 513, "x" * LONG, [LONG * "x"], None])
def test_a_bad_key_fails_the_deletion_with_its_index(api, namespace, bad):
    namespace.put("a")

    answer = api.post(f"{namespace.path}/bulk/delete", ["a", bad])

    assert (answer.status, answer.codes) == (400, [10012])
    assert answer.json["errors"][0]["source"] == {"pointer": "/1"}
    assert namespace.get("a").status == 200


def test_a_body_of_ten_thousand_of_the_longest_keys_fits(api, namespace):
    keys = ["é" * 253 + f"{i:06d}" for i in range(BULK_PAIRS_MAX)]

    answer = api.post(f"{namespace.path}/bulk/delete", json.dumps(keys).encode())

    assert answer.result["successful_key_count"] == BULK_PAIRS_MAX
