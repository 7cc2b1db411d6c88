"""Who does nothing at all is found sooner than who is slow."""

import subprocess
import sys
import time
from itertools import pairwise

import pytest

from edgestead.feed import stillness
from edgestead.feed.lease import BEAT_MS
from edgestead.feed.promise import EXPECTED_MS, EXPECTED_STILL_PART, SILENCE_MS, TICK_MS, Leased
from edgestead.feed.stillness import Stillness, work_of
from tests.feed.control import Control

STILL_MS = 500
LEASES = {"objects": Leased(frozenset({"token"}), silence_ms=60_000)}
SECONDS_MAX = 300
WORKING = {
    "it runs": lambda look: look,
    "it is busy": lambda look: None,
    "it ran for a moment": lambda look: look // 4,
}


def test_only_looks_that_find_it_as_before_count():
    seen = Stillness()
    assert [seen.look(work, 100) for work in (5, 5, 5, 6, 6, None, 6, 6)] == [0, 100, 200, 0, 100, 0, 0, 100]

    seen.over()

    assert [seen.look(work, 100) for work in (6, 6)] == [0, 100]


@pytest.fixture
def control():
    made = Control(still_ms=STILL_MS, leases=LEASES)
    made.join(1)
    made.promise.beat()
    made.forget()
    return made


def test_one_that_does_nothing_is_killed_when_two_heartbeats_are_due(control):
    control.works[1] = 7
    control.pass_ms(BEAT_MS + STILL_MS - TICK_MS)
    assert control.take() == []

    control.pass_ms(TICK_MS)

    assert control.take() == [(1, "kill")]


@pytest.mark.parametrize("work", WORKING.values(), ids=WORKING)
def test_one_that_works_is_slow_at_most(control, work):
    for look in range(SILENCE_MS // TICK_MS - 1):
        control.works[1] = work(look)
        control.pass_ms(TICK_MS)

    assert control.take() == []


def test_one_that_answers_may_do_nothing_between_two_heartbeats(control):
    control.works[1] = 7
    for _ in range(10):
        control.pass_ms(BEAT_MS + STILL_MS - TICK_MS)
        control.promise.beaten(1)
        control.promise.beat()

    assert (1, "kill") not in control.take()


@pytest.fixture
def restarted():
    """One that was there before waits to hear from its consumer 1."""
    made = Control(still_ms=STILL_MS)
    made.promise.expect(1, "dns")
    made.forget()
    return made


def test_one_from_before_a_restart_that_does_nothing_is_killed_sooner(restarted):
    control = restarted
    control.works[1] = 7
    control.pass_ms(EXPECTED_STILL_PART * STILL_MS)
    assert control.take() == []

    control.pass_ms(TICK_MS)  # the first look only begins to count

    assert control.take() == [(1, "kill")]


@pytest.mark.parametrize("work", WORKING.values(), ids=WORKING)
def test_one_from_before_a_restart_that_works_has_all_of_its_time(restarted, work):
    for look in range(int(EXPECTED_MS) // TICK_MS - 1):
        restarted.works[1] = work(look)
        restarted.pass_ms(TICK_MS)

    assert restarted.take() == []


def test_who_runs_user_code_may_wait_for_as_long_as_it_likes(control):
    control.join(2, "objects")
    control.promise.beaten(1)
    control.promise.beat()
    control.works[2] = 7
    control.forget()
    control.pass_ms(10 * STILL_MS)

    assert control.take() == []


def process(code):
    command = [sys.executable, "-c", f"print(flush=True)\n{code}"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.PIPE)


def looks_at(code, is_enough):
    """Look at a process until it is enough; what was seen."""
    with process(code) as made:
        made.stdout.readline()
        seen, end = [], time.monotonic() + SECONDS_MAX
        while not is_enough(seen) and time.monotonic() < end:
            seen.append(work_of(made.pid))
            time.sleep(0.01)
        made.kill()
    return seen


def test_a_process_that_waits_for_ever_is_seen_not_to_run():
    seen = looks_at("input()", lambda seen: seen[-3:-2] and None not in seen[-3:] and len({*seen[-3:]}) == 1)

    assert len({*seen[-3:]}) == 1


def test_a_process_that_computes_is_never_seen_twice_with_the_same_work():
    threads = (
        "import threading\nthreading.Thread(target=lambda: [None for _ in iter(int, 1)]).start()\ninput()"
    )
    seen = looks_at(threads, lambda seen: len(seen) == 20)

    assert not any(one == other is not None for one, other in pairwise(seen))


def test_of_a_process_that_is_gone_nothing_is_known(monkeypatch):
    with process("") as made:
        pass
    assert work_of(made.pid) is None


def test_where_the_kernel_does_not_say_nobody_is_still(monkeypatch, tmp_path):
    monkeypatch.setattr(stillness, "Path", lambda place: tmp_path / "nothing")

    assert work_of(1) is None
