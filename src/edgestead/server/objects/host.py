"""Everything that one objects process holds, opened in order and closed in order.

Owns  the order: log, node, HTTP address; the threads of the log.
Not   being started and stopped (the supervisor); tokens: `authorise` is a parameter.
"""

import asyncio
import contextlib
import os
import resource
import secrets
import socket
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import apsw

from edgestead.http1.connections import Connections
from edgestead.http1.server import Server
from edgestead.model.budgets.ledger import Ledger
from edgestead.model.budgets.turns import ONE_A_ROUND, Turns
from edgestead.objects.errors import ObjectError
from edgestead.objects.operate.operator import Operator
from edgestead.objects.runtime import aftermath
from edgestead.objects.runtime.admission import Authorise
from edgestead.objects.runtime.classes import ClassInfo
from edgestead.objects.runtime.containment import Classes
from edgestead.objects.runtime.engine import Logging
from edgestead.objects.runtime.env import Bindings
from edgestead.objects.runtime.node import Node
from edgestead.objects.runtime.quarantine import Quarantine, take_room
from edgestead.objects.runtime.shards import PASSED_ON_HEADERS_MAX, Shards, client_of
from edgestead.objects.runtime.stage import STAGE_FILE, map_stage
from edgestead.rest.objects_face import ObjectsFace, Parts, PassedOnFace, unreadable
from edgestead.server import stores
from edgestead.server.objects.copying import copy_log
from edgestead.sqlite.objectlog.files import LocalFiles
from edgestead.sqlite.objectlog.local import KEEPING, SEGMENT_BYTES, LocalObjectLog
from edgestead.store.history.thinning import Keeping
from edgestead.store.migrations import Doing, quiet
from edgestead.store.runner import ThreadRunner

if TYPE_CHECKING:
    from edgestead.objects.runtime.spread import Spread
    from edgestead.postgres.objectlog.log import PostgresObjectLog
    from edgestead.server.objects.place import ClusterPlace

DESCRIPTORS_PER_DATABASE = 4
DRAIN_SECONDS = 5.0
TEND_SECONDS = 1.0  # between two looks at what the log put off
EXIT_FATAL = 70  # EX_SOFTWARE: the disk failed, and only a new start can tell what is durable


def configure_sqlite() -> None:
    """Take 30 KiB off each open database: a lookaside buffer of its own does not pay for idle objects.

    For a process that does nothing else, before it opens its first database.
    """
    apsw.shutdown()
    apsw.config(apsw.SQLITE_CONFIG_LOOKASIDE, 0, 0)
    apsw.initialize()


def exit_process(error: BaseException) -> None:
    """End at once, without any clean-up that could write. The supervisor starts a new process."""
    os.write(2, f"object log: {error!r}: the process ends, the next one recovers\n".encode())
    os._exit(EXIT_FATAL)


class Peers(NamedTuple):
    """The other processes: Unix sockets of each by worker, for calls and for requests, and this one's own.

    The objects of the classes `apart` live in the last one of so many `processes`; behind those is one more
    for classes that `went` apart since, unless that is it.
    """

    worker: int
    calls: Sequence[str]
    requests: Sequence[str]
    calls_socket: socket.socket
    requests_socket: socket.socket
    apart: Collection[str] = ()
    processes: int | None = None
    went: Classes | None = None


class Host:
    """A node over a folder, and its HTTP address.

    `fatal` is called when storage failed in a way that only a new start can clear up; no object is to blame
    for it. Without `alarms` only operators run some. `ended_itself`: the last process, by an exit or a fault.
    `doing` is called at each step of the recovery. With a `place`, which has registered, the log is in its
    cluster's database.
    """

    def __init__(
        self,
        folder: str,
        classes: Mapping[str, ClassInfo],
        *,
        fatal: Callable[[BaseException], None] = exit_process,
        segment_bytes: int = SEGMENT_BYTES,
        keeping: Keeping = KEEPING,
        logging: Logging = "keys",
        bindings: Bindings | None = None,
        alarms: bool = True,
        ended_itself: bool = False,
        ledger: Ledger | None = None,
        doing: Doing = quiet,
        place: "ClusterPlace | None" = None,
    ) -> None:
        """Open the log and recover. Must be made on the running loop.

        Raises BlockingIOError when another process holds the folder; LogDamaged; NoSpace; OSError.
        """
        loop = asyncio.get_running_loop()
        files = LocalFiles()
        files.make_folder(folder)
        self.stage, self._quarantine = map_stage(f"{folder}/{STAGE_FILE}"), Quarantine(files, folder)
        with contextlib.suppress(OSError):  # on a full disk it has it already, or never will
            take_room(files, folder)
        runner, end = partial(ThreadRunner, loop.call_soon_threadsafe), self._blame_nobody_and(fatal)
        self.log: LocalObjectLog | PostgresObjectLog
        self._place = place
        if place is not None:
            self.log = place.open_log(folder, files=files, runner=runner, keeping=keeping, fatal=end)
        else:
            self.log = stores.open_objects(
                folder,
                files=files,
                runner=runner,
                keeping=keeping,
                now_us=lambda: time.time_ns() // 1_000,
                clock=time.monotonic,
                random=secrets.token_bytes,
                fatal=end,
                segment_bytes=segment_bytes,
                doing=doing,
            )
        self.node = Node(
            classes,
            self.log.store,
            files,
            now_ms=lambda: time.time_ns() // 1_000_000,
            random=secrets.token_bytes,
            logging=logging,
            databases_max=_databases_max(),
            bindings=bindings,
            stage=self.stage,
            quarantine=self._quarantine,
            ledger=ledger,
        )
        self._alarms, self._ended_itself = alarms, ended_itself
        self.blamed = False  # whether an object caused the end of the process before
        self._operator = Operator(self.node, f"{folder}/spool", self._copy_log)
        self._server: Server | None = None
        self._passed_on: Server | None = None
        self._shards: Shards | Spread | None = None

    async def open(
        self,
        sockets: Iterable[socket.socket],
        authorise: Authorise,
        answered: Callable[[int], None] = lambda status: None,
        *,
        connections: Connections | None = None,
        peers: Peers | None = None,
        blamed: Callable[[str, bool], None] = lambda class_name, is_own: None,
    ) -> None:
        """Serve HTTP on sockets that are bound already, and begin upkeep.

        `answered` is told the status of each answer. `connections` None are as many as come. With `peers`
        some objects live in other processes. `blamed` is told of which class an object ended the process
        before, and whether by itself.
        """
        if self._place is not None:
            await self._place.open(self.node)
        self.blamed = await aftermath.settle(
            self.node, self.stage, self._quarantine, blamed, ended_itself=self._ended_itself
        )
        loop = asyncio.get_running_loop()
        processor = Turns(loop.call_soon, loop.time, turn_seconds=ONE_A_ROUND)
        if peers is not None:
            self._shards = self._passing(peers, authorise, processor)
            await self._shards.open(peers.calls_socket)
            self._operator.went = peers.went or self._operator.went
        parts = Parts(self.node, self._operator, self._shards)
        if peers is not None and self._shards is not None:
            self._passed_on = Server(
                PassedOnFace(parts._replace(shards=self._shards.of_passed_on()), authorise),
                unreadable,
                headers_max=PASSED_ON_HEADERS_MAX,
                processor=processor,
                client_of=client_of,
            )
            await self._passed_on.open([peers.requests_socket])
        face = ObjectsFace(parts, authorise, answered)
        self._server = Server(face, unreadable, connections=connections, processor=processor)
        await self._server.open(sockets)
        self.start()

    def _passing(self, peers: Peers, authorise: Authorise, processor: Turns) -> "Shards | Spread":
        if self._place is not None:
            return self._place.spread(self.node, authorise, processor)
        return Shards(
            self.node,
            authorise,
            peers.worker,
            peers.calls,
            peers.requests,
            peers.apart,
            peers.processes,
            peers.went,
            processor,
        )

    async def _copy_log(self, target: str) -> None:
        if isinstance(self.log, LocalObjectLog):
            await copy_log(self.node, self.log, target)
        else:
            raise ObjectError("In a cluster objects are in its database: back that up.")

    def start(self) -> None:
        """Begin upkeep and alarms."""
        self.node.start(alarms=self._alarms)
        self._tend()

    def _tend(self) -> None:
        if not self.log.is_closed:
            asyncio.get_running_loop().call_later(TEND_SECONDS, self._tend)  # first: whatever it meets now
            self.log.tend()

    def _blame_nobody_and(self, end: Callable[[BaseException], None]) -> Callable[[BaseException], None]:
        def fatal(error: BaseException) -> None:
            self.stage.begin()
            end(error)

        return fatal

    @property
    def is_ready(self) -> bool:
        """Whether objects can be written: not while the disk is full."""
        return not self.log.room.is_full

    @property
    def live(self) -> int:
        """How many objects are in memory."""
        return self.node.live_count

    async def close(self) -> None:
        """Answer what is being served, make everything durable, end."""
        servers = (one for one in (self._server, self._passed_on) if one is not None)
        ends = [server.close(DRAIN_SECONDS) for server in servers]
        if self._shards is not None:
            ends.append(self._shards.finish(DRAIN_SECONDS))
        await asyncio.gather(*ends)  # at the same time: callers here wait for answers from there
        if self._shards is not None:
            await self._shards.close()
        await self.node.close()
        if self._place is not None:
            await self._place.close()


def _databases_max() -> int:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(16, soft // (2 * DESCRIPTORS_PER_DATABASE))
