"""How long users' code may take, in time in which this process could run.

Owns  a limit that a process which was stopped, or whose machine slept, does not use up.
Not   what follows from it: a TimeoutError, as from `asyncio.timeout`.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator

STEP_SECONDS = 1.0


@contextlib.asynccontextmanager
async def at_most(seconds: float) -> AsyncIterator[None]:
    """As `asyncio.timeout`, counted in steps: whatever time passes within one, it counts as one.

    Raises TimeoutError.
    """
    loop = asyncio.get_running_loop()
    timer: asyncio.TimerHandle | None = None
    async with asyncio.timeout(None) as limit:

        def look(left: float) -> None:
            nonlocal timer
            if left > 0:
                timer = loop.call_later(min(left, STEP_SECONDS), look, left - STEP_SECONDS)
            else:
                limit.reschedule(loop.time())

        look(seconds)
        try:
            yield
        finally:
            if timer is not None:
                timer.cancel()
