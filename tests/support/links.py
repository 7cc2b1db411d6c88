"""A connection between machines that can be cut, in one direction or both, and healed.

Owns  a TCP proxy on loopback, one thread for each direction of a connection.
Not   what travels through it.

What is sent in a direction that is cut waits, as it does in TCP while packets are lost: after `heal` it
arrives, unless an end has given up meanwhile. Neither end is told of a cut.
"""

import contextlib
import socket
import threading
import time

READ_BYTES = 65_536


class Line:
    """Listens at `address` and connects to `target`, both (host, port)."""

    def __init__(self, target: tuple[str, int]) -> None:
        self.target = target
        self.delay_seconds = 0.0
        self._open = {"up": threading.Event(), "down": threading.Event()}
        self._sockets: set[socket.socket] = set()
        self._door = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = self._listener.getsockname()
        self._ended = False
        self.heal()
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self, *directions: str) -> None:
        """ "up" is from who connects. Without any: both."""
        for direction in directions or ("up", "down"):
            self._open[direction].clear()

    def heal(self) -> None:
        for event in self._open.values():
            event.set()

    def drop(self) -> None:
        """Both ends see the end of every connection."""
        with self._door:
            sockets = list(self._sockets)
        for one in sockets:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._ended = True
        self.heal()
        self._listener.close()
        self.drop()

    def _accept(self) -> None:
        while not self._ended:
            try:
                client, _ = self._listener.accept()
                server = socket.create_connection(self.target, timeout=60)
                server.settimeout(None)
            except OSError:
                if self._ended:
                    return
                with contextlib.suppress(OSError, UnboundLocalError):
                    client.close()
                continue
            with self._door:
                self._sockets |= {client, server}
            for source, sink, direction in ((client, server, "up"), (server, client, "down")):
                threading.Thread(target=self._carry, args=(source, sink, direction), daemon=True).start()

    def _carry(self, source: socket.socket, sink: socket.socket, direction: str) -> None:
        """A cut hides the end of a connection, too."""
        with contextlib.suppress(OSError):
            while True:
                self._open[direction].wait()
                data = source.recv(READ_BYTES)
                if self.delay_seconds:
                    time.sleep(self.delay_seconds)
                self._open[direction].wait()
                if not data:
                    break
                sink.sendall(data)
        for one in (source, sink):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        with self._door:
            self._sockets.discard(source)
        source.close()  # the other thread closes the other one
