"""The value codec: what goes in comes out, fresh and exact; what cannot is refused."""

import collections
import datetime as dt
import enum
import math
import re
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgestead.objects.errors import DataCloneError
from edgestead.objects.values.codec import GRAPH_TAG, clone, decode, encode
from edgestead.objects.values.graph import decode_graph


class Colour(enum.IntEnum):
    RED = 1


class Own:
    pass


class OwnError(Exception):
    pass


class OddZone(dt.tzinfo):
    def utcoffset(self, _: dt.datetime | None) -> dt.timedelta:
        return dt.timedelta(0)

    dst = utcoffset

    def tzname(self, _: dt.datetime | None) -> str:
        return "odd"


KEPT: list[Any] = [
    None,
    True,
    False,
    0,
    -1,
    2**63,
    2**64,
    -(2**63) - 1,
    10**400,
    1.5,
    -0.0,
    math.inf,
    -math.inf,
    "",
    "text",
    "\ud800 alone",
    "\0",
    b"",
    b"bytes",
    [],
    {},
    (),
    [1, [2, [3]]],
    {"a": {"b": [None, True]}},
    (1, (2, "x"), [3]),
    {1: "int", (1, 2): "tuple", None: "none", frozenset([1]): "frozen", b"k": "bytes", 1.5: "float"},
    {1, "two", (3,)},
    frozenset({1, frozenset({2})}),
    dt.date(2024, 2, 29),
    dt.datetime(2024, 1, 2, 3, 4, 5, 6),
    dt.datetime(2024, 1, 2, tzinfo=dt.UTC),
    dt.datetime(2024, 1, 2, tzinfo=dt.timezone(dt.timedelta(hours=-3, seconds=7))),
    dt.datetime(2024, 10, 27, 2, 30, fold=1, tzinfo=ZoneInfo("Europe/Berlin")),
    [2**80, {"deep": dt.date(1, 1, 1)}],
]

REFUSED: list[Any] = [
    Own(),
    Own,
    len,
    lambda: None,
    object(),
    OwnError("x"),
    KeyboardInterrupt(),
    Colour.RED,
    1j,
    collections.OrderedDict(a=1),
    collections.defaultdict(list),
    dt.datetime(2024, 1, 1, tzinfo=OddZone()),
    range(3),
    iter([]),
    [1, {"a": Own()}],
    {Own(): 1},
    (x for x in ()),
    open,
]

DAMAGED = [
    b"",
    b"\xc1",
    b"\x93\x01",
    b"\x01\x02",
    b"\xc1\x90",
    b"\xc1\x91\x91\x63",
    b"\xc1\x91\x92\x02\x05",
    b"\xc1\x92\x92\x02\x01\x92\x02\x00",
    b"\xc1\x91\x92\x09\xa1(",
    b"\xc1\x91\x92\x0a\xa4eval",
]


def same(a: Any, b: Any) -> bool:
    """Equal, and of one type all the way down."""
    if type(a) is not type(b):
        return False
    if isinstance(a, float):
        return (math.isnan(a) and math.isnan(b)) or (a == b and math.copysign(1, a) == math.copysign(1, b))
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return list(map(repr, a)) == list(map(repr, b)) and all(
            same(*pair) for pair in zip(a.values(), b.values(), strict=True)
        )
    return bool(a == b)


@pytest.mark.parametrize("value", KEPT, ids=lambda v: type(v).__name__)
def test_a_value_comes_back_equal_and_of_its_type(value: Any) -> None:
    assert same(clone(value), value)


def test_nan_comes_back() -> None:
    assert math.isnan(clone(float("nan")))
    assert math.isnan(clone({"n": (math.nan,)})["n"][0])


@pytest.mark.parametrize("value", REFUSED, ids=lambda v: type(v).__name__)
def test_what_cannot_be_cloned_is_refused(value: Any) -> None:
    with pytest.raises(DataCloneError):
        encode(value)


@pytest.mark.parametrize("data", DAMAGED)
def test_damaged_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(DataCloneError):
        decode(data)


@pytest.mark.parametrize("value", [bytearray(b"x"), memoryview(b"x")], ids=["bytearray", "memoryview"])
def test_buffers_become_bytes(value: Any) -> None:
    assert same(clone(value), b"x")
    assert same(clone([value, (value,)]), [b"x", (b"x",)])


def test_a_clone_is_fresh() -> None:
    value = {"list": [1], "set": {1}}

    copy = clone(value)
    copy["list"].append(2)

    assert value == {"list": [1], "set": {1}}


def test_shared_references_stay_shared() -> None:
    inner = [1]

    copy = clone({"a": inner, "b": inner, "c": [1]})

    assert copy["a"] is copy["b"]
    assert copy["a"] is not copy["c"]


def test_cycles_come_back_as_cycles() -> None:
    ring: list[Any] = []
    ring.append(ring)
    through_tuple: list[Any] = []
    through_tuple.append((through_tuple, {"again": through_tuple}))

    copy, deep = clone(ring), clone(through_tuple)

    assert copy[0] is copy
    assert deep[0][0] is deep
    assert deep[0][1]["again"] is deep


def test_depth_has_no_limit_of_its_own() -> None:
    value: Any = "bottom"
    for _ in range(20_000):
        value = [value]

    copy = clone(value)

    for _ in range(20_000):
        copy = copy[0]
    assert copy == "bottom"


def test_a_pattern_comes_back_with_its_flags() -> None:
    assert clone(re.compile("a.b", re.I | re.S)) == re.compile("a.b", re.I | re.S)
    assert clone(re.compile(b"x")) == re.compile(b"x")


@pytest.mark.parametrize(
    "error",
    [
        ValueError("x", 1),
        KeyError("k"),
        OSError(2, "gone", "file"),
        UnicodeDecodeError("utf-8", b"x", 0, 1, "no"),
    ],
    ids=lambda e: type(e).__name__,
)
def test_a_built_in_exception_comes_back(error: Exception) -> None:
    copy = clone({"error": error})["error"]

    assert type(copy) is type(error)
    assert copy.args == error.args
    assert str(copy) == str(error)


def test_plain_values_carry_no_tag_and_graphs_do() -> None:
    assert encode({"a": [1, "x", None]})[0] != GRAPH_TAG
    assert encode((1,))[0] == GRAPH_TAG


def test_a_graph_never_builds_a_class_by_name() -> None:
    with pytest.raises(DataCloneError):
        decode_graph([[10, "SystemExit"]])


HASHABLE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.binary() | st.floats(allow_nan=False),
    lambda inner: st.tuples(inner, inner) | st.frozensets(inner, max_size=3),
    max_leaves=5,
)
VALUES = st.recursive(
    HASHABLE | st.dates() | st.datetimes(),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(HASHABLE, inner, max_size=4) | st.tuples(inner)
    ),
    max_leaves=20,
)


@given(VALUES)
def test_any_value_comes_back(value: Any) -> None:
    copy = clone(value)

    assert type(copy) is type(value)
    assert copy == value
