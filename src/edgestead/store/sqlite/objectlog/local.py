"""The object log on local files.

Owns  the order of things: start, leases, appends, bases, retirement, end.
Asks  `recovery` at the start; `writer`, `upkeep` and `directory` afterwards.
Tells `objects`, through the interface `ObjectLog`.
Not   the databases' contents, beyond whole pages; asyncio.

    folder/log/lock, catalogue.db, segment-0001.log …
    folder/data/<class>/<first two digits>/<id>.sqlite
"""

import contextlib
import heapq
import itertools
from collections.abc import Callable, Iterator

import apsw
import msgspec

from edgestead.store.objectlog import (
    COMMIT_BYTES_MAX,
    UNCHANGED,
    Alarm,
    CatalogueEntry,
    Commit,
    CommitKind,
    Fenced,
    Lease,
    LogError,
    LoggedCommit,
    NoSpace,
    ObjectRef,
    Unchanged,
    Unknown,
)
from edgestead.store.sqlite.objectlog.catalogue import Catalogue, SegmentRow
from edgestead.store.sqlite.objectlog.directory import Directory, Known
from edgestead.store.sqlite.objectlog.files import File, Files
from edgestead.store.sqlite.objectlog.format import (
    ENTRY_HEADER_BYTES,
    FOLDER_ID_BYTES,
    KIND_NAME,
    Record,
    pack_entry,
)
from edgestead.store.sqlite.objectlog.recovery import (
    Found,
    Recovered,
    Tail,
    fold,
    read_segments,
    recover,
    redo,
    select,
)
from edgestead.store.sqlite.objectlog.runner import Runner
from edgestead.store.sqlite.objectlog.upkeep import Upkeep
from edgestead.store.sqlite.objectlog.writer import GroupWriter, LocalGroup

SEGMENT_BYTES = 64 * 1024 * 1024


def catalogue_path(folder: str) -> str:
    return f"{folder}/log/catalogue.db"


def data_path(folder: str, ref: ObjectRef) -> str:
    """Where the database of an object is."""
    return f"{folder}/data/{ref.class_name}/{ref.id[:2]}/{ref.id}.sqlite"


def own_path(path: str) -> str:
    """Beside that, the database of an object that is durable by itself: recovery never touches it."""
    return path.removesuffix(".sqlite") + ".own.sqlite"


class LocalObjectLog:
    """`ObjectLog` on local files. Used from one thread; results come back on it.

    `fatal` is told of a failure after which only a new start can know what is durable; it should end the
    process. `random` gives bytes for the folder's identity.
    Raises (when opened) BlockingIOError when another process holds the folder, LogDamaged when an
    acknowledged record cannot be read, NoSpace when there is no room for a segment, OSError, apsw.Error.
    """

    def __init__(
        self,
        folder: str,
        *,
        files: Files,
        commits: Runner,
        upkeep: Runner,
        now_us: Callable[[], int],
        random: Callable[[int], bytes],
        fatal: Callable[[BaseException], None],
        vfs: str = "",
        segment_bytes: int = SEGMENT_BYTES,
    ) -> None:
        self._files, self._runners = files, (commits, upkeep)
        self._folder, self._log_folder, self._data_folder = folder, f"{folder}/log", f"{folder}/data"
        self._closed = self._retiring = False
        self._leased: dict[int, Known] = {}
        with contextlib.ExitStack() as undo:
            self._lock = self._open_folder(folder)
            undo.callback(self._lock.close)
            self._catalogue = self._open_catalogue(vfs, random(FOLDER_ID_BYTES), now_us())
            undo.callback(self._catalogue.close)
            files.sync_folder(self._log_folder)
            found = self._recover()
            self._directory = Directory(self._catalogue, found.objects.values(), found.oldest)
            self._upkeep = self._make_upkeep(found, upkeep, segment_bytes, fatal)
            self._writer = GroupWriter(
                commits, now_us, self._upkeep.next_segment, fatal, found.sequence, found.time_us
            )
            self._begin(upkeep)
            undo.pop_all()

    # the start

    def _open_folder(self, folder: str) -> File:
        for path in (self._log_folder, self._data_folder):
            self._files.make_folder(path)
        self._files.sync_folder(folder)
        return self._files.lock(f"{self._log_folder}/lock")

    def _open_catalogue(self, vfs: str, folder_id: bytes, made_us: int) -> Catalogue:
        try:
            return Catalogue(catalogue_path(self._folder), vfs, folder_id, made_us)
        except apsw.FullError as error:
            raise NoSpace("no space left for the object log's catalogue") from error

    def _recover(self) -> Found:
        """Redo every object, make that durable, write it down; then only tails keep segments live."""
        found = recover(self._files, self._log_folder, self._catalogue)
        for recovered in found.objects.values():
            redo(self._files, self._path(recovered.ref), recovered)
        self._files.sync_tree(self._data_folder)
        needed = [found.oldest[one.number] for one in found.objects.values() if one.base < one.head]
        needed_from = min(needed, default=self._catalogue.last_generation() + 1)
        retired = [row for row in found.used if row.generation < needed_from]
        found.used = [row for row in found.used if row.generation >= needed_from]
        self._catalogue.settle(
            [recovered.row() for recovered in found.objects.values()],
            [row.generation for row in (*retired, *found.unused)],
        )
        return found

    def _make_upkeep(
        self, found: Found, runner: Runner, segment_bytes: int, fatal: Callable[[BaseException], None]
    ) -> Upkeep:
        live = {row.slot for row in found.used}
        names = self._files.names(self._log_folder)
        free = [name for name in names if name.startswith("segment-") and name not in live]
        return Upkeep(
            self._files,
            self._log_folder,
            self._data_folder,
            self._catalogue,
            runner,
            segment_bytes=segment_bytes,
            generation=self._catalogue.last_generation(),
            sealed=found.used,
            free=free,
            on_spare=self._on_spare,
            fatal=fatal,
        )

    def _begin(self, upkeep: Runner) -> None:
        """Never write behind a torn tail: a new start begins a new segment."""
        self._upkeep.prepare_spare()
        upkeep.drain()
        self._writer.segment = self._upkeep.next_segment(0)
        if self._writer.segment is None:
            raise NoSpace("no space left for a segment of the object log")

    def _path(self, ref: ObjectRef) -> str:
        return data_path(self._folder, ref)

    # leases and commits

    def acquire(self, ref: ObjectRef) -> Lease:
        if self._writer.broken is not None:
            raise self._writer.broken
        known = self._directory.find(ref)
        if known.leased:  # whoever holds it has the tail, and perhaps commits that were never logged
            self.settle()
            known.stale = True
        if known.stale:
            self._reread(known)
        known.epoch += 1
        known.leased = True
        self._leased[known.number] = known
        tail, known.tail = known.tail, {}
        path = self._path(known.ref)
        return Lease(
            known.ref, known.number, known.epoch, path, known.has_file, known.head, known.alarm_us, tail
        )

    def _held(self, lease: Lease) -> Known:
        known = self._leased.get(lease.number)
        if known is None or known.epoch != lease.epoch:
            raise Fenced(f"object {lease.ref.class_name}/{lease.ref.id} is held by somebody else")
        return known

    def append(
        self, lease: Lease, head: int, commits: list[Commit], alarm: Alarm, *, upkeep: bool = False
    ) -> LocalGroup:
        known = self._held(lease)
        if head != known.head:
            raise Fenced(f"object {lease.ref.class_name}/{lease.ref.id} is at {known.head}, not at {head}")
        if self._writer.broken is not None:
            raise self._writer.broken
        if self._upkeep.full and not upkeep:
            raise NoSpace("no space left for the object log")
        if max(len(commit.body) for commit in commits) > COMMIT_BYTES_MAX:
            raise NoSpace(f"one transaction changed more than {COMMIT_BYTES_MAX} bytes of pages")
        group = self._writer.waiting
        if not known.named:
            self._name(known, group)
        for commit in commits:
            head += 1
            length = len(commit.body)
            if commit.kind is CommitKind.PAGES:
                known.has_file = True
            group.parts += (pack_entry(known.number, head, commit.kind, alarm, length), commit.body)
            group.bytes_total += ENTRY_HEADER_BYTES + length
        group.count += len(commits)
        group.members.append(known)
        known.head = lease.head = head
        if not isinstance(alarm, Unchanged):
            known.alarm_us = lease.alarm_us = alarm
        self._directory.note(known, self._upkeep.generation, alarm)
        return group

    @staticmethod
    def _name(known: Known, group: LocalGroup) -> None:
        ref = known.ref
        body = msgspec.msgpack.encode((ref.class_name, ref.id, ref.name))
        group.parts += (pack_entry(known.number, 0, KIND_NAME, UNCHANGED, len(body)), body)
        group.bytes_total += ENTRY_HEADER_BYTES + len(body)
        group.count += 1
        known.named = True

    def flush(self, *, inline: bool = False) -> None:
        self._writer.flush(inline=inline)

    def put_base(self, lease: Lease, position: int) -> None:
        known = self._held(lease)
        if known.base != position:
            known.base = position
            self._directory.touched[known.number] = known
        if position == known.head:
            self._directory.unbased.pop(known.number, None)
            self._retire()

    def release(self, lease: Lease, tail: Tail, *, rebuild: bool = False) -> None:
        known = self._held(lease)
        known.leased = False
        del self._leased[known.number]
        known.tail = tail
        known.stale = known.stale or rebuild
        self._directory.forget(known)

    def _reread(self, known: Known) -> None:
        """Make an object again from catalogue and log: commits that were refused are in its file."""
        rows = [*self._upkeep.sealed]
        if self._upkeep.active is not None:
            rows.append(self._upkeep.active.row)
        objects: dict[int, Recovered] = {}
        names: dict[int, ObjectRef] = {}
        for _, entry in select(self._records(rows), known.number):
            fold(objects, names, self._catalogue.numbered, entry)
        found = objects.get(known.number) or self._unlogged(known)
        redo(self._files, self._path(known.ref), found)
        self._directory.restore(known, found)

    def _unlogged(self, known: Known) -> Recovered:
        row = self._catalogue.numbered(known.number)
        if row is None:
            return Recovered(known.number, known.ref, 0, 0, False, None, {})
        return Recovered(row.number, row.ref, row.head, row.base, row.has_file, row.alarm_us, {})

    def _records(self, rows: list[SegmentRow]) -> Iterator[tuple[SegmentRow, Record]]:
        return read_segments(self._files, self._log_folder, self._catalogue.folder_id, rows)

    # upkeep

    def _on_spare(self) -> None:
        self._writer.flush()

    def tend(self) -> None:
        if self._upkeep.spare is None:
            self._upkeep.prepare_spare()
        self._retire()

    def _retire(self) -> None:
        """Drop sealed segments that no base needs, once everything said of the objects is durable."""
        if self._retiring or self._closed or not self._upkeep.sealed:
            return
        needed_from = self._directory.needed_from(self._upkeep.generation)
        if needed_from <= self._upkeep.sealed[0].generation:
            return
        self._retiring = True
        rows = self._directory.rows()

        def written(error: LogError | None) -> None:
            if error is not None or not self._upkeep.retire(needed_from, rows, done):
                self._retiring = False

        def done(settled: bool) -> None:
            self._retiring = False
            if settled:
                self._directory.settled(rows)

        group = self._writer.waiting if self._writer.waiting.count else self._writer.in_flight
        if group is None:
            written(None)
        else:
            group.on_done(written)
            self._writer.flush()

    def holding_back(self, limit: int) -> list[ObjectRef]:
        sealed = self._upkeep.sealed
        if not sealed:
            return []
        return self._directory.unbased_upto(sealed[-1].generation, limit)

    @property
    def sealed_segments(self) -> int:
        """How many full segments wait for their objects."""
        return len(self._upkeep.sealed)

    @property
    def read_only(self) -> bool:
        return self._upkeep.full or self._writer.broken is not None

    # what is known

    def read(self, ref: ObjectRef, after: int, upto: int) -> Iterator[LoggedCommit]:
        known = self._directory.existing(ref)
        if known is None:
            raise Unknown(f"object {ref.class_name}/{ref.id} was never written")
        wanted = after + 1
        for time_us, entry in select(self._records(self._live()), known.number):
            if entry.kind == KIND_NAME or not after < entry.position <= upto:
                continue
            if entry.position != wanted:
                break
            wanted += 1
            commit = Commit(CommitKind(entry.kind), bytes(entry.body))
            yield LoggedCommit(entry.position, time_us, commit, entry.alarm)
        if wanted <= min(upto, known.head):
            raise Unknown(f"commit {wanted} of {ref.class_name}/{ref.id} is not in the log any more")

    def position_at(self, ref: ObjectRef, time_us: int) -> int:
        known = self._directory.existing(ref)
        if known is None:
            raise Unknown(f"object {ref.class_name}/{ref.id} was never written")
        found: int | None = None
        for written_us, entry in select(self._records(self._live()), known.number):
            if entry.kind == KIND_NAME:
                continue
            if found is None and entry.position == 1:
                found = 0
            if written_us > time_us:
                break
            found = entry.position
        if found is None:
            raise Unknown(f"no commit of {ref.class_name}/{ref.id} that old is in the log any more")
        return found

    def _live(self) -> list[SegmentRow]:
        self.settle()
        active = self._upkeep.active
        return [*self._upkeep.sealed, *((active.row,) if active else ())]

    def catalogue(self) -> Iterator[CatalogueEntry]:
        newer = {(known.ref.class_name, known.ref.id): known for known in self._directory.touched.values()}
        fresh = [CatalogueEntry(k.ref, k.head, k.base, k.alarm_us) for k in newer.values()]
        fresh.sort(key=_by_name)
        merged = heapq.merge(fresh, self._catalogue.entries(), key=_by_name)
        for _, entries in itertools.groupby(merged, key=_by_name):
            yield next(entries)  # of equal names the one from memory comes first

    @property
    def on_alarm(self) -> Callable[[int], None]:
        return self._directory.on_alarm

    @on_alarm.setter
    def on_alarm(self, callback: Callable[[int], None]) -> None:
        self._directory.on_alarm = callback

    def due_alarms(self, before_us: int, limit: int) -> list[tuple[int, ObjectRef]]:
        return self._with_refs(self._directory.due_alarms(before_us, limit))

    def take_alarms(self, before_us: int, limit: int) -> list[tuple[int, ObjectRef]]:
        return self._with_refs(self._directory.take_alarms(before_us, limit))

    def _with_refs(self, alarms: list[tuple[int, int]]) -> list[tuple[int, ObjectRef]]:
        found = ((time_us, self._directory.numbered(number)) for time_us, number in alarms)
        return [(time_us, known.ref) for time_us, known in found if known is not None]

    def give_back(self, ref: ObjectRef) -> None:
        known = self._directory.existing(ref)
        if known is not None:
            self._directory.give_back(known.number)

    def next_alarm_us(self) -> int | None:
        return self._directory.next_alarm_us()

    # the end

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        if self._writer.broken is None:
            self.settle()
            self._settle_all()
        for runner in self._runners:
            runner.close()
        self._upkeep.close()
        self._catalogue.close()
        self._lock.close()

    def settle(self) -> None:
        # a group may itself wait for the spare segment
        while True:
            self._writer.flush()
            for runner in self._runners:
                runner.drain()
            if self._writer.idle or self._writer.broken is not None:
                return

    def _settle_all(self) -> None:
        """Leave no segment that the next start would have to read, tails apart."""
        self._files.sync_tree(self._data_folder)
        needed_from = self._directory.needed_from(self._catalogue.last_generation() + 1)
        gone = [row.generation for row in self._catalogue.segments() if row.generation < needed_from]
        self._catalogue.settle(self._directory.rows(), gone)


def _by_name(entry: CatalogueEntry) -> tuple[str, str]:
    return (entry.ref.class_name, entry.ref.id)
