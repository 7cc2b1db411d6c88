"""Where slow work of the log runs: in order, and each result once, on the owner's thread."""

import itertools
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from edgestead.store.runner import (
    QUICK_SECONDS,
    TRY_EVERY,
    InlineRunner,
    ThreadRunner,
    TimedRunner,
)

Told = list[tuple[Any, Exception | None]]


def fail() -> None:
    raise LookupError("on purpose")


@pytest.fixture
def told() -> Told:
    return []


def test_a_job_tells_its_result_or_what_it_raised(told: Told) -> None:
    runner = InlineRunner()
    for job in (lambda: 1, fail):
        runner.run(job, lambda result, error: told.append((result, error)))

    assert [(result, type(error)) for result, error in told] == [(1, type(None)), (None, LookupError)]


class Clock:
    """It moves when a job runs."""

    def __init__(self) -> None:
        self.seconds = 100.0

    def __call__(self) -> float:
        return self.seconds

    def passes(self, seconds: float) -> Callable[[], None]:
        def job() -> None:
            self.seconds += seconds

        return job


def test_one_job_in_so_many_is_tried_on_the_owners_thread() -> None:
    runner = TimedRunner(Clock())

    due = [number for number in range(1, 3 * TRY_EVERY) if runner.is_due()]

    assert due == [TRY_EVERY, 2 * TRY_EVERY]


def test_without_a_clock_nothing_is_tried_and_nothing_is_quick(told: Told) -> None:
    runner = TimedRunner(None)

    assert not any(runner.is_due() for _ in range(2 * TRY_EVERY))
    runner.run(lambda: 1, lambda result, error: told.append((result, error)))

    assert told == [(1, None)]
    assert not runner.is_quick


def test_jobs_are_quick_while_their_average_is(told: Told) -> None:
    clock = Clock()
    runner = TimedRunner(clock)
    assert runner.is_quick

    def run(seconds: float, times: int) -> list[bool]:
        found = []
        for _ in range(times):
            runner.run(clock.passes(seconds), lambda result, error: told.append((result, error)))
            found.append(runner.is_quick)
        return found

    assert run(60, 1) == [True], "one that is late is not many that are slow"
    assert run(60, 5) == [True] * 4 + [False]
    assert run(QUICK_SECONDS / 2, 3).count(True) >= 1
    assert all(run(QUICK_SECONDS * 0.99, 20))
    assert not all(run(QUICK_SECONDS * 1.2, 40))
    assert len(told) == 69


@pytest.fixture
def soon() -> list[Callable[[], None]]:
    """What a loop is to call."""
    return []


@pytest.fixture
def runner(soon: list[Callable[[], None]]) -> Iterator[ThreadRunner]:
    made = ThreadRunner(soon.append, "work")
    yield made
    made.close()


def test_a_thread_runs_jobs_in_order_and_tells_them_where_it_was_asked(
    runner: ThreadRunner, soon: list[Callable[[], None]], told: Told
) -> None:
    threads: list[str] = []
    numbers = itertools.count()

    def job() -> int:
        threads.append(threading.current_thread().name)
        return next(numbers)

    def done(result: Any, error: Exception | None) -> None:
        threads.append(threading.current_thread().name)
        told.append((result, error))

    for _ in range(5):
        runner.run(job, done)
    runner.run(fail, done)
    runner.drain()

    assert [result for result, _ in told] == [0, 1, 2, 3, 4, None]
    assert isinstance(told[-1][1], LookupError)
    assert set(threads) == {"work", threading.current_thread().name}
    assert threads.count("work") == 5
    for call in soon:
        call()
    assert len(told) == 6, "each once"


def test_the_loop_is_woken_for_each_result(soon: list[Callable[[], None]], told: Told) -> None:
    woken = threading.Semaphore(0)

    def call_soon(call: Callable[[], None]) -> None:
        soon.append(call)
        woken.release()

    runner = ThreadRunner(call_soon, "work")
    for number in range(3):
        runner.run(lambda: 1, lambda result, error: told.append((result, error)))
        assert woken.acquire(timeout=60)
        assert len(told) == number
        soon.pop()()
        assert len(told) == number + 1
    runner.close()


def test_a_result_of_a_result_is_waited_for_too(runner: ThreadRunner, told: Told) -> None:
    def again(result: Any, error: Exception | None) -> None:
        told.append((result, error))
        if len(told) < 4:
            runner.run(lambda: len(told), again)

    runner.run(lambda: 0, again)
    runner.drain()

    assert told == [(0, None), (1, None), (2, None), (3, None)]


def test_a_closed_loop_loses_no_result(told: Told) -> None:
    def refuse(call: Callable[[], None]) -> None:
        raise RuntimeError("the loop is closed")

    runner = ThreadRunner(refuse, "work")
    for _ in range(20):
        runner.run(lambda: 1, lambda result, error: told.append((result, error)))
    runner.close()

    assert told == [(1, None)] * 20
    assert not runner._thread.is_alive()


def test_its_thread_does_not_keep_a_process_alive(runner: ThreadRunner) -> None:
    assert runner._thread.daemon


def test_after_a_drain_that_raised_the_loop_is_woken_again(
    soon: list[Callable[[], None]], told: Told
) -> None:
    woken = threading.Semaphore(0)
    runner = ThreadRunner(lambda call: (soon.append(call), woken.release()), "work")

    def raises(result: Any, error: Exception | None) -> None:
        raise LookupError("on purpose")

    runner.run(lambda: 1, raises)
    with pytest.raises(LookupError):
        runner.drain()

    runner.run(lambda: 2, lambda result, error: told.append((result, error)))

    while not told:
        assert woken.acquire(timeout=60)
        soon[-1]()
    assert told == [(2, None)]
    runner.close()


def test_after_a_drain_the_loop_is_woken_again(soon: list[Callable[[], None]], told: Told) -> None:
    woken = threading.Semaphore(0)
    runner = ThreadRunner(lambda call: (soon.append(call), woken.release()), "work")
    runner.run(lambda: 1, lambda result, error: told.append((result, error)))
    runner.drain()

    runner.run(lambda: 2, lambda result, error: told.append((result, error)))

    while len(told) < 2:
        assert woken.acquire(timeout=60)
        soon[-1]()
    assert [result for result, _ in told] == [1, 2]
    runner.close()
