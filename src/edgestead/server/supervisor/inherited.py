"""Sockets that systemd has bound for the server (socket activation, sd_listen_fds(3)).

Owns  finding them among the descriptors that the process was started with.
Not   anything about systemd's units (docs/how-to/operate.md).

Which socket serves what is told by its address alone: the server's settings name the address as ever, and a
socket that is bound there already is used instead of a new one. So ports below 1024 need no root.
"""

import os
import socket
from collections.abc import MutableMapping

from edgestead.config import Address

_FIRST_FD = 3
SOCKETS_MAX = 64  # what a start looks at, whatever LISTEN_FDS says


def adopt(environment: MutableMapping[str, str]) -> list[socket.socket]:
    """The sockets that were handed to this process; nobody else is to hear of them. Usually there is none."""
    handed = environment.pop("LISTEN_FDS", ""), environment.pop("LISTEN_PID", "")
    environment.pop("LISTEN_FDNAMES", None)
    count, pid = (int(text) if text.isascii() and text.isdigit() else 0 for text in handed)
    if pid != os.getpid():
        return []
    found = []
    for fd in range(_FIRST_FD, _FIRST_FD + min(count, SOCKETS_MAX)):
        os.set_inheritable(fd, False)
        try:
            one = socket.socket(fileno=fd)
        except OSError:  # a pipe or a file: not ours to judge
            continue
        one.setblocking(True)  # systemd's are not, and every loop of ours chooses for itself
        found.append(one)
    return found


def take(handed: list[socket.socket], address: Address, kind: socket.SocketKind) -> socket.socket | None:
    """The socket that is bound to an address already, taken out of the list."""
    for one in handed:
        if one.type == kind and _is_at(one, address):
            handed.remove(one)
            return one
    return None


def _is_at(one: socket.socket, address: Address) -> bool:
    if one.family not in (socket.AF_INET, socket.AF_INET6):
        return False
    host, port = one.getsockname()[:2]
    # `ListenStream=53` alone binds [::], which takes IPv4 as well: it is the wildcard of both families.
    return port == address.port != 0 and (host == address.host or (host == "::" and address.is_wildcard))
