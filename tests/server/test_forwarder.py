"""Handing updates to control: in order, again after it was away, and no more than it is allowed."""

import queue
import socket
import threading

import pytest

from edgestead.model.update import SERVFAIL
from edgestead.objects.runtime.wire import HEAD
from edgestead.server.dns import updates
from edgestead.server.dns.updates import Forwarder

SECONDS = 300


class Control:
    """Answers each update with the last octet of its message."""

    def __init__(self, path):
        self.seen = []
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(str(path))
        self._listener.listen(1)
        self._connection = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self):
        self._connection, _ = self._listener.accept()
        while head := self._connection.recv(HEAD.size, socket.MSG_WAITALL):
            length, number = HEAD.unpack(head)
            body = self._connection.recv(length, socket.MSG_WAITALL)
            self.seen.append(body)
            self._connection.sendall(HEAD.pack(1, number) + body[-1:])

    def close(self):
        self._listener.close()
        if self._connection is not None:
            self._connection.shutdown(socket.SHUT_RDWR)
        self._thread.join(SECONDS)
        if self._connection is not None:
            self._connection.close()


def test_control_may_be_away_and_come_back(tmp_path):
    path = tmp_path / "updates.sock"
    forward, rcodes = Forwarder(str(path)).start(), queue.Queue()
    assert forward(b"message\5", "192.0.2.1", rcodes.put)
    assert rcodes.get(timeout=SECONDS) == SERVFAIL
    for _ in range(2):
        control = Control(path)
        for rcode in (0, 9):
            assert forward(b"message" + bytes((rcode,)), "192.0.2.1", rcodes.put)
            assert rcodes.get(timeout=SECONDS) == rcode
        assert control.seen == [b"\x09192.0.2.1message\0", b"\x09192.0.2.1message\x09"]
        control.close()
        path.unlink()
    assert forward(b"message\5", "192.0.2.1", rcodes.put)
    assert rcodes.get(timeout=SECONDS) == SERVFAIL


@pytest.mark.parametrize(("clients", "taken"), [(1, 2), (9, 3)])
def test_no_more_wait_than_may_of_all_and_of_one_network(tmp_path, monkeypatch, clients, taken):
    monkeypatch.setattr(updates, "WAITING_MAX", 3)
    monkeypatch.setattr(updates, "WAITING_NETWORK_MAX", 2)
    forward = Forwarder(str(tmp_path / "nobody"))  # not started: nothing leaves the queue

    assert sum(forward(b"m", f"192.0.{number % clients}.1", print) for number in range(9)) == taken
