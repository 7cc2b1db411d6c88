"""Limits of users' code count the time in which this process could run."""

import asyncio
from typing import Any

import pytest

from edgestead.objects.runtime.patience import at_most


class Frozen(asyncio.SelectorEventLoop):
    """Its clock shows that the process stood still for `seconds`."""

    seconds = 0.0

    def time(self) -> float:
        return super().time() + self.seconds


def run(coroutine: Any) -> None:
    with asyncio.Runner(loop_factory=Frozen) as runner:
        runner.run(coroutine)


def test_who_takes_too_long_is_ended() -> None:
    async def main() -> None:
        with pytest.raises(TimeoutError):
            async with at_most(0.02):
                await asyncio.sleep(60)

    run(main())


def test_a_process_that_stood_still_has_used_up_a_moment() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, Frozen)
        async with at_most(5):
            loop.seconds = 3_600
            for _ in range(100):
                await asyncio.sleep(0)

    run(main())


def test_nothing_is_left_of_a_limit_that_was_kept() -> None:
    async def main() -> None:
        async with at_most(0.02):
            pass
        await asyncio.sleep(0.05)

    run(main())
