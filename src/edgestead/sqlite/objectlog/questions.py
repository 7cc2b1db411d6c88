"""The past of a local log's objects.

Owns  reading history once it has every commit that was appended; restoring an object.
Not   reading history (`past`), or writing it (`archive`).
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

from edgestead.sqlite.objectlog.chronicle import Chronicle
from edgestead.sqlite.objectlog.directory import Directory, Known
from edgestead.sqlite.objectlog.past import PastReader
from edgestead.sqlite.objectlog.restoring import read_file, restoring_commits, write_frames
from edgestead.sqlite.objectlog.writer import GroupWriter
from edgestead.store.files import Files
from edgestead.store.objectlog import CommitKind, Lease, LogBroken, LogError, ObjectRef, Target, Told, Unknown
from edgestead.store.past import LoggedPosition, ObjectState

T = TypeVar("T")


class LocalPast:
    """`Past` on local files. `look_at_records()` returns a function that checks the records that are durable
    by then.
    """

    def __init__(
        self,
        directory: Directory,
        writer: GroupWriter,
        chronicle: Chronicle,
        files: Files,
        look_at_records: Callable[[], Callable[[], list[str]]],
    ) -> None:
        self._directory, self._writer, self._chronicle = directory, writer, chronicle
        self._files, self._look_at_records = files, look_at_records

    def locate(self, ref: ObjectRef, target: Target, generation: int, done: Told[LoggedPosition]) -> None:
        self._ask(ref, lambda past, number: past.find(number, target, generation), done)

    def position_at(self, ref: ObjectRef, time_us: int, done: Told[LoggedPosition]) -> None:
        self._ask(ref, lambda past, number: past.at_time(number, time_us), done)

    def moments(
        self, ref: ObjectRef, since_us: int, until_us: int, limit: int, done: Told[list[LoggedPosition]]
    ) -> None:
        self._ask(ref, lambda past, number: past.moments(number, since_us, until_us, limit), done)

    def recall(
        self, ref: ObjectRef, target: Target, generation: int, done: Told[tuple[LoggedPosition, ObjectState]]
    ) -> None:
        def job(past: PastReader, number: int) -> tuple[LoggedPosition, ObjectState]:
            found = past.find(number, target, generation)
            return found, past.state(number, found.position)

        self._ask(ref, job, done)

    def restore(self, lease: Lease, state: ObjectState, done: Callable[[LogError | None], None]) -> None:
        current = b"" if not lease.has_file else read_file(self._files, lease.path)
        commits = restoring_commits(current, state, lease.session + 1)
        group = lease.append(commits, state.alarm_us)

        def durable(error: LogError | None) -> None:
            if error is None:
                for commit in commits:
                    if commit.kind is CommitKind.PAGES:
                        write_frames(self._files, lease.path, commit.body)
                if not state.tail:
                    lease.put_base(lease.head)
            done(error)

        group.on_done(durable)
        self._writer.flush()

    def check(self, refs: Sequence[ObjectRef], done: Told[list[list[str]]]) -> None:
        try:
            known = [(one.number, one.head) for one in map(self._existing, refs)]
        except Unknown as error:
            done(None, error)
            return
        self._ask_all(lambda past: [past.check(number, head) for number, head in known], done)

    def check_all(self, done: Told[list[str]]) -> None:
        look_at_records = self._look_at_records()
        self._ask_all(lambda past: past.check_all() + look_at_records(), done)

    def _existing(self, ref: ObjectRef) -> Known:
        known = self._directory.existing(ref)
        if known is None:
            raise Unknown(f"object {ref.class_name}/{ref.id} was never written")
        return known

    def _ask(self, ref: ObjectRef, job: Callable[[PastReader, int], T], done: Told[T]) -> None:
        """Run `job(past, number)` once history has every commit that was appended."""
        try:
            number = self._existing(ref).number
        except Unknown as error:
            done(None, error)
            return
        self._ask_all(lambda past: job(past, number), done)

    def _ask_all(self, job: Callable[[PastReader], T], done: Told[T]) -> None:
        def decided(error: LogError | None) -> None:
            if isinstance(error, LogBroken):
                done(None, error)
            else:  # refused commits are not part of the past
                self._chronicle.ask(job, done)

        self._writer.when_decided(decided)
