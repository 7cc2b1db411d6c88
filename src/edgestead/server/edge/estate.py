"""What the supervisor decides for the edge processes before it starts them.

Owns  how many there are, what they share, and their start message.
Not   starting them; what they do.
"""

import os
import secrets
from contextlib import ExitStack
from pathlib import Path

from edgestead.config import Config
from edgestead.edge.tools import rates
from edgestead.server.edge.challenge_key_memory import FedKeys, KeyWriter
from edgestead.server.errors import StartError
from edgestead.server.folder import DataFolder
from edgestead.server.messages import EdgeStart
from edgestead.server.supervisor.child import Child
from edgestead.server.supervisor.listeners import Listeners, bound_address

_RATES_SECRET_OCTETS = 32


def workers(config: Config) -> int:
    return config.edge_workers or len(os.sched_getaffinity(0))


def new_loop_token() -> bytes:
    """Names this server to itself; another server of the same kind behind it is no loop."""
    return b'edgestead; id="%b"' % secrets.token_hex(8).encode()


class Shared:
    """What all edge processes of one server share, for as long as it runs: a process that starts again goes
    on with the counts of its rate limits.

    Raises StartError: the folder of events or that of the access log cannot be used.
    """

    def __init__(
        self,
        folder: DataFolder,
        config: Config,
        workers: int,
        challenge_keys: KeyWriter | FedKeys,
        undo: ExitStack,
    ) -> None:
        self.workers = workers
        self.loop_token = new_loop_token()
        self.challenge_keys = challenge_keys
        self.rules_dir = str(folder.path / "rules")
        self.events_fd = folder.open_events()
        undo.callback(os.close, self.events_fd)
        self.rates_secret = secrets.token_bytes(_RATES_SECRET_OCTETS)
        self.rates_fd = os.memfd_create("edgestead-edge-rates", os.MFD_CLOEXEC)
        undo.callback(os.close, self.rates_fd)
        os.ftruncate(self.rates_fd, rates.memory_octets(workers))
        self.certificates_fd = os.memfd_create("edgestead-certificates", os.MFD_CLOEXEC)
        undo.callback(os.close, self.certificates_fd)
        self.access_fd = _access_folder(config.access_log)
        if self.access_fd >= 0:
            undo.callback(os.close, self.access_fd)

    @property
    def descriptors(self) -> list[int]:
        shared = [self.events_fd, self.rates_fd, self.challenge_keys.fd, self.certificates_fd]
        return shared if self.access_fd < 0 else [*shared, self.access_fd]


def _access_folder(access_log: str | None) -> int:
    """A descriptor of the folder that the access log's file is in; -1 where it goes elsewhere.

    Raises StartError.
    """
    if not access_log or access_log.startswith("unix:") or "://" in access_log:
        return -1
    folder = Path(access_log).absolute().parent
    try:
        return os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise StartError(f"access-log: folder {folder} cannot be used: {error.strerror}") from None


def start_of(
    config: Config,
    listeners: Listeners,
    feed_path: str,
    child: Child,
    status_fd: int,
    *,
    worker: int,
    shared: Shared,
) -> EdgeStart:
    return child.message(
        EdgeStart,
        status_fd,
        config,
        http_fd=listeners.http.fileno(),
        https_fd=listeners.https.fileno() if listeners.https else -1,
        https_port=bound_address(listeners.https).port if listeners.https else 443,
        feed_path=feed_path,
        worker=worker,
        workers=shared.workers,
        own_listeners=tuple(listeners.addresses),
        own_dns=bound_address(listeners.dns_tcp),
        loop_token=shared.loop_token,
        rates_fd=shared.rates_fd,
        rates_secret=shared.rates_secret,
        events_fd=shared.events_fd,
        challenge_keys_fd=shared.challenge_keys.fd,
        certificates_fd=shared.certificates_fd,
        rules_dir=shared.rules_dir,
        access_fd=shared.access_fd,
    )
