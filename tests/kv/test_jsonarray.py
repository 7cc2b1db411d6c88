"""The items of a JSON array in a stream of bytes."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgestead.model.jsonarray import ArrayItems, ItemTooLong, NotAnArray

GOOD = (
    (b"[]", []),
    (b" [ ] \n", []),
    (b"\xef\xbb\xbf[1]", [b"1"]),
    (b'[1, "a" ,null,true]', [b"1", b'"a"', b"null", b"true"]),
    (b'[{"key":"a","value":"[,]{}"},{"key":"b"}]', [b'{"key":"a","value":"[,]{}"}', b'{"key":"b"}']),
    (b'[{"m":{"a":[{"b":[{"c":[]}]}]}} , {}]', [b'{"m":{"a":[{"b":[{"c":[]}]}]}}', b"{}"]),
    (rb'["\"","\\","\\\"",{"a":"\\"}]', [rb'"\""', rb'"\\"', rb'"\\\""', rb'{"a":"\\"}']),
    ('[{"key":"é～😀"}]'.encode(), ['{"key":"é～😀"}'.encode()]),
)

BAD = (
    (b"", "ends before the array"),
    (b"\xef\xbb", "ends before the array"),
    (b"   ", "ends before the array"),
    (b"{}", "does not begin with"),
    (b'"[]"', "does not begin with"),
    (b"[", "ends inside of item 0"),
    (b"[1,", "ends inside of item 1"),
    (b'["a', "ends inside of item 0"),
    (b'["a\\', "ends inside of item 0"),
    (b"[{", "ends inside of item 0"),
    (b"[,]", "item 0 is empty"),
    (b"[1,]", "item 1 is empty"),
    (b"[1,,2]", "item 1 is empty"),
    (b"[1}]", "bracket too many"),
    (b"[1] 2", "more text behind"),
    (b"[]]", "more text behind"),
)

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=12,
)


def items(text, portion=1 << 20, item_bytes_max=1 << 20):
    scanner = ArrayItems(item_bytes_max=item_bytes_max)
    found = [item for at in range(0, len(text), portion) for item in scanner.feed(text[at : at + portion])]
    scanner.end()
    return found


@pytest.mark.parametrize("portion", [1, 2, 3, 7, 1000])
@pytest.mark.parametrize(("text", "expected"), GOOD)
def test_items_are_found_whatever_the_portions(text, expected, portion):
    assert items(text, portion) == expected


@pytest.mark.parametrize("portion", [1, 2, 1000])
@pytest.mark.parametrize(("text", "reason"), BAD)
def test_what_is_no_array_is_refused_with_the_place(text, reason, portion):
    with pytest.raises(NotAnArray, match=reason):
        items(text, portion)


@given(st.lists(json_values, max_size=6), st.integers(1, 40), st.sampled_from([None, 1, 2]), st.booleans())
def test_every_array_comes_apart_into_its_items(values, portion, indent, ascii_):
    text = json.dumps(values, indent=indent, ensure_ascii=ascii_).encode("utf-8", "surrogatepass")

    assert [json.loads(item.decode("utf-8", "surrogatepass")) for item in items(text, portion)] == values


@given(st.binary(max_size=60), st.integers(1, 7))
def test_any_bytes_give_items_or_a_refusal(text, portion):
    try:
        items(text, portion)
    except NotAnArray:
        pass


@pytest.mark.parametrize("portion", [7, 100, 10_000])
@pytest.mark.parametrize(
    "item", [b'"' + b"x" * 98 + b'"', b"[" + b"1," * 49 + b"1]", b'{"a":"' + b"x" * 92 + b'"}']
)
def test_an_item_may_be_as_long_as_the_limit_and_no_longer(item, portion):
    assert items(b"[" + item + b"]", portion, item_bytes_max=len(item) + portion) == [item]
    with pytest.raises(ItemTooLong):
        items(b"[" + item + b"]", portion, item_bytes_max=len(item) - 1)


def test_position_is_the_end_of_the_last_item():
    scanner = ArrayItems(item_bytes_max=100)

    assert [scanner.position for _ in scanner.feed(b'[{"a":1}, {"b":2}, {"c"')] == [9, 18]
    assert [scanner.position for _ in scanner.feed(b":3}]")] == [27]


HOSTILE = {
    "open braces": b"[" + b"{" * 1_000_000,
    "quotes": b'[{"' + b'\\"' * 500_000,
    "objects in depth": b"[" + b'{"a":' * 200_000,
    "deep items": b"[" + b"[[[[[[1]]]]]]," * 80_000,
    "blanks": b"[" + b" " * 1_000_000,
    "unfinished strings": b'[{"a":"' * 150_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_is_done_with_in_one_pass(name):
    """With a second look at each byte these would take minutes, and the test's time limit ends it."""
    with pytest.raises(NotAnArray):
        items(HOSTILE[name], 1 << 16, item_bytes_max=1 << 30)


def hollow(text, portion, *, string_bytes_max=20):
    """Each item, with what was left out of it put back where it belongs."""
    scanner = ArrayItems(item_bytes_max=1_000, string_bytes_max=string_bytes_max)
    found = []
    for at in range(0, len(text), portion):
        for item in scanner.feed(text[at : at + portion]):
            whole, end = [], 0
            for hole in scanner.holes:
                assert item[hole.at - 1 : hole.at + 1] == b'""'
                whole += item[end : hole.at], text[hole.begin : hole.end]
                end = hole.at
            found.append((item, b"".join((*whole, item[end:])), scanner.position))
    scanner.end()
    return found


@given(st.lists(json_values, max_size=4), st.integers(1, 40), st.sampled_from([None, 1]), st.booleans())
def test_long_strings_are_left_out_and_are_where_the_holes_say(values, portion, indent, ascii_):
    text = json.dumps(values, indent=indent, ensure_ascii=ascii_).encode("utf-8", "surrogatepass")
    scanner = ArrayItems(item_bytes_max=1 << 20)
    expected = [(item, scanner.position) for item in scanner.feed(text)]

    found = hollow(text, portion, string_bytes_max=3)

    assert [(whole, position) for _, whole, position in found] == expected


@pytest.mark.parametrize("portion", [1, 7, 20])
def test_an_item_is_held_without_its_long_strings(portion):
    long = rb"\"x\u00e9\\" * 5_000
    text = b'[{"a":"%b","b":1, "c":"%b"}, "%b" , "short"]' % (long, long, long)

    assert [item for item, _, _ in hollow(text, portion)] == [b'{"a":"","b":1, "c":""}', b'""', b'"short"']


def test_what_is_no_string_is_held_and_bounded():
    with pytest.raises(ItemTooLong):
        hollow(b'[{"a":[' + b'"x",' * 5_000, 100)
