"""The past of a local log's objects.

Owns  reading history once it has every commit that was appended.
Not   what is read (`store.history`), or writing it (`archive`).
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

from edgestead.sqlite.objectlog.chronicle import Chronicle
from edgestead.sqlite.objectlog.directory import Directory, Known
from edgestead.sqlite.objectlog.writer import GroupWriter
from edgestead.store.files import Files
from edgestead.store.history.asking import HistoryPast
from edgestead.store.history.reader import PastReader
from edgestead.store.objectlog import LogBroken, LogError, ObjectRef, Told, Unknown

T = TypeVar("T")


class LocalPast(HistoryPast):
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
        super().__init__(files)
        self._directory, self._writer, self._chronicle = directory, writer, chronicle
        self._look_at_records = look_at_records

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
        try:
            number = self._existing(ref).number
        except Unknown as error:
            done(None, error)
            return
        self._ask_all(lambda past: job(past, number), done)

    def _flush(self) -> None:
        self._writer.flush()

    def _ask_all(self, job: Callable[[PastReader], T], done: Told[T]) -> None:
        def decided(error: LogError | None) -> None:
            if isinstance(error, LogBroken):
                done(None, error)
            else:  # refused commits are not part of the past
                self._chronicle.ask(job, done)

        self._writer.when_decided(decided)
