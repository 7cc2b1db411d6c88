"""Values that plain msgpack would change, as a flat list of nodes.

Owns  the node kinds and their payloads.
Not   bytes: `values` packs the list; plain values never come here.

Node 0 is the value. A node is `[kind, …]`. Inside a node a child is written as itself when it is None, a
bool, float, str or bytes, as `[n]` when it is an int of 64 bits, and as the number of its node otherwise.
So shared references and cycles cost nothing special, and neither side recurses: depth is bounded by the
node count alone. (cbor2's value sharing was tried: it turns tuples into lists, accepts subclasses silently
and cannot rebuild a cycle through a tuple.)
"""

import builtins
import re
from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from types import NoneType
from typing import Any
from zoneinfo import ZoneInfo

from edgestead.objects.errors import DataCloneError

LIST, DICT, TUPLE, SET, FROZENSET, INT, TEXT, DATETIME, DATE, PATTERN, ERROR = range(11)

ERRORS = {
    name: kind
    for name, kind in vars(builtins).items()
    if isinstance(kind, type) and issubclass(kind, Exception)
}
"""The exceptions that travel. Others would need code that the reader may not have."""

_INLINE = frozenset({str, float, bool, NoneType, bytes})
_MUTABLE: dict[int, Callable[[], Any]] = {LIST: list, DICT: dict, SET: set}
_INT_MIN, _INT_MAX = -(2**63), 2**64 - 1

Node = list[Any]
Refer = Callable[[Any], Any]


def encode_graph(value: Any, *, nodes_max: int) -> list[Node]:
    """The nodes of a value. Raises DataCloneError."""
    pending: list[Any] = [value]
    number = {id(value): 0}

    def refer(child: Any) -> Any:
        kind = type(child)
        if kind in _INLINE and not (kind is str and not _is_utf8(child)):
            return child
        if kind is int and _INT_MIN <= child <= _INT_MAX:
            return [child]
        if kind is bytearray or kind is memoryview:
            return bytes(child)
        known = number.get(id(child))
        if known is None:
            if len(pending) >= nodes_max:
                raise DataCloneError(f"value has more than {nodes_max} parts")
            known = number[id(child)] = len(pending)
            pending.append(child)  # also keeps it alive, so that its id stays its own
        return known

    nodes = []
    for item in pending:
        write = _WRITERS.get(type(item))
        if write is None:
            raise DataCloneError(f"{type(item).__qualname__} object could not be cloned.")
        nodes.append(write(item, refer))
    return nodes


def decode_graph(nodes: list[Node]) -> Any:
    """The value of nodes made by `encode_graph`. Raises DataCloneError when they are damaged."""
    try:
        return _Reader(nodes).read()
    except (LookupError, TypeError, ValueError, OverflowError, re.error) as error:
        raise DataCloneError("stored value is damaged") from error


class _Reader:
    """Makes mutable containers empty, then immutable values inside out, then fills the containers.

    A cycle always passes through a list, a dict or a set: nothing else can be changed after it is made.
    """

    def __init__(self, nodes: list[Node]) -> None:
        self.nodes = nodes
        self.made: dict[int, Any] = {
            index: _MUTABLE[node[0]]() for index, node in enumerate(nodes) if node[0] in _MUTABLE
        }
        self.mutable = tuple(self.made)

    def read(self) -> Any:
        for index in range(len(self.nodes) - 1, -1, -1):
            self._make(index)
        for index in self.mutable:
            self._fill(index)
        return self.made[0]

    def child(self, written: Any) -> Any:
        kind = type(written)
        if kind is list:
            return written[0]
        return self.made[written] if kind is int else written

    def _make(self, index: int) -> None:
        stack, opened = [index], set()
        while stack:
            top = stack[-1]
            if top in self.made:
                stack.pop()
                continue
            node = self.nodes[top]
            missing = [c for c in node[1:] if type(c) is int and c not in self.made and node[0] in _NESTING]
            if not missing:
                self.made[top] = _READERS[node[0]](self, node)
            elif top in opened:
                raise ValueError("cycle through immutable values")
            opened.add(top)
            stack.extend(missing)

    def _fill(self, index: int) -> None:
        kind, *written = self.nodes[index]
        children = [self.child(c) for c in written]
        made = self.made[index]
        if kind == LIST:
            made.extend(children)
        elif kind == SET:
            made.update(children)
        else:
            made.update(zip(children[::2], children[1::2], strict=True))


def _is_utf8(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _sequence(kind: int) -> Callable[[Iterable[Any], Refer], Node]:
    return lambda items, refer: [kind, *map(refer, items)]


def _write_dict(items: dict[Any, Any], refer: Refer) -> Node:
    node: Node = [DICT]
    for key, value in items.items():
        node += (refer(key), refer(value))
    return node


def _write_int(number: int, _: Refer) -> Node:
    return [INT, number.to_bytes(number.bit_length() // 8 + 1, "big", signed=True)]


def _write_datetime(moment: datetime, _: Refer) -> Node:
    zone = moment.tzinfo
    if zone is None:
        where: str | int | None = None
    elif isinstance(zone, ZoneInfo) and zone.key is not None:
        where = zone.key
    elif type(zone) is timezone:
        where = zone.utcoffset(None) // timedelta(microseconds=1)
    else:
        raise DataCloneError(f"datetime with a {type(zone).__qualname__} could not be cloned.")
    return [
        DATETIME,
        moment.year,
        moment.month,
        moment.day,
        moment.hour,
        moment.minute,
        moment.second,
        moment.microsecond,
        moment.fold,
        where,
    ]


def _write_error(error: Exception, refer: Refer) -> Node:
    arguments = error.__reduce__()[1]
    return [ERROR, type(error).__name__, *map(refer, arguments)]


_WRITERS: dict[type, Callable[[Any, Refer], Node]] = {
    list: _sequence(LIST),
    tuple: _sequence(TUPLE),
    set: _sequence(SET),
    frozenset: _sequence(FROZENSET),
    dict: _write_dict,
    int: _write_int,
    str: lambda text, _: [TEXT, text.encode("utf-8", "surrogatepass")],
    datetime: _write_datetime,
    date: lambda day, _: [DATE, day.toordinal()],
    re.Pattern: lambda pattern, _: [PATTERN, pattern.pattern, pattern.flags],
    **dict.fromkeys(ERRORS.values(), _write_error),
}


def _read_datetime(_: _Reader, node: Node) -> datetime:
    year, month, day, hour, minute, second, microsecond, fold, where = node[1:]
    zone: tzinfo | None = None
    if isinstance(where, str):
        zone = ZoneInfo(where)
    elif where is not None:
        zone = timezone(timedelta(microseconds=where)) if where else UTC
    return datetime(year, month, day, hour, minute, second, microsecond, zone, fold=fold)


def _read_error(reader: _Reader, node: Node) -> Exception:
    error = ERRORS[node[1]](*map(reader.child, node[2:]))
    assert isinstance(error, Exception)
    return error


def _read_pattern(_: _Reader, node: Node) -> re.Pattern[Any]:
    return re.compile(node[1], node[2])


_READERS: dict[int, Callable[[_Reader, Node], Any]] = {
    TUPLE: lambda reader, node: tuple(map(reader.child, node[1:])),
    FROZENSET: lambda reader, node: frozenset(map(reader.child, node[1:])),
    INT: lambda _, node: int.from_bytes(node[1], "big", signed=True),
    TEXT: lambda _, node: node[1].decode("utf-8", "surrogatepass"),
    DATETIME: _read_datetime,
    DATE: lambda _, node: date.fromordinal(node[1]),
    PATTERN: _read_pattern,
    ERROR: _read_error,
}
_NESTING = frozenset({TUPLE, FROZENSET, ERROR})
