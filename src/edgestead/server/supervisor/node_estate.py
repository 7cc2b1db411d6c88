"""What a node of a cluster has that runs no control: a relay in its place.

Owns  what differs from a server with control.
Not   the rules of the relay (`feed.relay`).

It has no API, no credentials, no objects, no key-values and no alerts: health is control's to tell.
"""

import os
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path

from edgestead.server.edge.challenge_key_memory import FedKeys
from edgestead.server.errors import StartError
from edgestead.server.folder import State
from edgestead.server.messages import DNS_GROUP, EDGE_GROUP, RelayStart
from edgestead.server.nodes.identity import FOLDER
from edgestead.server.nodes.join import CERTIFICATE
from edgestead.server.supervisor import inherited, ready
from edgestead.server.supervisor.child import Child
from edgestead.server.supervisor.estate import Estate
from edgestead.server.supervisor.listeners import Listeners, bound_address, feed_socket

GROUPS = (DNS_GROUP, EDGE_GROUP)


class NodeEstate(Estate):
    """As `Estate`. Entering raises StartError."""

    def _listen(self, workers: int, objects_workers: int) -> Listeners:
        config = self._config
        if objects_workers:
            raise StartError(
                "objects need control on the same machine, and this node has none: remove it from the"
                " cluster, and invite it again with --role control,objects,edge; or start it without objects"
            )
        if not self._identity.joinpath(CERTIFICATE).exists():
            raise StartError(f"{config.data_dir} is no node yet: join with `edgecli serve --join TOKEN`")
        return Listeners(
            None,
            config.dns,
            workers,
            self._runtime_dir,
            http=config.http,
            https=config.https,
            dot=config.dot,
            doh=config.doh,
            feeds=GROUPS,
            handed=inherited.adopt(os.environ),
        )

    @property
    def _identity(self) -> Path:
        return self._config.data_dir / FOLDER

    def _settle_credentials(self) -> None:
        """None are here."""

    def _make_source(self) -> Child:
        return self._child("relay", "relay.main", self._relay_start)

    def _make_alerts(self) -> list[Child]:
        return []

    def _feed_path(self, group: str) -> str:
        return str(feed_socket(self._runtime_dir, group))

    def _derived(self, purpose: bytes) -> bytes:
        return b""

    def _challenge_keys(self, undo: ExitStack) -> FedKeys:
        return FedKeys(undo)

    def _secrets_memory(self, undo: ExitStack) -> int:
        made = os.memfd_create("edgestead-dns-secrets", os.MFD_CLOEXEC)
        undo.callback(os.close, made)
        return made

    @property
    def _is_node(self) -> bool:
        return True

    def open_to_the_world(self) -> ready.Ready:
        listeners, config = self._listeners, self._config
        self._state = State(
            pid=os.getpid(),
            runtime_dir=str(self._runtime_dir),
            api_base="",
            dns=str(bound_address(listeners.dns_tcp)),
            http=str(bound_address(listeners.http)),
            https=str(bound_address(listeners.https)) if listeners.https else None,
            dot=str(bound_address(listeners.dot)) if listeners.dot else None,
            doh=str(bound_address(listeners.doh)) if listeners.doh else None,
            objects=None,
            tls_dir=str(config.tls_dir.absolute()) if config.tls_dir else None,
            dns_host=listeners.dns_tcp.getsockname()[0],
            dns_rate=config.dns_rate,
            dns_identity=config.dns_identity,
            nameserver_addresses=tuple(map(str, config.nameserver_addresses)),
        )
        self._folder.write_state(self._state)
        return self.write_ready_file()

    def write_ready_file(self) -> ready.Ready:
        made = ready.node_ready_of(self._state)
        self._put_ready_file(made)
        return made

    def _relay_start(self, child: Child, status_fd: int) -> tuple[RelayStart, Iterable[int]]:
        serving = self._serving()
        feeds = {group: opened.fileno() for group, opened in self._listeners.feeds.items()}
        start = child.message(
            RelayStart,
            status_fd,
            self._config,
            identity_dir=str(self._identity),
            lock_fd=self._folder.lock_fd,
            admin_fd=self._listeners.admin.fileno(),
            feed_fds=feeds,
            certificates_fd=self._edge_shared.certificates_fd,
            challenge_keys_fd=self._edge_shared.challenge_keys.fd,
            dns_secrets_fd=self._secrets_fd,
            expected=serving,
            silence_ms=self._config.silence_seconds * 1000,
            still_ms=int(self._still_seconds * 1000),
        )
        held = [start.lock_fd, start.admin_fd, start.certificates_fd]
        held += [start.challenge_keys_fd, start.dns_secrets_fd]
        return start, [*held, *feeds.values(), *(one.pidfd for one in serving)]
