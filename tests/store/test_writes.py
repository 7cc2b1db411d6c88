"""Awaitable writes on an event loop."""

import asyncio
from concurrent.futures import Future

import pytest

from edgestead.model.refusals import BadRequest, Unavailable
from edgestead.sqlite.control import SqliteControlStore
from edgestead.store.control import Committed
from edgestead.store.writes import Writes


@pytest.fixture
def store(tmp_path):
    store = SqliteControlStore(tmp_path / "control.db")
    yield store
    store.close()


class Recorder:
    """A barrier that writes down what it was asked, and holds until it is let go."""

    def __init__(self):
        self.asked, self.afters = [], []
        self.reached, self.open = asyncio.Event(), asyncio.Event()

    async def recovered(self):
        self.asked.append("recovered")

    async def applied(self, sequence, after):
        self.asked.append(sequence)
        self.afters.append(after)
        self.reached.set()
        await self.open.wait()


def emit(key):
    return lambda tx: tx.emit("z", "name", key, b"")


def refuse(tx):
    raise BadRequest(reason="no")


def test_many_writes_wake_the_loop_about_once_per_group(store):
    async def run():
        groups = []
        store.on_group(groups.append)
        writes = Writes(store)
        done = await asyncio.gather(*[writes.write(emit(str(i))) for i in range(200)])
        return [committed.sequence for committed in done], len(groups)

    sequences, groups = asyncio.run(run())

    assert sequences == list(range(1, 201))
    assert groups < 100


def test_a_refusal_reaches_its_own_caller_only(store):
    async def run():
        writes = Writes(store)
        return await asyncio.gather(
            writes.write(emit("a")), writes.write(refuse), writes.write(emit("b")), return_exceptions=True
        )

    first, refusal, second = asyncio.run(run())

    assert (first.sequence, second.sequence) == (1, 2)
    assert isinstance(refusal, BadRequest)


def test_a_write_answers_after_the_barrier_and_asks_it_only_for_what_was_emitted(store):
    async def run():
        barrier = Recorder()
        writes = Writes(store, barrier)
        await writes.write(lambda tx: None)
        task = asyncio.create_task(writes.write(emit("a")))
        await barrier.reached.wait()
        assert not task.done()
        barrier.open.set()
        await task
        return barrier.asked

    assert asyncio.run(run()) == ["recovered", "recovered", 1]


def test_the_barrier_hears_where_a_write_begins_and_ends(store):
    async def run():
        barrier = Recorder()
        barrier.open.set()
        writes = Writes(store, barrier)
        await writes.write(lambda tx: [tx.emit("z", "name", key, b"") for key in "abc"])
        await writes.write(lambda tx: [tx.emit("z", "name", key, b"") for key in "de"])
        return [asked for asked in barrier.asked if asked != "recovered"], barrier.afters

    assert asyncio.run(run()) == ([3, 5], [0, 3])


def test_a_caller_that_went_away_disturbs_nobody(store):
    async def run():
        writes = Writes(store)
        gone = asyncio.create_task(writes.write(emit("gone")))
        await asyncio.sleep(0)
        gone.cancel()
        return await writes.write(emit("a"))

    assert asyncio.run(run()).sequence == 2


def test_a_closed_store_refuses(store):
    async def run():
        store.close()
        await Writes(store).write(emit("a"))

    with pytest.raises(Unavailable):
        asyncio.run(run())


def test_a_write_whose_group_was_told_before_it_was_awaited_is_answered_all_the_same():
    class Done:
        """A store that has committed and told by the time `write` returns."""

        def on_group(self, listener):
            self.tell = listener

        def write(self, fn):
            future = Future()
            future.set_result(Committed("done", 1))
            self.tell(())
            return future

    async def run():
        async with asyncio.timeout(60):
            return await Writes(Done()).write(emit("a"))

    assert asyncio.run(run()).value == "done"
