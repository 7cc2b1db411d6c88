"""Objects whose code ended their process, and what is not run any more because of it: objects and classes.

Owns  the processes that ended while an object's code ran, and their file; when an object or a class is held.
Not   the alarms of the life that ended (`node` sets their retries); how it ended (the supervisor knows).

                 its process ended while it ran              an event came to its end
    nothing ──────────────► 1, 2 … ends ──────────────► held     forgives ends in that event: those that a
                                                         │       signal from outside may have made, at once,
                                    only an operator ────┘       its own when they are FORGIVEN_SECONDS old

Held is who has LIVES_MAX ends in one event, or as many ends of its own in any. So an alarm that ends its
process is not forgiven because calls between two of its runs were answered, nor a method because it ends its
process for some arguments only. Who merely happened to run when somebody killed the process is forgiven by
the next such event.

           objects of the class, each with an end of its own that is not older than FORGIVEN_SECONDS
    class: nothing ── 1, 2 … ──► CLASS_OBJECTS_MAX ──► held ──► only an operator lets it go

A class that ends its processes in many objects would have three ends of each. Ends by signals do not count
here: somebody who kills processes at random would hold a busy class.
"""

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial

import msgspec

from edgestead.objects.runtime.stage import Left, number_of
from edgestead.store import inturn
from edgestead.store.files import Files
from edgestead.store.objectlog import ObjectRef

log = logging.getLogger(__name__)

LIVES_MAX = 3  # processes that an object may end before it is held
FORGIVEN_SECONDS = 600  # after which an end of its own is forgiven by a later event that came to its end
CLASS_OBJECTS_MAX = 5  # objects of a class that end their processes, until all of it is held
ENDS_MAX = 9  # of one object, that are remembered: the newest
RECORDS_MAX = 10_000  # objects that are remembered; of more the newest
_FILES = ("quarantine-0.json", "quarantine-1.json")  # one of them counts (`store.inturn`)
Key = tuple[str, str]


class End(msgspec.Struct, frozen=True):
    """A process that ended while `event` ran. `is_own`: by an exit or a fault, not by somebody's signal."""

    event: int
    at_us: int
    is_own: bool


class Record(msgspec.Struct, rename={"class_name": "class"}):
    """The ends of one object that are not forgiven, oldest first."""

    class_name: str
    id: str
    name: str | None
    ends: list[End]

    @property
    def ref(self) -> ObjectRef:
        return ObjectRef(self.class_name, self.id, self.name)

    @property
    def is_held(self) -> bool:
        own = sum(end.is_own for end in self.ends)
        in_one_event = Counter(end.event for end in self.ends).values()
        return max(own, *in_one_event, 0) >= LIVES_MAX


class ClassRecord(msgspec.Struct, frozen=True, rename={"class_name": "class"}):
    """A class that is held, since when, and how many of its objects had ended their process then."""

    class_name: str
    at_us: int
    objects: int


class _File(msgspec.Struct):
    sequence: int
    records: list[Record]
    classes: list[ClassRecord] = []


class Quarantine:
    """The records of one folder. Raises OSError when its file cannot be read."""

    def __init__(self, files: Files, folder: str) -> None:
        self._files, self._folder = files, folder
        found = read_newest(files, folder)
        self._sequence = found.sequence
        self._records: dict[Key, Record] = {(one.class_name, one.id): one for one in found.records}
        self._classes = {one.class_name: one for one in found.classes}
        self._is_dirty = False

    def blame(self, left: Left, now_us: int, *, ended_itself: bool) -> Record | None:
        """Note the life that ended; who was running is to blame, or whose alarm was the only one under way.

        `ended_itself`: the process, by an exit or a fault. An alarm that only waited did not do that.
        Durable when it returns. Raises OSError.
        """
        if left.running is not None:
            (ref, event), is_own = left.running, ended_itself
        elif len(left.alarms) == 1:
            ref, event, is_own = left.alarms[0][0], number_of("alarm"), False
        else:
            return None
        record = self._records.pop((ref.class_name, ref.id), None)
        if record is None:
            record = Record(ref.class_name, ref.id, ref.name, [])
        if not record.is_held:
            record.ends = [*record.ends, End(event, now_us, is_own)][-ENDS_MAX:]
        self._records[ref.class_name, ref.id] = record
        while len(self._records) > RECORDS_MAX:
            del self._records[next(iter(self._records))]
        self._judge_class(ref.class_name, now_us)
        self._is_dirty = True
        self.save()
        return record

    def _judge_class(self, class_name: str, now_us: int) -> None:
        """Hold a class when too many of its objects ended their processes lately."""
        objects = sum(
            one.class_name == class_name and any(end.is_own and not _is_old(end, now_us) for end in one.ends)
            for one in self._records.values()
        )
        if objects >= CLASS_OBJECTS_MAX and class_name not in self._classes:
            self._classes[class_name] = ClassRecord(class_name, now_us, objects)
            log.warning("class %s is in quarantine: %d of its objects ended processes", class_name, objects)

    def find(self, ref: ObjectRef) -> Record | None:
        return self._records.get((ref.class_name, ref.id))

    def holds(self, ref: ObjectRef) -> bool:
        """Whether the object is not run any more, for itself or with its class."""
        if ref.class_name in self._classes:
            return True
        record = self.find(ref)
        return record is not None and record.is_held

    def why_held(self, ref: ObjectRef, events: Iterable[str]) -> str | None:
        """None when the object is not held. `events` are the names that its class knows."""
        if (held := self._classes.get(ref.class_name)) is not None:
            return words_of_class(held)
        record = self.find(ref)
        return words_of(record, events) if record is not None and record.is_held else None

    def forgiving(self, ref: ObjectRef, now_us: Callable[[], int]) -> Callable[[int], None] | None:
        """What is to be told each event of an object that comes to its end; None: that changes nothing."""
        return None if self.find(ref) is None else partial(self._forgive, ref, now_us)

    def _forgive(self, ref: ObjectRef, now_us: Callable[[], int], event: int) -> None:
        record = self.find(ref)
        if record is None or record.is_held:
            return
        now = now_us()
        left = [end for end in record.ends if end.event != event or (end.is_own and not _is_old(end, now))]
        if not left:
            self._forget(record)
        elif len(left) < len(record.ends):
            record.ends, self._is_dirty = left, True

    def release(self, ref: ObjectRef) -> bool:
        """Let an object be run again, durably. False when it was not held. Raises OSError: it is held."""
        record = self.find(ref)
        if record is None or not record.is_held:
            return False
        with self._unchanged_on_error():
            self._forget(record)
            self.save()
        return True

    def release_class(self, class_name: str) -> bool:
        """Let the objects of a class be run again, durably, but for those that are held for themselves.

        They begin without an end. False when the class was not held. Raises OSError: it is held.
        """
        if class_name not in self._classes:
            return False
        with self._unchanged_on_error():
            del self._classes[class_name]
            for record in list(self._records.values()):
                if record.class_name == class_name and not record.is_held:
                    self._forget(record)
            self._is_dirty = True
            self.save()
        return True

    @contextmanager
    def _unchanged_on_error(self) -> Iterator[None]:
        """Whoever could not release something tries again, and more follows from a release than these."""
        records, classes = dict(self._records), dict(self._classes)
        try:
            yield
        except OSError:
            self._records, self._classes = records, classes
            raise

    def held_classes(self) -> list[ClassRecord]:
        """By name."""
        return [record for _, record in sorted(self._classes.items())]

    def held(self) -> list[ObjectRef]:
        """Those that are held for themselves, by class and id."""
        return [record.ref for _, record in sorted(self._records.items()) if record.is_held]

    def _forget(self, record: Record) -> None:
        del self._records[record.class_name, record.id]
        self._is_dirty = True

    def tend(self) -> None:
        """Write down who was forgiven. On a full disk that waits."""
        try:
            self.save()
        except OSError as error:
            log.warning("who is not to blame any more cannot be written down: %s", error)

    def save(self) -> None:
        """Write down what changed. Raises OSError."""
        if self._is_dirty:
            sequence = self._sequence + 1  # the same again where it failed: in the other file is what counts
            write_file(self._files, self._folder, self._content(sequence))
            self._sequence, self._is_dirty = sequence, False

    def _content(self, sequence: int) -> _File:
        return _File(sequence, list(self._records.values()), list(self._classes.values()))


def _is_old(end: End, now_us: int) -> bool:
    return abs(now_us - end.at_us) > FORGIVEN_SECONDS * 1_000_000  # the clock may have been set back


def words_of(record: Record, events: Iterable[str]) -> str:
    """Why an object is held, and the way out."""
    names = {number_of(event): event for event in (*events, "alarm", "fetch", "on_start", "a task")}
    ran = " and ".join(dict.fromkeys(names.get(end.event, "code") for end in record.ends))
    called = record.name or record.id
    by_id = "" if record.name else " --id"
    return (
        f"{record.class_name} {called} is in quarantine: {counted(len(record.ends))} ended while its "
        f"{ran} ran. `edgecli object release {record.class_name} {called}{by_id}`"
        " lets it be run again; `edgecli object alarm … --delete` first deletes an alarm that does it"
    )


def words_of_class(record: ClassRecord) -> str:
    """Why a class is held, and the way out."""
    return (
        f"Class {record.class_name} is in quarantine: {record.objects} of its objects ended processes within "
        f"{FORGIVEN_SECONDS // 60} minutes. `edgecli object quarantine release {record.class_name}` lets "
        "them be run again"
    )


def counted(processes: int) -> str:
    return "1 process" if processes == 1 else f"{processes} processes"


def read_newest(files: Files, folder: str) -> _File:
    """Files that are missing or were cut off have nothing. Raises OSError."""
    decode = msgspec.json.Decoder(_File).decode
    found = [inturn.read(files, path, decode) for path in _paths(folder)]
    return max((one for one in found if one), key=lambda one: one.sequence, default=_File(0, []))


def write_file(files: Files, folder: str, content: _File) -> None:
    """Durable when it returns. Raises OSError."""
    inturn.write(files, _paths(folder), content.sequence, msgspec.json.encode(content))


def take_room(files: Files, folder: str) -> None:
    """So that blame can also be written down when the disk is full. Raises OSError."""
    inturn.take_room(files, _paths(folder))


def _paths(folder: str) -> inturn.Paths:
    return f"{folder}/{_FILES[0]}", f"{folder}/{_FILES[1]}"


def deal_out(
    files: Files, old: Iterable[str], new: Mapping[int, str], owner: Callable[[ObjectRef], int]
) -> None:
    """Carry the records of some folders over to others, by who owns an object there. Raises OSError."""
    found = [Quarantine(files, folder) for folder in old]
    records = [record for one in found for record in one._records.values()]
    classes = list({name: record for one in found for name, record in one._classes.items()}.values())
    for worker, folder in new.items():
        mine = [record for record in records if owner(record.ref) == worker]
        if mine or classes:
            write_file(files, folder, _File(1, mine, classes))
