"""Calling what asks others over the network and may hang, from control's loop.

Owns  a thread for each call, which nobody waits for at the end: control ends while a server does not answer.
Not   how many calls there are at a time: who calls decides.
"""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")


async def apart(name: str, fn: Callable[..., T], *arguments: object) -> T:
    """`name` is the thread's. Raises what the call raises."""
    done: Future[T] = Future()
    done.set_running_or_notify_cancel()  # what waits may be cancelled, the call cannot be

    def run() -> None:
        try:
            done.set_result(fn(*arguments))
        except BaseException as error:
            done.set_exception(error)

    threading.Thread(target=run, name=name, daemon=True).start()
    return await asyncio.wrap_future(done)
