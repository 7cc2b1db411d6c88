"""What is done once: who asks at the same time, what is forgotten first."""

import asyncio

import pytest

from edgestead.server.control.once import Once

PASSES = -1


class Work:
    """Counts how often it is done; returns the number, or what it is told to."""

    def __init__(self):
        self.done = 0
        self.result = None

    async def __call__(self):
        await asyncio.sleep(0)
        self.done += 1
        return self.done if self.result is None else self.result


def ask(*asked, entries_max=4, work=None):
    """The results of (second, asker, what) in turn."""

    async def run():
        once = Once(entries_max, 10, lambda result: result == PASSES)
        return [await once.run(*one, work or counting) for one in asked]

    counting = Work()
    return asyncio.run(run())


def test_what_is_asked_for_again_is_not_done_again():
    assert ask((0, b"a", b"x"), (0, b"a", b"x"), (0, b"b", b"x"), (0, b"a", b"x")) == [1, 1, 2, 1]


def test_who_asks_meanwhile_waits_for_the_first():
    async def run():
        once, work = Once(4, 10, lambda result: False), Work()
        first = asyncio.ensure_future(once.run(0, b"a", b"x", work))
        second = asyncio.ensure_future(once.run(0, b"a", b"x", work))
        await asyncio.sleep(0)
        first.cancel()
        assert await second == 1
        with pytest.raises(asyncio.CancelledError):
            await first

    asyncio.run(run())


def test_a_failure_that_passes_is_done_again():
    work = Work()
    work.result = PASSES

    assert ask((0, b"a", b"x"), (0, b"a", b"x"), work=work) == [PASSES, PASSES]
    assert work.done == 2


def test_who_has_most_loses_the_oldest():
    many = [(0, b"b", bytes((number,))) for number in range(6)]

    assert ask((0, b"a", b"x"), *many, (0, b"a", b"x"))[-1] == 1
    assert ask(*many, many[0])[-1] == 7
    assert ask(*many, many[-1])[-1] == 6


def test_what_is_old_goes_before_anything_else():
    old = [(0, b"b", bytes((number,))) for number in range(2)]
    new = [(11, b"a", bytes((number,))) for number in range(4)]

    assert ask(*old, *new, new[0])[-1] == 3
