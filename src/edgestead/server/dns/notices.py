"""NOTIFYs on their way from the processes that answer DNS to control.

Owns  the socket between them, and the form of a notice: the address it came from, and the zone.
Not   whether it came from a primary (`usecases.zone.secondary`).

A notice is only a hint: one that cannot be sent at once is dropped, and the zone's timers do the rest.
"""

import contextlib
import socket
from collections.abc import Callable
from ipaddress import ip_address
from pathlib import Path
from typing import Final

from edgestead.model import names

NAME: Final = "notify.sock"
TAKEN_AT_ONCE_MAX: Final = 1_000  # more wait in the system's buffer, or are dropped there
_OCTETS_MAX: Final = 512  # an address in text, and a name


Notice = tuple[str, str]
"""The address that it came from, and the zone as text without its last dot."""


class Inbox:
    """Control's end, beside the socket of the feed. Make it once in a life."""

    def __init__(self, feed_path: str) -> None:
        path = Path(feed_path).with_name(NAME)
        path.unlink(missing_ok=True)  # of the life before
        self._sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._sock.setblocking(False)
        self._sock.bind(str(path))

    def take(self) -> set[Notice]:
        """What came since the last call."""
        found: set[Notice] = set()
        with contextlib.suppress(BlockingIOError):
            for _ in range(TAKEN_AT_ONCE_MAX):
                address, _, name = self._sock.recv(_OCTETS_MAX).partition(b" ")
                found.add((address.decode(), names.text_from_wire(name)))
        return found

    def close(self) -> None:
        self._sock.close()


def sender(feed_path: str) -> Callable[[bytes], Callable[[bytes], None]]:
    """What a process of DNS tells notices to: first the address in 4 or 16 octets, then the name."""
    path = str(Path(feed_path).with_name(NAME))
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    sock.setblocking(False)

    def tell(client: bytes, name: bytes) -> None:
        with contextlib.suppress(OSError):
            sock.sendto(str(ip_address(client)).encode() + b" " + name, path)

    return lambda client: lambda name: tell(client, name)
