"""The targets of flattened names, asked of a resolver one after the other, and no faster than is good.

Owns  the pace, the questions that are on their way, what is counted and said of them.
Not   a query or request of a client: none ever waits for this.

A question has QUESTION_SECONDS_MAX, so there are at most that many seconds' worth on their way; one that is
slow keeps nobody else waiting.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Protocol, TypeVar

from edgestead.config import Address
from edgestead.model.call import Call
from edgestead.model.counters import Page, slot
from edgestead.store.control import Reader, Transaction
from edgestead.tables.flattened import Due
from edgestead.usecases.platform import Platform
from edgestead.usecases.serving import flattening
from edgestead.usecases.serving.flattening import Answer
from edgestead.usecases.zone import refreshing

POLL_SECONDS = 0.25  # how late a target that nobody knew is asked for
TARGETS_PER_POLL_MAX = 16  # 64 in a second, for all accounts together: two questions each
SAID_SECONDS = 60.0  # between two lines about targets that fail

T = TypeVar("T")
Asked = Callable[[str], Awaitable[Answer | None]]
log = logging.getLogger(__name__)
_ANSWERED = slot("edge_flattening_asked_total", "answered")
_FAILED = slot("edge_flattening_asked_total", "failed")


class Data(Protocol):
    """What is asked of `server.control.store.ControlData`."""

    def read(self, fn: Callable[[Reader], T], /) -> T: ...

    async def write(self, fn: Callable[[Transaction], T], /) -> T: ...


class Targets:
    """Call `poll` every POLL_SECONDS, and `close` at the end. `open_resolver` is called for each poll."""

    def __init__(
        self,
        data: Data,
        platform: Platform,
        page: Page,
        call: Callable[[], Call],
        open_resolver: Callable[[], Asked],
    ) -> None:
        self._data = data
        self._platform = platform
        self._open_resolver = open_resolver
        self._page = page
        self._call = call
        self._asking: dict[str, asyncio.Task[None]] = {}
        self._unsaid = 0
        self._say_at = 0.0

    async def poll(self) -> None:
        """Begin with what is due. Raises what reading the store raises."""
        found = [due for due in self._data.read(self._due) if due.name not in self._asking]
        found = found[:TARGETS_PER_POLL_MAX]
        if not found:
            return
        wanted = self._data.read(
            lambda reader: [due for due in found if flattening.is_wanted(reader, due.name)]
        )
        if len(wanted) < len(found):
            await self._data.write(lambda tx: flattening.forget(tx, (due.name for due in found)))
        if wanted:
            self._begin(wanted)

    def close(self) -> None:
        for task in self._asking.values():
            task.cancel()

    def _due(self, reader: Reader) -> list[Due]:
        return flattening.due(reader, self._call().now_us, TARGETS_PER_POLL_MAX + len(self._asking))

    def _begin(self, wanted: Sequence[Due]) -> None:
        ask = self._open_resolver()
        for due in wanted:
            task = asyncio.create_task(self._take(due, ask))
            self._asking[due.name] = task
            task.add_done_callback(partial(self._forget_task, due.name))

    def _forget_task(self, name: str, _: object) -> None:
        del self._asking[name]

    async def _take(self, due: Due, ask: Asked) -> None:
        try:
            answer = await ask(due.name)
            if answer is None:
                self._page.add(_FAILED)
                self._say(due.name)
                await self._data.write(lambda tx: flattening.take_failure(tx, due, self._call().now_us))
                return
            self._page.add(_ANSWERED)
            await self._data.write(
                lambda tx: refreshing.answered(self._call(), tx, self._platform, due.name, answer)
            )
        except Exception:
            # It is still due, so it is asked again; nobody waits for this task.
            log.warning("what the resolver said of %s was not kept", due.name, exc_info=True)

    def _say(self, name: str) -> None:
        """One line in SAID_SECONDS, however many fail."""
        self._unsaid += 1
        now = asyncio.get_running_loop().time()
        if now >= self._say_at:
            log.warning(
                "the resolver could not say where %s is, the target of a flattened alias (failures since"
                " the last such line: %d); last good answers are kept",
                name,
                self._unsaid,
            )
            self._unsaid, self._say_at = 0, now + SAID_SECONDS


def resolver_at(address: Address | None) -> Asked:
    """How a target is asked for. None means the system's resolver; where it has none, nobody can say."""
    from edgestead.server.control import resolving  # 10 MB that most servers never need

    try:
        resolver = resolving.resolver_at(address)
    except resolving.NoResolver:
        return _nobody
    return lambda name: resolving.addresses(resolver, name)


async def _nobody(_name: str) -> None:
    """The system names no resolver."""
