"""The process that owns the control data: REST API, storage, and the feed's source.

Owns  putting them together, in order; the order of their end; the write that lets in who renewed credentials.
Not   a rule, a route or a row; renewing them (`credential_renewal`).
"""

import asyncio
import math
import secrets
import signal
import socket
import sys
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import uvloop

from edgestead.config import Address
from edgestead.feed.lease import LEASE_MS
from edgestead.feed.promise import Leased
from edgestead.feed.publisher import Expected
from edgestead.health.rows import Row
from edgestead.http1.connections import Connections
from edgestead.http1.protocol import Handler
from edgestead.http1.server import Server
from edgestead.model import counters
from edgestead.model.budgets.ledger import Ledger, Levels
from edgestead.model.budgets.table import CREDENTIALS_UPLOADS
from edgestead.model.call import Profile
from edgestead.model.counters import slot
from edgestead.rest.app import Application
from edgestead.rest.context import AppContext, Draws
from edgestead.rest.guesses import Guesses
from edgestead.rest.log import BatchedLog
from edgestead.rest.quota import Quota
from edgestead.server import credentials, process, seal, stores
from edgestead.server.alerts import state_file as alerts_state
from edgestead.server.control import (
    authorities,
    credential_renewal,
    first_account,
    followed,
    restoring,
    secondaries,
)
from edgestead.server.control import managed as managed_part
from edgestead.server.control.certificates import CertificatesPart
from edgestead.server.control.cluster_look import ClusterLook
from edgestead.server.control.credential_renewal import CredentialRenewal
from edgestead.server.control.dashboard import Dashboard, provider_of
from edgestead.server.control.duties import LeaderDuties, Task
from edgestead.server.control.following import follow_events
from edgestead.server.control.history import HistoryPart
from edgestead.server.control.kv import KvPart
from edgestead.server.control.kv_socket import KvSocket
from edgestead.server.control.node_secrets import NodeSecrets
from edgestead.server.control.notices import NoticesPart
from edgestead.server.control.quota import QuotaPart
from edgestead.server.control.shared_credentials import SharedCredentials
from edgestead.server.control.shared_keys import SharedKeys
from edgestead.server.control.storage_watch import StorageWatch
from edgestead.server.control.store import ControlData, CountingPublisher
from edgestead.server.control.updates import UpdateSocket
from edgestead.server.control.upkeep import Upkeep
from edgestead.server.control.uses import UsesPart
from edgestead.server.credentials import Credentials
from edgestead.server.dns.notices import Inbox
from edgestead.server.errors import StartError
from edgestead.server.folder import EVENTS
from edgestead.server.health.clock import ClockWatch, newest_file_us
from edgestead.server.health.control_part import ClusterState, HealthPart
from edgestead.server.log_outlet import LogOutlet
from edgestead.server.messages import DNS_GROUP, EDGE_GROUP, OBJECTS_GROUP, ControlStart
from edgestead.server.nodes import passing, renewing
from edgestead.server.nodes.control_part import Nodes, nodes_of
from edgestead.server.nodes.identity import NotANode
from edgestead.server.nodes.kinds import CERTIFICATES, NODE_KINDS
from edgestead.server.nodes.registry import Node
from edgestead.server.space import Space, make_room
from edgestead.server.supervisor.admin import serve_admin
from edgestead.server.supervisor.control_life import ControlLife
from edgestead.server.supervisor.renewal import REVOKES_OTHERS
from edgestead.sqlite.control import SqliteControlStore
from edgestead.store.control import Transaction
from edgestead.store.controllog import Diverged
from edgestead.tables import accounts, flattened
from edgestead.usecases.access import identities
from edgestead.usecases.access.identities import FedAccess
from edgestead.usecases.kv import namespaces
from edgestead.usecases.platform import Platform
from edgestead.usecases.serving import edge_feed, owners
from edgestead.usecases.serving.keys import Seal

if TYPE_CHECKING:
    from edgestead.server.cluster.part import ClusterPart

DRAIN_SECONDS = 8  # for requests under way at the end; below the supervisor's own limit
SWITCH_SECONDS = 0.0005
"""How long the threads of commits and of log lines may keep the interpreter from the loop, which gives it up
several times for each request. Python's 5 ms were seen in the 99th percentile beside a flood."""
_CONSUMERS = slot("edge_feed_consumers")
_SEQUENCE = slot("edge_feed_sequence")
_GUESSES = slot("edge_api_refused_credentials_total")
_BEHIND = slot("edge_feed_nodes_behind")
_WAITING = slot("edge_store_writes_waiting")
_FLATTENING = (
    slot("edge_flattening_targets"),
    slot("edge_flattening_targets_unknown"),
    slot("edge_flattening_zones_waiting"),
)


UPDATE = b"/update"  # acts of the leader (`cluster.gate`)
USES = b"/uses"
DATED_USES = b"/dated-uses"
REQUESTS = b"/requests"  # that were let in, for the quota of each user
RENEWAL = b"/renewal"
NOTICES = b"/notices"  # of secondary zones' primaries, that came to another node

Install = Callable[[Transaction], None]
Kept = renewing.Renewing | SharedKeys | SharedCredentials
"""Files that follow what the cluster has, or the time."""


def main(start: ControlStart) -> None:
    sys.setswitchinterval(SWITCH_SECONDS)
    status = process.Status(start.status_fd)
    clock = ClockWatch(newest_file_us(Path(start.data_dir)))
    make_room(Path(start.data_dir))  # opening a database writes to it
    ahead = start.disk_reserve_bytes > 0
    cluster: ClusterPart | None = None
    try:
        if start.cluster_database is not None:
            cluster = _cluster_part(start, ahead, status)
            store: SqliteControlStore = cluster.store
        else:
            store = stores.open_control(Path(start.data_dir), ahead=ahead, doing=status.going_on)
    except (*stores.CANNOT_OPEN, Diverged, NotANode) as error:
        status.failed(f"control.db cannot be opened: {error}")
        sys.exit(1)
    try:
        kv = KvPart(
            Path(start.data_dir),
            store,
            start.quotas,
            cluster_database=start.cluster_database,
            place=cluster.place if cluster is not None else lambda: None,
            bucket=stores.bucket_of(start),
            ahead=ahead,
            doing=status.going_on,
        )
    except stores.CANNOT_OPEN as error:
        status.failed(f"kv.db cannot be opened: {error}")
        sys.exit(1)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        try:
            runner.run(_live(start, status, store, kv, clock, cluster))
        except StartError as error:
            status.failed(str(error))
            sys.exit(1)


def _cluster_part(start: ControlStart, ahead: bool, status: process.Status) -> "ClusterPart":
    """Imported only where there is one: with the database's driver it is a tenth of what control imports."""
    from edgestead.server.cluster.part import ClusterPart

    return ClusterPart(start, ahead=ahead, doing=status.going_on)


async def _live(
    start: ControlStart,
    status: process.Status,
    store: SqliteControlStore,
    kv: KvPart,
    clock: ClockWatch,
    cluster: "ClusterPart | None",
) -> None:
    await Control(start, status, store, kv, clock, cluster).run()


class Control:
    """One life of the process. Make and run it on its loop."""

    def __init__(
        self,
        start: ControlStart,
        status: process.Status,
        store: SqliteControlStore,
        kv: KvPart,
        clock: ClockWatch,
        cluster: "ClusterPart | None",
    ) -> None:
        self._start = start
        self._cluster = cluster
        self._status = status
        self._store = store
        self._kv = kv
        self._data_dir = Path(start.data_dir)
        self._page = process.page(start.counters_fd)
        self._ledger = Ledger(self._page)
        kv.data.counters = self._page
        kv.data.uploads = Levels(self._ledger, CREDENTIALS_UPLOADS)
        self._pages = {name: process.page(fd) for name, fd in start.pages.items()}
        self._access = FedAccess()
        store.on_commit(self._access.committed)
        self._life = life = ControlLife(start.control_life_fd, writes=True)
        feed = socket.socket(fileno=start.feed_fd)
        self._feed_path = str(feed.getsockname())
        self._publisher = CountingPublisher(
            self._page,
            store.feed,
            feed,
            barrier_ms=start.barrier_ms,
            silence_ms=start.silence_ms,
            still_ms=start.still_ms,
            leases={OBJECTS_GROUP: Leased(frozenset(identities.KINDS), start.objects_silence_ms)},
            tells=life.tells if cluster is None else None,
            node_kinds=NODE_KINDS,
            own_until_ms=_for_ever if cluster is None else cluster.answers_until_ms,
            stops=cluster is not None and start.cluster_stale == "stop",
        )
        self._data = ControlData(store, self._publisher, self._page, others=cluster)
        self._history = HistoryPart(
            self._data,
            days=start.history_days,
            rows_max=start.history_rows,
            now_us=_now_us,
            audit_days=start.audit_days,
            audit_octets_max=start.audit_mib << 20,
        )
        self._quota = Quota(start.api_quota, self._ledger) if start.api_quota else None
        self._shared_quota = QuotaPart(
            self._quota, lambda: cluster is None or cluster.membership.leads, _now_us
        )
        self._uses = UsesPart(self._data, None if cluster is None else lambda: cluster.membership.leads)
        self._seal = Seal(partial(seal.load_or_make, self._data_dir))
        self._certificates = CertificatesPart(
            self._data,
            self._seal,
            start.certificates_fd,
            _now_us,
            partial(self._publisher.tell_nodes, EDGE_GROUP, CERTIFICATES),
        )
        self._resolver = Address(*start.resolver) if start.resolver else None
        self._log = BatchedLog(
            LogOutlet(sys.stderr.fileno()).write, level=start.log_level, form=start.log_form
        )
        self._renewal = CredentialRenewal(
            self._data_dir, store.read, self._renewed_here, status.credentials_changed
        )
        self._space = Space(
            self._data_dir,
            start.disk_reserve_bytes,
            inside_bytes=kv.free_bytes,
            is_short=self._is_short,
        )
        kv.data.check_room = self._space.take_room
        self._storage = StorageWatch(
            self._data_dir,
            start.lock_fd,
            {"control.db": store.database, **kv.databases},
            self._space,
            self._page,
            end=status.lost,
        )
        self._managed = managed_part.load(
            start.crs,
            ruleset_id=start.managed_ruleset_id,
            anomaly_rule_id=start.anomaly_rule_id,
        )
        self._platform = Platform(
            nameservers=start.nameservers,
            edge_addresses=start.edge_addresses,
            own_addresses=frozenset(start.own_addresses),
            quotas=start.quotas,
            new_id=_new_id,
            managed=self._managed,
            seal=self._seal,
            orders_certificates=start.acme is not None,
        )
        self._dashboard: Dashboard | None = None
        self._nodes: Nodes | None = None
        self._node_certificate: renewing.Renewing | None = None  # where other machines reach this one
        self._health = HealthPart(
            start,
            pages=self._pages,
            page=self._page,
            feed=self._publisher,
            storage=self._storage,
            clock=clock,
            has_managed_ruleset=self._managed is not None,
            set_levels=self._set_levels,
            failing_sinks=lambda: alerts_state.read(self._data_dir).failing,
            kept_certificates=self._certificates.kept,
            node_certificate=lambda: self._node_certificate.standing if self._node_certificate else None,
            late_zones=lambda: secondaries.late(self._data, _now_us()),
            held_zones=lambda: restoring.held(self._data),
            ending_zones=lambda: secondaries.ending(self._data, _now_us()),
            troubled_catalogs=lambda: followed.troubled(self._data),
            cluster=ClusterState if cluster is None else cluster.state,
            nodes_away=lambda: [node.name for node in self._away()],
            sign_in_trouble=lambda: self._dashboard.sign_in_trouble() if self._dashboard else "",
            say=status.health,
            now_us=_now_us,
        )

    async def run(self) -> None:
        """Until SIGTERM; returns when every acknowledged write is on disk."""
        cluster, inbox = self._cluster, Inbox(self._feed_path)
        notices = NoticesPart(inbox, lambda: cluster is None or cluster.membership.leads)
        duties = LeaderDuties(self._settle_as_leader, partial(self._tasks_of_leader, notices))
        if cluster is None:
            await self._settle(self._write_at_once)
        else:  # leases of before are over by then
            asyncio.get_running_loop().call_later(LEASE_MS / 1000, self._life.leases_decide)
            await cluster.begin(self._publisher.applied, self._publisher.nodes, duties)
        # Once: from here on each commit tells what it changed.
        if cluster is None:
            self._store.read(self._access.refresh)
        else:  # entries are applied already
            await asyncio.wrap_future(cluster.store.read_between(self._access.refresh))
        await self._certificates.open()  # before the feed: an edge process that has that serves
        nodes = self._nodes = await asyncio.to_thread(nodes_of, self._start)
        kept_files = await self._keep_certificate(nodes)
        node_secrets = NodeSecrets(self._start, self._publisher.tell_nodes)
        if nodes is not None:
            await node_secrets.open()
            if cluster is not None:
                kept_files += self._share(nodes, cluster)
        waited = [] if nodes is None or cluster is not None else nodes.waited
        self._data.open((Expected(c.pid, c.pidfd, c.group) for c in self._start.expected), waited)
        self._kv.open()
        self._uses.open()
        await asyncio.to_thread(self._storage.look)
        self._storage.open()
        context = self._context()
        if cluster is None:
            duties.begin()
        else:
            self._kv.may_sweep = lambda: cluster.membership.leads
            self._kv.data.check_place = cluster.check_lease
            cluster.feed_is_open()
        await self._health.open()
        app, ended = Application(context), asyncio.Event()
        dashboard = Dashboard(
            app,
            lambda: credentials.load_or_make(self._data_dir),
            enabled=self._start.dashboard,
            objects=self._start.objects_address,
            names=self._start.dashboard_name,
            provider=provider_of(self._start),
            data_dir=self._data_dir,
            cluster=None if cluster is None else ClusterLook(self._data_dir, cluster),
        )
        self._dashboard = dashboard
        dashboard.open()
        update_socket = UpdateSocket(self._data, context.platform, self._start.profile, _now_us)
        handler: Handler = dashboard
        if cluster is not None:
            others = {} if nodes is None else nodes.handlers(self._publisher)
            others |= passing.to_workers(self._start.objects_calls, self._start.objects_requests)
            handler = await cluster.open_port(dashboard, app.refuse, others)
            self._act_for_others(cluster, update_socket, notices)
        elif nodes is not None:
            await nodes.open(self._publisher)
        server = Server(handler, app.refuse, connections=context.connections, stalled=app.stalled)
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
        admin = await serve_admin(
            socket.socket(fileno=self._start.admin_fd),
            {command: partial(self._renew, command) for command in REVOKES_OTHERS}
            | {"health": self._tell_health, "dashboard": dashboard.make_link},
        )
        kv_socket = self._make_kv_socket()
        await kv_socket.open(socket.socket(fileno=self._start.kv_fd))
        await update_socket.open(socket.socket(fileno=self._start.updates_fd))
        beating = asyncio.create_task(self._beat())
        following = asyncio.create_task(follow_events(context))
        try:
            await server.open([socket.socket(fileno=self._start.api_fd)])
            process.rest_collector()
            self._status.ready()
            await ended.wait()
            dashboard.close()
            await server.close(DRAIN_SECONDS)
        finally:
            beating.cancel()
            following.cancel()
            dashboard.close()
            admin.close()
            kv_socket.close()
            update_socket.close()
            node_secrets.close()
            for one in kept_files:
                one.close()
            if nodes is not None:
                nodes.close()
            self._health.close()
            self._certificates.close()
            duties.close()
            notices.close()
            inbox.close()
            self._storage.close()
            self._shared_quota.close()
            await self._uses.close()
            if cluster is not None:
                await cluster.close()
            self._kv.close()
            self._data.close()
            if cluster is not None:
                cluster.close_log()
            self._log.close()

    async def _keep_certificate(self, nodes: Nodes | None) -> "list[Kept]":
        """This node's own, where other machines reach it."""
        if self._cluster is not None:
            made = renewing.of_control(nodes, self._cluster.member, self._cluster.renewed)
        elif nodes is not None:
            made = renewing.of_control(nodes, nodes.member, nodes.renewed)
        else:
            return []
        self._node_certificate = made
        await made.open()
        return [made]

    def _act_for_others(self, cluster: "ClusterPart", updates: UpdateSocket, notices: NoticesPart) -> None:
        """What arrives at a node and only the process that leads can do."""
        gate = cluster.gate
        assert gate is not None
        gate.acts = {
            UPDATE: updates.act,
            USES: self._uses.take,
            DATED_USES: self._uses.take_dated,
            RENEWAL: self._renewed_here,
            REQUESTS: self._shared_quota.take,
            NOTICES: notices.take,
        }
        self._shared_quota.tell_by(partial(gate.ask_leader, REQUESTS))
        self._renewal.let_in = partial(gate.ask_leader, RENEWAL)
        updates.pass_on = partial(gate.ask_leader, UPDATE)
        notices.tell_by(partial(gate.ask_leader, NOTICES))
        self._uses.pass_on = partial(gate.ask_leader, USES)
        self._uses.pass_on_dated = partial(gate.ask_leader, DATED_USES)

    async def _settle(self, write: Callable[[Callable[[Transaction], None]], Awaitable[None]]) -> None:
        """Let the database say what the credentials file and this program say."""
        await self._install(self._start.credentials, write)
        await write(edge_feed.settle)
        await write(owners.settle)

    async def _settle_as_leader(self) -> None:
        """In a cluster the database has the accounts, and a node's file changes nothing."""
        assert self._cluster is not None
        await self._cluster.feed_opened()
        if self._store.read(lambda reader: accounts.accounts(reader, 1, 0)):
            await self._write_all(edge_feed.settle)
            await self._write_all(owners.settle)
        else:
            await self._settle(self._write_all)

    def _tasks_of_leader(self, notices: NoticesPart) -> list[Task]:
        platform = self._platform
        upkeep = Upkeep(self._data, platform, self._resolver, self._page, _now_us, notices.heard)
        ordering = authorities.orders_of(self._start, self._data, platform, self._page, upkeep.call)
        tasks: list[Task] = [self._history, upkeep]
        return tasks if ordering is None else [*tasks, ordering]

    async def _beat(self) -> None:
        """Tell the supervisor that this loop turns."""
        while True:
            self._status.beat()
            await asyncio.sleep(process.CONTROL_BEAT_SECONDS)

    def _context(self) -> AppContext:
        start = self._start
        return AppContext(
            barrier=self._data,
            kv=self._kv.data,
            access=self._access.table,
            platform=self._platform,
            profile=start.profile,
            as_of=start.as_of,
            allow_as_of=start.allow_as_of,
            counters=self._page,
            metrics=self._metrics,
            health=self._health.rows,
            now_us=_now_us,
            uses=self._uses.uses,
            dated_uses=self._uses.dated,
            events_folder=self._data_dir / EVENTS,
            log=self._log,
            draws=Draws(self._ledger),
            connections=Connections(per_address_max=start.api_connections_per_address, ledger=self._ledger),
            quota=self._quota,
            take_room=self._space.take_room,
            behind=self._behind,
            metrics_open=start.metrics_open,
            guesses=Guesses(start.api_guesses, partial(self._page.add, _GUESSES), self._ledger),
        )

    def _share(self, nodes: Nodes, cluster: "ClusterPart") -> tuple[SharedKeys, SharedCredentials]:
        """Files that are the same on all nodes with control."""
        keys = SharedKeys(
            self._data_dir,
            nodes.vault,
            leads=lambda: cluster.membership.leads,
            changed=self._status.credentials_changed,
        )
        renewed = SharedCredentials(
            self._data_dir,
            nodes.vault,
            renewing=self._renewal.lock,
            is_current=cluster.membership.may_answer,
            is_let_in=lambda one: self._store.read(lambda reader: first_account.is_let_in(reader, one)),
            changed=self._status.credentials_changed,
        )
        keys.open()
        renewed.open()
        return keys, renewed

    def _make_kv_socket(self) -> KvSocket:
        return KvSocket(
            self._kv.data,
            frozenset(self._start.objects_namespaces),
            lambda id_: self._store.read(lambda reader: not namespaces.unknown(reader, (id_,))),
            self._uses.uses.note,
            blanks=self._start.profile is Profile.CLIENTS,
        )

    def _metrics(self) -> str:
        self._health.show()
        self._page.set(_CONSUMERS, len(self._publisher.live(DNS_GROUP)))
        self._page.set(_SEQUENCE, self._store.feed.head())
        self._page.set(_WAITING, self._store.waiting)
        self._set_levels()
        self._page.set(_BEHIND, len(self._behind()))
        return counters.render(self._pages)

    def _behind(self) -> tuple[str, ...]:
        """The nodes that a write should have waited for, and has not."""
        return tuple(node.name for node in self._away() if node.wait)

    def _away(self) -> tuple[Node, ...]:
        """The machines without control that are cut off, or catch up."""
        if self._cluster is not None:
            return self._cluster.away()
        return () if self._nodes is None else self._nodes.away(self._publisher.nodes())

    def _set_levels(self) -> None:
        """Gauges that tables know."""
        for gauge, level in zip(_FLATTENING, self._data.read(flattened.counts), strict=True):
            self._page.set(gauge, level)

    def _is_short(self) -> bool:
        return self._store.database.is_short or self._kv.is_short

    async def _install(self, kept: Credentials, write: Callable[[Install], Awaitable[None]]) -> None:
        """Make database and file agree on who is let in."""
        owned = self._store.read(lambda reader: first_account.owner_of(reader, kept))
        await write(self._installing(owned))
        first_account.settle_file(self._data_dir, kept, owned)

    def _installing(self, owned: Credentials, command: str = "") -> Install:
        """The write that lets them in; a `command` asked for it."""
        return first_account.install(owned, _now_us(), _new_id, command)

    async def _write_at_once(self, fn: Install) -> None:
        """Before anybody follows the feed."""
        await asyncio.wrap_future(self._store.write(fn))

    async def _write_all(self, fn: Install) -> None:
        """As a request does."""
        await self._data.write(fn)

    async def _write_and_settle(self, fn: Install) -> None:
        """As a request that revokes tokens: nothing of theirs commits after it (`rest.rights`)."""
        await self._data.write(fn)
        await self._kv.data.settled()

    async def _renewed_here(self, content: bytes) -> bytes:
        """Let in who was made by this node's command, or another's."""
        command, owned = credential_renewal.decode(content)
        await self._write_and_settle(self._installing(owned, command))
        return b""

    async def _renew(self, command: str) -> None:
        self._space.give_room()  # for files, which the databases' own blocks do not help
        await self._renewal.renew(command)

    async def _tell_health(self) -> tuple[Row, ...]:
        return self._health.rows()


def _for_ever() -> float:
    """A server that is its own cluster loses its office to nobody."""
    return math.inf


def _now_us() -> int:
    return time.time_ns() // 1000


def _new_id() -> str:
    return secrets.token_hex(16)
