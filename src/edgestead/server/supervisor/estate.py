"""What one server has: its folder, its sockets, its counters and its children.

Owns  acquiring all of it in order, and giving all of it back.
Not   when children start or end (`server.supervisor.main`).
"""

import os
import secrets
import socket
import time
from collections.abc import Iterable, Mapping
from contextlib import ExitStack, suppress
from functools import partial
from types import TracebackType

from edgestead.config import Config
from edgestead.dns import rates
from edgestead.dns.settings import DnsSettings, new_secret
from edgestead.model import tsig
from edgestead.model.counters import PAGE_BYTES
from edgestead.server import credentials, runtime, seal
from edgestead.server.edge import estate
from edgestead.server.errors import StartError
from edgestead.server.folder import RESTORING, DataFolder, lost_words
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
    WaitingStart,
)
from edgestead.server.objects import apart
from edgestead.server.objects import estate as objects_estate
from edgestead.server.space import Space
from edgestead.server.supervisor import control_life, inherited, last_words, ready
from edgestead.server.supervisor.child import Child, MakeStart
from edgestead.server.supervisor.control_life import ControlLife
from edgestead.server.supervisor.listeners import Listeners, bound_address, objects_sockets
from edgestead.server.supervisor.log_estate import LogPipe

STILL_PARTS = 20  # of silence-seconds a process may do nothing at all: 0.5 s by default
STILL_SECONDS_MIN = 0.5  # a call of the system that neither computes nor waits for a disk takes less


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
        self._warm_fd = self._folder.open_warm()
        undo.callback(os.close, self._warm_fd)
        self._runtime_dir = self._folder.make_runtime_dir()
        undo.callback(runtime.remove, self._runtime_dir)
        workers = config.dns_workers or len(os.sched_getaffinity(0))
        objects_workers = objects_estate.workers(config)
        self._listeners = Listeners(
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
            handed=inherited.adopt(os.environ),
        )
        undo.callback(self._listeners.close)
        credentials.load_or_make(config.data_dir)
        self.remove_ready_file()  # of a server that was killed: it would tell of us too early
        self._dns_settings = DnsSettings(
            cookie_secret=new_secret(),
            identity=config.dns_identity.encode(),
            version=config.dns_version.encode(),
        )
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
        self._control = self._child("control", "control.main", self._control_start)
        self._control.still_seconds_max = self._still_seconds
        self._control.life = ControlLife(self._life_fd, writes=True)
        self._consumers = [
            self._child(f"dns-{worker}", "dns.udp", partial(self._dns_start, opened.fileno(), worker))
            for worker, opened in enumerate(self._listeners.dns_udp)
        ]
        tcp_start = partial(self._dns_start, self._listeners.dns_tcp.fileno(), -1)
        self._consumers.append(self._child("dns-tcp", "dns.tcp", tcp_start))
        self.spare: Child | None = None
        if objects_workers and config.objects_spare:
            self.spare = self._objects_child("objects-spare")
        self._objects = [
            self._objects_child(f"objects-{worker}", partial(self._objects_start, worker), self.spare)
            for worker in range(objects_workers - bool(config.objects_apart))
        ]
        self._apart: list[Child] = []
        self.needs_apart = False
        if objects_workers:  # it takes no spare process, so that there is one when others need it
            self._begin_apart(len(self._objects))
        self._edge_shared = estate.Shared(self._folder, config, estate.workers(config), undo)
        self._edges = [
            self._child(f"edge-{worker}", "edge.main", partial(self._edge_start, worker))
            for worker in range(self._edge_shared.workers)
        ]
        wanted = [self._alerts_start] if config.alert else []
        self._alerts = [self._child("alerts", "alerts.main", make_start) for make_start in wanted]
        for fd in self._pages.values():
            undo.callback(os.close, fd)

    def _child(
        self,
        name: str,
        module: str,
        make_start: MakeStart,
        environment: Mapping[str, str] | None = None,
        silence_seconds_max: float | None = None,
        make_place: MakeStart | None = None,
        spare: Child | None = None,
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
            spare=spare,
        )

    def _begin_apart(self, worker: int) -> None:
        """The process of classes that are apart; it need not run."""
        start = partial(self._objects_start, worker)
        nice = self._config.objects_apart_nice
        self._apart.append(self._objects_child(f"objects-{worker}", start, nice=nice))
        root = self._config.data_dir / objects_estate.FOLDER
        self.needs_apart = bool(self._config.objects_apart) or apart.is_used(root)

    def _objects_child(
        self, name: str, make_place: MakeStart | None = None, spare: Child | None = None, nice: int = 0
    ) -> Child:
        """One that runs objects; without a place the spare one."""
        child = self._child(
            name,
            "objects.main",
            partial(self._waiting_start, nice),
            objects_estate.environment(os.environ),
            objects_estate.blocked_seconds(self._config),
            make_place,
            spare,
        )
        child.still_seconds_max = objects_estate.still_seconds(self._config)
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
        """The spare one, too."""
        return self.children if self.spare is None else [*self.children, self.spare]

    def renew_keys(self) -> float:
        """Make the keys that are due. Returns in how many seconds to ask again."""
        return self._edge_shared.challenge_keys.renew()

    def void_keys(self) -> None:
        """The credentials were renewed: the keys that were made under the old ones end."""
        self._edge_shared.challenge_keys.credentials_changed()

    def stages(self) -> list[list[Child]]:
        """The order of the end: while control finishes its writes, their consumers still confirm them.

        Objects go first, because they ask control for key-value data, with the alerts, for which a control
        that ends is no news; the log goes last.
        """
        spare = [] if self.spare is None else [self.spare]
        return [
            [*self._objects, *self._apart, *spare, *self._alerts],
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
        if self._config.ready_file:
            try:
                ready.write(self._config.ready_file, now_ready)
            except OSError as error:
                raise StartError(
                    f"--ready-file {self._config.ready_file} cannot be written: {error.strerror}"
                ) from None
        return now_ready

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

    def _control_start(self, child: Child, status_fd: int) -> tuple[ControlStart, Iterable[int]]:
        config, listeners = self._config, self._listeners
        # Whoever is alive may be serving: also a child whose "ready" has not been read yet.
        serving = tuple(
            Consumer(pid=c.pid, pidfd=c.pidfd, group=group)
            for group, children in (
                (DNS_GROUP, self._consumers),
                (EDGE_GROUP, self._edges),
                (OBJECTS_GROUP, [*self._objects, *self._apart]),
            )
            for c in children
            if c.is_alive
        )
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
        )
        sockets = [start.api_fd, start.feed_fd, start.admin_fd, start.kv_fd, start.updates_fd]
        pidfds = [consumer.pidfd for consumer in serving]
        held = [start.lock_fd, start.control_life_fd, start.last_words_fd, start.certificates_fd]
        return start, [*held, *sockets, *self._pages.values(), *pidfds]

    def _waiting_start(self, nice: int, child: Child, status_fd: int) -> tuple[WaitingStart, Iterable[int]]:
        start = child.message(
            WaitingStart,
            status_fd,
            self._config,
            nice=nice,
            sources=self._config.objects,
            bindings=tuple(name for name, _ in self._config.objects_bindings),
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
        runtime_dir, places = self._runtime_dir, objects_estate.places(self._config)
        start = child.message(
            ObjectsStart,
            status_fd,
            self._config,
            folder=str(self._config.data_dir / objects_estate.FOLDER),
            lock_fd=self._folder.lock_fd,
            control_life_fd=self._life_fd,
            socket_fd=listeners.objects.fileno(),
            calls_fd=listeners.objects_calls[worker].fileno(),
            requests_fd=listeners.objects_requests[worker].fileno(),
            feed_path=str(self._runtime_dir / "feed.sock"),
            worker=worker,
            workers=objects_estate.workers(self._config),
            calls=tuple(map(str, objects_sockets(runtime_dir, "calls", places))),
            requests=tuple(map(str, objects_sockets(runtime_dir, "requests", places))),
            memory_bytes_max=objects_estate.memory_bytes_max(self._config),
            kv_path=str(runtime_dir / "kv.sock"),
            bindings=dict(self._config.objects_bindings),
            alarms=not self._config.no_alarms,
            ended_itself=child.ended_itself,
        )
        sockets = [start.socket_fd, start.calls_fd, start.requests_fd]
        return start, [start.lock_fd, start.control_life_fd, *sockets]

    def _edge_start(self, worker: int, child: Child, status_fd: int) -> tuple[EdgeStart, Iterable[int]]:
        start = estate.start_of(
            self._config,
            self._listeners,
            self._runtime_dir,
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
            feed_path=str(self._runtime_dir / "feed.sock"),
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
            tsig_secret=seal.derived_or_none(self._config.data_dir, tsig.PURPOSE),
            dot_fd=dot_fd,
            doh_fd=doh_fd,
            certificates_fd=certificates_fd,
        )
        listening = [fd for fd in (socket_fd, dot_fd, doh_fd, certificates_fd) if fd >= 0]
        shared = [self._rates_fd, self._warm_fd, self._life_fd, self._witness_fd]
        return start, [*listening, ask.fileno(), *siblings, *shared]
