"""A class that does everything that a class should not do, and a good one next to it.

Owns  the deeds, by name: what ends its process, and what does not.
Not   what follows from them (`test_objects_chaos.py`, `benchmarks/objects_chaos.py`).
"""

import asyncio
import ctypes
import os
import sys
import time

from edgestead import StatefulObject

MIB = 1 << 20


class Good(StatefulObject):
    """Counts, and does nobody harm."""

    async def add(self) -> int:
        n = (await self.ctx.storage.get("n") or 0) + 1
        await self.ctx.storage.put("n", n)
        return n

    async def count(self) -> int:
        return await self.ctx.storage.get("n") or 0


class Chaos(StatefulObject):
    """Each object does one deed when it is told to."""

    storage = "sql"

    async def do(self, deed: str) -> object:
        return await getattr(self, f"_{deed}")()

    async def alarm(self) -> None:
        raise RuntimeError("an alarm that always fails")

    # what ends its process

    async def _block(self) -> None:
        time.sleep(600)  # noqa: ASYNC251

    async def _loop(self) -> None:
        while True:
            pass

    async def _hold_the_interpreter(self) -> None:
        ctypes.PyDLL(None).sleep(600)

    async def _allocate(self) -> None:
        taken = []
        while True:
            taken.append(b"x" * (16 * MIB))
            await asyncio.sleep(0.02)

    async def _exit(self) -> None:
        os._exit(7)

    async def _crash(self) -> None:
        ctypes.string_at(0)

    async def _overflow(self) -> None:
        sys.setrecursionlimit(1 << 30)

        def deeper() -> None:
            [*map(lambda _: deeper(), [0])]  # noqa: C417 - a frame of C for each

        deeper()

    # what does not

    async def _raise(self) -> None:
        raise ValueError("as asked")

    async def _leave(self) -> None:
        sys.exit(3)

    async def _fork(self) -> int:
        child = os.fork()
        return os.waitpid(child, 0)[1] if child else -1  # noqa: ASYNC222

    async def _recurse(self) -> None:
        await self._recurse()

    async def _deep_awaits(self) -> None:
        async def deeper(left: int) -> None:
            await asyncio.sleep(0)
            if left:
                await deeper(left - 1)

        await deeper(150)

    async def _descriptors(self) -> None:
        for number in [os.open(os.devnull, os.O_RDONLY) for _ in range(200)]:
            os.close(number)

    async def _alarms(self) -> None:
        for _ in range(100):
            await self.ctx.storage.set_alarm(0)

    async def _flood(self) -> None:
        for number in range(200):
            await self.ctx.storage.put(f"k{number}", "x" * 20_000)
        await self.ctx.storage.delete_all()

    async def _tasks(self) -> None:
        for _ in range(2_000):
            asyncio.get_running_loop().create_task(asyncio.sleep(0.1))

    async def _abort(self) -> None:
        self.ctx.abort("as asked")


ENDING = ("block", "loop", "hold_the_interpreter", "allocate", "exit", "crash", "overflow")
HARMLESS = (
    *("raise", "leave", "fork", "recurse", "deep_awaits", "descriptors", "alarms", "flood", "tasks"),
    "abort",
)
