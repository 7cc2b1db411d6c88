"""The object log in a cluster's database.

Owns  objects in memory, leases, opening, the cache of databases' files, what is tended each second.
Not   groups (`committer`); bases (`bases`); the past (`past`); who owns what (`cluster.slots`).

This process owns the slots it was given, and nobody else writes to their objects: so what it knows of an
object stays true until the slot goes. Databases' files are a cache of one process, thrown away at its start.
"""

import logging
from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Final, Protocol, TypeVar

import msgspec
import psycopg

from edgestead.cluster.placement import ANYWHERE, Regions
from edgestead.postgres.connection import Link, Misconfigured, Trouble
from edgestead.postgres.objectlog import bases, opening
from edgestead.postgres.objectlog.alarms import PostgresAlarms
from edgestead.postgres.objectlog.committer import Committer, Group, is_full
from edgestead.postgres.objectlog.opening import CHUNK_BYTES, Opened
from edgestead.postgres.objectlog.past import PostgresPast
from edgestead.postgres.objectlog.rows import LogRow, ObjectRow, PinRow
from edgestead.store.files import Files
from edgestead.store.history.thinning import Keeping
from edgestead.store.objectlog import (
    COMMIT_BYTES_MAX,
    UNCHANGED,
    Alarm,
    CatalogueEntry,
    Commit,
    CommitKind,
    Fenced,
    Lease,
    LogAway,
    LogError,
    NoSpace,
    ObjectRef,
    Progress,
    Restored,
    Tail,
    Target,
    Told,
    WrongOwner,
)
from edgestead.store.objects import ObjectStore
from edgestead.store.pages import FRAME_HEADER_BYTES, PAGE_BYTES
from edgestead.store.runner import Runner

BASE_BYTES: Final = 1024 * 1024  # of rows behind a base, before there is another one
CACHED_MAX: Final = 65_536  # objects without a lease whose files stay
TAILS_BYTES_MAX: Final = 64 * 1024 * 1024  # of their keys that are in no file, in memory
NUMBERS_AT_ONCE: Final = 64
PROBE_BYTES: Final = 256 * 1024  # whether there is room again
_FRAME_BYTES: Final = FRAME_HEADER_BYTES + PAGE_BYTES

NEXT_NUMBERS = "SELECT nextval(pg_get_serial_sequence('objects', 'number')) FROM generate_series(1, %b)"
PROBE = "INSERT INTO object_chunks (number, chunk, position, body) VALUES (0, 0, 0, %b)"

KEEPING = Keeping()
T = TypeVar("T")
Key = tuple[str, str]
log = logging.getLogger(__name__)
_unpack_restored = msgspec.msgpack.Decoder(Restored).decode
_unpack_target = msgspec.msgpack.Decoder(Target | None).decode


class Owner(Protocol):
    """What `cluster.slots` tells of this process. `number` is its incarnation."""

    @property
    def number(self) -> int: ...

    def owns(self, slot: int) -> bool: ...

    def may_answer(self) -> bool: ...


class Known:
    """One object of a slot that this process owns."""

    __slots__ = (
        "alarm_us",
        "base",
        "durable_alarm_us",
        "epoch",
        "file_bytes",
        "has_file",
        "head",
        "is_basing",
        "leased",
        "log",
        "named",
        "number",
        "octets",
        "pending",
        "pinned",
        "ref",
        "session",
        "slot",
        "stale",
        "tail",
        "time_us",
    )

    def __init__(self, log: "PostgresObjectLog", number: int, ref: ObjectRef) -> None:
        self.log, self.number, self.ref, self.slot = log, number, ref, log.slot_of(ref)
        self.head = self.base = self.session = self.time_us = self.octets = self.file_bytes = self.epoch = 0
        self.alarm_us: int | None = None
        self.durable_alarm_us: int | None = None
        self.pending: Target | None = None
        self.tail: Tail = {}
        self.has_file = self.leased = self.stale = self.is_basing = self.named = False
        self.pinned = -1

    @property
    def key(self) -> Key:
        return self.ref.class_name, self.ref.id

    def take(self, opened: Opened) -> None:
        """Be what the database has."""
        found, state = opened.found, opened.state
        self.number, self.ref, self.named = found.number, found.ref, True
        self.head, self.base, self.session, self.pending = (
            found.head,
            found.base,
            found.session,
            found.pending,
        )
        self.alarm_us = self.durable_alarm_us = found.alarm_us
        self.tail, self.has_file, self.time_us = state.tail, opened.has_file, opened.time_us
        self.octets, self.file_bytes = opened.octets, len(state.image)
        self.stale, self.pinned = False, -1

    def row(self) -> ObjectRow:
        class_name, object_id = opening.keys_of(self.ref.class_name, self.ref.id)
        name = None if self.ref.name is None else self.ref.name.encode("utf-8", "surrogatepass")
        pending = None if self.pending is None else msgspec.msgpack.encode(self.pending)
        return ObjectRow(
            self.number, self.slot, class_name, object_id, name, self.alarm_us, self.session, pending
        )

    def entry(self) -> CatalogueEntry:
        return CatalogueEntry(self.ref, self.head, self.base, self.alarm_us, self.pending)

    # as a member of groups

    def landed(self, octets: int, alarm: Alarm) -> None:
        if alarm is None or isinstance(alarm, int):
            self.durable_alarm_us = alarm
        self.octets += octets
        self.log.hold(self.slot, -1)
        self.log.look_at_base(self)

    def was_refused(self) -> None:
        self.stale = True
        self.log.hold(self.slot, -1)
        self.log.alarms.set(self, self.durable_alarm_us)


class PostgresObjectLog:
    """`Log` on PostgreSQL, with `past`, `alarms` and `room`. Used from one thread; results come back on it.

    `writer` runs the groups, `reader` the questions, `upkeep` bases, the past and what is tended: a thread
    each, and a connection each. `folder` is for the cache; what is in it is removed. `life` is the generation
    of new bookmarks, `fatal` is called when this process has lost its place or does not know what it wrote:
    it should end the process.
    """

    def __init__(
        self,
        dsn: str,
        folder: str,
        *,
        owner: Owner,
        files: Files,
        writer: Runner,
        reader: Runner,
        upkeep: Runner,
        now_us: Callable[[], int],
        fatal: Callable[[BaseException], None],
        life: int = 0,
        node: str = "",
        regions: Regions = ANYWHERE,
        keeping: Keeping = KEEPING,
        base_bytes: int = BASE_BYTES,
        link: Callable[..., Link] = Link,
    ) -> None:
        self._folder, self._files, self._owner, self._now_us = folder, files, owner, now_us
        self._regions = regions
        self._runners = (writer, reader, upkeep)
        self._reader, self._upkeep, self._base_bytes = reader, upkeep, base_bytes
        self.life, self.is_closed = life, False
        self._writing, self._reading, self._tending = (
            link(dsn, name=f"edgestead {node} objects {what}") for what in ("log", "reader", "upkeep")
        )
        self._committer = Committer(self._writing, owner.number, writer, fatal, lambda: self.room.note_full())
        self._known: dict[Key, Known] = {}  # least recently released first
        self._tails: dict[Key, int] = {}  # bytes of those that were released, in the same order
        self._tail_bytes = 0
        self._opening: dict[Key, list[Told[Lease]]] = {}
        self._held: Counter[int] = Counter()  # by slot: leases, openings, and objects in each undecided group
        self._numbers: list[int] = []
        self._time_us = 0
        self.slots: set[int] = set()
        self.room = PostgresRoom(self._tending, upkeep)
        self.alarms = PostgresAlarms(self._ask, now_us, self._existing, self.slot_of)
        self.past = PostgresPast(
            self._ask_past, self._committer, files, owner.number, life, keeping, self._tending
        )
        files.make_folder(folder)
        for name in files.names(folder):
            files.remove(f"{folder}/{name}")

    @property
    def store(self) -> ObjectStore:
        """The log as the interfaces' `Objects`."""
        return ObjectStore(self, self.past, self.alarms.due, self.room)

    # slots

    def slot_of(self, ref: ObjectRef) -> int:
        return self._regions.slot_of(ref.class_name, ref.id)

    def gained(
        self, slots: Iterable[int], done: Callable[[LogError | None], None] = lambda error: None
    ) -> None:
        """Slots have become this process's: load their alarms."""
        new = sorted(set(slots) - self.slots)
        self.slots.update(new)
        self.alarms.load(new, done)

    def gone(self, slots: Iterable[int]) -> None:
        """Slots were given away, or lost: forget their objects, and end the leases that are left."""
        gone = set(slots) & self.slots
        self.slots -= gone
        self.alarms.forget(gone)
        for known in [one for one in self._known.values() if one.slot in gone]:
            known.epoch += 1
            if known.leased:
                known.leased = False
                self.hold(known.slot, -1)
            self._forget(known)

    def kept(self, slots: Iterable[int]) -> None:
        """Slots that were about to be given away stay: alarms that met that are due again."""
        self.alarms.give_back(slots)

    def holds(self, slot: int) -> bool:
        """Whether an object of a slot is leased, being opened, or has undecided commits."""
        return self._held[slot] > 0

    def hold(self, slot: int, count: int) -> None:
        """Something more of a slot is going on, or less."""
        self._held[slot] += count

    # leases

    def acquire(self, ref: ObjectRef, done: Told[Lease]) -> None:
        if (error := self._refusal(ref)) is not None:
            done(None, error)
            return
        key = (ref.class_name, ref.id)
        if (waiting := self._opening.get(key)) is not None:
            waiting.append(done)
            return
        known = self._known.get(key)
        if known is not None and not known.leased and not known.stale and self._has_cached(known):
            done(self._lease(known), None)
            return
        self._opening[key] = [done]
        self.hold(self.slot_of(ref), 1)
        if known is None:
            self._open(ref)
            return
        if known.leased:
            known.epoch += 1
            known.stale = True  # its holder has the tail, and perhaps commits that were never logged
        self._committer.when_decided(lambda error: self._open(ref))

    def _has_cached(self, known: Known) -> bool:
        """Whether its file is there: SQLite would make an empty one in its place."""
        return not known.has_file or self._files.exists(self._path(known.ref))

    def _refusal(self, ref: ObjectRef) -> LogError | None:
        if self._committer.broken is not None:
            return self._committer.broken
        if not self._owner.owns(self.slot_of(ref)):
            return WrongOwner(f"another process owns {ref.class_name}/{ref.id}")
        return None

    def _open(self, ref: ObjectRef) -> None:
        path = self._path(ref)
        needs_number = not self._numbers

        def job(link: Link) -> tuple[Opened | None, list[int]]:
            opened = opening.read(link, ref)
            if opened is not None and opened.has_file:
                _write_image(self._files, path, opened.state.image)
            numbers = link.rows(NEXT_NUMBERS, (NUMBERS_AT_ONCE,)) if opened is None and needs_number else []
            return opened, [number for (number,) in numbers]

        self._ask(job, partial(self._opened, ref))

    def _opened(self, ref: ObjectRef, result: Any, error: LogError | None) -> None:
        key = (ref.class_name, ref.id)
        waiting = self._opening.pop(key)
        self.hold(self.slot_of(ref), -1)
        error = error or self._refusal(ref)
        if error is not None:
            for done in waiting:
                done(None, error)
            return
        opened, numbers = result
        self._numbers += numbers
        known = self._known.get(key)
        if opened is None and known is None and not self._numbers:  # others have used them meanwhile
            self._opening[key] = waiting
            self.hold(self.slot_of(ref), 1)
            self._open(ref)
            return
        if known is None:
            known = self._known[key] = Known(self, 0, ref)
        if opened is None:
            if not known.number:
                known.number = self._numbers.pop()
            before = known
            known = self._known[key] = Known(self, before.number, ref)
            known.epoch, known.leased = before.epoch, before.leased
        else:
            known.take(opened)
            self.alarms.set(known, known.alarm_us)
        tail = known.tail
        for done in waiting:
            known.tail = tail  # each of them takes it, and the last one counts
            done(self._lease(known), None)
        self._trim()  # last: not of this one

    def _lease(self, known: Known) -> "PostgresLease":
        known.epoch += 1
        if not known.leased:
            known.leased = True
            self.hold(known.slot, 1)
        self._tail_bytes -= self._tails.pop(known.key, 0)
        return PostgresLease(self, known, self._path(known.ref))

    def _path(self, ref: ObjectRef) -> str:
        return f"{self._folder}/{ref.class_name}-{ref.id}.sqlite"

    def released(self, known: Known) -> None:
        """Keep what is known of an object, and its file, behind those that were released earlier."""
        self.hold(known.slot, -1)
        if not known.named:
            self._forget(known)
            return
        if self._known.pop(known.key, None) is not None:
            self._known[known.key] = known
            self._note_tail(known)

    def _note_tail(self, known: Known) -> None:
        """Of the tails of those that were released first too many are read again from the database."""
        if octets := sum(len(key) + len(value or b"") for key, value in known.tail.items()):
            self._tails[known.key] = octets
            self._tail_bytes += octets
        while self._tail_bytes > TAILS_BYTES_MAX:
            oldest = self._known[next(iter(self._tails))]
            if oldest.key in self._opening:  # it is just read again
                self._tail_bytes -= self._tails.pop(oldest.key)
            else:
                self._forget(oldest)

    def _trim(self) -> None:
        for known in list(self._known.values())[: max(0, len(self._known) - CACHED_MAX)]:
            if not known.leased and not known.is_basing and known.key not in self._opening:
                self._forget(known)

    def _forget(self, known: Known) -> None:
        if self._known.get(known.key) is known:
            del self._known[known.key]
            self._tail_bytes -= self._tails.pop(known.key, 0)
        for suffix in ("", "-wal"):
            self._files.remove(self._path(known.ref) + suffix)

    def may_answer(self) -> bool:
        return self._owner.may_answer()

    # commits

    def time_us(self, known: Known) -> int:
        """The time of a commit of now; never before that of an earlier one, of any owner."""
        self._time_us = max(self._time_us, self._now_us())
        known.time_us = max(known.time_us, self._time_us)
        return known.time_us

    def check_room(self, *, upkeep: bool = False) -> Group:
        """The group for an entry. Raises LogBroken or NoSpace when appending is not possible."""
        if self._committer.broken is not None:
            raise self._committer.broken
        if self.room.is_full and not upkeep:
            raise NoSpace("no space left in the cluster's database")
        return self._committer.group()

    def flush(self, *, here: bool = False) -> None:
        self._committer.flush()

    @property
    def is_quick(self) -> bool:
        return False

    def settle(self) -> None:
        while True:
            self._committer.flush()
            for runner in self._runners:
                runner.drain()
            if self._committer.is_idle or self._committer.broken is not None:
                return

    # what is known

    def find(self, ref: ObjectRef, done: Told[CatalogueEntry]) -> None:
        known = self._existing(ref)
        if known is not None:
            done(known.entry(), None)
            return

        def job(link: Link) -> CatalogueEntry | None:
            found = opening.find(link, ref)
            return None if found is None else found.entry

        self._ask(job, done)

    def catalogue(self, after: Key, limit: int, done: Told[list[CatalogueEntry]]) -> None:
        def told(page: list[CatalogueEntry] | None, error: LogError | None) -> None:
            if page is not None:
                mine = [self._existing(entry.ref) for entry in page]
                page = [old if one is None else one.entry() for one, old in zip(mine, page, strict=True)]
            done(page, error)

        self._ask(lambda link: [one.entry for one in opening.page(link, after, limit)], told)

    def has(self, ref: ObjectRef) -> bool:
        return self._existing(ref) is not None

    def has_any(self, class_name: str) -> bool:
        return any(one.named and one.ref.class_name == class_name for one in self._known.values())

    def _existing(self, ref: ObjectRef) -> Known | None:
        known = self._known.get((ref.class_name, ref.id))
        return known if known is not None and known.named and not known.stale else None

    def lagging(self, limit: int) -> list[ObjectRef]:
        return []  # bases are made of rows, without the object

    # questions

    def _ask(self, job: Callable[[Link], T], done: Told[T]) -> None:
        """Run a job that only reads."""
        self._run(self._reader, lambda: job(self._reading), done)

    def _ask_past(self, job: Callable[[], T], done: Told[T]) -> None:
        """Run a job on the upkeep's connection, behind what it is doing."""
        self._run(self._upkeep, job, done)

    @staticmethod
    def _run(runner: Runner, job: Callable[[], T], done: Told[T]) -> None:
        def told(result: T | None, error: Exception | None) -> None:
            done(result, None if error is None else _as_log_error(error))

        runner.run(job, told)

    # upkeep

    def look_at_base(self, known: Known) -> None:
        """Make another base when there is much behind the last one."""
        if known.octets <= max(self._base_bytes, known.file_bytes) or known.is_basing or self.is_closed:
            return
        known.is_basing = True
        number, octets = known.number, known.octets

        def made(base: int | None, error: LogError | None) -> None:
            known.is_basing = False
            if base is not None:
                known.base, known.octets = base, known.octets - octets
            elif isinstance(error, Fenced):
                log.warning("%s/%s has no newer base: %s", *known.key, error)
            elif error is not None:
                log.error("%s/%s has no newer base: %s", *known.key, error)

        self._ask_past(lambda: bases.make(self._tending, self._owner.number, number), made)

    def tend(self) -> None:
        """Do deferred work: look for room, load alarms, thin the past. To be called about every second."""
        if self.room.is_full:
            self.room.look()
        self.alarms.tend(sorted(self.slots))
        self.past.tend(sorted(self.slots), self._now_us())

    @property
    def progress(self) -> Progress:
        return Progress(self._committer.groups, self._committer.records, self._committer.waiting)

    @property
    def history_bytes(self) -> int:
        """The past is rows of the database, whose size is not this process's."""
        return 0

    @property
    def is_history_damaged(self) -> bool:
        return False

    def abandon(self) -> None:
        """Close connections without a word, as the end of the process does."""
        for link in (self._writing, self._reading, self._tending):
            link.close()

    def close(self) -> None:
        if self.is_closed:
            return
        self.settle()
        self.is_closed = True
        for runner in dict.fromkeys(self._runners):
            runner.close()
        self.abandon()


class PostgresRoom:
    """The space of the database's disk: full once a write met that, until a probe finds room."""

    def __init__(self, link: Link, runner: Runner) -> None:
        self.is_full = False
        self._link, self._runner, self._is_looking = link, runner, False

    def note_full(self) -> None:
        self.is_full = True

    def look(self) -> None:
        if self._is_looking:
            return
        self._is_looking = True
        self._runner.run(self._probe, self._probed)

    def _probe(self) -> bool:
        """Whether something of some size could be written; it is not."""
        try:
            with self._link.transaction():
                self._link.run(PROBE, (bytes(PROBE_BYTES),))
                raise _Enough
        except _Enough:
            return True
        except Trouble as error:
            if is_full(error):
                return False
            raise

    def _probed(self, has_room: Any, error: Exception | None) -> None:
        self._is_looking = False
        if error is None:
            self.is_full = not has_room


class _Enough(Exception):
    """Roll back."""


class PostgresLease:
    """A `Lease` of a `PostgresObjectLog`. It ends when its object's epoch changes."""

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

    def __init__(self, log: PostgresObjectLog, known: Known, path: str) -> None:
        """Takes over the object's tail."""
        self._log, self._known, self._epoch = log, known, known.epoch
        self.ref, self.path, self.life = known.ref, path, log.life
        self.has_file, self.head, self.alarm_us = known.has_file, known.head, known.alarm_us
        self.session, self.pending = known.session, known.pending
        self.tail, known.tail = known.tail, {}

    def _check(self) -> None:
        if self._known.epoch != self._epoch:
            raise Fenced(f"object {self.ref.class_name}/{self.ref.id} is held by somebody else")

    def _group(self, *, upkeep: bool = False) -> Group:
        """The group for what follows on the head. Raises Fenced, LogError: also behind a refused commit,
        where there would be a gap.
        """
        self._check()
        group = self._log.check_room(upkeep=upkeep)
        if self._known.stale:
            raise LogError(f"a commit of {self.ref.class_name}/{self.ref.id} was refused: acquire it again")
        return group

    def append(self, commits: list[Commit], alarm: Alarm, *, upkeep: bool = False) -> Group:
        group = self._group(upkeep=upkeep)
        known, log = self._known, self._log
        if any(len(commit.body) > COMMIT_BYTES_MAX for commit in commits):
            raise NoSpace(f"one transaction changed more than {COMMIT_BYTES_MAX} bytes of pages")
        time_us, octets, changes = log.time_us(known), 0, False
        for commit in commits:
            known.head += 1
            if commit.kind is not CommitKind.KEYS:
                changes |= self._note_kind(commit)
            group.rows.append(
                LogRow(
                    known.number,
                    known.head,
                    commit.kind,
                    known.session,
                    log.life,
                    time_us,
                    alarm,
                    commit.body,
                )
            )
            octets += len(commit.body)
        self.head = known.head
        if alarm is None or isinstance(alarm, int):
            changes |= alarm != known.alarm_us
            known.alarm_us = self.alarm_us = alarm
            log.alarms.set(known, alarm)
        if not known.named:
            known.named = True
            group.named[known.number] = known.row()
        elif changes:
            (group.named if known.number in group.named else group.changed)[known.number] = known.row()
        self._join(group)
        before, alarm_before = group.alarms[known]
        group.alarms[known] = (before + octets, alarm_before if alarm is UNCHANGED else alarm)
        group.octets += octets
        return group

    def _join(self, group: Group) -> None:
        """The object has something in a group."""
        if self._known not in group.alarms:
            group.alarms[self._known] = 0, UNCHANGED
            self._log.hold(self._known.slot, 1)

    def _note_kind(self, commit: Commit) -> bool:
        """Whether the object's row changes."""
        known = self._known
        if commit.kind in (CommitKind.PAGES, CommitKind.COPY):
            last = len(commit.body) - _FRAME_BYTES
            known.file_bytes = int.from_bytes(commit.body[last + 4 : last + 8], "big") * PAGE_BYTES
            known.has_file |= commit.kind is CommitKind.PAGES
            return False
        if commit.kind is CommitKind.RESTORE:
            known.pending = self.pending = _unpack_target(commit.body)
        else:
            known.session = self.session = _unpack_restored(commit.body).session
            known.pending = self.pending = None
        return True

    def pin(self, position: int) -> Group | None:
        self._check()
        known, log = self._known, self._log
        if position == known.pinned or not known.named:
            return None
        group = self._group()
        known.pinned = position
        self._join(group)
        group.pinned[known.number, position] = PinRow(known.number, position, log.time_us(known))
        return group

    def put_base(self, position: int) -> None:
        self._check()
        self._known.base = max(self._known.base, position)

    def release(self, tail: Tail, *, rebuild: bool = False) -> None:
        self._check()
        known = self._known
        known.epoch += 1
        known.leased = False
        known.tail = tail
        known.stale = known.stale or rebuild
        self._log.released(known)


def _write_image(files: Files, path: str, image: bytes | bytearray) -> None:
    files.make_folder(path.rpartition("/")[0])
    file = files.open(path, create=True)
    try:
        file.truncate(len(image))
        for start in range(0, len(image), CHUNK_BYTES):
            file.write(bytes(image[start : start + CHUNK_BYTES]), start)
    finally:
        file.close()


def _as_log_error(error: Exception) -> LogError:
    if isinstance(error, LogError):
        return error
    if isinstance(error, Trouble) and is_full(error):
        return NoSpace("no space left in the cluster's database")
    if isinstance(error, Trouble | Misconfigured):
        return LogAway(f"the cluster's database did not answer: {error}")
    if isinstance(error, psycopg.Error):
        return LogError(f"the cluster's database did not answer: {error}")
    return LogError(f"the object log cannot be read: {error!r}")
