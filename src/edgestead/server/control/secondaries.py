"""Secondary zones of this server: asked for when they are due, in the background.

Owns  the rounds, how many transfers run at a time, their counts and log lines; that a zone of whose
      transfer nothing can be written is left alone for a while.
Not   a transfer (`server.control.asking`); what becomes of it (`usecases.zone.secondary`).

No query and no request waits for this.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from functools import partial
from typing import Final, NamedTuple, Protocol, TypeVar

import msgspec

from edgestead.health.facts import EndingZone, LateZone
from edgestead.model import names
from edgestead.model.call import Call
from edgestead.model.counters import Page, slot
from edgestead.server.control import asking
from edgestead.server.control.asking import Asking, Fetch, ask
from edgestead.server.control.incoming import Found
from edgestead.server.control.pauses import Due, Pauses
from edgestead.store.control import Reader, Transaction
from edgestead.usecases.platform import Platform
from edgestead.usecases.zone import secondary
from edgestead.usecases.zone.secondary import Changes, Content, Notice, Peer, Rr, Task, Unfit, Waiting

POLL_SECONDS: Final = 1.0
TRANSFERS_MAX: Final = 8  # at a time; each has a thread, and what came so far in memory
ENDING_SECONDS: Final = 2 * 86_400  # before a signature ends that a primary made; signers renew earlier
LATE_MAX: Final = 100  # zones in the health of the server
PART_PAUSE_SECONDS: Final = 0.02  # between two parts of a large one: writes of clients pass

T = TypeVar("T")
log = logging.getLogger(__name__)
_TAKEN = slot("edge_dns_transfers_in_total", "taken")
_CURRENT = slot("edge_dns_transfers_in_total", "current")
_FAILED = slot("edge_dns_transfers_in_total", "failed")


class Data(Protocol):
    """What is asked of `server.control.store.ControlData`."""

    def read(self, fn: Callable[[Reader], T], /) -> T: ...

    async def read_long(self, fn: Callable[[Reader], T], /) -> T: ...

    async def write(self, fn: Callable[[Transaction], T], /) -> T: ...


def late(data: Data, now_us: int) -> tuple[LateZone, ...]:
    """For the health of the server."""
    found = data.read(lambda reader: secondary.late(reader, now_us, LATE_MAX))
    return tuple(LateZone(name, one.problem, one.checked_us, not one.lost) for name, one in found)


def ending(data: Data, now_us: int) -> tuple[EndingZone, ...]:
    """The same: zones that are signed elsewhere, with a signature that ends soon."""
    before_us = now_us + ENDING_SECONDS * 1_000_000
    found = data.read(lambda reader: secondary.ending(reader, before_us))
    return tuple(EndingZone(*one) for one in found[:LATE_MAX])


class _Running(NamedTuple):
    account_id: str
    task: asyncio.Task[None]


class Secondaries:
    """Call `poll` every POLL_SECONDS, and `close` at the end."""

    def __init__(
        self,
        data: Data,
        platform: Platform,
        page: Page,
        call: Callable[[], Call],
        fetch: Fetch = ask,
        heard: Callable[[], Collection[Notice]] = tuple,
    ) -> None:
        self._data = data
        self._platform = platform
        self._page = page
        self._call = call
        self._fetch = fetch
        self._heard = heard
        self._told: set[str] = set()
        self._asking = Asking(platform, fetch)
        self._running: dict[str, _Running] = {}
        self._pauses = Pauses()

    async def poll(self) -> None:
        """Begin with what is due, by its timers or a primary's word. Raises what reading the store raises."""
        await self._listen()
        if len(self._running) < TRANSFERS_MAX:
            now_us = self._call().now_us
            self._begin(self._data.read(lambda reader: secondary.waiting(reader, now_us)), now_us)

    def _begin(self, found: Iterable[Waiting], now_us: int) -> None:
        """An account takes half of the places that others leave: its slow primaries hold up its own zones."""
        paused = self._pauses.running(now_us)
        accounts = Counter(running.account_id for running in self._running.values())
        for waiting in found:
            free = TRANSFERS_MAX - len(self._running)
            if not free:
                break
            zone_id, account_id, state = waiting
            due = zone_id, state.due_since_us(now_us)
            is_busy = zone_id in self._running or due in paused
            if not is_busy and accounts[account_id] < free:
                task = asyncio.create_task(self._refresh(waiting, due))
                self._running[zone_id] = _Running(account_id, task)
                accounts[account_id] += 1
                task.add_done_callback(partial(self._forget, zone_id))

    async def _listen(self) -> None:
        """A zone that is being transferred is asked for again afterwards: it may have changed meanwhile."""
        notices = self._heard()
        if notices:
            self._told.update(self._data.read(lambda reader: secondary.told(reader, notices)))
        now = [zone_id for zone_id in self._told if zone_id not in self._running]
        if now:
            await self._data.write(lambda tx: secondary.refresh_each(self._call(), tx, now))
            self._told.difference_update(now)  # not before: a write that fails is made again next round

    async def settled(self) -> None:
        """Wait for what has begun. For tests."""
        await asyncio.gather(*(running.task for running in self._running.values()))

    def close(self) -> None:
        for running in self._running.values():
            running.task.cancel()

    def _forget(self, zone_id: str, _: object) -> None:
        del self._running[zone_id]

    async def _refresh(self, waiting: Waiting, due: Due) -> None:
        name = waiting.zone_id
        try:
            task = self._data.read(lambda reader: secondary.task_of(reader, self._platform, waiting))
            name = task.name
            await self._ask(task)
        except Exception:
            self._pauses.begin(due, self._call().now_us)
            log.warning("the transfer of zone %s could not be finished", name, exc_info=True)
        else:
            self._pauses.forget(waiting.zone_id)

    async def _ask(self, task: Task) -> None:
        problems = []
        for peer in task.peers:
            try:
                await self._take_from(peer, task)
                return
            except (Unfit, OSError) as error:
                problems.append(f"{peer.name}: {asking.words(error)}")
            except Exception:
                log.warning("what %s gave for zone %s was not taken", peer.name, task.name, exc_info=True)
                problems.append(f"{peer.name}: what it gave could not be written here; the log says more")
        problem = "; ".join(problems) or "it has no peers"
        self._page.add(_FAILED)
        if problem != task.state.problem:  # a line for each new reason, not for each attempt
            log.warning("zone %s was not transferred: %s", task.name, problem)
        await self._data.write(lambda tx: secondary.failed(self._call(), tx, task, problem))

    async def _take_from(self, peer: Peer, task: Task) -> None:
        """What changes lead to may be unfit, and the whole zone fit: a digest covers TTLs, say, not all of
        which are known here.
        """
        found = await self._found(task, peer)
        try:
            await self._take(task, found)
        except Unfit:
            if found is None or not found.from_changes:
                raise
            of_all = task._replace(state=msgspec.structs.replace(task.state, whole=True))
            await self._take(task, await self._found(of_all, peer))

    async def _found(self, task: Task, peer: Peer) -> Found:
        def present() -> frozenset[Rr]:
            return self._data.read(lambda reader: secondary.present(reader, task))

        apex, serial = names.wire_from_text(task.name), task.state.serial
        whole = self._data.read(lambda reader: secondary.wants_whole(reader, task))
        return await self._asking.found(peer, task.keys, apex, serial, present, whole=whole)

    async def _take(self, task: Task, found: Found) -> None:
        if found is None:
            self._page.add(_CURRENT)
            await self._data.write(lambda tx: secondary.current(self._call(), tx, task))
            return
        content: Content = found
        changes: Changes = await self._data.read_long(lambda reader: secondary.changes(reader, task, content))
        start = 0
        while start >= 0:
            write = partial(self._write, task, changes, start)
            start = await self._data.write(write)
            await asyncio.sleep(PART_PAUSE_SECONDS if start > 0 else 0)
        self._page.add(_TAKEN)
        log.info("zone %s was transferred: serial %d", task.name, content.serial)

    def _write(self, task: Task, changes: Changes, start: int, tx: Transaction) -> int:
        return secondary.take(self._call(), tx, self._platform, task, changes, start)
