"""The object log on local files.

Owns  the sequence of start, leases, appends, bases, retirement and closing.
Not   the databases' contents, beyond whole pages; the past (`questions`); asyncio.

    folder/log/lock, catalogue.db, history.db, segment-0001.log …
    folder/data/<class>/<first two digits>/<id>.sqlite
"""

import contextlib
import itertools
import logging
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import apsw
import msgspec

from edgestead.sqlite.objectlog.adoption import check_identity
from edgestead.sqlite.objectlog.archive import Archive, Durable
from edgestead.sqlite.objectlog.checking import check_durable
from edgestead.sqlite.objectlog.chronicle import Chronicle
from edgestead.sqlite.objectlog.directory import Directory, Known
from edgestead.sqlite.objectlog.format import (
    ENTRY_HEADER_BYTES,
    FOLDER_ID_BYTES,
    KIND_NAME,
    KIND_PIN,
    pack_entry,
)
from edgestead.sqlite.objectlog.history import History
from edgestead.sqlite.objectlog.opening import (
    begin_past,
    find_mark,
    lock_keep,
    open_catalogue,
    open_folder,
    open_history,
    open_mark,
    redo_all,
)
from edgestead.sqlite.objectlog.paths import (
    catalogue_path,
    data_folder,
    data_path,
    history_path,
    keep_path,
    log_folder,
)
from edgestead.sqlite.objectlog.questions import LocalPast
from edgestead.sqlite.objectlog.recovery import Found, read_one, redo
from edgestead.sqlite.objectlog.upkeep import Upkeep
from edgestead.sqlite.objectlog.watermark import NOWHERE
from edgestead.sqlite.objectlog.writer import GroupWriter, LocalGroup
from edgestead.store.files import Files
from edgestead.store.history.thinning import Keeping
from edgestead.store.migrations import Doing, quiet
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
    NoSpace,
    ObjectRef,
    Progress,
    Restored,
    Tail,
    Target,
    Told,
    Unchanged,
)
from edgestead.store.objects import ObjectStore
from edgestead.store.runner import Runner

SEGMENT_BYTES = 64 * 1024 * 1024
KEEPING = Keeping()
_unpack_target = msgspec.msgpack.Decoder(Target | None).decode
_unpack_restored = msgspec.msgpack.Decoder(Restored).decode
log = logging.getLogger(__name__)


class LocalObjectLog:
    """`Log` on local files, with `past`, alarms and `room`. Used from one thread; results come back on it.

    `fatal` is called after a failure that leaves unknown what is durable until a restart; it should end the
    process. `random` returns bytes for the folder's identity. `doing` is called at each step of the recovery,
    and of an upgrade before it.
    Raises (when opened) BlockingIOError when another process has the folder, LogDamaged when an
    acknowledged record cannot be read, NoSpace when there is no space for a segment, OSError, apsw.Error.
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
        doing: Doing = quiet,
    ) -> None:
        self._files, self._runners, self._past_runner = files, (commits, upkeep), past or upkeep
        self.folder, self._log_folder, self._data_folder = folder, log_folder(folder), data_folder(folder)
        self.is_closed = self._retiring = False
        self.is_left = False  # whoever copies the folder cannot use the copy: it is dealt out, and goes
        with contextlib.ExitStack() as undo:
            self._lock = open_folder(files, folder)
            undo.callback(self._lock.close)
            self._catalogue = open_catalogue(files, folder, vfs, random(FOLDER_ID_BYTES), now_us(), doing)
            undo.callback(self._catalogue.close)
            self._identity = check_identity(files, self._log_folder, self._catalogue)
            history = open_history(folder, vfs, doing)
            undo.callback(history.close)
            mark = find_mark(files, folder, self._catalogue, self.life)
            self._chronicle = self._make_chronicle(history, keeping, now_us)
            found = redo_all(
                files, folder, self._catalogue, self._chronicle.needed_from, mark or NOWHERE, doing
            )
            self._mark = open_mark(files, folder, self._catalogue, self.life, mark)
            undo.callback(self._mark.close)
            if not history.has_begun:
                begin_past(files, folder, self._catalogue, history, self.life, now_us())
            self._directory = Directory(self._catalogue, found.objects.values(), found.oldest)
            self._upkeep = self._make_upkeep(found, upkeep, segment_bytes)
            self._writer = GroupWriter(
                commits,
                now_us,
                self._upkeep.next_segment,
                self._upkeep.look_for_space,
                self._mark.move,
                fatal,
                found.sequence,
                max(found.time_us, self._chronicle.cursor.time_us),  # of segments that are gone, too
                clock,
            )
            self._begin(upkeep)
            undo.pop_all()
        self._chronicle.follow()
        self.past = LocalPast(self._directory, self._writer, self._chronicle, files, self._look_at_records)
        self.room = LocalRoom(self._upkeep, self._writer)

    @property
    def store(self) -> ObjectStore:
        """The log as the interfaces' `Objects`."""
        return ObjectStore(self, self.past, self._directory.alarms, self.room)

    # the start

    def _make_chronicle(self, history: History, keeping: Keeping, now_us: Callable[[], int]) -> Chronicle:
        folder_id = self._catalogue.folder_id
        archive = Archive(history, self._files, self._log_folder, folder_id, self._identity.life_of)
        return Chronicle(history, archive, self._past_runner, self._durable, self._retire, keeping, now_us)

    def _make_upkeep(self, found: Found, runner: Runner, segment_bytes: int) -> Upkeep:
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
            on_spare=lambda: self._writer.flush(),
            fatal=lambda error: self._writer.fail(error),
        )

    def _begin(self, upkeep: Runner) -> None:
        """Never write behind a torn tail: a new start begins a new segment."""
        self._upkeep.prepare_spare()
        upkeep.drain()
        self._writer.segment = self._upkeep.next_segment(0)
        if self._writer.segment is None:
            raise NoSpace("no space left for a segment of the object log")

    # leases and commits

    def acquire(self, ref: ObjectRef, done: Told[Lease]) -> None:
        try:
            lease = self.lease(ref)
        except LogError as error:
            done(None, error)
        except (OSError, apsw.Error) as error:  # of a database that is made again, on a full disk, say
            done(None, LogError(f"{ref.class_name}/{ref.id} cannot be read again: {error}"))
        else:
            done(lease, None)

    def lease(self, ref: ObjectRef) -> "LocalLease":
        """The answer of `acquire`. Raises LogError, OSError, apsw.Error."""
        if self._writer.broken is not None:
            raise self._writer.broken
        known = self._directory.find(ref)
        if known.leased:  # the lease's owner has the tail, and perhaps commits that were never logged
            self.settle()
            known.stale = True
        if known.stale:
            self._reread(known)
        known.epoch += 1
        known.leased = True
        return LocalLease(self, known, data_path(self.folder, known.ref))

    def _check_room(self, *, upkeep: bool = False) -> None:
        """Raises LogBroken or NoSpace when appending is not possible."""
        if self._writer.broken is not None:
            raise self._writer.broken
        if self._upkeep.full and not upkeep:
            raise NoSpace("no space left for the object log")

    def _begin_entry(self, known: Known) -> LocalGroup:
        """The waiting group, for an entry of an object."""
        group = self._writer.begin_entry()
        if not known.named:
            ref = known.ref
            body = msgspec.msgpack.encode((ref.class_name, ref.id, ref.name))
            group.add(pack_entry(known.number, 0, KIND_NAME, UNCHANGED, len(body)), body)
            known.named = True
        group.members.append(known)
        return group

    def _alarm_decided(self, known: Known, group: LocalGroup, error: LogError | None) -> None:
        """A refused one is due now: whoever looks reads which one the log has."""
        if isinstance(error, NoSpace):
            self._directory.alarms.set(known.number, group.time_us)

    def flush(self, *, here: bool = False) -> None:
        self._writer.flush(inline=here)

    @property
    def is_quick(self) -> bool:
        return self._writer.syncs_quickly

    def _reread(self, known: Known) -> None:
        """Rebuild an object from catalogue and log, because its file contains refused commits."""
        rows = [durable.row for durable in self._durable()]
        found = read_one(self._files, self._log_folder, self._catalogue, rows, known.number, known.ref)
        redo(self._files, data_path(self.folder, known.ref), found)
        self._directory.restore(known, found)

    # upkeep

    def tend(self) -> None:
        """Do deferred work: look for free space again, shorten the log. To be called about every second."""
        if self._upkeep.spare is None or self._upkeep.full:
            self._upkeep.look_for_space()
        self._retire()
        self._chronicle.tend()
        self._runners[1].run(self._mark.sync, lambda _, error: None)

    def _retire(self) -> None:
        """Drop sealed segments that no base needs, once all commits of the objects are durable."""
        if self._retiring or self.is_closed or not self._upkeep.sealed:
            return
        if self._chronicle.needed_from <= self._upkeep.sealed[-1].generation:
            self._chronicle.follow()  # which calls this method again, perhaps immediately
            if self._retiring or not self._upkeep.sealed:
                return
        needed_from = self._directory.needed_from(self._upkeep.generation)
        needed_from = min(needed_from, self._chronicle.needed_from)
        if needed_from <= self._upkeep.sealed[0].generation or not self._know_all():
            return
        try:
            keep = self._files.lock(keep_path(self.folder))
        except BlockingIOError:
            return  # the folder is being copied: the copy needs every segment from before
        except OSError as error:  # no descriptor is left, say: whoever put its base here is not to blame
            log.warning("segments stay: %s", error)
            return
        self._retiring = True
        rows = self._directory.rows()

        def written(error: LogError | None) -> None:
            if error is None:
                self._upkeep.retire(needed_from, rows, done)
            else:
                done(False)

        def done(settled: bool) -> None:
            keep.close()
            self._retiring = False
            if settled:
                self._directory.settled(rows)

        self._writer.when_decided(written)

    def _know_all(self) -> bool:
        """Read objects with refused commits from the log again, before the segments with their state are
        dropped.

        False while one of them is leased, or its database cannot be written: then the segments stay.
        """
        for known in self._directory.stale():
            if known.leased:
                return False
            try:
                self._reread(known)
            except (LogError, OSError, apsw.Error) as error:
                log.warning("segments stay for %s/%s: %s", known.ref.class_name, known.ref.id, error)
                return False
        return True

    def lagging(self, limit: int) -> list[ObjectRef]:
        sealed = self._upkeep.sealed
        if not sealed:
            return []
        return self._directory.unbased_upto(sealed[-1].generation, limit)

    @property
    def sealed_segments(self) -> int:
        """How many full segments wait for their objects."""
        return len(self._upkeep.sealed)

    # only for the code that opened the log

    def copy_books(self, folder: str, done: Told[None]) -> None:
        """Copy history, then the catalogue, to where they are in `folder`; each as it is at one moment.

        With the segments, copied afterwards up to `durable_ends`, and the databases' files in any state from
        before, this equals a folder after a crash, if no segment was removed since the copy began
        (`keep_path`).
        """

        def history_copied(_: None, error: LogError | None) -> None:
            if error is not None:
                done(None, error)
            else:
                self._runners[1].run(lambda: self._catalogue.copy(catalogue_path(folder)), copied)

        def copied(_: Any, error: Exception | None) -> None:
            done(None, None if error is None else LogError(f"the catalogue cannot be copied: {error}"))

        self._chronicle.copy(history_path(folder), history_copied)

    def durable_ends(self) -> dict[str, int]:
        """How many bytes of each segment that has records are durable now, by its file's name."""
        return {one.row.slot: one.upto for one in self._durable()}

    def _durable(self) -> list[Durable]:
        """The live segments, and how far each is durable."""
        found = [Durable(row, row.bytes_total, True) for row in self._upkeep.sealed]
        active = self._upkeep.active
        return [*found, *((Durable(active.row, active.offset, False),) if active else ())]

    def _look_at_records(self) -> Callable[[], list[str]]:
        """A function for another thread that returns the faults in the records that are durable now."""
        return partial(
            check_durable, self._files, self._log_folder, self._catalogue.folder_id, self._durable()
        )

    @property
    def life(self) -> int:
        """The generation of new bookmarks."""
        return self._identity.life

    @property
    def progress(self) -> Progress:
        in_flight = self._writer.in_flight
        waiting = self._writer.waiting.count + (in_flight.count if in_flight else 0)
        return Progress(self._writer.groups, self._writer.records, waiting)

    @property
    def history_bytes(self) -> int:
        """The size of the history on disk."""
        return self._chronicle.bytes_total

    @property
    def is_history_damaged(self) -> bool:
        """Whether a part of the history could not be read, since the start."""
        return self._chronicle.is_damaged

    def may_answer(self) -> bool:
        return True  # nobody else can have the folder

    def find(self, ref: ObjectRef, done: Told[CatalogueEntry]) -> None:
        known = self._directory.existing(ref)
        done(None if known is None else known.entry(), None)

    def catalogue(self, after: tuple[str, str], limit: int, done: Told[list[CatalogueEntry]]) -> None:
        done(list(itertools.islice(self.entries(after), limit)), None)

    def entries(self, after: tuple[str, str] = ("", "")) -> Iterator[CatalogueEntry]:
        """Every object behind that class and id, in this order."""
        return self._directory.entries(after)

    def has(self, ref: ObjectRef) -> bool:
        return self._directory.existing(ref) is not None

    def has_any(self, class_name: str) -> bool:
        first = next(self.entries((class_name, "")), None)
        return first is not None and first.ref.class_name == class_name

    # the end

    def close(self) -> None:
        if self.is_closed:
            return
        self.is_closed = True
        if self._writer.broken is None:
            self.settle()
            self._past_runner.drain()
            self._chronicle.finish(self._catalogue.last_generation() + 1)
            self._settle_all()
        for runner in dict.fromkeys((*self._runners, self._past_runner)):
            runner.close()
        self._upkeep.close()
        self._mark.close()
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
        """Retire every segment that the next start would have to read, except for tails.

        On a full disk it reads them, and where the folder is being copied.
        """
        try:
            if self._know_all():
                self._settle()
        except (OSError, apsw.FullError) as error:
            log.error("the object log is not shortened, the next start reads it: %s", error)

    def _settle(self) -> None:
        keep = lock_keep(self._files, self.folder)
        if keep is None and not self.is_left:
            return
        try:
            self._settle_now()
        finally:
            if keep is not None:
                keep.close()

    def _settle_now(self) -> None:
        self._files.sync_tree(self._data_folder)
        needed_from = self._directory.needed_from(self._catalogue.last_generation() + 1)
        needed_from = min(needed_from, self._chronicle.needed_from)
        gone = [row.generation for row in self._catalogue.segments() if row.generation < needed_from]
        self._catalogue.settle(self._directory.rows(), gone)


class LocalRoom:
    """The disk space for the log and for the databases next to it."""

    def __init__(self, upkeep: Upkeep, writer: GroupWriter) -> None:
        self._upkeep, self._writer = upkeep, writer

    @property
    def is_full(self) -> bool:
        return self._upkeep.full or self._writer.broken is not None

    def look(self) -> None:
        self._upkeep.look_for_space()


class LocalLease:
    """A `Lease` of a `LocalObjectLog`. It ends when its object's epoch changes."""

    __slots__ = (
        "_epoch",
        "_known",
        "_log",
        "alarm_us",
        "has_file",
        "head",
        "life",
        "path",
        "pending",
        "ref",
        "session",
        "tail",
    )

    def __init__(self, log: LocalObjectLog, known: Known, path: str) -> None:
        """Takes over the object's tail."""
        self._log, self._known, self._epoch = log, known, known.epoch
        self.ref, self.path, self.life = known.ref, path, log.life
        self.has_file, self.head, self.alarm_us = known.has_file, known.head, known.alarm_us
        self.session, self.pending = known.session, known.pending
        self.tail, known.tail = known.tail, {}

    def _check(self) -> None:
        if self._known.epoch != self._epoch:
            raise Fenced(f"object {self.ref.class_name}/{self.ref.id} is held by somebody else")

    def append(self, commits: list[Commit], alarm: Alarm, *, upkeep: bool = False) -> LocalGroup:
        self._check()
        known, log = self._known, self._log
        log._check_room(upkeep=upkeep)
        for commit in commits:
            if len(commit.body) > COMMIT_BYTES_MAX:
                raise NoSpace(f"one transaction changed more than {COMMIT_BYTES_MAX} bytes of pages")
        group = log._begin_entry(known)
        head = known.head
        for commit in commits:
            head += 1
            length = len(commit.body)
            if commit.kind is not CommitKind.KEYS:
                self._note_kind(commit)
            group.parts += (pack_entry(known.number, head, commit.kind, alarm, length), commit.body)
            group.bytes_total += ENTRY_HEADER_BYTES + length
        group.count += len(commits)
        known.head = self.head = head
        if alarm is not UNCHANGED:
            assert not isinstance(alarm, Unchanged)
            known.alarm_us = self.alarm_us = alarm
            group.on_done(partial(log._alarm_decided, known, group))
        log._directory.note(known, log._upkeep.generation, alarm)
        return group

    def _note_kind(self, commit: Commit) -> None:
        known = self._known
        if commit.kind is CommitKind.PAGES:
            known.has_file = True
        elif commit.kind is CommitKind.RESTORE:
            known.pending = self.pending = _unpack_target(commit.body)
        elif commit.kind is CommitKind.RESTORED:
            known.session = self.session = _unpack_restored(commit.body).session
            known.pending = self.pending = None

    def pin(self, position: int) -> LocalGroup | None:
        self._check()
        known, log = self._known, self._log
        if position == known.pinned or not known.named:
            return None
        log._check_room()
        known.pinned = position
        group = log._begin_entry(known)
        group.add(pack_entry(known.number, position, KIND_PIN, UNCHANGED, 0))
        return group

    def put_base(self, position: int) -> None:
        self._check()
        known, directory = self._known, self._log._directory
        if known.base != position:
            known.base = position
            directory.touched[known.number] = known
        if position == known.head:
            directory.unbased.pop(known.number, None)
            self._log._retire()

    def release(self, tail: Tail, *, rebuild: bool = False) -> None:
        self._check()
        known = self._known
        known.epoch += 1
        known.leased = False
        known.tail = tail
        known.stale = known.stale or rebuild
        self._log._directory.forget(known)
