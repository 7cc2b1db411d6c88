"""The past of a cluster's objects.

Owns  when history is asked, each question in one transaction; what is thinned in one step.
Not   the questions (`store.history.asking`), reading history (`store.history.reader`), or its rows (`book`).
"""

import logging
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol, TypeVar

from edgestead.model.seldom import Seldom
from edgestead.postgres.connection import Link
from edgestead.postgres.objectlog import bases, opening
from edgestead.postgres.objectlog.book import PostgresBook
from edgestead.postgres.objectlog.committer import Committer
from edgestead.store.files import Files
from edgestead.store.history.asking import HistoryPast
from edgestead.store.history.reader import DAMAGES, PastReader
from edgestead.store.history.thinning import Keeping, Thinning
from edgestead.store.objectlog import LogError, ObjectRef, Told, Unknown

AGED_AT_ONCE: Final = 16  # objects whose old rows become history in one step
AGED = (
    "SELECT o.number FROM objects o WHERE o.number > %b AND o.slot = ANY (%b::integer[]) AND "
    "(SELECT l.time_us FROM object_log l WHERE l.number = o.number ORDER BY l.position LIMIT 1) < %b "
    "ORDER BY o.number LIMIT %b"
)

T = TypeVar("T")
log = logging.getLogger(__name__)


class Numbered(Protocol):
    number: int
    head: int


class PostgresPast(HistoryPast):
    """`Past` on PostgreSQL. `ask(job, done)` runs a job on the thread that has `link`."""

    def __init__(
        self,
        ask: Callable[[Callable[[], Any], Callable[[Any, LogError | None], None]], None],
        committer: Committer,
        files: Files,
        incarnation: int,
        life: int,
        keeping: Keeping,
        link: Link,
    ) -> None:
        super().__init__(files)
        self._run, self._committer = ask, committer
        self._incarnation, self._keeping, self._link = incarnation, keeping, link
        self._book = PostgresBook(link, incarnation)
        self._reader, self._thinning = PastReader(self._book), Thinning(self._book, keeping)
        self._after, self._is_tending = 0, False
        self._damages, self._failures = Seldom(), Seldom()

    def check(self, refs: Sequence[ObjectRef], done: Told[list[list[str]]]) -> None:
        def job() -> list[list[str]]:
            return [self._check(*self._found(ref)) for ref in refs]

        self._when_decided(job, done)

    def _check(self, number: int, head: int) -> list[str]:
        self._book.forget()  # one object's rows in memory at a time
        return self._reader.check(number, head)

    def check_all(self, done: Told[list[str]]) -> None:
        done([], None)  # what PostgreSQL has is checked by PostgreSQL

    def _ask(self, ref: ObjectRef, job: Callable[[PastReader, int], T], done: Told[T]) -> None:
        self._when_decided(lambda: job(self._reader, self._found(ref)[0]), done)

    def _flush(self) -> None:
        self._committer.flush()

    def _found(self, ref: ObjectRef) -> tuple[int, int]:
        """Number and head. Raises Unknown."""
        found = opening.find(self._link, ref)
        if found is None:
            raise Unknown(f"object {ref.class_name}/{ref.id} was never written")
        return found.number, found.head

    def _when_decided(self, job: Callable[[], T], done: Told[T]) -> None:
        """Run a job in one transaction once everything that was appended is durable, or refused."""

        def run() -> T:
            self._book.forget()
            try:
                with self._link.transaction(one_state=True):  # bases are made meanwhile
                    return job()
            finally:
                self._book.forget()

        self._committer.when_decided(lambda error: self._run(run, done))

    # upkeep

    def tend(self, slots: list[int], now_us: int) -> None:
        """Fold, thin and expire a little of some slots' past."""
        if self._is_tending or not slots:
            return
        self._is_tending = True

        def tended(_: object, error: LogError | None) -> None:
            self._is_tending = False
            if error is not None and (times := self._failures.happened()):
                log.error("the past is not tidied up (%d since the last line): %s", times, error)

        self._run(lambda: self._tend(slots, now_us), tended)

    def _tend(self, slots: list[int], now_us: int) -> None:
        before_us = now_us - self._keeping.recent_us
        rows = self._link.rows(AGED, (self._after, slots, before_us, AGED_AT_ONCE))
        self._after = rows[-1][0] if len(rows) == AGED_AT_ONCE else 0
        for (number,) in rows:
            try:
                bases.make(self._link, self._incarnation, number)
            except DAMAGES as error:  # it would keep all others from upkeep
                if times := self._damages.happened():
                    words = "the past of the object number %d is not tidied up (%d since the last line): %s"
                    log.error(words, number, times, error)
        self._book.slots = slots
        self._thinning.step(now_us)
