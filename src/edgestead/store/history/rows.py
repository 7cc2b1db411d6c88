"""Rows of history, and the interface of what keeps them.

Owns  blocks and snapshots without their bytes; `Book`, which `reader` and `thinning` work on.
Not   where the rows are: in `sqlite.objectlog.history` or `postgres.objectlog.book`.

A block holds commits of one session of one object that follow one another. A snapshot is the whole state
after one commit, so that reading need not begin at the first. `generation` is that of bookmarks when the
commits were made.
"""

from collections.abc import Iterable
from typing import Protocol, Self

import msgspec


class BlockRow(msgspec.Struct, frozen=True):
    """One block without its body. `pages` counts page images, `raw` and `stored` bytes."""

    number: int
    first: int
    last: int
    first_us: int
    last_us: int
    generation: int
    session: int
    thinned: bool
    pages: int
    raw: int
    stored: int


class SnapshotRow(msgspec.Struct, frozen=True):
    """One snapshot without its pages. `rest` is what `past` packs in addition to them."""

    number: int
    position: int
    time_us: int
    generation: int
    session: int
    total: int
    stored: int
    rest: bytes


class Book(Protocol):
    """The history of some objects. `with book:` makes several changes one."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *exception: object) -> bool | None: ...

    def blocks(self, number: int, after: int, upto: int) -> list[BlockRow]:
        """The blocks with commits after < position <= upto, in order."""
        ...

    def block_at(self, number: int, time_us: int, before: int) -> BlockRow | None:
        """The last block that began at or before a time, of those that begin before a position."""
        ...

    def oldest_block(self, number: int) -> BlockRow | None: ...

    def last_block(self, number: int) -> BlockRow | None: ...

    def first_block(self, number: int, session: int) -> BlockRow | None: ...

    def block_before(self, number: int, position: int) -> BlockRow | None: ...

    def body(self, row: BlockRow) -> bytes: ...

    def cost_behind(self, number: int, position: int) -> tuple[int, int]: ...

    def add_block(self, row: BlockRow, body: bytes) -> None: ...

    def remove_blocks(self, number: int, upto: int) -> None: ...

    def remove_block(self, row: BlockRow) -> None: ...

    def keep_as_it_is(self, rows: Iterable[BlockRow]) -> None: ...

    def unthinned(self, before_us: int) -> BlockRow | None: ...

    def add_snapshot(self, row: SnapshotRow, image: bytes | bytearray) -> int: ...

    def snapshot(self, number: int, upto: int) -> SnapshotRow | None: ...

    def snapshot_positions(self, number: int) -> set[int]: ...

    def snapshot_before(self, number: int, time_us: int) -> SnapshotRow | None: ...

    def image(self, row: SnapshotRow) -> bytearray: ...

    def remove_snapshots(self, number: int, before: int) -> None: ...

    def pins(self, number: int) -> dict[int, int]: ...

    def remove_pins(self, before_us: int) -> None: ...

    def numbers(self, after: int, limit: int) -> list[int]: ...

    def largest(self) -> int | None: ...

    def total_bytes(self) -> int: ...

    def trim(self) -> None: ...

    def check(self) -> list[str]: ...
