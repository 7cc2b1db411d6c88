"""What a control process has because it is a node of a cluster: its copy, its place, its port.

Owns  opening them in order, and which nodes may connect.
Not   what control does beside that (`server.control.main`).
"""

import asyncio
import logging
import math
import os
import socket
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from edgestead.cluster.lease import LEASE_MS
from edgestead.cluster.silence import Age
from edgestead.http1.answering import Refuse
from edgestead.http1.protocol import Handler
from edgestead.http1.server import Server
from edgestead.model.refusals import Unavailable
from edgestead.postgres.connection import Link
from edgestead.postgres.controllog import PostgresControlLog
from edgestead.postgres.incarnations import Clerk
from edgestead.server.cluster.bases import Bases
from edgestead.server.cluster.frames import LOG_ALPN
from edgestead.server.cluster.gate import API_ALPN, Gate, NotNow, client_of
from edgestead.server.cluster.membership import Duties, Membership
from edgestead.server.cluster.misfits import Misfits
from edgestead.server.health.control_part import ClusterState
from edgestead.server.messages import ControlStart
from edgestead.server.nodes import identity, port
from edgestead.server.nodes.identity import NotANode, Peer
from edgestead.server.nodes.in_postgres import PostgresRegistry
from edgestead.server.nodes.registry import Node, away, is_listed
from edgestead.server.rounds import Rounds
from edgestead.server.stores import CONTROL_NAME
from edgestead.sqlite.replica import ReplicaControlStore, discard, load
from edgestead.store.controllog import Diverged, Entry, NotLeader
from edgestead.tables.schema import MIGRATIONS

LIST_SECONDS: Final = 2.0  # how late a removed node is a stranger
RETRY_SECONDS: Final = 0.5  # between two tries to reach the database at the start

_log = logging.getLogger("edgestead.server")


class ClusterPart:
    """Made before the loop runs, when the copy is there; `begin` on the loop."""

    def __init__(self, start: ControlStart, *, ahead: bool, doing: Callable[[str], None]) -> None:
        """Waits for the database as long as it takes. Raises `stores.CANNOT_OPEN`, Diverged, NotANode."""
        assert start.cluster_database is not None
        self._start = start
        self._path = Path(start.data_dir, CONTROL_NAME)
        self.member = identity.member_of(Path(start.data_dir, identity.FOLDER))
        self._dsn = start.cluster_database
        self._control_log = PostgresControlLog(self._dsn, node=self.member.peer.name)
        self._membership: Membership | None = None
        self._clerk = Clerk(self._dsn, self.member.peer.name, start.cluster_advertise or "")
        self._misfits = Misfits(Path(start.data_dir))
        self._rest(doing)
        self._load(doing)
        self.store = ReplicaControlStore(
            self._path,
            self._control_log,
            MIGRATIONS,
            ahead=ahead,
            on_lost=self._on_lost,
            on_append=self._on_append,
        )
        self._registry_link = Link(self._dsn, name=f"edgestead {self.member.peer.name} nodes")
        self._registry = PostgresRegistry(self._registry_link)
        self._nodes: Mapping[str, Node] = {}
        self._port: port.Port | None = None
        self._bases: Bases | None = None
        self._listing: asyncio.Task[None] | None = None
        self._feed_is_open = asyncio.Event()
        self.gate: Gate | None = None
        self._live: Callable[[], Mapping[str, Mapping[str, int]]] = dict
        self._reads_go_on = start.cluster_reads == "stale"

    def _rest(self, doing: Callable[[str], None]) -> None:
        until = time.monotonic() + self._misfits.pause_seconds
        while (left := until - time.monotonic()) > 0:
            times = self._misfits.count
            doing(f"the cluster's log did not fit this node's copy {times} times: a new one in {left:.0f} s")
            time.sleep(min(left, RETRY_SECONDS))

    def _load(self, doing: Callable[[str], None]) -> None:
        while True:
            try:
                if load(self._path, self._control_log):
                    _log.info("the control data was loaded from the cluster's database")
                return
            except Unavailable:
                doing("waiting for the cluster's database")
                time.sleep(RETRY_SECONDS)

    def _on_lost(self, reason: str) -> None:
        if self._membership is not None:
            self._membership.lost(reason)

    def _on_append(self, entry: Entry) -> None:
        if self._membership is not None:
            self._membership.appended(entry)

    @property
    def membership(self) -> Membership:
        assert self._membership is not None
        return self._membership

    def place(self) -> int | None:
        """The number of the row that what this process writes has to hold. On the loop. Raises NotLeader."""
        number = None if self._membership is None else self._membership.seat.office.number
        if number is None:
            raise NotLeader
        return number

    def answers_until_ms(self) -> float:
        """As `Membership` says; in the past before there is one."""
        return -math.inf if self._membership is None else self._membership.answers_until_ms()

    # On the loop.

    async def begin(
        self,
        applied: Callable[[int], Awaitable[None]],
        live: Callable[[], Mapping[str, Mapping[str, int]]],
        duties: Duties,
    ) -> None:
        """Join; returns when the copy has this program's schema. `applied` is called after `feed_is_open`;
        it and `live` are of the feed's publisher.
        """
        self._live = live
        start = self._start

        async def applied_here(sequence: int) -> None:
            await self._feed_is_open.wait()
            await applied(sequence)

        self._membership = membership = Membership(
            self.store,
            self._control_log,
            self._clerk,
            self.member,
            applied=applied_here,
            live=self._live_here,
            fatal=self._fatal,
            lease_ms=start.cluster_lease_ms or LEASE_MS,
        )
        membership.duties = duties
        membership.seat.has_grants = self._has_edges
        await self._list()
        membership.open()
        self._bases = Bases(self._path, self._control_log, membership.seat, _now_us)
        self._bases.open()
        while self.store.lacks_migrations:
            await membership.changed()

    def feed_is_open(self) -> None:
        self._feed_is_open.set()
        self.membership.may_link = True

    async def feed_opened(self) -> None:
        await self._feed_is_open.wait()

    def away(self) -> tuple[Node, ...]:
        """The machines without control that lack what the leader has written; each may follow any control
        node. Another process knows its own alone, and names none.
        """
        if not self.membership.seat.office.leads:
            return ()
        return away(self._nodes, {*self._live_here(), *self.membership.leading.live()})

    def _live_here(self) -> tuple[tuple[str, str], ...]:
        return tuple(sorted((group, name) for group, names in self._live().items() for name in names))

    def state(self) -> ClusterState:
        """For the health of the server."""
        membership, age = self.membership, self._age()
        return ClusterState(
            is_cut_off=not membership.may_answer(),
            reads_go_on=self._reads_go_on and age is not None and age.is_silent,
            is_leaderless=membership.leader_number is None,
            has_one_copy=membership.has_one_copy,
            misfits=self._misfits.count,
            clock_apart_seconds=0.0 if membership.leads else membership.clocks.apart_seconds,
        )

    def _age(self) -> Age | None:
        return self.membership.age(self._start.cluster_stale_hours)

    def check_lease(self) -> None:
        """On any thread. Raises NotNow: a right that holds here may have been taken away."""
        if not self.membership.may_answer():
            raise NotNow

    def newest_entry(self) -> int:
        """That is committed here."""
        return self.store.position.sequence

    async def replicated(self, entry: int) -> None:
        """Waits until the other control nodes have an entry. Raises Unknown."""
        await self.membership.leading.replicated(entry)

    async def open_port(self, handler: Handler, refuse: Refuse, others: Mapping[str, port.Accept]) -> Handler:
        """Listen for other nodes; returns the handler of clients' requests. `others` by ALPN."""
        self.gate = gate = Gate(
            handler,
            self.membership,
            self.member,
            reads_go_on=self._reads_go_on,
            age=self._age,
        )
        passed_on = Server(gate.passed_on, refuse, client_of=client_of)
        await passed_on.open(())

        def accept(peer: Peer) -> asyncio.Protocol:
            if not peer.has("control"):
                raise NotANode(f"node {peer.name} has not the role control")
            return passed_on.connection()

        follow = port.streams(self._serve)
        handlers = {LOG_ALPN: follow, API_ALPN: accept, **others}
        self._port = port.Port(self.member, handlers, is_member=self._is_member)
        await self._port.open(socket.socket(fileno=self._start.cluster_fd))
        self._listing = asyncio.create_task(self._list_for_ever())
        return gate

    def renewed(self) -> None:
        """The certificate's file is a new one."""
        if self._port is not None:
            self._port.renewed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, peer: Peer) -> None:
        if not peer.has("control"):
            raise ConnectionError("it has not the role control")
        await self.membership.serve(reader, writer, peer.name)

    def _has_edges(self) -> bool:
        """Whether there are nodes without control, which answer by the leases of those with it."""
        return any("control" not in node.roles for node in self._nodes.values())

    def _is_member(self, peer: Peer) -> bool:
        return is_listed(dict(self._nodes), peer)

    async def _list_for_ever(self) -> None:
        """Without looks a node that was removed would be let in for good."""
        what, look = "a look at the list of nodes", self._look_at_list
        await Rounds(what, LIST_SECONDS, look, first_seconds=LIST_SECONDS).go_on()

    async def _look_at_list(self) -> None:
        await self._list()
        if self._port is not None:
            self._port.drop_strangers()
        if not self.membership.leads:
            await asyncio.to_thread(self._control_log.get_ready)
        if self.membership.may_answer():
            self._misfits.follows()

    async def _list(self) -> None:
        with suppress(OSError):  # the list of before holds
            self._nodes = await asyncio.to_thread(self._registry.nodes)

    def _fatal(self, error: Exception) -> None:
        """End this process: the next one loads the copy again, or says that it is too old."""
        _log.critical("this node's control process ends: %s", error)
        if isinstance(error, Diverged):
            self._misfits.happened()
            discard(self._path)
        os._exit(1)

    async def close(self) -> None:
        """Give back the office and the place."""
        if self._listing is not None:
            self._listing.cancel()
        if self._bases is not None:
            self._bases.close()
        if self._membership is not None:
            await self._membership.close()
        if self._port is not None:
            self._port.close()
        if self.gate is not None:
            self.gate.close()

    def close_log(self) -> None:
        """After the store."""
        self._control_log.close()
        self._registry_link.close()


def _now_us() -> int:
    return time.time_ns() // 1000
