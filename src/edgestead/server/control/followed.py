"""Catalogs of other name servers that accounts of this server follow: asked for when due, in the background.

Owns  the rounds, one catalog of an account at a time; their log lines; deleting zones whose grace is over.
Not   asking (`server.control.asking`); what a catalog says and does (`usecases.account.following`,
      `usecases.account.membership`).

No query and no request waits for this. Members are seen to in small transactions: writes of clients pass
between. What a member needs is looked at again in its transaction. So an end amid the work leaves a part of
it done, and the next round does the rest: the state has the catalog's serial when all was looked at.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import partial
from itertools import islice
from typing import Final, TypeVar

from edgestead.health.facts import TroubledCatalog
from edgestead.model import names
from edgestead.model.call import Call
from edgestead.server.control import asking
from edgestead.server.control.asking import Asking, Fetch, ask
from edgestead.server.control.pauses import Pauses
from edgestead.server.control.secondaries import Data
from edgestead.store.control import Transaction
from edgestead.usecases import limits
from edgestead.usecases.account import following, membership
from edgestead.usecases.account.following import Task, Waiting
from edgestead.usecases.account.membership import Refused
from edgestead.usecases.platform import Platform
from edgestead.usecases.zone import catalog_content
from edgestead.usecases.zone.catalog_content import Member
from edgestead.usecases.zone.secondary import Content, Notice, Peer, Rr, Unfit

POLL_SECONDS: Final = 1.0
SWEEP_SECONDS: Final = 60  # between two looks for zones whose grace is over
MEMBERS_AT_ONCE: Final = 20  # in one transaction: about 40 ms of the writer's time
CATALOGS_AT_ONCE: Final = 4  # each has a thread
TROUBLED_MAX: Final = 100  # catalogs in the health of the server
_US: Final = 1_000_000

T = TypeVar("T")
log = logging.getLogger(__name__)


def troubled(data: Data) -> tuple[TroubledCatalog, ...]:
    """For the health of the server."""
    found = data.read(lambda reader: following.troubles(reader, TROUBLED_MAX))
    return tuple(TroubledCatalog(*one) for one in found)


class Changed(Exception):
    """A catalog is not followed any longer as it was when its task began."""


class FollowedCatalogs:
    """Call `poll` every POLL_SECONDS."""

    def __init__(self, data: Data, platform: Platform, call: Callable[[], Call], fetch: Fetch = ask) -> None:
        self._data = data
        self._platform = platform
        self._call = call
        self._asking = Asking(platform, fetch)
        self._told: set[Notice] = set()
        self._waking: set[str] = set()
        self._pauses = Pauses()
        self._swept_us = 0

    def hear(self, notices: Collection[Notice]) -> None:
        self._told.update(notices)

    async def poll(self) -> None:
        """See to the catalogs that are due, by their timers or a primary's word."""
        await self._listen()
        now_us = self._call().now_us
        await self._refresh_due(now_us)
        if now_us >= self._swept_us + SWEEP_SECONDS * _US:
            self._swept_us = now_us
            await self._delete_what_left()

    async def _refresh_due(self, now_us: int) -> None:
        """Some beside each other, one of each account: a producer that is slow holds up its own account."""
        seen: set[str] = set()
        running: dict[asyncio.Task[None], str] = {}
        try:
            while self._begin_due(now_us, seen, running) or running:
                done, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                for one in done:
                    del running[one]
                    one.result()
        finally:
            for one in running:
                one.cancel()

    def _begin_due(self, now_us: int, seen: set[str], running: dict[asyncio.Task[None], str]) -> bool:
        """Returns whether any was begun."""
        before = len(running)
        paused = self._pauses.running(now_us)
        while len(running) < CATALOGS_AT_ONCE:
            accounts = set(running.values())
            waiting = self._data.read(
                lambda reader: following.due(reader, now_us, seen, paused, accounts)  # noqa: B023
            )
            if waiting is None:
                break
            seen.add(waiting.catalog_id)
            running[asyncio.create_task(self._refresh(waiting))] = waiting.account_id
        return len(running) > before

    async def _listen(self) -> None:
        notices, self._told = self._told, set()
        if notices:
            self._waking.update(self._data.read(lambda reader: following.told(reader, notices)))
        if self._waking:
            await self._data.write(lambda tx: following.wake(self._call(), tx, self._waking))
            self._waking.clear()  # not before: a write that fails is made again next round

    async def _refresh(self, waiting: Waiting) -> None:
        name = waiting.catalog_id
        try:
            task = self._data.read(lambda reader: following.task_of(reader, waiting))
            if task is not None:
                name = task.catalog.name
                await self._ask(task)
        except Exception:
            self._pauses.begin((waiting.catalog_id, waiting.state.due_us), self._call().now_us)
            log.warning("a look at the catalog %s could not be finished", name, exc_info=True)
        else:
            self._pauses.forget(waiting.catalog_id)

    async def _ask(self, task: Task) -> None:
        problems = []
        for peer in task.peers:
            try:
                await self._take(task, await self._found(task, peer))
                return
            except Changed:
                return  # who changed it has had it asked for again
            except (Unfit, OSError) as error:
                problems.append(f"{peer.name}: {asking.words(error)}")
            except Exception:
                log.warning(
                    "what %s gave for the catalog %s was not taken",
                    peer.name,
                    task.catalog.name,
                    exc_info=True,
                )
                problems.append(f"{peer.name}: what it gave could not be written here; the log says more")
        problem = "; ".join(problems) or "it has no peers"
        if problem != task.state.problem:  # a line for each new reason, not for each attempt
            log.warning("the catalog %s is not taken: %s", task.catalog.name, problem)
        await self._data.write(lambda tx: following.failed(self._call(), tx, task, problem))

    async def _found(self, task: Task, peer: Peer) -> Content | None:
        """All of a catalog, which is small beside its zones; its records are not kept."""
        apex, state = names.wire_from_text(task.catalog.name), task.state
        whole = state.again or bool(state.refused)
        return await self._asking.found(peer, task.keys, apex, state.serial, _no_records, whole=whole)

    async def _take(self, task: Task, content: Content | None) -> None:
        if content is None:
            await self._data.write(lambda tx: following.current(self._call(), tx, task))
            return
        catalog, platform = task.catalog, self._platform
        members = catalog_content.members_of(content, names.wire_from_text(catalog.name))
        plan = await self._data.read_long(lambda reader: membership.plan(reader, platform, catalog, members))
        refused = dict(plan.refused)
        for some in _portions(plan.steps):
            refused.update(await self._data.write(partial(self._step_each, task, some)))
        for left in _portions(plan.left):
            await self._data.write(partial(self._leave_each, task, left))
        await self._data.write(lambda tx: following.took(self._call(), tx, task, content, _some(refused)))
        if plan.steps or plan.left or refused != task.state.refused:
            log.info(
                "the catalog %s was taken: serial %d, %d zones came or changed, %d left it, %d are refused",
                *(catalog.name, content.serial, len(plan.steps), len(plan.left), len(refused)),
            )

    def _step_each(self, task: Task, members: Iterable[Member], tx: Transaction) -> dict[str, str]:
        """Returns the members that are refused, with the reason."""
        refused = {}
        self._check_same(tx, task)
        for member in members:
            try:
                membership.take(self._call(), tx, self._platform, task.catalog, member)
            except Refused as reason:
                refused[member.name] = str(reason)
        return refused

    def _leave_each(self, task: Task, zone_ids: Iterable[str], tx: Transaction) -> None:
        self._check_same(tx, task)
        for zone_id in zone_ids:
            membership.leave(self._call(), tx, self._platform, task.catalog, zone_id)

    def _check_same(self, tx: Transaction, task: Task) -> None:
        """Raises Changed: nothing is done for a catalog that is followed no longer, or otherwise."""
        if not following.is_same(tx, task):
            raise Changed

    async def _delete_what_left(self) -> None:
        now_us = self._call().now_us
        for zone_id in self._data.read(lambda reader: membership.over(reader, now_us)):
            name = await self._data.write(partial(self._delete, zone_id))
            if name:
                log.info("zone %s was deleted: its catalog lists it no longer", name)

    def _delete(self, zone_id: str, tx: Transaction) -> str | None:
        return membership.delete_if_over(self._call(), tx, self._platform, zone_id)


def _no_records() -> frozenset[Rr]:
    """Raises Unfit: the whole catalog is asked for in the place of its changes."""
    raise Unfit("changes of catalogs are not followed one by one")


def _portions(found: Iterable[T]) -> Iterator[list[T]]:
    iterator = iter(found)
    while some := list(islice(iterator, MEMBERS_AT_ONCE)):
        yield some


def _some(refused: dict[str, str]) -> dict[str, str]:
    return dict(islice(refused.items(), limits.FOLLOWED_REFUSED_MAX))
