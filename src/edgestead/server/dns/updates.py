"""Handing dynamic updates to control, from a thread beside the one that answers.

Owns  the queue, its limits, the connection.
Not   what control does with one (`server.control.updates`).

One update at a time: a commit takes about as long as one that waits for the disk. While control is away the
client is told SERVFAIL, and asks again.
"""

import logging
import queue
import socket
import threading
from collections import Counter
from typing import Final

from edgestead.dns.update import Answered
from edgestead.model.budgets.networks import network_of
from edgestead.model.update import SERVFAIL
from edgestead.objects.runtime.wire import HEAD

WAITING_MAX: Final = 64
"""Updates of one process that wait for control."""
WAITING_NETWORK_MAX: Final = 16
"""Of these from one network."""
ANSWER_SECONDS: Final = 30.0  # longer than the longest write
_log = logging.getLogger("edgestead.server")

_Job = tuple[bytes, str, Answered]


class Forwarder:
    """Call it with an update; start it once."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._jobs: queue.Queue[_Job] = queue.Queue(WAITING_MAX)
        self._waiting: Counter[str] = Counter()
        self._door = threading.Lock()
        self._connection: socket.socket | None = None

    def start(self) -> "Forwarder":
        threading.Thread(target=self._run, name="updates", daemon=True).start()
        return self

    def __call__(self, message: bytes, client: str, answered: Answered) -> bool:
        network = network_of(client.partition("%")[0])
        with self._door:
            if self._waiting[network] >= WAITING_NETWORK_MAX:
                return False
            try:
                self._jobs.put_nowait((_framed(message, client), network, answered))
            except queue.Full:
                return False
            self._waiting[network] += 1
        return True

    def _run(self) -> None:
        while True:
            body, network, answered = self._jobs.get()
            try:
                rcode = self._ask(body)
            except (OSError, EOFError) as error:
                _log.warning("a dynamic update did not reach control: %s", error or "it went away")
                self._hang_up()
                rcode = SERVFAIL
            with self._door:
                self._waiting[network] -= 1
                if not self._waiting[network]:
                    del self._waiting[network]
            answered(rcode)

    def _ask(self, body: bytes) -> int:
        """Raises OSError, EOFError."""
        if self._connection is None or not self._send(self._connection, body):
            self._hang_up()
            self._connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self._connection.settimeout(ANSWER_SECONDS)
            self._connection.connect(self._path)
            self._connection.sendall(body)
        length, _ = HEAD.unpack(_read(self._connection, HEAD.size))
        return _read(self._connection, length)[0]

    def _send(self, connection: socket.socket, body: bytes) -> bool:
        """False when the other end of a connection from before is gone."""
        try:
            connection.setblocking(False)
            try:
                if connection.recv(1, socket.MSG_PEEK) == b"":
                    return False
            except BlockingIOError:
                pass
            connection.settimeout(ANSWER_SECONDS)
            connection.sendall(body)
        except OSError:
            return False
        return True

    def _hang_up(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None


def _framed(message: bytes, client: str) -> bytes:
    address = client.encode()
    body = bytes((len(address),)) + address + message
    return HEAD.pack(len(body), 0) + body


def _read(connection: socket.socket, octets: int) -> bytes:
    read = b""
    while len(read) < octets:
        part = connection.recv(octets - len(read))
        if not part:
            raise EOFError
        read += part
    return read
