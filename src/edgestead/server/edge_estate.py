"""What the supervisor decides for the edge processes before it starts them.

Owns  how many there are, and their start message.
Asks  the configuration and the listening sockets.
Tells `server.estate`.
Not   starting them; what they do.
"""

import os
import secrets
from pathlib import Path

from edgestead.config import Config
from edgestead.server.child import Child
from edgestead.server.listeners import Listeners, bound_address
from edgestead.server.messages import EdgeStart


def workers(config: Config) -> int:
    return config.edge_workers or len(os.sched_getaffinity(0))


def new_loop_token() -> bytes:
    """Names this server to itself; another server of the same kind behind it is no loop."""
    return b'edgestead; id="%b"' % secrets.token_hex(8).encode()


def start_of(
    config: Config,
    listeners: Listeners,
    runtime_dir: Path,
    child: Child,
    status_fd: int,
    *,
    worker: int,
    workers: int,
    loop_token: bytes,
) -> EdgeStart:
    return EdgeStart(
        name=child.name,
        supervisor_pid=os.getpid(),
        status_fd=status_fd,
        counters_fd=child.counters_fd,
        http_fd=listeners.http.fileno(),
        https_fd=listeners.https.fileno() if listeners.https else -1,
        feed_path=str(runtime_dir / "feed.sock"),
        worker=worker,
        workers=workers,
        profile=config.profile,
        own_listeners=tuple(listeners.addresses),
        own_dns=bound_address(listeners.dns_tcp),
        loop_token=loop_token,
        resolver=config.resolver,
        tls_dir=str(config.tls_dir) if config.tls_dir else None,
        origin_port=config.origin_port,
        origin_allow=tuple(map(str, config.origins_allowed)),
        origin_ca=str(config.origin_ca) if config.origin_ca else None,
        trusted_proxies=tuple(map(str, config.trusted_proxies)),
        proxy_protocol=config.proxy_protocol,
        connections_per_address=config.http_connections_per_address,
    )
