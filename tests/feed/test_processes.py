"""The promise with real processes, real signals and a real store."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path

import pytest
import uvloop

from edgestead.feed import publisher
from edgestead.feed.publisher import Expected, Publisher
from edgestead.sqlite.control import SqliteControlStore
from edgestead.store.writes import Writes
from tests.descriptors import left_open, open_now

WORKER = Path(__file__).with_name("worker.py")
SECONDS_MAX = 300  # until something that has to happen counts as a failure
PATIENT_MS = 30_000  # where nobody has to be killed, a busy machine must not make anybody late
SHORT_MS = 2_000  # what it takes to be killed; the others must not be as late


class Worker:
    """One consumer process and the lines it has said so far."""

    def __init__(self, address, group="dns", how="thread", kinds=""):
        self.group = group
        self.process = subprocess.Popen(
            [sys.executable, WORKER, address, group, how, kinds],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        self.lines = []
        self.news = threading.Condition()
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            with self.news:
                self.lines.append(line.strip())
                self.news.notify_all()

    async def said(self, line):
        """Wait until the process has said a line."""
        with_line = lambda: line in self.lines  # noqa: E731
        assert await asyncio.to_thread(self.wait_for, with_line), f"{line!r} not in {self.lines}"

    def wait_for(self, condition):
        with self.news:
            return self.news.wait_for(condition, SECONDS_MAX)

    def expected(self):
        return Expected(self.process.pid, os.pidfd_open(self.process.pid), self.group)

    def stand_still(self):
        """Returns when it does: on a busy machine threads go on until one of them has taken the signal."""
        self.process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self.process.pid, os.WSTOPPED | os.WNOWAIT)

    def end(self):
        self.process.kill()
        self.process.wait()
        self.reader.join()
        self.process.stdout.close()


class House:
    """What the supervisor keeps over a restart of control, and control itself."""

    def __init__(self, folder, barrier_ms):
        self.folder = folder
        self.barrier_ms = barrier_ms
        self.address = str(folder / "feed.sock")
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.address)
        self.listener.listen(64)
        self.workers = []
        self.store = None

    def start_control(self, *expected):
        self.store = SqliteControlStore(self.folder / "control.db")
        self.publisher = Publisher(self.store.feed, self.listener, barrier_ms=self.barrier_ms)
        self.publisher.start(self.store, expected)
        self.writes = Writes(self.store, self.publisher)

    def stop_control(self):
        if self.store is not None:
            self.publisher.close()
            self.store.close()
            self.store = None

    async def worker(self, group="dns", how="thread", kinds=""):
        made = self.start_worker(group, how, kinds)
        await made.said("serve")
        return made

    def start_worker(self, group="dns", how="thread", kinds=""):
        self.workers.append(Worker(self.address, group, how, kinds))
        return self.workers[-1]

    async def put(self, key, doc=b"1", *, kind="name", first=""):
        async with asyncio.timeout(SECONDS_MAX):
            committed = await self.writes.write(lambda tx: tx.emit("zone", kind, key, doc, first=first))
        return committed.sequence

    def end(self):
        self.stop_control()
        for worker in self.workers:
            worker.end()
        self.listener.close()


LOOPS = {"uvloop": uvloop.new_event_loop, "asyncio": asyncio.new_event_loop}


@pytest.fixture
def run(tmp_path):
    """Run an async test in a house with a control, on the loop that control has in the product."""

    def runner(test, loop="uvloop", barrier_ms=PATIENT_MS):
        async def main():
            house = House(tmp_path, barrier_ms)
            try:
                house.start_control()
                await test(house)
            finally:
                house.end()

        with asyncio.Runner(loop_factory=LOOPS[loop]) as runner:
            runner.run(main())

    return runner


@pytest.mark.parametrize("how", ["thread", "loop"])
@pytest.mark.parametrize("loop", LOOPS)
def test_an_answered_write_is_applied(run, how, loop):
    async def test(house):
        await house.put("before")
        worker = await house.worker(how=how)
        await house.put("after")
        await worker.said("2 after 1")
        await house.put("after", None)
        await worker.said("3 after -")

        assert worker.lines == ["begin", "1 before 1", "swap", "serve", "2 after 1", "3 after -"]
        assert len(house.publisher.live("dns")) == 1

    run(test, loop)


def test_a_stopped_worker_is_killed_and_the_write_succeeds(run):
    async def test(house):
        stopped, other = await house.worker(), await house.worker(how="loop")
        stopped.stand_still()

        sequence = await house.put("a")

        assert stopped.process.wait(SECONDS_MAX) == -signal.SIGKILL
        await other.said(f"{sequence} a 1")
        assert len(house.publisher.live("dns")) == 1

    run(test, barrier_ms=SHORT_MS)


def test_a_worker_that_hangs_while_applying_is_killed(run):
    async def test(house):
        worker = await house.worker()

        await house.put("a", b"hang")

        assert worker.process.wait(SECONDS_MAX) == -signal.SIGKILL
        assert len(house.publisher.live("dns")) == 0

    run(test, barrier_ms=SHORT_MS)


def test_a_worker_that_dies_under_writes_holds_none_of_them_up(run):
    async def test(house):
        worker = await house.worker()
        writes = [asyncio.create_task(house.put(str(n))) for n in range(50)]
        await writes[0]
        worker.process.kill()

        assert [await write for write in writes] == list(range(1, 51))

    run(test)


def test_a_worker_joins_under_load_and_misses_nothing(run):
    async def test(house):
        stop = asyncio.Event()

        async def load(number):
            sequence = 0
            while not stop.is_set():
                sequence = await house.put(f"{number}-{sequence}", bytes(500))
            return sequence

        load_tasks = [asyncio.create_task(load(number)) for number in range(8)]
        workers = [await house.worker(how=how) for how in ("thread", "loop")]
        stop.set()
        last = max([await task for task in load_tasks])
        await house.put("end")

        for worker in workers:
            await worker.said(f"{last + 1} end 1")
            applied = [int(line.split()[0]) for line in worker.lines if line[0].isdigit()]
            after = worker.lines.index("swap") - 1  # "begin" stands before the snapshot's rows
            assert applied[after:] == list(range(applied[after], last + 2))

    run(test)


@pytest.mark.parametrize(("first", "second"), [("edge", "dns"), ("dns", "edge")])
def test_the_first_group_has_it_before_the_other_hears_of_it(run, first, second):
    async def test(house):
        slow = await house.worker(first, "thread")
        other = await house.worker(second, "loop")
        slow.stand_still()
        await asyncio.to_thread(os.waitid, os.P_PID, slow.process.pid, os.WSTOPPED | os.WNOWAIT)
        write = asyncio.create_task(house.put("a", first=first))
        await asyncio.sleep(0.05)
        assert "1 a 1" not in other.lines
        os.kill(slow.process.pid, signal.SIGCONT)

        await write

        await slow.said("1 a 1")
        await other.said("1 a 1")
        assert len(house.publisher.live(first)) == 1

    run(test)


def test_control_restarts_while_workers_keep_serving_and_resume(run):
    async def test(house):
        workers = [await house.worker(how="thread"), await house.worker("edge", "loop")]
        await house.put("a")
        house.stop_control()
        house.start_control(*[worker.expected() for worker in workers])
        await house.put("b")

        for worker in workers:
            await worker.said("2 b 1")
            assert worker.lines.count("begin") == 1, "it resumes without a snapshot"
            assert worker.process.poll() is None

    run(test)


def test_a_write_that_died_with_control_reaches_those_who_resume(run):
    async def test(house):
        worker = await house.worker()
        worker.stand_still()
        house.store.write(lambda tx: tx.emit("zone", "name", "a", b"1")).result()
        house.stop_control()
        os.kill(worker.process.pid, signal.SIGCONT)
        house.start_control(worker.expected())
        await house.put("b")

        await worker.said("1 a 1")
        await worker.said("2 b 1")

    run(test)


def test_after_a_restart_writes_wait_for_the_death_of_who_does_not_come_back(run, monkeypatch):
    # The patience with the process is counted in ticks, that with the write by the clock: a busy machine,
    # whose ticks are late, must not make the write give up first.
    monkeypatch.setattr(publisher, "RECOVERED_MS_MAX", 10 * SECONDS_MAX * 1000)

    async def test(house):
        worker = await house.worker()
        house.stop_control()
        worker.stand_still()
        house.start_control(worker.expected())

        await house.put("a")

        assert await asyncio.to_thread(worker.process.wait, SECONDS_MAX) == -signal.SIGKILL

    run(test)


def test_kinds_that_nobody_wants_cost_no_message(run):
    async def test(house):
        worker = await house.worker(kinds="name")
        await house.put("rule", kind="rule")
        await house.put("a")
        await worker.said("2 a 1")

        assert not any("rule" in line for line in worker.lines)

    run(test)


def test_a_stranger_that_says_nonsense_is_let_go(run):
    async def test(house):
        with socket.socket(socket.AF_UNIX) as stranger:
            stranger.connect(house.address)
            stranger.sendall(b"\xff\xff\xff\xff nonsense")
            stranger.settimeout(SECONDS_MAX)
            assert await asyncio.to_thread(stranger.recv, 1) == b""

        await house.put("a")

    run(test)


def test_closing_control_lets_waiting_writes_answer(run):
    async def test(house):
        worker = await house.worker()
        worker.stand_still()
        committed = asyncio.Event()
        wake = partial(asyncio.get_running_loop().call_soon_threadsafe, committed.set)
        house.store.on_group(lambda changes: wake())
        write = asyncio.create_task(house.put("a"))
        await committed.wait()
        house.publisher.close()

        assert await write == 1

    run(test)


def test_nothing_is_left_open_of_a_worker_that_came_and_went(run):
    async def test(house):
        async def come_and_go():
            worker = await house.worker()
            await house.put("a")
            worker.end()
            await house.put("b")

        await come_and_go()
        before = open_now()
        await come_and_go()
        assert not await asyncio.to_thread(left_open, before)

    run(test)
