"""Values that several callers want, with one statement.

Owns  the queue of questions, the threads that ask the database, which answer is whose.
Not   large values: whoever opens a row's value reads them (`postgres.kv`).

While a statement runs, the queue fills: the more callers there are, the more values a statement reads.
"""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from queue import Empty, SimpleQueue
from typing import NamedTuple

from edgestead.model.refusals import Unavailable
from edgestead.postgres.connection import Row
from edgestead.postgres.pool import Pool
from edgestead.store.kv import Value

THREADS = 2  # so that the database works while the answers before are given out
LARGE_THREADS = 4  # that read large values, for which the small ones do not wait; as many of those elsewhere
FAR_WAITING_MAX = 64  # readers of values elsewhere, when that store is slow; more are refused
GROUP_READS_MAX = 64  # of one statement: with values in their rows 16 MiB at most

SELECT_VALUES = (
    "SELECT g.number, e.expires_at_s, e.metadata, e.blob_id, e.blob_bytes, e.blob_sha256, e.value "
    "FROM unnest(%b::int[], %b::text[], %b::bytea[], %b::bigint[]) AS g(number, id, key, now_s) "
    "JOIN kv_spaces s ON s.id = g.id JOIN kv_entries e ON e.space = s.number AND e.key = g.key "
    "WHERE e.expires_at_s IS NULL OR e.expires_at_s > g.now_s"
)


BLOB_ID = 2  # of the columns behind the number


class Ask(NamedTuple):
    namespace: str
    key: str
    now_s: int
    future: Future[Value | None]


Opened = Callable[[Pool, Ask, Row | None], Value | None]
"""Of a question, and the row that answers it, the value. Blocks for a large one."""


class Reads:
    """A `Soon`. `is_far` says of a blob's id whether its bytes are in a store of their own, which may be away
    alone: nobody else waits then.
    """

    def __init__(self, pool: Pool, opened: Opened, is_far: Callable[[str], bool] = lambda id_: False) -> None:
        self._pool, self._opened = pool, opened
        self._queue: SimpleQueue[Ask | None] = SimpleQueue()
        self._door = threading.Lock()  # nothing may be queued after the Nones that end the threads
        self._closed = False
        self._is_far = is_far
        self._large = ThreadPoolExecutor(LARGE_THREADS, "kv-large-reads")
        self._far = ThreadPoolExecutor(LARGE_THREADS, "kv-far-reads")
        self._far_waiting = threading.BoundedSemaphore(FAR_WAITING_MAX)
        self._threads = [
            threading.Thread(target=self._run, name="kv-reads", daemon=True) for _ in range(THREADS)
        ]
        for thread in self._threads:
            thread.start()

    def get(self, namespace: str, key: str, now_s: int) -> Future[Value | None]:
        """Raises Unavailable when closed."""
        asked = Ask(namespace, key, now_s, Future())
        with self._door:
            if self._closed:
                raise Unavailable()
            self._queue.put(asked)
        return asked.future

    def close(self) -> None:
        """Answer what is queued, then end. Idempotent."""
        with self._door:
            if not self._closed:
                self._closed = True
                for _ in self._threads:
                    self._queue.put(None)
        for thread in self._threads:
            thread.join()
        self._large.shutdown()
        self._far.shutdown()

    def _run(self) -> None:
        while True:
            first = self._queue.get()
            if first is None:
                return
            asked = [first]
            is_last = self._drain_into(asked)
            self._answer([one for one in asked if one.future.set_running_or_notify_cancel()])
            if is_last:
                return

    def _drain_into(self, asked: list[Ask]) -> bool:
        """Whether the queue has ended for this thread."""
        try:
            while len(asked) < GROUP_READS_MAX:
                one = self._queue.get_nowait()
                if one is None:
                    return True
                asked.append(one)
        except Empty:
            pass
        return False

    def _answer(self, asked: Sequence[Ask]) -> None:
        try:
            values = (
                list(range(len(asked))),
                [one.namespace for one in asked],
                [one.key.encode() for one in asked],
                [one.now_s for one in asked],
            )
            rows = {row[0]: row[1:] for row in self._pool.rows(SELECT_VALUES, values)} if asked else {}
        except Exception as error:
            for one in asked:
                one.future.set_exception(error)
            return
        for number, one in enumerate(asked):
            row = rows.get(number)
            if row is not None and row[BLOB_ID] is not None:
                self._settle_later(one, row)
            else:
                self._settle(one, row)

    def _settle_later(self, one: Ask, row: Row) -> None:
        if not self._is_far(row[BLOB_ID]):
            self._large.submit(self._settle, one, row)
        elif self._far_waiting.acquire(blocking=False):
            self._far.submit(self._settle, one, row).add_done_callback(lambda _: self._far_waiting.release())
        else:
            one.future.set_exception(Unavailable())

    def _settle(self, one: Ask, row: Row | None) -> None:
        try:
            one.future.set_result(self._opened(self._pool, one, row))
        except Exception as error:
            one.future.set_exception(error)
