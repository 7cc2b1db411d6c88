"""What every log is asked about its past in the same way, and how an object is restored.

Owns  `HistoryPast`: the questions to a `PastReader`, and the commits of a restore.
Not   when history has what was appended, or which thread reads it (each log's own past).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TypeVar

from edgestead.store.files import Files
from edgestead.store.history.reader import PastReader
from edgestead.store.history.restoring import read_file, restoring_commits, write_frames
from edgestead.store.objectlog import (
    Commit,
    CommitKind,
    Lease,
    LogAway,
    LogError,
    ObjectRef,
    Target,
    Told,
)
from edgestead.store.past import LoggedPosition, ObjectState

T = TypeVar("T")


class HistoryPast(ABC):
    """The part of a `Past` that does not depend on where history is. `files` has the databases of objects."""

    def __init__(self, files: Files) -> None:
        self._files = files

    @abstractmethod
    def _ask(self, ref: ObjectRef, job: Callable[[PastReader, int], T], done: Told[T]) -> None:
        """Run `job(past, number)` once history has every commit that was appended; `done` is told Unknown."""

    @abstractmethod
    def _flush(self) -> None:
        """Have everything that was appended committed."""

    def locate(self, ref: ObjectRef, target: Target, generation: int, done: Told[LoggedPosition]) -> None:
        self._ask(ref, lambda past, number: past.find(number, target, generation), done)

    def position_at(self, ref: ObjectRef, time_us: int, done: Told[LoggedPosition]) -> None:
        self._ask(ref, lambda past, number: past.at_time(number, time_us), done)

    def moments(
        self, ref: ObjectRef, since_us: int, until_us: int, limit: int, done: Told[list[LoggedPosition]]
    ) -> None:
        self._ask(ref, lambda past, number: past.moments(number, since_us, until_us, limit), done)

    def recall(
        self,
        ref: ObjectRef,
        target: Target,
        generation: int,
        done: Told[tuple[LoggedPosition, ObjectState]],
        *,
        bytes_max: int | None = None,
    ) -> None:
        def job(past: PastReader, number: int) -> tuple[LoggedPosition, ObjectState]:
            found = past.find(number, target, generation)
            return found, past.state(number, found.position, bytes_max=bytes_max)

        self._ask(ref, job, done)

    def restore(self, lease: Lease, state: ObjectState, done: Callable[[LogError | None], None]) -> None:
        current = b"" if not lease.has_file else read_file(self._files, lease.path)
        commits = restoring_commits(current, state, lease.session + 1)
        group = lease.append(commits, state.alarm_us)

        def durable(error: LogError | None) -> None:
            try:
                if error is None:
                    write(commits)
            except OSError as failure:  # the log has it: only the file does not
                error = LogAway(f"its database cannot be written: {failure}")
            done(error)

        def write(commits: list[Commit]) -> None:
            for commit in commits:
                if commit.kind is CommitKind.PAGES:
                    write_frames(self._files, lease.path, commit.body)
            if not state.tail:
                lease.put_base(lease.head)

        group.on_done(durable)
        self._flush()
