"""Running the loop of an objects process, whatever the callbacks of users' code raise.

Owns  going on after a SystemExit, a KeyboardInterrupt or a `stop` that came out of a bare callback.
Not   events and tasks of objects (`gates`): what these raise never comes here.

An event loop ends when a callback (`call_soon`, `call_later`, `add_done_callback`) raises SystemExit or
KeyboardInterrupt, or calls `stop`; what it had ready stays ready. So it is run on, and the other objects of
the process keep their calls.
"""

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, TypeVar

log = logging.getLogger(__name__)
T = TypeVar("T")


def run(loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, T]) -> T:
    """The result of `work`, or what it raises. Nothing else ends this."""
    task = loop.create_task(work)
    while True:
        try:
            return loop.run_until_complete(task)
        except BaseException as error:
            if task.done() or loop.is_closed():
                raise
            log.error(
                "a callback of an object's code raised %r: it is no reason to end", error, exc_info=error
            )
