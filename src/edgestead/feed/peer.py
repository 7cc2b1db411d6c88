"""The process at the other end of a Unix socket.

Owns  identifying it by a pidfd, which never refers to a later process with the same pid, and killing it.
Not   why a process is killed.
"""

import os
import select
import signal
import socket
import struct
from contextlib import suppress

SO_PEERPIDFD = 77  # <asm-generic/socket.h>, Linux 6.5; not in Python's socket module yet
_CREDENTIALS = struct.Struct("3i")  # struct ucred: pid, uid, gid (unix(7))


class NotOurs(Exception):
    """The peer is another user's process, or has exited."""


def identify(connection: socket.socket) -> tuple[int, int]:
    """The peer's (pid, pidfd); the caller closes the descriptor. Raises NotOurs."""
    raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    pid, uid, _ = _CREDENTIALS.unpack(raw)
    if uid != os.getuid() or pid <= 0:
        raise NotOurs(f"process {pid} of user {uid}")
    try:
        pidfd: int = connection.getsockopt(socket.SOL_SOCKET, SO_PEERPIDFD)
    except OSError:
        pidfd = _open(pid)
    # For older kernels: the pid may belong to another process unless the peer is still connected. And the
    # message of a peer that has disconnected is outdated.
    poll = select.poll()
    poll.register(connection, select.POLLRDHUP)
    if poll.poll(0):
        os.close(pidfd)
        raise NotOurs(f"process {pid} has hung up")
    return pid, pidfd


def _open(pid: int) -> int:
    try:
        return os.pidfd_open(pid)
    except OSError as error:
        raise NotOurs(f"process {pid} is gone") from error


def kill(pidfd: int) -> None:
    """SIGKILL; no effect on a process that has exited."""
    with suppress(ProcessLookupError):
        signal.pidfd_send_signal(pidfd, signal.SIGKILL)
