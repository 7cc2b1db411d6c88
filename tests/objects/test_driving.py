"""A loop that no bare callback of users' code ends."""

import asyncio
import functools
from collections.abc import Callable
from typing import Any

import pytest
import uvloop

from edgestead.objects.runtime import driving

Loop = asyncio.AbstractEventLoop


def done(loop: Loop, callback: Callable[[], Any]) -> None:
    future = loop.create_future()
    future.add_done_callback(lambda _: callback())
    future.set_result(None)


WAYS: dict[str, Callable[[Loop, Callable[[], Any]], Any]] = {
    "call_soon": lambda loop, callback: loop.call_soon(callback),
    "call_later": lambda loop, callback: loop.call_later(0, callback),
    "call_soon_threadsafe": lambda loop, callback: loop.call_soon_threadsafe(callback),
    "add_done_callback": done,
}
ENDS = (SystemExit, KeyboardInterrupt, GeneratorExit, asyncio.CancelledError, BaseException)


def throw(kind: type[BaseException]) -> None:
    raise kind("on purpose")


@pytest.fixture(params=[uvloop.new_event_loop, asyncio.new_event_loop], ids=["uvloop", "asyncio"])
def loop(request: pytest.FixtureRequest) -> Any:
    with asyncio.Runner(loop_factory=request.param) as runner:
        yield runner.get_loop()


@pytest.mark.parametrize("way", WAYS)
def test_what_a_callback_raises_ends_nothing(loop: Loop, way: str, caplog: pytest.LogCaptureFixture) -> None:
    ran: list[str] = []

    async def work() -> str:
        for kind in ENDS:
            WAYS[way](loop, functools.partial(throw, kind))
            loop.call_soon(ran.append, kind.__name__)
            await asyncio.sleep(0.001)
        WAYS[way](loop, loop.stop)
        await asyncio.sleep(0.001)
        return "done"

    assert driving.run(loop, work()) == "done"
    assert ran == [kind.__name__ for kind in ENDS], "what was ready beside it has run"
    assert "SystemExit('on purpose')" in caplog.text


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt, ValueError, asyncio.CancelledError])
def test_what_the_work_itself_raises_comes_out(loop: Loop, kind: type[BaseException]) -> None:
    async def work() -> None:
        await asyncio.sleep(0)
        raise kind("on purpose")

    with pytest.raises(kind):
        driving.run(loop, work())
