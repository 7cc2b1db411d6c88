"""Every socket that the server listens on, bound once and handed down.

Owns  probing, binding and closing the listening sockets.
Not   reading a byte from any of them.

Two servers with SO_REUSEPORT would silently share a port, each seeing a part of the queries. So the first
UDP socket is bound without it, which fails when anyone else is there, and only then allows siblings.
"""

import errno
import os
import socket
from collections.abc import Iterable
from ipaddress import ip_address
from pathlib import Path
from typing import Literal

from edgestead.config import Address
from edgestead.server.errors import StartError
from edgestead.server.supervisor import inherited
from edgestead.server.supervisor.holders import port_holder

_BACKLOG = 1024
PORT_FREE_MIN = 1024  # below it a port is for root, by default (ip_unprivileged_port_start)
_PAIR_TRIES_MAX = 32  # of finding a free port for UDP and TCP together


class Listeners:
    """The sockets of one server. Raises StartError for a port that cannot be had, with nothing left open.

    `handed` are sockets that somebody has bound for us; they are used where they fit, and the others closed.
    """

    def __init__(
        self,
        api: Address | None,
        dns: Address,
        dns_workers: int,
        runtime_dir: Path,
        objects: Address | None = None,
        objects_workers: int = 0,
        *,
        http: Address,
        https: Address | None = None,
        dot: Address | None = None,
        doh: Address | None = None,
        cluster: Address | None = None,
        feeds: Iterable[str] = (),
        handed: Iterable[socket.socket] = (),
    ) -> None:
        self._open: list[socket.socket] = []
        self._handed = list(handed)
        try:
            self._api = self._keep(self._tcp("api", api)) if api else None
            self.dns_tcp, first_udp = self._dns_pair(dns)
            first_udp.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            self.dns_udp = [
                first_udp,
                *(self._keep(_udp_sibling(first_udp, dns)) for _ in range(1, dns_workers)),
            ]
            self.feed = self._keep(_listen_unix(runtime_dir / "feed.sock"))
            self.feeds = {group: self._keep(_listen_unix(feed_socket(runtime_dir, group))) for group in feeds}
            self.kv = self._keep(_listen_unix(runtime_dir / "kv.sock"))
            self.updates = self._keep(_listen_unix(runtime_dir / "updates.sock"))
            self.dns_asks = [
                self._keep(_listen_unix(path)) for path in dns_ask_sockets(runtime_dir, dns_workers)
            ]
            self.admin = self._keep(_listen_unix(runtime_dir / "admin.sock"))
            self.alerts = self._keep(_listen_unix(runtime_dir / "alerts.sock"))
            self.http = self._keep(self._tcp("http", http))
            self.https = self._keep(self._tcp("https", https)) if https else None
            self.dot = self._keep(self._tcp("dot", dot)) if dot else None
            self.doh = self._keep(self._tcp("doh", doh)) if doh else None
            self.cluster = self._keep(self._tcp("cluster.listen", cluster)) if cluster else None
            self.objects = self._keep(self._tcp("objects-http", objects)) if objects else None
            self.objects_calls, self.objects_requests = (
                [
                    self._keep(_listen_unix(path))
                    for path in objects_sockets(runtime_dir, kind, objects_workers)
                ]
                for kind in ("calls", "requests")
            )
        except BaseException:
            self.close()
            raise
        finally:
            for left in self._handed:
                left.close()

    def _tcp(self, key: str, address: Address) -> socket.socket:
        ready = inherited.take(self._handed, address, socket.SOCK_STREAM)
        return _listen_tcp(key, address) if ready is None else ready

    def _dns_pair(self, address: Address) -> tuple[socket.socket, socket.socket]:
        tcp = inherited.take(self._handed, address, socket.SOCK_STREAM)
        udp = inherited.take(self._handed, address, socket.SOCK_DGRAM)
        if tcp is None and udp is None:
            tcp, udp = _dns_pair(address)
        for one in (tcp, udp):
            if one is not None:
                self._keep(one)
        if tcp is None or udp is None:
            missing = "TCP" if tcp is None else "UDP"
            raise StartError(f"--dns {address}: one socket was handed over, and none for {missing}")
        return tcp, udp

    @property
    def api(self) -> socket.socket:
        """Not of a node without control."""
        assert self._api is not None
        return self._api

    @property
    def addresses(self) -> list[tuple[str, int]]:
        """Where anybody can reach this server over TCP."""
        own = [self.dot, self.doh, self.objects, self.cluster]
        bound = [self._api, self.dns_tcp, self.http, self.https, *own]
        return [one.getsockname()[:2] for one in bound if one is not None]

    @property
    def api_is_local(self) -> bool:
        """Whether only programs of this machine reach the API."""
        return self._api is not None and is_local(self._api.getsockname()[0])

    def _keep(self, opened: socket.socket) -> socket.socket:
        self._open.append(opened)
        return opened

    def close(self) -> None:
        for opened in self._open:
            opened.close()


def dns_ask_sockets(runtime_dir: Path, workers: int) -> list[Path]:
    """Where the DNS processes take an operator's questions: UDP workers in order, then TCP."""
    return [*(runtime_dir / f"dns-{worker}.sock" for worker in range(workers)), runtime_dir / "dns-tcp.sock"]


def feed_socket(runtime_dir: Path, group: str) -> Path:
    """Where a relay's processes of one group follow."""
    return runtime_dir / f"feed-{group}.sock"


def objects_sockets(runtime_dir: Path, kind: Literal["calls", "requests"], workers: int) -> list[Path]:
    """Where the objects processes reach one another, by worker."""
    return [runtime_dir / f"{kind}-{worker}.sock" for worker in range(workers)]


def bound_address(opened: socket.socket) -> Address:
    """Where a client reaches this socket: a wildcard is answered as the loopback address of its family."""
    host, port = opened.getsockname()[:2]
    address = Address(host, port)
    if address.is_wildcard:
        return Address("::1" if ":" in host else "127.0.0.1", port)
    return address


def is_local(host: str) -> bool:
    """Whether a socket that is bound there hears this machine only. A wildcard hears everybody."""
    return ip_address(host.partition("%")[0]).is_loopback


def _new(address: Address, kind: socket.SocketKind) -> socket.socket:
    return socket.socket(socket.AF_INET6 if ":" in address.host else socket.AF_INET, kind)


def _listen_tcp(key: str, address: Address) -> socket.socket:
    opened = _new(address, socket.SOCK_STREAM)
    # A restart must not wait for old connections in TIME_WAIT. On Linux this shares nothing with a listener.
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    _bind(opened, key, address, "tcp")
    opened.listen(_BACKLOG)
    return opened


def _dns_pair(address: Address) -> tuple[socket.socket, socket.socket]:
    """One port for TCP and UDP. Port 0 is asked of TCP and tried with UDP, which may be taken there."""
    for tries_left in reversed(range(_PAIR_TRIES_MAX if address.port == 0 else 1)):
        tcp = _listen_tcp("dns", address)
        udp = _new(address, socket.SOCK_DGRAM)
        try:
            _bind(udp, "dns", Address(address.host, tcp.getsockname()[1]), "udp")
        except StartError:
            tcp.close()
            if tries_left:
                continue
            raise
        return tcp, udp
    raise AssertionError("the loop returns or raises")


def _udp_sibling(first: socket.socket, address: Address) -> socket.socket:
    opened = socket.socket(first.family, socket.SOCK_DGRAM)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    try:
        opened.bind(first.getsockname())
    except OSError as error:  # the first was handed over to a user who may not bind there
        opened.close()
        reason = f"{error.strerror}; one worker needs no more than the socket that was handed over"
        raise StartError(f"--dns {address} (UDP) cannot be shared by --dns-workers: {reason}") from None
    return opened


def _bind(opened: socket.socket, key: str, address: Address, transport: Literal["tcp", "udp"]) -> None:
    try:
        opened.bind(address)
    except OSError as error:
        opened.close()
        raise StartError(_refusal(key, address, transport, error)) from None


def _refusal(key: str, address: Address, transport: Literal["tcp", "udp"], error: OSError) -> str:
    where = f"--{key} {address} ({transport.upper()})"
    if error.errno == errno.EACCES and address.port < PORT_FREE_MIN:
        return (
            f"{where}: only root may bind a port below {PORT_FREE_MIN}. systemd's socket unit hands it over"
            " (docs/how-to/operate.md), `setcap cap_net_bind_service=+ep` on python allows it, and so does"
            f" `sysctl net.ipv4.ip_unprivileged_port_start={address.port}`"
        )
    if error.errno != errno.EADDRINUSE:
        return f"{where} cannot be used: {error.strerror}"
    holder = port_holder(transport, address.port)
    return f"{where} is taken" + (f" by {holder}" if holder else "")


def _listen_unix(path: Path) -> socket.socket:
    opened = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        opened.bind(str(path))
    finally:
        os.umask(before)
    opened.listen(_BACKLOG)
    return opened
