"""The command line's connection to the API over time."""

import select
import socket
import threading

from edgestead.cli.http import Api
from edgestead.cli.source import Source

ANSWER = b'HTTP/1.1 200 OK\r\nContent-Length: 28\r\n\r\n{"success":true,"result":""}'


class OneRequestEach:
    """A server that says nothing of it and closes each connection after its first answer."""

    def __init__(self):
        self.methods = []
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.address = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        self._thread = threading.Thread(target=self._serve, args=(2,))
        self._thread.start()

    def _serve(self, connections):
        for _ in range(connections):
            with self._listening.accept()[0] as one:
                head = b""
                while not head.endswith(b"\r\n\r\n"):
                    head += one.recv(65_536)
                self.methods.append(head.split()[0])
                one.sendall(ANSWER)

    def close(self):
        self._thread.join()
        self._listening.close()


def test_a_connection_that_the_server_gave_up_while_it_was_idle_is_not_used_again():
    server = OneRequestEach()
    api = Api(Source("test", server.address, {}, None))

    api.call("GET", "/one")
    select.select([api._connection.sock], [], [], 60)  # its end has arrived
    api.call("PATCH", "/two", repeat=False)

    server.close()
    assert server.methods == [b"GET", b"PATCH"]
    api.close()
