"""This objects process as one of its cluster: made of its start message.

Owns  registering, the log in the cluster's database, the ways to the other processes.
Not   who has a slot (`ownership`); what becomes of a slot's objects (`clustered`).

Of its own machine a process reaches the others over their Unix sockets, and those of other machines over the
nodes' port (`nodes.passing`, `nodes.alive`).
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Final

from edgestead.cluster.lease import LEASE_MS
from edgestead.model.budgets.turns import Turns
from edgestead.objects.runtime.admission import Authorise
from edgestead.objects.runtime.node import Node
from edgestead.objects.runtime.spread import Owner, Reach, Spread
from edgestead.objects.runtime.wire import Open
from edgestead.postgres import regions, schema
from edgestead.postgres.connection import Link, Misconfigured, Trouble
from edgestead.postgres.objectlog.log import PostgresObjectLog
from edgestead.postgres.slots import NotListed, SlotClerk
from edgestead.server.errors import StartError
from edgestead.server.messages import ObjectsStart
from edgestead.server.nodes import identity, passing
from edgestead.server.nodes.alive import Machines
from edgestead.server.nodes.identity import Member, NotANode
from edgestead.server.objects.clustered import Clustered
from edgestead.server.objects.host import exit_process
from edgestead.server.process import boot_ms
from edgestead.store.files import Files
from edgestead.store.history.thinning import Keeping
from edgestead.store.migrations import Doing, SchemaError
from edgestead.store.runner import Runner

CACHE: Final = "cache"  # below a process's folder: databases' files, thrown away at its start
AGAIN_SECONDS: Final = 0.5  # between two tries to reach the database at the start
SAY_SECONDS: Final = 1.0  # between two lines that it is waited for

_log = logging.getLogger("edgestead.server")


class LostPlace(Exception):
    """Others have this process's objects, or may have them."""


class ClusterPlace:
    """Make it on the loop, `register`, then hand it to `Host`, which opens and closes it."""

    def __init__(self, start: ObjectsStart, classes: Mapping[str, str]) -> None:
        """`classes` has the region of each class. Raises StartError: this machine is no node that may run
        objects.
        """
        assert start.cluster_database is not None
        self._dsn, self._address, self._worker = (
            start.cluster_database,
            start.cluster_advertise or "",
            start.worker,
        )
        self._classes = classes
        self._calls, self._requests = start.calls, start.requests
        self._member = _member_with_objects(Path(start.identity_dir))
        self._machines = Machines(self._member)
        self._lease_ms = start.cluster_lease_ms or LEASE_MS
        self._life = 0
        self._log: PostgresObjectLog | None = None
        self._fatal: Callable[[BaseException], None] = exit_process
        self.clustered = Clustered(
            self._clerk(),
            self._clerk(),
            now_ms=boot_ms,
            fatal=lambda reason: self._fatal(LostPlace(reason)),
            lease_ms=self._lease_ms,
        )

    def _clerk(self) -> SlotClerk:
        peer = self._member.peer
        return SlotClerk(
            self._dsn,
            peer.name,
            self._worker,
            self._address,
            key=peer.key,
            registering=lambda link: regions.check(link, self._classes),
        )

    async def register(self, doing: Doing) -> None:
        """Waits for the database as long as it takes. Raises StartError."""
        registering = asyncio.ensure_future(self._register())
        try:
            while not (await asyncio.wait((registering,), timeout=SAY_SECONDS))[0]:
                doing("waiting for the cluster's database")
            await registering
        except (NotListed, SchemaError, Misconfigured) as error:
            raise StartError(f"the cluster's database: {error}") from error
        finally:
            registering.cancel()

    async def _register(self) -> None:
        while not self._life:
            try:
                self._life = await asyncio.to_thread(self._generation)
            except Trouble:
                await asyncio.sleep(AGAIN_SECONDS)
        await self.clustered.register()

    def _generation(self) -> int:
        with closing(Link(self._dsn, name=f"edgestead {self._member.peer.name} objects")) as link:
            generation = schema.settle(link).generation
            settled = regions.settle(
                link, self._classes, node=self._member.peer.name, place=self._worker, lease_ms=self._lease_ms
            )
            self.clustered.regions, self._classes = settled.regions, settled.classes
            for words in settled.kept:
                _log.warning("%s", words)
            return generation

    # What `Host` asks.

    def open_log(
        self,
        folder: str,
        *,
        files: Files,
        runner: Callable[[str], Runner],
        keeping: Keeping,
        fatal: Callable[[BaseException], None],
    ) -> PostgresObjectLog:
        """`fatal` is also called when the place is lost, then on whatever thread."""
        self._fatal = fatal
        self._log = PostgresObjectLog(
            self._dsn,
            f"{folder}/{CACHE}",
            owner=self.clustered,
            files=files,
            writer=runner("object-log"),
            reader=runner("object-reader"),
            upkeep=runner("object-upkeep"),
            now_us=lambda: time.time_ns() // 1_000,
            fatal=fatal,
            life=self._life,
            node=self._member.peer.name,
            keeping=keeping,
            regions=self.clustered.regions,
        )
        return self._log

    async def open(self, node: Node) -> None:
        """Have slots. The node is over the log that was opened."""
        assert self._log is not None
        await self.clustered.open(self._log, node)

    def spread(self, node: Node, authorise: Authorise, processor: Turns) -> Spread:
        made = Spread(node, authorise, self.clustered, self.reach, processor)
        self.clustered.looked_at = made.forget_gone
        return made

    def reach(self, owner: Owner) -> Reach:
        """How another process is connected to, or this one itself."""
        if owner.address == self._address:
            return Reach(_over(self._calls, owner.place), _over(self._requests, owner.place))
        calls, requests = (
            self._machines.way_to(owner.address, what, owner.place)
            for what in (passing.CALLS, passing.REQUESTS)
        )
        return Reach(calls, requests)

    async def close(self) -> None:
        """Give the slots back: others have them at once. The node is closed, and its log."""
        await self.clustered.close()
        self._machines.close()


def _member_with_objects(folder: Path) -> Member:
    """Raises StartError."""
    try:
        member = identity.member_of(folder)
    except (OSError, NotANode) as error:
        raise StartError(f"{folder} has no identity of a node: {error}") from None
    if not member.peer.has("objects"):
        raise StartError(
            f"the node {member.peer.name} has not the role objects, by which others would reach its objects."
            " Remove it from the cluster on another node, and invite it again with"
            " --role control,objects,edge; or start it without objects"
        )
    return member


def _over(paths: tuple[str, ...], place: int) -> Open:
    """The Unix socket of a place of this machine; there may have been more of them."""
    return partial(_connect_unix, paths[place]) if place < len(paths) else _gone


async def _connect_unix(path: str, make: Callable[[], asyncio.Protocol]) -> object:
    return await asyncio.get_running_loop().create_unix_connection(make, path)


def _gone(make: Callable[[], asyncio.Protocol]) -> Awaitable[object]:
    raise ConnectionError("this machine has no such process any more")
