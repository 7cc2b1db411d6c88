"""Blocks of fields as they stand in frames: HPACK (RFC 7541).

Owns  both tables of a connection, reading and writing a block.
Not   frames (`wire`); what fields may be (`head`); the Huffman code, which is `hpack`'s.

What is written is either in a table, or as it is: to code a value by Huffman takes longer in Python than to
send its octets. A field is found in the tables by one look in a dictionary.
"""

from collections import deque

from hpack.exceptions import HPACKError
from hpack.huffman_table import decode_huffman
from hpack.table import HeaderTable

from edgestead.http1.head import Headers

TABLE_OCTETS_MAX = 4_096  # of either table (RFC 7541 §4.2): also of ours, whatever the peer would keep
ENTRY_OCTETS = 32  # that an entry takes in a table beside its own (§4.1)
INDEXED_OCTETS_MAX = 1_024  # of a field: a longer one would drop the others
INTEGER_OCTETS_MAX = 4  # behind a prefix: no length and no index of ours is near that

STATIC: tuple[tuple[bytes, bytes], ...] = tuple(HeaderTable.STATIC_TABLE)
_FIRST = len(STATIC) + 1  # the index of the newest entry of the other table
_STATIC_INDEXES = {field: b"%c" % (0x80 | index) for index, field in reversed([*enumerate(STATIC, 1)])}
_STATIC_NAMES = {name: index for index, (name, _) in reversed([*enumerate(STATIC, 1)])}


class Unreadable(Exception):
    """A block that is none, or whose fields are larger than may be."""


class Reader:
    """Fields of what the peer says. `octets_max` is of all fields of a block, each with ENTRY_OCTETS."""

    __slots__ = ("_entries", "_octets", "_octets_max", "_table_max")

    def __init__(self, octets_max: int) -> None:
        self._octets_max = octets_max
        self._entries: list[tuple[bytes, bytes]] = []  # the newest one last
        self._octets, self._table_max = 0, TABLE_OCTETS_MAX

    def read(self, block: bytes) -> Headers:
        """Raises Unreadable: then nothing that follows on this connection can be read."""
        try:
            return self._read(block)
        except (IndexError, HPACKError):
            raise Unreadable from None

    def _read(self, block: bytes) -> Headers:
        fields: Headers = []
        at, end, left = 0, len(block), self._octets_max
        while at < end:
            first = block[at]
            at += 1
            if first & 0x80:
                index = first & 0x7F
                if index == 0x7F:
                    index, at = _integer(block, at, 0x7F)
                field = STATIC[index - 1] if 0 < index < _FIRST else self._entry(index)
            elif first & 0xE0 == 0x20:
                if fields:
                    raise Unreadable  # §4.2: only in front of them
                size, at = _integer(block, at, 0x1F) if first & 0x1F == 0x1F else (first & 0x1F, at)
                self._resize(size)
                continue
            else:
                is_kept = first & 0x40
                mask = 0x3F if is_kept else 0x0F
                index = first & mask
                if index == mask:
                    index, at = _integer(block, at, mask)
                if index:
                    name = STATIC[index - 1][0] if index < _FIRST else self._entry(index)[0]
                else:
                    name, at = _text(block, at)
                value, at = _text(block, at)
                field = (name, value)
                if is_kept:
                    self._keep(field)
            left -= len(field[0]) + len(field[1]) + ENTRY_OCTETS
            if left < 0:
                raise Unreadable
            fields.append(field)
        return fields

    def _entry(self, index: int) -> tuple[bytes, bytes]:
        at = index - _FIRST
        if not 0 <= at < len(self._entries):
            raise Unreadable
        return self._entries[-1 - at]

    def _keep(self, field: tuple[bytes, bytes]) -> None:
        self._entries.append(field)
        self._octets += len(field[0]) + len(field[1]) + ENTRY_OCTETS
        if self._octets > self._table_max:
            self._drop()

    def _resize(self, size: int) -> None:
        if size > TABLE_OCTETS_MAX:
            raise Unreadable
        self._table_max = size
        self._drop()

    def _drop(self) -> None:
        """The oldest ones, until the others have room."""
        entries, dropped = self._entries, 0
        while self._octets > self._table_max:
            name, value = entries[dropped]
            self._octets -= len(name) + len(value) + ENTRY_OCTETS
            dropped += 1
        del entries[:dropped]


def _integer(block: bytes, at: int, value: int) -> tuple[int, int]:
    """An integer whose prefix was full, and what follows it (§5.1). Raises IndexError, Unreadable."""
    for shift in range(0, 7 * INTEGER_OCTETS_MAX, 7):
        octet = block[at]
        at += 1
        value += (octet & 0x7F) << shift
        if octet < 0x80:
            return value, at
    raise Unreadable


def _text(block: bytes, at: int) -> tuple[bytes, int]:
    first = block[at]
    length, at = first & 0x7F, at + 1
    if length == 0x7F:
        length, at = _integer(block, at, 0x7F)
    text = block[at : at + length]
    if len(text) != length:
        raise Unreadable
    return decode_huffman(text) if first & 0x80 else text, at + length


class AllBut(frozenset[bytes]):
    """All names but these.

    >>> b"cookie" in AllBut([b"accept"]), b"accept" in AllBut([b"accept"])
    (True, False)
    """

    def __contains__(self, name: object) -> bool:
        return not super().__contains__(name)


class Writer:
    """Blocks of what we say. `kept_out` are names whose values never go to a table, at our peer or behind it:
    secrets, which a guess must not find there (§7.1.3), and what is another value each time.
    """

    __slots__ = (
        "_entries", "_indexes", "_inserted", "_kept_out", "_least", "_names", "_octets", "_table_max"
    )  # fmt: skip

    def __init__(self, kept_out: frozenset[bytes]) -> None:
        self._kept_out = kept_out
        self._entries: deque[tuple[bytes, bytes]] = deque()  # the oldest one first
        self._indexes: dict[tuple[bytes, bytes], int] = {}  # which of all that were ever inserted
        self._names: dict[bytes, int] = {}
        self._inserted = self._octets = 0
        self._table_max = TABLE_OCTETS_MAX
        self._least: int | None = None  # size of our table since the last block, where it has changed

    @property
    def table_octets_max(self) -> int:
        return self._table_max

    def resize(self, octets: int) -> None:
        """The peer keeps so much."""
        size = min(octets, TABLE_OCTETS_MAX)
        if size != self._table_max:
            self._table_max = size
            self._least = size if self._least is None else min(self._least, size)
            self._drop(0)

    def write(self, fields: Headers) -> bytes:
        out = [] if self._least is None else self._said_sizes()
        indexes, kept_out = self._indexes, self._kept_out
        for field in fields:
            code = _STATIC_INDEXES.get(field)
            if code is not None:
                out.append(code)
                continue
            number = indexes.get(field)
            if number is not None:
                index = _FIRST + self._inserted - number
                out.append(b"%c" % (0x80 | index) if index < 0x7F else _prefixed(index, 0x80, 0x7F))
                continue
            name, value = field
            index = self._index_of(name)
            if name in kept_out or len(name) + len(value) > INDEXED_OCTETS_MAX:
                out.append(_prefixed(index, 0x10, 0x0F))
            else:
                out.append(_prefixed(index, 0x40, 0x3F))
                self._keep(field)
            if not index:
                out.append(_prefixed(len(name), 0, 0x7F))
                out.append(name)
            length = len(value)
            out.append(b"%c" % length if length < 0x7F else _prefixed(length, 0, 0x7F))
            out.append(value)
        return b"".join(out)

    def _said_sizes(self) -> list[bytes]:
        """In front of a block: the least there was, and what it is now (§4.2)."""
        sizes = {self._least or 0, self._table_max}
        self._least = None
        return [_prefixed(size, 0x20, 0x1F) for size in sorted(sizes)]

    def _index_of(self, name: bytes) -> int:
        index = _STATIC_NAMES.get(name)
        if index is not None:
            return index
        number = self._names.get(name)
        return 0 if number is None else _FIRST + self._inserted - number

    def _keep(self, field: tuple[bytes, bytes]) -> None:
        octets = len(field[0]) + len(field[1]) + ENTRY_OCTETS
        self._drop(octets)
        if octets > self._table_max:
            return  # §4.4: it empties the table, and is not in it
        self._inserted += 1
        self._entries.append(field)
        self._octets += octets
        self._indexes[field] = self._names[field[0]] = self._inserted

    def _drop(self, octets: int) -> None:
        """The oldest ones, until there is room for so much more."""
        entries = self._entries
        while entries and self._octets + octets > self._table_max:
            number = self._inserted - len(entries) + 1
            field = entries.popleft()
            self._octets -= len(field[0]) + len(field[1]) + ENTRY_OCTETS
            if self._indexes.get(field) == number:
                del self._indexes[field]
            if self._names.get(field[0]) == number:
                del self._names[field[0]]


def _prefixed(value: int, pattern: int, mask: int) -> bytes:
    """An integer behind a pattern of bits (§5.1)."""
    if value < mask:
        return b"%c" % (pattern | value)
    out = bytearray((pattern | mask,))
    value -= mask
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
