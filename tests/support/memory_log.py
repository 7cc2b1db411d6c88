"""A control log in memory, with the fence of PostgreSQL's: what `ControlLog` promises, plainly."""

import secrets
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path

from edgestead.sqlite.control import SqliteControlStore
from edgestead.sqlite.replica import ReplicaControlStore, copy_parts, digest_of, load
from edgestead.store.controllog import READ_BYTES_MAX, Base, Diverged, Entry, Fenced, Position, Unknown
from edgestead.store.migrations import Migration


class MemoryControlLog:
    """`living` are the incarnations that may append; `lose_answers` are outcomes of the next appends that
    their caller does not learn: True when the entry lands.
    """

    def __init__(self) -> None:
        self.entries: dict[int, Entry] = {}
        self.bases: dict[Position, list[bytes]] = {}
        self.living: set[int] = set()
        self.lose_answers: list[bool] = []
        self.fenced = 0
        self._lock = threading.Lock()

    def append(self, incarnation: int, entry: Entry) -> None:
        with self._lock:
            follows = entry.sequence == 1 or entry.sequence - 1 in self.entries
            if incarnation not in self.living or entry.sequence in self.entries or not follows:
                self.fenced += 1
                raise Fenced(f"incarnation {incarnation}")
            lost = self.lose_answers.pop(0) if self.lose_answers else None
            if lost is not False:
                self.entries[entry.sequence] = entry
            if lost is not None:
                raise Unknown()

    def read(self, after: int, bytes_max: int = READ_BYTES_MAX) -> list[Entry] | None:
        if self.entries and after + 1 < min(self.entries):
            return None
        found: list[Entry] = []
        size = 0
        while (entry := self.entries.get(after + 1)) and (not found or size + len(entry.body) <= bytes_max):
            found.append(entry)
            size += len(entry.body)
            after += 1
        return found

    def chain(self, sequence: int) -> bytes | None:
        entry = self.entries.get(sequence)
        return None if entry is None else entry.chain

    def newest_base(self) -> Base | None:
        if not self.bases:
            return None
        position = max(self.bases)
        parts = self.bases[position]
        return Base(position, digest_of(parts), len(parts))

    def read_base(self, base: Base) -> Iterator[bytes]:
        return iter(self.bases[base.position])

    def put_base(self, position: Position, parts: Iterable[bytes]) -> None:
        if all(base.sequence != position.sequence for base in self.bases):
            content, entry = list(parts), self.entries.get(position.sequence)
            if position.sequence and (entry is None or entry.position != position):
                raise Diverged(f"a base of entry {position.sequence}")
            self.bases[position] = content

    def since_base(self) -> tuple[int, int | None]:
        base = max(self.bases, default=Position(0, b"")).sequence
        newer = [entry for number, entry in sorted(self.entries.items()) if number > base]
        return sum(len(entry.body) for entry in newer), newer[0].made_us if newer else None

    def trim(self) -> None:
        oldest = sorted(self.bases)[-2:][0].sequence
        self.entries = {number: entry for number, entry in self.entries.items() if number > oldest}


def begin_log(log: MemoryControlLog, folder: Path, migrations: tuple[Migration, ...]) -> None:
    """What `cluster init` does: an ordinary database as the first base."""
    path = folder / "first.db"
    SqliteControlStore(path, migrations).close()
    with copy_parts(path) as (_, parts):
        log.put_base(Position(0, secrets.token_bytes(16)), parts)


def open_copy(
    log: MemoryControlLog, path: Path, migrations: tuple[Migration, ...], **more: object
) -> ReplicaControlStore:
    load(path, log)
    store = ReplicaControlStore(path, log, migrations, **more)  # type: ignore[arg-type]
    catch_up(store, log)
    return store


def catch_up(store: ReplicaControlStore, log: MemoryControlLog) -> None:
    while entries := log.read(store.position.sequence):
        store.apply(entries).result(60)


def lead(store: ReplicaControlStore, log: MemoryControlLog, number: int) -> None:
    """Fence every other process, and take office."""
    log.living = {number}
    catch_up(store, log)
    store.take_office(number).result(60)
