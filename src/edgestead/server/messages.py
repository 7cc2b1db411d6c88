"""What the supervisor tells a child when it starts.

Owns  the start messages.
Not   sending or reading them (`server.supervisor.child`, `server.process`).

A message travels once, through an inherited socket: nothing in it shows in the arguments or the environment.
Descriptors are named by number, which is the same on both sides, but for those of an `ObjectsStart` and a
`ControlStart`: they come with it, to a process that is there already (`process.take_place`).
Only control gets secrets, the edge the keys of its challenges, and DNS what opens TSIG keys. A field that is
named as one of `Config` is filled from there (`server.supervisor.child`), with addresses and paths as text: a
setting reaches a process by one row here.
"""

import logging
from collections.abc import Mapping
from datetime import date
from typing import Self

import msgspec

from edgestead.config_alerts import Receiver
from edgestead.config_values import Acme
from edgestead.dns.settings import DnsSettings
from edgestead.model.call import Profile
from edgestead.model.log_text import LogForm
from edgestead.model.quotas import NO_QUOTAS, Quotas
from edgestead.server.credentials import Credentials

DNS_GROUP = "dns"  # the feed's name for the processes that answer DNS
EDGE_GROUP = "edge"  # for the processes of the edge proxy
OBJECTS_GROUP = "objects"  # and for those that run objects: no write waits for them, they have leases


class Start(msgspec.Struct, frozen=True, kw_only=True):
    """What every child gets. `status_fd` takes the lines of `process.Status`; `log_level` is `logging`'s."""

    name: str
    supervisor_pid: int
    status_fd: int
    counters_fd: int
    log_level: int = logging.INFO
    log_form: LogForm = "json"

    def with_descriptors(self, own: Mapping[int, int]) -> Self:
        """The same for a process that knows them by other numbers, which `own` has by these."""
        named = {field: getattr(self, field) for field in self.__struct_fields__ if field.endswith("_fd")}
        return msgspec.structs.replace(self, **{field: own.get(fd, fd) for field, fd in named.items()})


class Consumer(msgspec.Struct, frozen=True, kw_only=True):
    """A process that may be serving from the feed while control restarts. `group` is the feed's."""

    pid: int
    pidfd: int
    group: str


class LogStart(Start, frozen=True, kw_only=True):
    """The process that keeps the log in files. `pipe_fd` gives the lines of all processes."""

    pipe_fd: int
    log_file: str
    log_file_bytes: int
    log_files: int


class AlertsStart(Start, frozen=True, kw_only=True):
    """The process that sends alerts. `socket_fd` takes commands, `control_path` is where control does.

    `server` is what messages call this machine; `last_words_fd` as in `ControlStart`. Of secrets it gets the
    names of files and variables.
    """

    data_dir: str
    socket_fd: int
    control_path: str
    last_words_fd: int
    server: str
    receivers: tuple[Receiver, ...]


class WaitingControlStart(Start, frozen=True, kw_only=True):
    """A process that loads what control is made of, and then waits for a `ControlStart`."""

    data_dir: str
    in_cluster: bool


class ControlStart(Start, frozen=True, kw_only=True):
    """`pages` are all counter pages by process name; `expected` is empty at the server's first start.

    `lock_fd` is only held: it keeps the data folder taken for as long as control lives. `control_life_fd` is
    the page of `supervisor.control_life`. `crs` None means the
    system's rule set, ids that are None the well-known ones, `resolver` None the system's. `last_words_fd` is
    the page of `supervisor.last_words`. `objects_address` is where the objects' address is reached from here.
    `certificates_fd` is the memory in which the edge finds certificates with their keys, `challenge_keys_fd`
    that of the keys of clearances; `cookie_secret` is what DNS processes have. `notify` as in `DnsStart`: the
    secondaries that are known. `cluster_database` is None outside of a cluster; in one `cluster_fd` listens
    for other nodes, which know it as `cluster_advertise`, and reach by it this one's `objects_calls` and
    `objects_requests` (as in `ObjectsStart`).
    """

    data_dir: str
    lock_fd: int
    control_life_fd: int
    api_fd: int
    feed_fd: int
    admin_fd: int
    pages: dict[str, int]
    expected: tuple[Consumer, ...]
    credentials: Credentials
    edge_addresses: tuple[str, ...]
    own_addresses: tuple[str, ...]
    nameservers: tuple[str, ...]
    profile: Profile
    resolver: tuple[str, int] | None
    as_of: date | None
    allow_as_of: bool
    crs: str | None
    managed_ruleset_id: str | None
    anomaly_rule_id: str | None
    api_quota: int
    api_connections_per_address: int
    api_guesses: int
    metrics_open: bool
    dashboard: bool
    dashboard_name: tuple[str, ...]
    openid_issuer: str | None
    openid_client_id: str | None
    openid_secret_file: str | None
    openid_name: str
    openid_claim: str
    openid_ca: str | None
    barrier_ms: int
    silence_ms: int
    still_ms: int
    objects_silence_ms: int
    disk_reserve_bytes: int
    quotas: Quotas = NO_QUOTAS
    history_days: int
    history_rows: int
    audit_days: int
    audit_mib: int
    objects_workers: int = 0
    edge_workers: int = 0
    objects_history_mib: int
    tls_dir: str | None
    backup_hours: int
    last_words_fd: int
    kv_fd: int
    updates_fd: int
    objects_address: tuple[str, int] | None = None
    objects_namespaces: tuple[str, ...] = ()
    certificates_fd: int
    challenge_keys_fd: int
    cookie_secret: bytes
    acme: Acme | None
    acme_ca: str | None
    notify: tuple[tuple[str, int, str], ...] = ()
    cluster_database: str | None = None
    cluster_advertise: str | None = None
    cluster_lease_ms: int | None = None
    cluster_stale: str = "serve"
    cluster_stale_hours: int = 0
    cluster_reads: str = "current"
    cluster_s3: str | None = None
    cluster_s3_region: str = ""
    cluster_s3_credentials: str | None = None
    cluster_fd: int = -1
    objects_calls: tuple[str, ...] = ()
    objects_requests: tuple[str, ...] = ()

    def with_descriptors(self, own: Mapping[int, int]) -> Self:
        pages = {name: own[fd] for name, fd in self.pages.items()}
        expected = tuple(msgspec.structs.replace(one, pidfd=own[one.pidfd]) for one in self.expected)
        return msgspec.structs.replace(super().with_descriptors(own), pages=pages, expected=expected)


class RelayStart(Start, frozen=True, kw_only=True):
    """The relay of a node without control. `feed_fds` are the listening sockets by group of the feed.

    `expected` as in `ControlStart`; `lock_fd` is only held. `identity_dir` has the node's key and
    certificate. `admin_fd` takes questions about the node. `certificates_fd` is the memory in which the edge
    finds certificates with their keys; `challenge_keys_fd` and `dns_secrets_fd` have other secrets.
    """

    data_dir: str
    identity_dir: str
    lock_fd: int
    admin_fd: int
    feed_fds: dict[str, int]
    certificates_fd: int
    challenge_keys_fd: int
    dns_secrets_fd: int
    expected: tuple[Consumer, ...]
    barrier_ms: int
    silence_ms: int
    still_ms: int
    cluster_region: str | None
    cluster_stale: str
    cluster_stale_hours: int


class WaitingStart(Start, frozen=True, kw_only=True):
    """A process that imports the classes of stateful objects, and then waits for an `ObjectsStart`.

    `sources` are files, folders and modules; `bindings` are names that no class may have. `nice` is added to
    its own, for good: without privileges nothing takes it back. `in_cluster`: objects live in its database.
    """

    nice: int = 0
    sources: tuple[str, ...]
    bindings: tuple[str, ...]
    objects_apart: tuple[str, ...]
    in_cluster: bool = False


class ObjectsStart(Start, frozen=True, kw_only=True):
    """One objects process. `socket_fd` listens for HTTP, the same one for all of them. `calls` and `requests`
    are the Unix sockets where each passes on what another one owns, `calls_fd` and `requests_fd` this one's.
    Objects are dealt out to so many `workers`; one more is for classes that went apart since.

    `lock_fd` is only held, as in `ControlStart`; `control_life_fd` as there. `ended_itself`: as in `Child`,
    of the life before.

    In a cluster objects are in `cluster_database` (else None), and other machines reach this process by the
    place `worker` at `cluster_advertise`; `identity_dir` has the node's key and certificate.
    """

    folder: str
    lock_fd: int
    control_life_fd: int
    socket_fd: int
    calls_fd: int
    requests_fd: int
    feed_path: str
    worker: int
    workers: int
    objects_apart: tuple[str, ...]
    objects_contain: bool
    calls: tuple[str, ...]
    requests: tuple[str, ...]
    api_guesses: int
    api_connections_per_address: int
    objects_blocked_seconds: float
    objects_thin_seconds: int
    objects_history_mib: int
    memory_bytes_max: int
    kv_path: str
    bindings: dict[str, str]
    alarms: bool = True
    ended_itself: bool = False
    cluster_database: str | None = None
    cluster_advertise: str | None = None
    cluster_lease_ms: int | None = None
    identity_dir: str = ""


class EdgeStart(Start, frozen=True, kw_only=True):
    """One process of the edge proxy. `http_fd` and `https_fd` (-1: none) listen, the same for all of them.

    `own_listeners` are (host, port) of everything that the server listens on, `own_dns` where it answers DNS.
    `loop_token` names this server to itself (RFC 8586). `resolver` None means the system's.

    All of them share the memory of `rates_fd`, and hash into it with `rates_secret`. `events_fd` is the
    folder of events, `challenge_keys_fd` the memory of the keys that clearances are signed with,
    `certificates_fd` that of the certificates that control keeps.
    `crs` None means the system's rule set, `rules_dir` is where its compiled form is kept.
    """

    http_fd: int
    https_fd: int
    https_port: int
    feed_path: str
    worker: int
    workers: int
    profile: Profile
    own_listeners: tuple[tuple[str, int], ...]
    own_dns: tuple[str, int]
    loop_token: bytes
    resolver: tuple[str, int] | None
    tls_dir: str | None
    origin_port: int | None
    origins_allowed: tuple[str, ...]
    origin_ca: str | None
    trusted_proxies: tuple[str, ...]
    proxy_protocol: bool
    http_connections_per_address: int
    rates_fd: int
    rates_secret: bytes
    events_fd: int
    challenge_keys_fd: int
    certificates_fd: int
    crs: str | None
    rules_dir: str
    managed_ruleset_id: str | None
    anomaly_rule_id: str | None
    managed_response_bytes: int
    access_fd: int  # the folder of the access log's file; -1 where it is none
    access_log: str | None
    access_log_form: str
    access_log_field: tuple[str, ...]
    access_log_sample: int
    access_log_zone: tuple[str, ...]
    access_log_bytes: int
    access_log_files: int


class DnsStart(Start, frozen=True, kw_only=True):
    """One worker of DNS: `socket_fd` is bound (UDP) or listening (TCP).

    `sibling_fds` are the sockets of the other UDP workers.

    `ask_fd` takes operators' questions (`server.dns.ask`). UDP workers are numbered from 0 and share
    the memory of `rates_fd`; `dns_rate` 0 means no limit.
    `transfer_to` are the prefixes of who may have whole zones (`transfer_tls`: over TLS only), `notify`
    address, port and key of who is told of changes; both are of use over TCP only. `tsig_secret` opens the
    keys that the feed has, `updates_path` is where control takes dynamic updates. `warm_fd` is the folder of
    the files from which a start is warm; `run` names this run of the server in them. `control_life_fd` tells
    whether control lives, `witness_fd` the newest change (`server.dns.alone`).
    `nameservers` are answered with `nameserver_addresses` where no zone holds them.
    `dot_fd` and `doh_fd` (-1: none) listen for TLS, of the TCP worker, with the certificates of `tls_dir` and
    those of the memory `certificates_fd`, which has their keys: no process has it that shows none.
    `secrets_fd` is the memory of `server.dns.secret_memory`, on a machine without control (else -1).
    """

    socket_fd: int
    sibling_fds: tuple[int, ...]
    feed_path: str
    warm_fd: int
    run: str
    control_life_fd: int
    witness_fd: int
    settings: DnsSettings
    rates_fd: int
    ask_fd: int
    dns_rate: int
    worker: int
    workers: int
    nameservers: tuple[str, ...]
    nameserver_addresses: tuple[str, ...]
    transfer_to: tuple[str, ...] = ()
    transfer_tls: bool = False
    notify: tuple[tuple[str, int, str], ...] = ()
    tsig_secret: bytes = b""
    secrets_fd: int = -1
    updates_path: str = ""
    dot_fd: int = -1
    doh_fd: int = -1
    certificates_fd: int = -1
    tls_dir: str | None = None
