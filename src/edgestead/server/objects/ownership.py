"""This objects process in its cluster: the rounds by which it has slots, and waiting for who has one.

Owns  carrying out what `cluster.slots` decides: statements on a thread, renewals on another.
Not   deciding it; what becomes of the objects of a slot (`left`, `came`); passing calls on.

Renewals have a thread and a connection to themselves: a class that keeps the loop keeps its objects, until
the watchdog ends the process. One that keeps the interpreter's lock loses its lease, and cannot answer
meanwhile.
"""

import asyncio
import logging
import threading
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, Final, Protocol, TypeVar

from edgestead.cluster.lease import LEASE_MS, RENEW_MS
from edgestead.cluster.placement import SLOTS, Worker
from edgestead.cluster.seat import Failed
from edgestead.cluster.slots import Ask, Slots, State
from edgestead.objects.errors import Overloaded

GIVE_SECONDS: Final = 0.01  # between two looks at a slot that is to be given, unless something ended
LOOK_SECONDS_MAX: Final = 1.0  # of a wait for another look at the map, which may not come
WAIT_SECONDS_MAX: Final = 5.0  # of a call whose slot nobody has: above the 2.5 s of a take-over

T = TypeVar("T")
_log = logging.getLogger("edgestead.server")


class Clerk(Protocol):
    def answer(self, ask: Ask) -> Any:
        """Raises Failed."""
        ...

    def leave(self, number: int) -> None:
        """Give back the row. Raises Failed."""
        ...

    def close(self) -> None: ...


def carry_out(questions: Generator[Ask, Any, T], answer: Callable[[Ask], Any]) -> T:
    """One round, on this thread."""
    result, failure = None, None
    while True:
        try:
            ask = questions.send(result) if failure is None else questions.throw(failure)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
        result = failure = None
        try:
            result = answer(ask)
        except Failed as error:
            failure = error


class Ownership:
    """Make, `open` and `close` it on the loop of the objects.

    `renewing` and `clerk` ask with connections of their own. `fatal` ends the process, with a reason, on
    whatever thread: it is called when the row is gone. `looked` is called after each look at the map. The
    other parameters are those of `Slots`.
    """

    def __init__(
        self,
        clerk: Clerk,
        renewing: Clerk,
        *,
        now_ms: Callable[[], float],
        is_quiet: Callable[[int], bool],
        left: Callable[[list[int]], None],
        came: Callable[[list[int]], None],
        kept: Callable[[list[int]], None] = lambda _: None,
        fatal: Callable[[str], None],
        looked: Callable[[], None] = lambda: None,
        lease_ms: float = LEASE_MS,
        slots: int = SLOTS,
    ) -> None:
        self._told = looked
        self.slots = Slots(
            now_ms, is_quiet=is_quiet, left=left, came=came, kept=kept, lease_ms=lease_ms, slots=slots
        )
        self._clerk, self._renewing, self._fatal = clerk, renewing, fatal
        self._loop = asyncio.get_running_loop()
        self._statements = ThreadPoolExecutor(1, "cluster-slots")
        self._wake = asyncio.Event()
        self._looks = False  # somebody knows a newer map
        self._looks_done = 0  # at the map
        self._looked = asyncio.Event()  # after each look at the map, and whenever a slot is no longer given
        self._rounds: asyncio.Task[None] | None = None
        self._closing = threading.Event()
        self._renewals = threading.Thread(target=self._renew, name="cluster-lease", daemon=True)

    # What others ask.

    def look_soon(self) -> None:
        """The map may have changed."""
        self._looks = True
        self._wake.set()

    def ended(self) -> None:
        """Something that kept a slot busy has ended."""
        if self.slots.is_giving:
            self._wake.set()

    async def looked(self) -> None:
        """Wait for another look at the map; not for long, when the database is away."""
        self.look_soon()
        done = self._looks_done
        with suppress(TimeoutError):
            async with asyncio.timeout(LOOK_SECONDS_MAX):
                while self._looks_done == done:  # a slot that went says nothing of the others
                    await self._looked.wait()

    async def owner(self, slot: int, *, since: int = -1) -> Worker:
        """Who has it, by a map that is not older than this version: this process may be it.

        Waits while nobody has it, and while it is being given to another. Raises Overloaded.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(WAIT_SECONDS_MAX):
                while True:
                    worker, state = self.slots.holder(slot), self.slots.state(slot)
                    is_held = state in (State.GIVING, State.GIVEN)
                    if worker is not None and not is_held and self.slots.version >= since:
                        return worker
                    if not is_held:
                        self.look_soon()
                    await self._looked.wait()
        if (region := self.slots.away(slot)) is not None:
            raise Overloaded(
                f"The object's class belongs to the region {region}, where no node runs objects now."
            )
        raise Overloaded("No process of the cluster has the object at the moment.")

    # Life.

    async def register(self) -> None:
        """Get a number, and keep it from now on."""
        while not await self._carry_out(self.slots.register()):  # noqa: ASYNC110 - the database has no event
            await asyncio.sleep(RENEW_MS / 1000)
        self._renewals.start()

    async def open(self) -> None:
        """Look at the map for the first time: then it has its slots, if they are free."""
        await self._carry_out(self.slots.round())
        self._rounds = self._loop.create_task(self._run())

    async def close(self) -> None:
        """Give back the row. Nothing runs any more, and everything is durable."""
        self._closing.set()
        if self._rounds is not None:
            self._rounds.cancel()
            await asyncio.wait([self._rounds])
        number = self.slots.number
        if number is not None and not self.slots.is_lost:
            self.slots.lost()
            try:
                await self._loop.run_in_executor(self._statements, self._clerk.leave, number)
            except Failed:
                _log.warning("this process's slots were not given back: others wait for its lease")
        self._statements.shutdown(wait=False, cancel_futures=True)
        if self._renewals.is_alive():
            await self._loop.run_in_executor(None, self._renewals.join)
        self._clerk.close()
        self._renewing.close()

    async def _run(self) -> None:
        while not self.slots.is_lost:
            try:
                await self._pause(self._loop.time() + RENEW_MS / 1000)
                self._looks = False
                await self._carry_out(self.slots.round())
            except Exception:  # without looks this process would keep its slots, and give none away
                _log.exception("a look at the cluster's slots failed")
                await asyncio.sleep(RENEW_MS / 1000)
            self._looks_done += 1
            self._tell()

    async def _pause(self, until: float) -> None:
        """Until the next look. Slots that are given away go meanwhile, as soon as nothing runs in them."""
        while True:
            if self.slots.is_giving:  # first: somebody may want another look after each one
                await self._carry_out(self.slots.give())
                self._tell()
            left = until - self._loop.time()
            if self._looks or left <= 0:
                return
            if self.slots.is_giving:
                left = min(left, GIVE_SECONDS)
            with suppress(TimeoutError):
                async with asyncio.timeout(left):
                    await self._wake.wait()
            self._wake.clear()

    def _tell(self) -> None:
        self._told()
        self._looked.set()
        self._looked = asyncio.Event()

    async def _carry_out(self, questions: Generator[Ask, Any, T]) -> T:
        """Decisions on the loop, statements on their thread."""
        result, failure = None, None
        while True:
            try:
                ask = questions.send(result) if failure is None else questions.throw(failure)
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]
            result = failure = None
            try:
                result = await self._loop.run_in_executor(self._statements, self._clerk.answer, ask)
            except Failed as error:
                failure = error

    def _renew(self) -> None:
        while not self._closing.wait(RENEW_MS / 1000):
            try:
                is_there = carry_out(self.slots.renewal(), self._renewing.answer)
            except Exception as error:
                _log.exception("renewing this process's row failed")
                self._fatal(f"it cannot renew its row in the cluster's database: {error!r}")
                return
            if not is_there and not self._closing.is_set():
                self._fatal("its row in the cluster's database is gone: others have its objects")
                return
