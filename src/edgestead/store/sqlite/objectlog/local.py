"""The object log on local files.

Owns  the order of things: start, leases, appends, bases, retirement, end.
Asks  `opening` at the start; `writer`, `upkeep`, `directory` and `chronicle` afterwards.
Tells `objects`, through the interface `ObjectLog`.
Not   the databases' contents, beyond whole pages; asyncio.

    folder/log/lock, catalogue.db, history.db, segment-0001.log …
    folder/data/<class>/<first two digits>/<id>.sqlite
"""

import contextlib
import heapq
import itertools
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

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
    LoggedPosition,
    NoSpace,
    ObjectRef,
    ObjectState,
    Progress,
    Restored,
    Target,
    Told,
    Unchanged,
    Unknown,
)
from edgestead.store.sqlite.objectlog.adoption import check_identity
from edgestead.store.sqlite.objectlog.archive import Archive, Durable
from edgestead.store.sqlite.objectlog.catalogue import SegmentRow, Tail
from edgestead.store.sqlite.objectlog.chronicle import Chronicle
from edgestead.store.sqlite.objectlog.directory import Directory, Known
from edgestead.store.sqlite.objectlog.files import Files
from edgestead.store.sqlite.objectlog.format import (
    ENTRY_HEADER_BYTES,
    FOLDER_ID_BYTES,
    KIND_NAME,
    KIND_PIN,
    Record,
    pack_entry,
)
from edgestead.store.sqlite.objectlog.history import History
from edgestead.store.sqlite.objectlog.opening import (
    begin_past,
    open_catalogue,
    open_folder,
    open_history,
    redo_all,
)
from edgestead.store.sqlite.objectlog.past import Past
from edgestead.store.sqlite.objectlog.paths import (
    catalogue_path,
    data_folder,
    data_path,
    history_path,
    keep_path,
    log_folder,
)
from edgestead.store.sqlite.objectlog.recovery import (
    Found,
    Recovered,
    fold,
    of_row,
    read_segments,
    redo,
    select,
)
from edgestead.store.sqlite.objectlog.restoring import read_file, restoring_commits, write_frames
from edgestead.store.sqlite.objectlog.runner import Runner
from edgestead.store.sqlite.objectlog.thinning import Keeping
from edgestead.store.sqlite.objectlog.upkeep import Upkeep
from edgestead.store.sqlite.objectlog.writer import GroupWriter, LocalGroup

SEGMENT_BYTES = 64 * 1024 * 1024
KEEPING = Keeping()
T = TypeVar("T")


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
        past: Runner | None = None,
        keeping: Keeping = KEEPING,
        clock: Callable[[], float] | None = None,
    ) -> None:
        self._files, self._runners, self._past_runner = files, (commits, upkeep), past or upkeep
        self.folder, self._log_folder, self._data_folder = folder, log_folder(folder), data_folder(folder)
        self._closed = self._retiring = False
        self._leased: dict[int, Known] = {}
        with contextlib.ExitStack() as undo:
            self._lock = open_folder(files, folder)
            undo.callback(self._lock.close)
            self._catalogue = open_catalogue(folder, vfs, random(FOLDER_ID_BYTES), now_us())
            undo.callback(self._catalogue.close)
            self._identity = check_identity(files, self._log_folder, self._catalogue)
            history = open_history(folder, vfs)
            undo.callback(history.close)
            files.sync_folder(self._log_folder)
            self._chronicle = self._make_chronicle(history, keeping, now_us)
            found = redo_all(files, folder, self._catalogue, self._chronicle.needed_from)
            if not history.has_begun:
                begin_past(files, folder, self._catalogue, history, self.life, now_us())
            self._directory = Directory(self._catalogue, found.objects.values(), found.oldest)
            self._upkeep = self._make_upkeep(found, upkeep, segment_bytes, fatal)
            self._writer = GroupWriter(
                commits,
                now_us,
                self._upkeep.next_segment,
                self._upkeep.look_for_space,
                fatal,
                found.sequence,
                max(found.time_us, self._chronicle.cursor.time_us),  # of segments that are gone, too
                clock,
            )
            self._begin(upkeep)
            undo.pop_all()
        self._chronicle.follow()

    # the start

    def _make_chronicle(self, history: History, keeping: Keeping, now_us: Callable[[], int]) -> Chronicle:
        folder_id = self._catalogue.folder_id
        archive = Archive(history, self._files, self._log_folder, folder_id, self._identity.life_of)
        return Chronicle(history, archive, self._past_runner, self._durable, self._retire, keeping, now_us)

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
        return data_path(self.folder, ref)

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
            known.ref,
            known.number,
            known.epoch,
            path,
            known.has_file,
            known.head,
            known.alarm_us,
            tail,
            known.session,
            known.pending,
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
        for commit in commits:
            if len(commit.body) > COMMIT_BYTES_MAX:
                raise NoSpace(f"one transaction changed more than {COMMIT_BYTES_MAX} bytes of pages")
        group = self._writer.waiting
        if not known.named:
            self._name(known, group)
        for commit in commits:
            head += 1
            length = len(commit.body)
            if commit.kind is not CommitKind.KEYS:
                self._note_kind(known, lease, commit)
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
    def _note_kind(known: Known, lease: Lease, commit: Commit) -> None:
        if commit.kind is CommitKind.PAGES:
            known.has_file = True
        elif commit.kind is CommitKind.RESTORE:
            known.pending = lease.pending = msgspec.msgpack.decode(commit.body, type=Target | None)
        elif commit.kind is CommitKind.RESTORED:
            known.session = lease.session = msgspec.msgpack.decode(commit.body, type=Restored).session
            known.pending = lease.pending = None

    def pin(self, lease: Lease, position: int) -> LocalGroup | None:
        known = self._held(lease)
        if self._writer.broken is not None:
            raise self._writer.broken
        if position == known.pinned or not known.named:
            return None
        if self._upkeep.full:
            raise NoSpace("no space left for the object log")
        known.pinned = position
        group = self._writer.waiting
        group.add(pack_entry(known.number, position, KIND_PIN, UNCHANGED, 0))
        group.members.append(known)
        return group

    @staticmethod
    def _name(known: Known, group: LocalGroup) -> None:
        ref = known.ref
        body = msgspec.msgpack.encode((ref.class_name, ref.id, ref.name))
        group.add(pack_entry(known.number, 0, KIND_NAME, UNCHANGED, len(body)), body)
        known.named = True

    def flush(self, *, inline: bool = False) -> None:
        self._writer.flush(inline=inline)

    @property
    def syncs_quickly(self) -> bool:
        return self._writer.syncs_quickly

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
            return Recovered(known.number, known.ref, 0, 0, False, None)
        found = of_row(row)
        found.head = row.head
        return found

    def _records(self, rows: list[SegmentRow]) -> Iterator[tuple[SegmentRow, Record]]:
        return read_segments(self._files, self._log_folder, self._catalogue.folder_id, rows)

    # upkeep

    def _on_spare(self) -> None:
        self._writer.flush()

    def tend(self) -> None:
        if self._upkeep.spare is None or self._upkeep.full:
            self._upkeep.look_for_space()
        self._retire()
        self._chronicle.tend()

    def look_for_space(self) -> None:
        self._upkeep.look_for_space()

    def _retire(self) -> None:
        """Drop sealed segments that no base needs, once everything said of the objects is durable."""
        if self._retiring or self._closed or not self._upkeep.sealed:
            return
        if self._chronicle.needed_from <= self._upkeep.sealed[-1].generation:
            self._chronicle.follow()  # which comes back here, perhaps at once
            if self._retiring or not self._upkeep.sealed:
                return
        needed_from = self._directory.needed_from(self._upkeep.generation)
        needed_from = min(needed_from, self._chronicle.needed_from)
        if needed_from <= self._upkeep.sealed[0].generation:
            return
        try:
            keep = self._files.lock(keep_path(self.folder))
        except BlockingIOError:
            return  # somebody copies the folder: every segment from before is needed to make the copy whole
        self._retiring = True
        rows = self._directory.rows()

        def written(error: LogError | None) -> None:
            if error is not None or not self._upkeep.retire(needed_from, rows, done):
                keep.close()
                self._retiring = False

        def done(settled: bool) -> None:
            keep.close()
            self._retiring = False
            if settled:
                self._directory.settled(rows)

        self._writer.when_decided(written)

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

    def copy_books(self, folder: str, done: Told[None]) -> None:
        """Copy history, then the catalogue, to where they are in `folder`; each as it is at one moment.

        With the segments, copied afterwards, and whatever was in the databases' files meanwhile, that is a
        folder as a crash leaves one, provided that no segment went since the copying began (`keep_path`).
        """

        def history_copied(_: None, error: LogError | None) -> None:
            if error is not None:
                done(None, error)
            else:
                self._runners[1].run(lambda: self._catalogue.copy(catalogue_path(folder)), copied)

        def copied(_: Any, error: Exception | None) -> None:
            done(None, None if error is None else LogError(f"the catalogue cannot be copied: {error}"))

        self._chronicle.copy(history_path(folder), history_copied)

    # what is known

    def read(self, ref: ObjectRef, after: int, upto: int) -> list[LoggedPosition]:
        number = self._existing(ref).number
        return self._asked(lambda past: past.positions(number, after, upto))

    def position_at(self, ref: ObjectRef, time_us: int) -> int:
        number = self._existing(ref).number
        return self._asked(lambda past: past.at_time(number, time_us)).position

    def _existing(self, ref: ObjectRef) -> Known:
        known = self._directory.existing(ref)
        if known is None:
            raise Unknown(f"object {ref.class_name}/{ref.id} was never written")
        return known

    def _asked(self, job: Callable[[Past], T]) -> T:
        """A question to history, answered on this thread."""
        answer: list[tuple[Any, LogError | None]] = []
        self.settle()
        self._chronicle.ask(job, lambda result, error: answer.append((result, error)))
        self._past_runner.drain()
        result, error = answer[0]
        if error is not None:
            raise error
        return result  # type: ignore[no-any-return]

    def _ask(self, ref: ObjectRef, job: Callable[[Past, int], T], done: Told[T]) -> None:
        """Have `job(past, number)` run when history has every durable commit."""
        try:
            number = self._existing(ref).number
        except Unknown as error:
            done(None, error)
            return
        self._chronicle.ask(lambda past: job(past, number), done)

    def locate(self, ref: ObjectRef, target: Target, generation: int, done: Told[LoggedPosition]) -> None:
        self._ask(ref, lambda past, number: past.find(number, target, generation), done)

    def locate_time(self, ref: ObjectRef, time_us: int, done: Told[LoggedPosition]) -> None:
        self._ask(ref, lambda past, number: past.at_time(number, time_us), done)

    def moments(
        self, ref: ObjectRef, since_us: int, until_us: int, limit: int, done: Told[list[LoggedPosition]]
    ) -> None:
        self._ask(ref, lambda past, number: past.moments(number, since_us, until_us, limit), done)

    def recall(
        self, ref: ObjectRef, target: Target, generation: int, done: Told[tuple[LoggedPosition, ObjectState]]
    ) -> None:
        def job(past: Past, number: int) -> tuple[LoggedPosition, ObjectState]:
            found = past.find(number, target, generation)
            return found, past.state(number, found.position)

        self._ask(ref, job, done)

    def check_past(self, ref: ObjectRef, done: Told[list[str]]) -> None:
        head = self._existing(ref).head

        def durable(error: LogError | None) -> None:
            if error is None:
                self._ask(ref, lambda past, number: past.check(number, head), done)
            else:
                done(None, error)

        self._writer.when_decided(durable)  # what is on its way is no damage

    def _durable(self) -> list[Durable]:
        """The live segments, and how far each is durable."""
        found = [Durable(row, row.bytes_total, True) for row in self._upkeep.sealed]
        active = self._upkeep.active
        return [*found, *((Durable(active.row, active.offset, False),) if active else ())]

    @property
    def life(self) -> int:
        """The generation of bookmarks that are handed out now."""
        return self._identity.life

    @property
    def progress(self) -> Progress:
        in_flight = self._writer.in_flight
        waiting = self._writer.waiting.count + (in_flight.count if in_flight else 0)
        return Progress(self._writer.groups, self._writer.records, waiting)

    @property
    def history_bytes(self) -> int:
        """What the past takes on disk."""
        return self._chronicle.bytes_total

    # going back

    def pending(self, ref: ObjectRef) -> Target | None:
        return self._directory.find(ref).pending

    def restore(self, lease: Lease, state: ObjectState, done: Callable[[LogError | None], None]) -> None:
        current = b"" if not lease.has_file else read_file(self._files, lease.path)
        commits = restoring_commits(current, state, lease.session + 1)
        group = self.append(lease, lease.head, commits, state.alarm_us)

        def durable(error: LogError | None) -> None:
            if error is None:
                for commit in commits:
                    if commit.kind is CommitKind.PAGES:
                        write_frames(self._files, lease.path, commit.body)
                if not state.tail:
                    self.put_base(lease, lease.head)
            done(error)

        group.on_done(durable)
        self.flush()

    def find(self, ref: ObjectRef) -> CatalogueEntry | None:
        known = self._directory.existing(ref)
        return None if known is None else CatalogueEntry(known.ref, known.head, known.base, known.alarm_us)

    def catalogue(self, after: tuple[str, str] = ("", "")) -> Iterator[CatalogueEntry]:
        newer = {(known.ref.class_name, known.ref.id): known for known in self._directory.touched.values()}
        fresh = [CatalogueEntry(k.ref, k.head, k.base, k.alarm_us) for k in newer.values()]
        fresh = sorted((entry for entry in fresh if _by_name(entry) > after), key=_by_name)
        merged = heapq.merge(fresh, self._catalogue.entries(after), key=_by_name)
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
            self._past_runner.drain()
            self._chronicle.finish(self._catalogue.last_generation() + 1)
            self._settle_all()
        for runner in dict.fromkeys((*self._runners, self._past_runner)):
            runner.close()
        self._upkeep.close()
        self._chronicle.close()
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
        needed_from = min(needed_from, self._chronicle.needed_from)
        gone = [row.generation for row in self._catalogue.segments() if row.generation < needed_from]
        self._catalogue.settle(self._directory.rows(), gone)


def _by_name(entry: CatalogueEntry) -> tuple[str, str]:
    return (entry.ref.class_name, entry.ref.id)
