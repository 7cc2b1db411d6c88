"""Which request a commit was for, and what it is answered: for who has lost the leader in the middle of one.

Owns  what an entry of a cluster's log says of requests; waiting for it.
Not   requests themselves; which answers are kept (`rest.kept`).

A control node that passes a request on gives it a number. The leader's commit carries the number, and the
answer where it is short and holds no secret. When the leader is lost, the node finds both in the log, which
it follows anyway. A request that reached the leader itself has no number, and costs nothing: its client lost
its connection with the leader.
"""

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final, TypeVar

from edgestead.store.control import Answered, Transaction
from edgestead.store.controllog import NotLeader

ANSWER_BYTES_MAX: Final = 16_384  # of an answer that is kept; a commit has 256 requests at most

T = TypeVar("T")


class Passed:
    """A request that another node passed on. `answer` is set by whoever knows it, inside of a transaction;
    `kept` is what was noted of it, None before the first.

    `holds` is asked in each transaction: the other node believes that nothing of it lands any more when the
    process that it was passed on to leads by another number.
    """

    def __init__(self, request: str, holds: Callable[[], bool]) -> None:
        self._request, self._holds = request, holds
        self.answer = b""
        self.kept: bytes | None = None

    def noted(self, fn: Callable[[Transaction], T]) -> Callable[[Transaction], T]:
        """`fn`, whose commit says what it was for. It raises NotLeader, too."""

        def run(tx: Transaction) -> T:
            if not self._holds():
                raise NotLeader
            value = fn(tx)
            is_whole = self.kept is None and len(self.answer) <= ANSWER_BYTES_MAX
            self.kept = self.answer if is_whole else b""
            tx.answered(Answered(self._request, self.kept))
            return value

        return run


PASSED: ContextVar[Passed | None] = ContextVar("PASSED", default=None)
"""The request that this task works on, where another node passed it on."""


class Answers:
    """Of the requests that somebody here waits for. For any thread; bounded by those who wait."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._found: dict[str, bytes | None] = {}

    @contextmanager
    def waited_for(self, request: str) -> Iterator[None]:
        """Before it is passed on, until its answer is known."""
        with self._lock:
            self._found[request] = None
        try:
            yield
        finally:
            with self._lock:
                del self._found[request]

    def landed(self, some: Iterable[Answered]) -> None:
        """The log has them. A second commit of a request leaves no whole answer."""
        with self._lock:
            for one in some:
                if one.request in self._found:
                    is_first = self._found[one.request] is None
                    self._found[one.request] = one.answer if is_first else b""

    def of(self, request: str) -> bytes | None:
        """None where it has written nothing so far."""
        with self._lock:
            return self._found[request]
