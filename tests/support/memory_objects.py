"""All of the objects' storage in memory: what the interfaces promise, written as plainly as it goes.

Owns  `MemoryLog`, `MemoryPast`, `MemoryAlarms` and `MemoryRoom` over a `Disk` that outlives them.
Not   the databases' files, which are files here too: as in a cluster they are a cache of what the log says.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

from edgestead.store.files import Files
from edgestead.store.objectlog import (
    Alarm,
    CatalogueEntry,
    Commit,
    CommitKind,
    Fenced,
    LogError,
    NoSpace,
    ObjectRef,
    Restored,
    Target,
    Told,
    TooLarge,
    Unchanged,
    Unknown,
)
from edgestead.store.objects import ObjectStore
from edgestead.store.pages import FRAME_HEADER_BYTES, PAGE_BYTES, frames_of
from edgestead.store.past import END_OF_SESSION, LoggedPosition, ObjectState

Key = tuple[str, str]
LIFE = 0  # a copy of this disk is not told from it


@dataclass
class Logged:
    """One durable commit."""

    position: int
    session: int
    time_us: int
    commit: Commit
    alarm: Alarm

    def told(self, *, kind: int | None = None, pinned: bool = False) -> LoggedPosition:
        kind = self.commit.kind if kind is None else kind
        stored = len(self.commit.body)
        return LoggedPosition(
            self.position, LIFE, self.session, self.time_us, kind, self.alarm, stored, pinned
        )


@dataclass
class Object:
    """What is durable of one object."""

    ref: ObjectRef
    commits: list[Logged] = field(default_factory=list)
    base: int = 0
    alarm_us: int | None = None
    session: int = 0
    pending: Target | None = None
    pins: set[int] = field(default_factory=set)

    @property
    def head(self) -> int:
        return len(self.commits)

    def state(self, position: int) -> ObjectState:
        state = ObjectState(0, bytearray(), {}, None)
        for logged in self.commits[:position]:
            state.position = logged.position
            if not isinstance(logged.alarm, Unchanged):
                state.alarm_us = logged.alarm
            match logged.commit.kind:
                case CommitKind.PAGES | CommitKind.COPY:
                    apply_frames(state.image, logged.commit.body)
                    state.tail.clear()
                case CommitKind.RESTORED:
                    state.tail.clear()
                case CommitKind.KEYS:
                    state.tail.update(msgspec.msgpack.decode(logged.commit.body))
        return state


def apply_frames(image: bytearray, frames: bytes) -> None:
    step = FRAME_HEADER_BYTES + PAGE_BYTES
    for offset in range(0, len(frames), step):
        page, total = (int.from_bytes(frames[offset + at : offset + at + 4], "big") for at in (0, 4))
        image.extend(bytes(max(0, page * PAGE_BYTES - len(image))))
        image[(page - 1) * PAGE_BYTES : page * PAGE_BYTES] = frames[
            offset + FRAME_HEADER_BYTES : offset + step
        ]
        if total:
            del image[total * PAGE_BYTES :]
            image.extend(bytes(total * PAGE_BYTES - len(image)))


class Disk:
    """What is durable, and whether there is room for more."""

    def __init__(self) -> None:
        self.objects: dict[Key, Object] = {}
        self.is_full = False


class MemoryGroup:
    def __init__(self) -> None:
        self.state: Literal["waiting", "durable", "refused"] = "waiting"
        self.error: LogError | None = None
        self.work: list[tuple[MemoryLease, Callable[[], None]]] = []
        self._callbacks: list[Callable[[LogError | None], None]] = []

    def on_done(self, callback: Callable[[LogError | None], None]) -> None:
        if self.state == "waiting":
            self._callbacks.append(callback)
        else:
            callback(self.error)

    def decide(self, error: LogError | None) -> None:
        self.state, self.error = "refused" if error else "durable", error
        callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback(error)


class MemoryLease:
    def __init__(self, log: "MemoryLog", of: Object, path: str, tail: dict[str, bytes | None]) -> None:
        self._log, self._of = log, of
        self.ref, self.path, self.tail, self.life = of.ref, path, tail, LIFE
        self.has_file = any(one.commit.kind is CommitKind.PAGES for one in of.commits)
        self._pinned = -1
        self.head, self.alarm_us, self.session, self.pending = of.head, of.alarm_us, of.session, of.pending

    def _check(self) -> None:
        if self._log.holders.get(key_of(self.ref)) is not self:
            raise Fenced("somebody else holds it")

    def append(self, commits: list[Commit], alarm: Alarm, *, upkeep: bool = False) -> MemoryGroup:
        self._check()
        if self._log.room.is_full and not upkeep:
            raise NoSpace("no space")
        for commit in commits:
            self.head += 1
            if commit.kind is CommitKind.RESTORE:
                self.pending = msgspec.msgpack.decode(commit.body, type=Target | None)
            elif commit.kind is CommitKind.RESTORED:
                self.session = msgspec.msgpack.decode(commit.body, type=Restored).session
                self.pending = None
            logged = Logged(self.head, self.session, self._log.time_us(), commit, alarm)
            self._add(self._of.commits.append, logged)
            self._add(lambda pending: setattr(self._of, "pending", pending), self.pending)
            self._add(lambda session: setattr(self._of, "session", session), self.session)
        if not isinstance(alarm, Unchanged):
            self.alarm_us = alarm
            self._add(lambda alarm_us: setattr(self._of, "alarm_us", alarm_us), alarm)
            self._log.alarms.set(self.ref, alarm)
        return self._log.waiting

    def _add(self, do: Callable[[Any], None], value: Any) -> None:
        self._log.waiting.work.append((self, lambda: do(value)))

    def pin(self, position: int) -> MemoryGroup | None:
        self._check()
        if position == self._pinned or not self.head:
            return None
        self._pinned = position
        self._add(self._of.pins.add, position)
        return self._log.waiting

    def put_base(self, position: int) -> None:
        self._check()
        self._of.base = position

    def release(self, tail: dict[str, bytes | None], *, rebuild: bool = False) -> None:
        self._check()
        del self._log.holders[key_of(self.ref)]
        if rebuild:
            self._log.fresh.pop(key_of(self.ref), None)
        else:
            self._log.fresh[key_of(self.ref)] = tail


class MemoryLog:
    """`fresh`: the tails of objects whose file is known to be what the log says without them."""

    def __init__(self, disk: Disk, files: Files, folder: str, now_us: Callable[[], int]) -> None:
        self._disk, self._files, self._folder, self._now_us = disk, files, folder, now_us
        self.holders: dict[Key, MemoryLease] = {}
        self.fresh: dict[Key, dict[str, bytes | None]] = {}
        self.waiting = MemoryGroup()
        self.room, self.alarms = MemoryRoom(disk), MemoryAlarms()
        for of in disk.objects.values():
            self.alarms.set(of.ref, of.alarm_us)
        self._time_us = max((one.time_us for of in disk.objects.values() for one in of.commits), default=0)
        self.past = MemoryPast(self, disk, files)
        self.store = ObjectStore(self, self.past, self.alarms, self.room)

    def time_us(self) -> int:
        self._time_us = max(self._time_us, self._now_us())
        return self._time_us

    def acquire(self, ref: ObjectRef, done: Told[Any]) -> None:
        done(self._lease(ref), None)

    def may_answer(self) -> bool:
        return True

    def _lease(self, ref: ObjectRef) -> MemoryLease:
        key = key_of(ref)
        if key in self.holders:
            self.settle()
            self.fresh.pop(key, None)
        of = self._disk.objects.get(key) or Object(ref)
        path = f"{self._folder}/{ref.class_name}-{ref.id}.sqlite"
        tail = self.fresh.get(key)
        if tail is None:
            state = of.state(of.head)
            tail = state.tail
            if of.head:
                write(self._files, path, bytes(state.image))
        self.holders[key] = MemoryLease(self, of, path, tail)
        return self.holders[key]

    def flush(self, *, here: bool = False) -> None:
        while self.waiting.work:
            group, self.waiting = self.waiting, MemoryGroup()
            if self._disk.is_full:
                self.room.look()
                for lease, _ in group.work:  # ahead of what is durable, like its file
                    self.fresh.pop(key_of(lease.ref), None)
                    self.alarms.set(lease.ref, lease._of.alarm_us)
                group.decide(NoSpace("no space"))
                continue
            for lease, do in group.work:
                self._disk.objects.setdefault(key_of(lease.ref), lease._of)
                do()
            group.decide(None)

    @property
    def is_quick(self) -> bool:
        return True

    def settle(self) -> None:
        self.flush()

    def find(self, ref: ObjectRef, done: Told[CatalogueEntry]) -> None:
        self.flush()
        of = self._disk.objects.get(key_of(ref))
        done(None if of is None else entry_of(of), None)

    def catalogue(self, after: Key, limit: int, done: Told[list[CatalogueEntry]]) -> None:
        self.flush()
        keys = sorted(key for key in self._disk.objects if key > after)[:limit]
        done([entry_of(self._disk.objects[key]) for key in keys], None)

    def has(self, ref: ObjectRef) -> bool:
        return key_of(ref) in self._disk.objects

    def has_any(self, class_name: str) -> bool:
        return any(name == class_name for name, _ in self._disk.objects)

    def lagging(self, limit: int) -> list[ObjectRef]:
        return [of.ref for of in self._disk.objects.values() if of.base < of.head][:limit]

    def close(self) -> None:
        self.settle()


class MemoryRoom:
    def __init__(self, disk: Disk) -> None:
        self._disk, self.is_full = disk, False

    def look(self) -> None:
        self.is_full = self._disk.is_full


class MemoryAlarms:
    def __init__(self) -> None:
        self.on_set: Callable[[int], None] = lambda time_us: None
        self._times: dict[Key, tuple[int, ObjectRef]] = {}
        self._taken: set[Key] = set()

    def set(self, ref: ObjectRef, alarm_us: int | None) -> None:
        self._taken.discard(key_of(ref))
        if alarm_us is None:
            self._times.pop(key_of(ref), None)
        else:
            self._times[key_of(ref)] = (alarm_us, ref)
            self.on_set(alarm_us)

    def _open(self) -> list[tuple[int, ObjectRef]]:
        found = (one for key, one in self._times.items() if key not in self._taken)
        return sorted(found, key=lambda one: (one[0], key_of(one[1])))

    def take(self, before_us: int, limit: int) -> list[tuple[int, ObjectRef]]:
        due = [one for one in self._open() if one[0] <= before_us][:limit]
        self._taken |= {key_of(ref) for _, ref in due}
        return due

    def give_back(self, ref: ObjectRef) -> None:
        if key_of(ref) in self._taken:
            self._taken.discard(key_of(ref))
            self.on_set(self._times[key_of(ref)][0])

    def next_us(self) -> int | None:
        return next((time_us for time_us, _ in self._open()), None)


class MemoryPast:
    """Keeps everything: a pin changes nothing but that it is told."""

    def __init__(self, log: MemoryLog, disk: Disk, files: Files) -> None:
        self._log, self._disk, self._files = log, disk, files

    def _of(self, ref: ObjectRef) -> Object:
        self._log.flush()
        of = self._disk.objects.get(key_of(ref))
        if of is None:
            raise Unknown("never written")
        return of

    def locate(self, ref: ObjectRef, target: Target, generation: int, done: Told[LoggedPosition]) -> None:
        answer(done, lambda: self._located(self._of(ref), target))

    @staticmethod
    def _located(of: Object, target: Target) -> LoggedPosition:
        if target.position == 0 or (target.position == END_OF_SESSION and not of.commits):
            return beginning(of)
        if target.position == END_OF_SESSION:
            ends = [one for one in of.commits if one.session == target.session]
            if not ends and target.session == 0:
                return beginning(of)
        else:
            ends = [one for one in of.commits if Target(one.session, one.position) == target]
        if not ends:
            raise Unknown("no such commit")
        return ends[-1].told()

    def position_at(self, ref: ObjectRef, time_us: int, done: Told[LoggedPosition]) -> None:
        def found() -> LoggedPosition:
            of = self._of(ref)
            earlier = [one for one in of.commits if one.time_us <= time_us]
            return earlier[-1].told() if earlier else beginning(of)

        answer(done, found)

    def moments(
        self, ref: ObjectRef, since_us: int, until_us: int, limit: int, done: Told[list[LoggedPosition]]
    ) -> None:
        def found() -> list[LoggedPosition]:
            of = self._of(ref)
            hidden: set[int] = set()
            ends: set[int] = set()
            for one in of.commits:
                if one.commit.kind is CommitKind.RESTORED:
                    last = one.position + msgspec.msgpack.decode(one.commit.body, type=Restored).follows
                    hidden |= set(range(one.position, last))
                    ends.add(last)
            return [
                one.told(
                    kind=CommitKind.RESTORED if one.position in ends else None, pinned=one.position in of.pins
                )
                for one in reversed(of.commits)
                if since_us <= one.time_us <= until_us and one.position not in hidden
            ][:limit]

        answer(done, found)

    def recall(
        self,
        ref: ObjectRef,
        target: Target,
        generation: int,
        done: Told[tuple[LoggedPosition, ObjectState]],
        *,
        bytes_max: int | None = None,
    ) -> None:
        def found() -> tuple[LoggedPosition, ObjectState]:
            of = self._of(ref)
            located = self._located(of, target)
            state = of.state(located.position)
            if bytes_max is not None and len(state.image) > bytes_max:
                raise TooLarge("the object had more bytes then")
            return located, state

        answer(done, found)

    def restore(
        self, lease: MemoryLease, state: ObjectState, done: Callable[[LogError | None], None]
    ) -> None:
        total = len(state.image) // PAGE_BYTES
        commits = []
        if total:
            frames = frames_of(bytes(state.image), list(range(1, total + 1)), total)
            commits.append(Commit(CommitKind.PAGES, frames))
        if state.tail:
            commits.append(Commit(CommitKind.KEYS, msgspec.msgpack.encode(state.tail)))
        begins = Restored(lease.session + 1, state.position, len(commits))
        first = Commit(CommitKind.RESTORED, msgspec.msgpack.encode(begins))
        group = lease.append([first, *commits], state.alarm_us)

        def durable(error: LogError | None) -> None:
            if error is None and total:
                write(self._files, lease.path, bytes(state.image))
            done(error)

        group.on_done(durable)
        self._log.flush()

    def check(self, refs: Sequence[ObjectRef], done: Told[list[list[str]]]) -> None:
        answer(done, lambda: [[] for _ in map(self._of, refs)])

    def check_all(self, done: Told[list[str]]) -> None:
        answer(done, list)


def beginning(of: Object) -> LoggedPosition:
    return LoggedPosition(0, LIFE, 0, of.commits[0].time_us)


def answer(done: Callable[[Any, LogError | None], None], find: Callable[[], Any]) -> None:
    try:
        found = find()
    except LogError as error:
        done(None, error)
    else:
        done(found, None)


def key_of(ref: ObjectRef) -> Key:
    return ref.class_name, ref.id


def entry_of(of: Object) -> CatalogueEntry:
    return CatalogueEntry(of.ref, of.head, of.base, of.alarm_us, of.pending)


def write(files: Files, path: str, image: bytes) -> None:
    files.make_folder(path.rpartition("/")[0])
    file = files.open(path, create=True)
    try:
        file.truncate(len(image))
        file.write(image, 0)
    finally:
        file.close()
