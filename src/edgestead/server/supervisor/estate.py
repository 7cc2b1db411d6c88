"""What one server has: its folder, its sockets, its counters and its children.

Owns  acquiring all of it in order, and giving all of it back.
Not   when children start or end (`server.supervisor.main`).
"""

import os
import secrets
import socket
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from types import TracebackType
from typing import Literal

from edgestead.config import Config
from edgestead.config_values import SPARES_MAX
from edgestead.dns import rates
from edgestead.dns.cookies import PURPOSE as COOKIES
from edgestead.dns.settings import DnsSettings, new_secret
from edgestead.model import tsig
from edgestead.model.counters import PAGE_BYTES
from edgestead.server import credentials, runtime, seal
from edgestead.server.edge import estate
from edgestead.server.edge.challenge_key_memory import FedKeys, KeyWriter
from edgestead.server.errors import StartError
from edgestead.server.folder import MOVED, RESTORING, DataFolder, lost_words, moved_words
from edgestead.server.messages import (
    DNS_GROUP,
    EDGE_GROUP,
    OBJECTS_GROUP,
    AlertsStart,
    Consumer,
    ControlStart,
    DnsStart,
    EdgeStart,
    LogStart,
    ObjectsStart,
    WaitingControlStart,
    WaitingStart,
)
from edgestead.server.nodes import identity
from edgestead.server.objects import apart
from edgestead.server.objects import estate as objects_estate
from edgestead.server.space import Space
from edgestead.server.supervisor import control_life, inherited, last_words, ready
from edgestead.server.supervisor.child import Child, MakeStart
from edgestead.server.supervisor.control_life import ControlLife
from edgestead.server.supervisor.listeners import Listeners, bound_address, objects_sockets
from edgestead.server.supervisor.log_estate import LogPipe

SPARE_CONTROLS = ("control-spare", *(f"control-spare-{number}" for number in range(1, SPARES_MAX)))
SPARE_CONTROL_AFTER_SECONDS = 5.0
"""Of a server of one machine, once it is up: one that lives for a moment does not pay 0.9 s of a core."""
STILL_PARTS = 20  # of silence-seconds a process may do nothing at all: 0.5 s by default
STILL_SECONDS_MIN = 0.5  # a call of the system that neither computes nor waits for a disk takes less
CONTROL_STILL_PART = 0.4
"""Of that, for control of a server of one machine: its loop makes no such call, and nobody writes or revokes
meanwhile. In a cluster another process would lead then, for which it waits a little longer."""


class Estate:
    """A context manager. Entering raises StartError, with everything given back that it had got."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._still_seconds = max(STILL_SECONDS_MIN, config.silence_seconds / STILL_PARTS)
        self._undo = ExitStack()

    def __enter__(self) -> "Estate":
        with ExitStack() as undo:
            self._acquire(undo)
            self._undo = undo.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._undo.close()

    def _acquire(self, undo: ExitStack) -> None:
        config = self._config
        self._folder = DataFolder(config.data_dir)
        undo.callback(self._folder.close)
        Space(config.data_dir, config.disk_reserve_mib << 20).look()
        if (self._folder.path / RESTORING).exists():
            raise StartError(f"{self._folder.path}: a restore was cut short; run `edgecli restore` again")
        if (self._folder.path / MOVED).exists():
            raise StartError(moved_words(self._folder.path))
        self._warm_fd = self._folder.open_warm()
        undo.callback(os.close, self._warm_fd)
        self._runtime_dir = self._folder.make_runtime_dir()
        undo.callback(runtime.remove, self._runtime_dir)
        workers = config.dns_workers or len(os.sched_getaffinity(0))
        objects_workers = objects_estate.workers(config)
        self._listeners = self._listen(workers, objects_workers)
        undo.callback(self._listeners.close)
        self._settle_credentials()
        self.remove_ready_file()  # of a server that was killed: it would tell of us too early
        self._dns_settings = DnsSettings(
            cookie_secret=self._derived(COOKIES) or new_secret(),
            identity=config.dns_identity.encode(),
            version=config.dns_version.encode(),
        )
        self._secrets_fd = self._secrets_memory(undo)
        self._rates_fd = os.memfd_create("edgestead-dns-rates", os.MFD_CLOEXEC)
        undo.callback(os.close, self._rates_fd)
        os.ftruncate(self._rates_fd, rates.memory_octets(workers))
        self._pages: dict[str, int] = {}
        self._logs = self._log_children(undo)
        self._run = secrets.token_hex(8)
        self._life_fd = os.memfd_create("edgestead-control-life", os.MFD_CLOEXEC)
        undo.callback(os.close, self._life_fd)
        os.ftruncate(self._life_fd, control_life.BYTES)
        self._witness_fd = self._folder.open_witness()
        undo.callback(os.close, self._witness_fd)
        self._words_fd = os.memfd_create("edgestead-last-words", os.MFD_CLOEXEC)
        undo.callback(os.close, self._words_fd)
        os.ftruncate(self._words_fd, last_words.PAGE_BYTES)
        self.words = last_words.LastWords(self._words_fd)
        self.spares: list[Child] = []
        self._control = self._make_source()
        self._control.still_seconds_max = self._still_seconds * (1 if self._is_node else CONTROL_STILL_PART)
        self._control.works_at_its_start = not self._is_node
        self._control.life = ControlLife(self._life_fd, writes=True)
        self._consumers = [
            self._child(f"dns-{worker}", "dns.udp", partial(self._dns_start, opened.fileno(), worker))
            for worker, opened in enumerate(self._listeners.dns_udp)
        ]
        tcp_start = partial(self._dns_start, self._listeners.dns_tcp.fileno(), -1)
        self._consumers.append(self._child("dns-tcp", "dns.tcp", tcp_start))
        shared = range(objects_workers - bool(config.objects_apart))
        spares = [self._objects_child(name) for name in objects_estate.spares(config, len(shared))]
        self.spares += spares
        self._objects = [
            self._objects_child(f"objects-{worker}", partial(self._objects_start, worker), spares)
            for worker in shared
        ]
        self._apart: list[Child] = []
        self.needs_apart = False
        # It takes no spare process, so that there is one when others need it.
        if config.objects_apart or objects_estate.may_go_apart(config):
            self._begin_apart(len(self._objects))
        edges, keys = estate.workers(config), self._challenge_keys(undo)
        self._edge_shared = estate.Shared(self._folder, config, edges, keys, undo)
        self._edges = [
            self._child(f"edge-{worker}", "edge.main", partial(self._edge_start, worker))
            for worker in range(self._edge_shared.workers)
        ]
        self._alerts = self._make_alerts()
        for fd in self._pages.values():
            undo.callback(os.close, fd)

    # What is otherwise on a node without control.

    def _listen(self, workers: int, objects_workers: int) -> Listeners:
        config = self._config
        return Listeners(
            config.api,
            config.dns,
            workers,
            self._runtime_dir,
            config.objects_http if objects_workers else None,
            objects_estate.places(config),
            http=config.http,
            https=config.https,
            dot=config.dot,
            doh=config.doh,
            cluster=config.cluster_listen,
            handed=inherited.adopt(os.environ),
        )

    def _settle_credentials(self) -> None:
        credentials.load_or_make(self._config.data_dir)

    def _make_source(self) -> Child:
        """The process that the others follow. One waits to take its place: while there is none nobody writes,
        and in a cluster not before the office of one that died is free.
        """
        module, waiting = "control.waiting", self._waiting_control_start
        spares = [self._child(name, module, waiting) for name in SPARE_CONTROLS[: self._config.control_spare]]
        for spare in spares:
            spare.first_life_after_seconds = 0.0 if self._is_node else SPARE_CONTROL_AFTER_SECONDS
        self.spares += spares
        return self._child("control", module, waiting, make_place=self._control_start, spares=spares)

    def _make_alerts(self) -> list[Child]:
        wanted = [self._alerts_start] if self._config.alert else []
        return [self._child("alerts", "alerts.main", make_start) for make_start in wanted]

    def _feed_path(self, group: str) -> str:
        return str(self._runtime_dir / "feed.sock")

    def _derived(self, purpose: bytes) -> bytes:
        """A secret that comes from the folder's, b"" where there is none."""
        return seal.derived_or_none(self._config.data_dir, purpose)

    def _challenge_keys(self, undo: ExitStack) -> KeyWriter | FedKeys:
        in_cluster = self._config.cluster_database is not None
        return KeyWriter(self._folder.path, time.time, undo, is_shared=in_cluster)

    def _secrets_memory(self, undo: ExitStack) -> int:
        """Where secrets of DNS come from another machine; -1 where they do not."""
        return -1

    def ends_with(self, child: Child) -> list[Child]:
        """Who may not answer any more because this process has ended: nobody knows how long the node's lease
        is.
        """
        stops = self._is_node and self._config.cluster_stale == "stop"
        return [*self._consumers, *self._edges] if stops and child is self._control else []

    @property
    def _is_node(self) -> bool:
        """Whether others lead, or may."""
        return self._config.cluster_database is not None

    def _serving(self) -> tuple[Consumer, ...]:
        """Whoever is alive may be serving: also a child whose "ready" has not been read yet."""
        return tuple(
            Consumer(pid=c.pid, pidfd=c.pidfd, group=group)
            for group, children in (
                (DNS_GROUP, self._consumers),
                (EDGE_GROUP, self._edges),
                (OBJECTS_GROUP, [*self._objects, *self._apart]),
            )
            for c in children
            if c.is_alive
        )

    def _child(
        self,
        name: str,
        module: str,
        make_start: MakeStart,
        environment: Mapping[str, str] | None = None,
        silence_seconds_max: float | None = None,
        make_place: MakeStart | None = None,
        spares: Sequence[Child] = (),
    ) -> Child:
        counters_fd = os.memfd_create(f"edgestead-counters-{name}", os.MFD_CLOEXEC)
        os.ftruncate(counters_fd, PAGE_BYTES)
        self._pages[name] = counters_fd
        return Child(
            name,
            f"edgestead.server.{module}",
            make_start,
            counters_fd,
            time.monotonic,
            silence_seconds_max or self._config.silence_seconds,
            environment,
            held_fd=self._folder.runtime_fd,
            make_place=make_place,
            spares=spares,
        )

    def _begin_apart(self, worker: int) -> None:
        """The process of classes that are apart; it need not run."""
        start = partial(self._objects_start, worker)
        nice = self._config.objects_apart_nice
        self._apart.append(self._objects_child(f"objects-{worker}", start, nice=nice))
        root = objects_estate.folder(self._config)
        self.needs_apart = bool(self._config.objects_apart) or apart.is_used(root)

    def _objects_child(
        self, name: str, make_place: MakeStart | None = None, spares: Sequence[Child] = (), nice: int = 0
    ) -> Child:
        """One that runs objects; without a place a spare one."""
        child = self._child(
            name,
            "objects.main",
            partial(self._waiting_start, nice),
            objects_estate.environment(os.environ),
            objects_estate.blocked_seconds(self._config),
            make_place,
            spares,
        )
        child.still_seconds_max = objects_estate.still_seconds(self._config)
        child.idle_still_seconds_max = objects_estate.idle_still_seconds(self._config)
        child.keeps_others_waiting = True  # whoever holds the interpreter's lock there runs users' code
        return child

    @property
    def control(self) -> Child:
        return self._control

    @property
    def apart(self) -> Child | None:
        """The process of classes that are apart, if there may be one."""
        return self._apart[0] if self._apart else None

    @property
    def children(self) -> list[Child]:
        """Those that have to be ready for the server to be up."""
        objects = [*self._objects, *(self._apart if self.needs_apart else ())]
        parts = (self._logs, [self._control], self._consumers, objects, self._edges, self._alerts)
        return [child for part in parts for child in part]

    @property
    def every_child(self) -> list[Child]:
        """The spare ones, too."""
        return [*self.children, *self.spares]

    def renew_keys(self) -> float:
        """Make the keys that are due. Returns in how many seconds to ask again."""
        return self._edge_shared.challenge_keys.renew()

    def void_keys(self) -> float:
        """The credentials were renewed: the keys that were made under the old ones end. As `renew_keys`."""
        return self._edge_shared.challenge_keys.credentials_changed()

    def stages(self) -> list[list[Child]]:
        """The order of the end: while control finishes its writes, their consumers still confirm them.

        Objects go first, because they ask control for key-value data, with the alerts, for which a control
        that ends is no news; the log goes last.
        """
        return [
            [*self._objects, *self._apart, *self.spares, *self._alerts],
            [self._control],
            [*self._edges, *self._consumers],
            self._logs,
        ]

    def open_to_the_world(self) -> ready.Ready:
        """Everything answers: leave word of it in the data folder and the ready-file.

        Raises StartError when the ready-file cannot be written.
        """
        self._state = ready.state_of(self._listeners, self._runtime_dir, self._config)
        self._folder.write_state(self._state)
        return self.write_ready_file()

    def write_ready_file(self) -> ready.Ready:
        """The same with what `credentials.json` says now."""
        kept = credentials.load_or_make(self._config.data_dir)
        now_ready = ready.ready_of(self._state, kept)
        self._put_ready_file(now_ready)
        return now_ready

    def _put_ready_file(self, now_ready: ready.Ready) -> None:
        if self._config.ready_file:
            try:
                ready.write(self._config.ready_file, now_ready)
            except OSError as error:
                raise StartError(
                    f"--ready-file {self._config.ready_file} cannot be written: {error.strerror}"
                ) from None

    def remove_ready_file(self) -> None:
        if self._config.ready_file:
            with suppress(OSError):
                self._config.ready_file.unlink()

    def _log_children(self, undo: ExitStack) -> list[Child]:
        """The process that keeps the log in a file, if it goes there."""
        if self._config.log_file is None:
            return []
        pipe = LogPipe(undo)
        return [self._child("log", "log_file", partial(self._log_start, pipe.read_fd))]

    def _log_start(self, pipe_fd: int, child: Child, status_fd: int) -> tuple[LogStart, Iterable[int]]:
        start = child.message(
            LogStart,
            status_fd,
            self._config,
            pipe_fd=pipe_fd,
        )
        return start, [pipe_fd]

    def _waiting_control_start(
        self, child: Child, status_fd: int
    ) -> tuple[WaitingControlStart, Iterable[int]]:
        return child.message(WaitingControlStart, status_fd, self._config, in_cluster=self._is_node), []

    def _control_start(self, child: Child, status_fd: int) -> tuple[ControlStart, Iterable[int]]:
        config, listeners = self._config, self._listeners
        serving = self._serving()
        start = child.message(
            ControlStart,
            status_fd,
            self._config,
            lock_fd=self._folder.lock_fd,
            control_life_fd=self._life_fd,
            api_fd=listeners.api.fileno(),
            feed_fd=listeners.feed.fileno(),
            admin_fd=listeners.admin.fileno(),
            pages=self._pages,
            expected=serving,
            credentials=credentials.load_or_make(config.data_dir),
            nameservers=config.nameserver,
            metrics_open=config.metrics_open or listeners.api_is_local,
            dashboard=listeners.api_is_local and not config.no_dashboard,
            silence_ms=config.silence_seconds * 1000,
            still_ms=int(self._still_seconds * 1000),
            objects_silence_ms=int((config.silence_seconds + objects_estate.blocked_seconds(config)) * 1000),
            disk_reserve_bytes=config.disk_reserve_mib << 20,
            objects_workers=len(self._objects) + self.needs_apart,
            edge_workers=len(self._edges),
            last_words_fd=self._words_fd,
            kv_fd=listeners.kv.fileno(),
            updates_fd=listeners.updates.fileno(),
            objects_address=tuple(bound_address(listeners.objects)) if listeners.objects else None,
            objects_namespaces=tuple(id_ for _, id_ in config.objects_bindings),
            certificates_fd=self._edge_shared.certificates_fd,
            challenge_keys_fd=self._edge_shared.challenge_keys.fd,
            cookie_secret=self._dns_settings.cookie_secret,
            cluster_fd=-1 if listeners.cluster is None else listeners.cluster.fileno(),
            cluster_advertise=self._advertised(),
            objects_calls=self._objects_paths("calls"),
            objects_requests=self._objects_paths("requests"),
        )
        sockets = [start.api_fd, start.feed_fd, start.admin_fd, start.kv_fd, start.updates_fd]
        sockets += [start.cluster_fd] * (start.cluster_fd >= 0)
        pidfds = [consumer.pidfd for consumer in serving]
        held = [start.lock_fd, start.control_life_fd, start.last_words_fd, start.certificates_fd]
        held.append(start.challenge_keys_fd)
        return start, [*held, *sockets, *self._pages.values(), *pidfds]

    def _advertised(self) -> str | None:
        """Where other nodes of a cluster reach this one."""
        if self._listeners.cluster is None or self._config.cluster_advertise is not None:
            return None if self._config.cluster_advertise is None else str(self._config.cluster_advertise)
        return str(bound_address(self._listeners.cluster))

    def _waiting_start(self, nice: int, child: Child, status_fd: int) -> tuple[WaitingStart, Iterable[int]]:
        start = child.message(
            WaitingStart,
            status_fd,
            self._config,
            nice=nice,
            sources=self._config.objects,
            bindings=tuple(name for name, _ in self._config.objects_bindings),
            in_cluster=self._is_node,
        )
        return start, []

    def _alerts_start(self, child: Child, status_fd: int) -> tuple[AlertsStart, Iterable[int]]:
        start = child.message(
            AlertsStart,
            status_fd,
            self._config,
            socket_fd=self._listeners.alerts.fileno(),
            control_path=str(self._runtime_dir / "admin.sock"),
            last_words_fd=self._words_fd,
            server=socket.gethostname(),
            receivers=self._config.alert,
        )
        return start, [start.socket_fd, start.last_words_fd]

    def _objects_start(self, worker: int, child: Child, status_fd: int) -> tuple[ObjectsStart, Iterable[int]]:
        listeners = self._listeners
        assert listeners.objects is not None
        runtime_dir = self._runtime_dir
        start = child.message(
            ObjectsStart,
            status_fd,
            self._config,
            folder=str(objects_estate.folder(self._config)),
            lock_fd=self._folder.lock_fd,
            control_life_fd=self._life_fd,
            socket_fd=listeners.objects.fileno(),
            calls_fd=listeners.objects_calls[worker].fileno(),
            requests_fd=listeners.objects_requests[worker].fileno(),
            feed_path=str(self._runtime_dir / "feed.sock"),
            worker=worker,
            workers=objects_estate.workers(self._config),
            calls=self._objects_paths("calls"),
            requests=self._objects_paths("requests"),
            memory_bytes_max=objects_estate.memory_bytes_max(self._config),
            kv_path=str(runtime_dir / "kv.sock"),
            bindings=dict(self._config.objects_bindings),
            alarms=not self._config.no_alarms,
            ended_itself=child.ended_itself,
            cluster_advertise=self._advertised(),
            identity_dir=str(self._config.data_dir / identity.FOLDER),
        )
        sockets = [start.socket_fd, start.calls_fd, start.requests_fd]
        return start, [start.lock_fd, start.control_life_fd, *sockets]

    def _objects_paths(self, kind: Literal["calls", "requests"]) -> tuple[str, ...]:
        """The Unix sockets of the objects processes, by worker; none without any."""
        return tuple(map(str, objects_sockets(self._runtime_dir, kind, objects_estate.places(self._config))))

    def _edge_start(self, worker: int, child: Child, status_fd: int) -> tuple[EdgeStart, Iterable[int]]:
        start = estate.start_of(
            self._config,
            self._listeners,
            self._feed_path(EDGE_GROUP),
            child,
            status_fd,
            worker=worker,
            shared=self._edge_shared,
        )
        listening = [fd for fd in (start.http_fd, start.https_fd) if fd >= 0]
        return start, [*listening, *self._edge_shared.descriptors]

    @property
    def lost(self) -> str:
        """Why nothing may be started any more: it would open, or make, files in somebody else's folder."""
        return "" if self._folder.is_ours else lost_words(self._folder.path, "lock")

    def _renew_witness(self) -> None:
        """The file that is there now: an operator may have moved one away while control could not start."""
        found = self._folder.open_witness()
        os.dup2(found, self._witness_fd, inheritable=False)
        os.close(found)

    def _dns_start(
        self, socket_fd: int, worker: int, child: Child, status_fd: int
    ) -> tuple[DnsStart, Iterable[int]]:
        ask = self._listeners.dns_asks[worker]
        others = [] if worker < 0 else [one.fileno() for one in self._listeners.dns_udp]
        siblings = tuple(fd for fd in others if fd != socket_fd)
        private = (None, None) if worker >= 0 else (self._listeners.dot, self._listeners.doh)
        dot_fd, doh_fd = (-1 if one is None else one.fileno() for one in private)
        certificates_fd = -1 if max(dot_fd, doh_fd) < 0 else self._edge_shared.certificates_fd
        self._renew_witness()
        start = child.message(
            DnsStart,
            status_fd,
            self._config,
            socket_fd=socket_fd,
            sibling_fds=siblings,
            feed_path=self._feed_path(DNS_GROUP),
            warm_fd=self._warm_fd,
            run=self._run,
            control_life_fd=self._life_fd,
            witness_fd=self._witness_fd,
            settings=self._dns_settings,
            rates_fd=self._rates_fd,
            ask_fd=ask.fileno(),
            worker=worker,
            workers=len(self._listeners.dns_udp),
            nameservers=self._config.nameserver,
            updates_path=str(self._runtime_dir / "updates.sock"),
            tsig_secret=self._derived(tsig.PURPOSE),
            secrets_fd=self._secrets_fd,
            dot_fd=dot_fd,
            doh_fd=doh_fd,
            certificates_fd=certificates_fd,
        )
        opened = (socket_fd, dot_fd, doh_fd, certificates_fd, self._secrets_fd)
        listening = [fd for fd in opened if fd >= 0]
        shared = [self._rates_fd, self._warm_fd, self._life_fd, self._witness_fd]
        return start, [*listening, ask.fileno(), *siblings, *shared]
