"""History from the log's thread: when to copy records, to answer questions, to thin out.

Owns  when history follows the log, questions about the past, which sealed segments history still needs.
Not   bases, leases and commits (`local`).

History has its own thread: copying a segment takes longer than preparing the next one may take. On a full
disk it works in the reserved space and drops the oldest past first; when that is not enough it lags behind,
and the segments are kept.
"""

import errno
import logging
from collections.abc import Callable
from typing import Any, TypeVar

import apsw

from edgestead.sqlite.objectlog.archive import SMALL_BATCH_BYTES, Archive, Durable
from edgestead.sqlite.objectlog.history import Cursor, History
from edgestead.store.history.reader import DAMAGES, PastReader
from edgestead.store.history.thinning import Keeping, Thinning
from edgestead.store.objectlog import LogAway, LogError, NoSpace
from edgestead.store.runner import Runner

log = logging.getLogger(__name__)
T = TypeVar("T")
Told = Callable[[Any, LogError | None], None]
_PASSING = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN})  # somebody has to give back


class Chronicle:
    """`durable` lists the live segments; `moved` is called when sealed segments may have become unneeded."""

    def __init__(
        self,
        history: History,
        archive: Archive,
        runner: Runner,
        durable: Callable[[], list[Durable]],
        moved: Callable[[], None],
        keeping: Keeping,
        now_us: Callable[[], int],
    ) -> None:
        self._history, self._archive, self._runner = history, archive, runner
        self._durable, self._moved, self._now_us = durable, moved, now_us
        self._past = PastReader(history)
        self._thinning = Thinning(history, keeping)
        self._busy = False
        self._is_damaged = False
        self.cursor = history.cursor()
        self.bytes_total = history.total_bytes()

    @property
    def needed_from(self) -> int:
        """The oldest generation of segments that history does not have whole."""
        return self.cursor.segment

    @property
    def is_damaged(self) -> bool:
        """Whether a part of the past could not be read, since the start."""
        return self._is_damaged or self._past.found_faults or self._thinning.found_faults

    def follow(self) -> None:
        """Copy what is durable, unless that is already running."""
        if self._busy:
            return
        self._busy = True
        segments = self._durable()
        self._runner.run(lambda: self._follow(segments), self._followed)

    def _follow(self, segments: list[Durable]) -> tuple[Cursor, int]:
        try:
            cursor = self._archive.follow(segments)
        except apsw.FullError:
            self._thinning.make_room()
            cursor = self._archive.follow(segments, SMALL_BATCH_BYTES)
        return cursor, self._history.total_bytes()

    def _followed(self, found: Any, error: Exception | None) -> None:
        self._busy = False
        if error is not None:
            log.error("history does not follow the object log: %s", error)
            self._note(error)
            return
        self.cursor, self.bytes_total = found
        self._moved()

    def ask(self, job: Callable[[PastReader], T], done: Told) -> None:
        """Run `job` once history has all that is in the log now, then call `done(result, error)`.

        The error is a LogError.
        """
        segments = self._durable()

        def run() -> tuple[Any, tuple[Cursor, int]]:
            followed = self._follow(segments)
            return job(self._past), followed

        def told(found: Any, error: Exception | None) -> None:
            if error is not None:
                self._note(error)
                done(None, _as_log_error(error))
                return
            result, (self.cursor, self.bytes_total) = found
            done(result, None)

        self._runner.run(run, told)

    def _note(self, error: Exception) -> None:
        self._is_damaged = self._is_damaged or isinstance(error, DAMAGES)

    def copy(self, path: str, done: Told) -> None:
        """Copy history to a new file."""
        self._runner.run(
            lambda: self._history.copy(path),
            lambda _, error: done(None, None if error is None else _as_log_error(error)),
        )

    def tend(self) -> None:
        """Thin and expire a little."""
        if self._busy:
            return
        self._busy = True
        now_us = self._now_us()
        self._runner.run(lambda: self._tidy(now_us), self._tidied)

    def _tidy(self, now_us: int) -> int:
        self._thinning.step(now_us)
        return self._history.total_bytes()

    def _tidied(self, total: Any, error: Exception | None) -> None:
        self._busy = False
        if error is not None:
            log.error("history is not tidied up: %s", error)
            self._note(error)
        else:
            self.bytes_total = total

    def finish(self, next_generation: int) -> None:
        """Copy the last records, on this thread; the runner must be drained.

        Later records will be in a segment of that generation.
        """
        try:
            self._follow(self._durable())
            self.cursor = self._archive.move_on(next_generation)
        except Exception as error:  # damage of the past, too: the log has to be closed
            log.error("history is behind the object log, and goes on at the next start: %s", error)
            self._note(error)

    def close(self) -> None:
        self._history.close()


def _as_log_error(error: Exception) -> LogError:
    if isinstance(error, LogError):
        return error
    if isinstance(error, apsw.FullError):
        return NoSpace("no space left for the objects' history")
    if isinstance(error, OSError) and error.errno in _PASSING:
        return LogAway(f"the objects' history cannot be read now: {error}")
    return LogError(f"the objects' history cannot be read: {error}")
