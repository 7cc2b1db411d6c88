"""An origin that answers as a test tells it, and keeps what it was asked, byte for byte."""

import os
import socket
import threading

BACKLOG = 1_024  # more than any test's visitors: what waits here for this process's turn is connected already
HTTP_200 = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


def loopback(number):
    """An address of this test process's own; `server.places` gives the server another one."""
    pid = os.getpid()
    return f"127.{128 + number}.{pid >> 8 & 255}.{pid & 255}"


class Origin:
    """`answer` is bytes, or called with each request (head, body, socket) and returns bytes; None closes."""

    def __init__(self, host, port=0, answer=HTTP_200):
        self.answer = answer
        self.requests = []
        self.keeps = True  # False: requests are forgotten, for long runs
        self.read_bodies = True  # False: a request is its head, and what came in the same piece
        self.connections = 0
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._listener = socket.create_server((host, port), family=family, backlog=BACKLOG)
        self.host, self.port = self._listener.getsockname()[:2]
        self._open = []
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    def _accept(self):
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            self._open.append(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        try:
            with connection, connection.makefile("rb") as stream:
                while (request := self._read(stream, connection)) is not None:
                    if self.keeps:
                        self.requests.append(request)
                    answer = self.answer
                    if callable(answer):
                        answer = answer(*request, connection)
                    if answer is None:
                        return
                    connection.sendall(answer)
        except OSError:
            return

    def _read(self, stream, connection):
        if self.read_bodies:
            return read_message(stream)
        head, _, body = connection.recv(1 << 16).partition(b"\r\n\r\n")
        return (head + b"\r\n\r\n", body) if head else None

    @property
    def heads(self):
        return [head for head, _ in self.requests]

    def hang_up(self):
        """Close what is open, as a server that restarts does."""
        for connection in self._open:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        self._open.clear()

    def close(self):
        try:
            self._listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self._accepting.join()  # before its listener's number is free for another socket
        self._listener.close()
        self.hang_up()


def read_message(stream):
    """(head, body) of one request or answer with a length; None at the end. Chunks are kept as they are."""
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        line = stream.readline(1 << 20)
        if not line:
            return None
        head += line
    return head, read_body(head, stream)


def read_body(head, stream):
    fields = headers_of(head)
    if fields.get(b"transfer-encoding") == b"chunked":
        pieces, octets = [], None
        while octets != 0:
            size = stream.readline()
            octets = int(size, 16)
            pieces += [size, stream.read(octets + 2)]
        return b"".join(pieces)
    return stream.read(int(fields.get(b"content-length", b"0")))


def headers_of(head):
    """The headers by lower-case name; of several with one name, the last."""
    lines = head.split(b"\r\n")[1:]
    return {
        name.strip().lower(): value.strip()
        for line in lines
        if line
        for name, _, value in (line.partition(b":"),)
    }
