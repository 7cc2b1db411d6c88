"""Running the log's slow work.

Owns  the interface of a runner, and its two simple implementations.
Not   what the work is. A simulated runner is in `testing.simulation`.
"""

import queue
import threading
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

QUICK_SECONDS = 0.0004
"""What a busy loop loses by handing a job to a thread: the thread waits for the interpreter before and after
each call that lets go of it, and the loop is woken."""
TRY_EVERY = 64  # jobs

Job = Callable[[], Any]
Done = Callable[[Any, Exception | None], None]


class Runner(Protocol):
    """Runs jobs in order, off the owner's thread; `done(result, error)` is called on the owner's thread."""

    def run(self, job: Job, done: Done) -> None: ...

    def drain(self) -> None:
        """Wait for every job, and deliver its result on this thread."""
        ...

    def close(self) -> None:
        """Drain, then end."""
        ...


def attempt(job: Job) -> tuple[Any, Exception | None]:
    """A job's result, or what it raised."""
    try:
        return job(), None
    except Exception as error:
        return None, error


class InlineRunner:
    """Runs each job immediately, on the owner's thread."""

    def run(self, job: Job, done: Done) -> None:
        done(*attempt(job))

    def drain(self) -> None:
        pass

    def close(self) -> None:
        pass


class TimedRunner(InlineRunner):
    """The same, and it measures how long jobs take on the owner's thread.

    `clock` returns seconds. Without one `is_quick` stays false, so that runs are repeatable.
    """

    def __init__(self, clock: Callable[[], float] | None) -> None:
        self._clock = clock
        self._seconds = 0.0  # a moving average
        self._elsewhere = 0  # jobs given to another runner meanwhile

    @property
    def is_quick(self) -> bool:
        """Whether a job takes less time here than handing it to a thread."""
        return self._clock is not None and self._seconds < QUICK_SECONDS

    def is_due(self) -> bool:
        """Whether to run one of the other runner's jobs here, as a sample. To be called once for each job."""
        self._elsewhere += 1
        return self._clock is not None and self._elsewhere % TRY_EVERY == 0

    def run(self, job: Job, done: Done) -> None:
        if self._clock is None:
            return super().run(job, done)
        began = self._clock()
        result = attempt(job)
        seconds = min(self._clock() - began, 2 * QUICK_SECONDS)  # limits the weight of an outlier
        self._seconds += (seconds - self._seconds) / 8
        done(*result)


class ThreadRunner:
    """Runs jobs on one separate thread.

    `call_soon` is the loop's `call_soon_threadsafe`.
    """

    def __init__(self, call_soon: Callable[[Callable[[], None]], Any], name: str) -> None:
        self._call_soon = call_soon
        self._jobs: queue.SimpleQueue[tuple[Job, Done] | None] = queue.SimpleQueue()
        self._finished: deque[tuple[Done, Any, Exception | None]] = deque()
        self._open = 0  # jobs whose result was not delivered; touched by the owner only
        self._draining = False
        self._arrived = threading.Semaphore(0)
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    def run(self, job: Job, done: Done) -> None:
        self._open += 1
        self._jobs.put((job, done))

    def drain(self) -> None:
        self._draining = True
        try:
            while self._open:
                if not self._finished:
                    self._arrived.acquire()
                self._deliver()
        finally:
            self._draining = False

    def close(self) -> None:
        self.drain()
        self._jobs.put(None)
        self._thread.join()

    def _work(self) -> None:
        while (task := self._jobs.get()) is not None:
            job, done = task
            self._finished.append((done, *attempt(job)))
            self._arrived.release()
            if not self._draining:
                self._wake()

    def _wake(self) -> None:
        try:
            self._call_soon(self._deliver)
        except RuntimeError:
            pass  # the loop is closed: `drain` delivers

    def _deliver(self) -> None:
        while self._finished:
            done, result, error = self._finished.popleft()
            self._open -= 1
            done(result, error)
