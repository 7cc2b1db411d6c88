"""Whether what control writes to is there, has room, and takes writes.

Owns  the round that looks, once in ROUND_SECONDS; why the server is not ready for writes.
Not   the refusal of a single write.
"""

import asyncio
import logging
import os
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Protocol

from edgestead.model.counters import Page, slot
from edgestead.server.folder import lost_words, same_file
from edgestead.server.rounds import Rounds
from edgestead.server.space import FULL, Space, State

FLUSH_ROUNDS = 5  # of which the last brings the witnesses to the disk
ROUND_SECONDS = 1.0  # so long at most somebody may write into a folder that is gone

_FREE = slot("edge_disk_free_bytes")
_RESERVE = slot("edge_disk_reserve_bytes")
_IS_FULL = slot("edge_disk_full")
_FAILING = slot("edge_store_failing")

log = logging.getLogger("edgestead.server")


class Store(Protocol):
    @property
    def trouble(self) -> str: ...

    def lose(self) -> None: ...

    def probe(self) -> None: ...

    def let_journal_grow(self, grow: bool) -> None: ...

    def flush_witness(self) -> None: ...


def _files_of(folder: Path, databases: Iterable[str]) -> dict[str, os.stat_result]:
    """What they are made of. A journal that is deleted takes along what a checkpoint has not brought home."""
    names = [name + part for name in databases for part in ("", "-wal")]
    return {name: (folder / name).stat() for name in names if (folder / name).exists()}


class StorageWatch:
    """`stores` by the names of their files; `held` is the open lock of the folder.

    `end` is called once with the reason when a file is gone, after both stores have stopped.
    """

    def __init__(
        self,
        folder: Path,
        held: int,
        stores: dict[str, Store],
        space: Space,
        page: Page,
        *,
        end: Callable[[str], None],
    ) -> None:
        self._folder = folder
        self._known = {"lock": os.fstat(held)} | _files_of(folder, stores)
        self._stores = stores
        self._space = space
        self._page = page
        self._end = end
        self._lost = ""
        self._state = State.ENOUGH
        self._rounds = 0
        look = partial(asyncio.to_thread, self.look)
        self._looks = Rounds("a look at the storage", ROUND_SECONDS, look)

    def open(self) -> None:
        self._looks.open()

    def close(self) -> None:
        self._looks.close()

    @property
    def lost(self) -> str:
        """That the folder is another one now; empty while it is ours."""
        return self._lost

    @property
    def full(self) -> str:
        """Why nothing can be added; empty when it can."""
        return self._space.reason or ""

    @property
    def free_bytes(self) -> int:
        return self._space.free_bytes

    @property
    def faults(self) -> tuple[tuple[str, str], ...]:
        """The databases that cannot be written for another reason, and why."""
        if self._lost or self._space.reason:
            return ()
        return tuple((name, store.trouble) for name, store in self._stores.items() if store.trouble)

    def look(self) -> None:
        """One round. Blocks for the disk."""
        gone = [name for name, known in self._known.items() if not same_file(self._folder / name, known)]
        if gone and not self._lost:
            for store in self._stores.values():
                store.lose()
            self._lost = lost_words(self._folder, gone[0])
            log.critical("%s; nothing is written any more", self._lost)
            self._end(self._lost)
        if self._lost:
            return
        state = self._space.look()
        self._page.set(_FREE, self._space.free_bytes)
        self._page.set(_RESERVE, self._space.reserve_bytes)
        self._page.set(_IS_FULL, state in FULL)  # before stores are waited for: readiness says it already
        self._heed(state)
        failing = [store for store in self._stores.values() if store.trouble]
        for store in failing:
            store.probe()
        self._rounds += 1
        if self._rounds % FLUSH_ROUNDS == 0:
            for store in self._stores.values():
                store.flush_witness()
        self._page.set(_FAILING, bool(failing))

    def _heed(self, state: State) -> None:
        """Journals are to be short as soon as the disk is nearly full, and not only when it is."""
        was, self._state = self._state, state
        if (was is State.ENOUGH) is not (state is State.ENOUGH):
            for store in self._stores.values():
                store.let_journal_grow(state is State.ENOUGH)
