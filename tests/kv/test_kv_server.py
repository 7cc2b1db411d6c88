"""Key-values on the real server: large bodies, many at once, and what a crash leaves."""

import asyncio
import contextlib
import http.client
import json
import socket
import sqlite3
import threading
import time
from itertools import count
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from edgestead.model.kv import BULK_BYTES_MAX, BULK_PAIRS_MAX, VALUE_BYTES_MAX
from edgestead.server.control.kv import KvPart
from edgestead.sqlite.control import SqliteControlStore
from edgestead.sqlite.kv import SqliteKvStore
from edgestead.store.kv import INLINE_BYTES_MAX, Pair
from edgestead.tables.schema import MIGRATIONS

from .test_kv_crash import check_blobs

LARGE = INLINE_BYTES_MAX + 1
SECONDS_MAX = 180  # until what has to happen counts as a failure
RSS_GROWTH_BYTES_MAX = 8_000_000
BULK_VALUE_BYTES = 10_440  # ten thousand of them, with their keys, are nearly BULK_BYTES_MAX
BULK_GROWTH_BYTES_MAX = 64_000_000  # mostly pages that SQLite keeps for next time


class Client:
    """One connection to a namespace of its own."""

    def __init__(self, server):
        self.ready = server.ready
        self.base = urlsplit(self.ready["api_base"])
        self.headers = {"Authorization": f"Bearer {self.ready['api_token']}"}
        self.connection = http.client.HTTPConnection(self.base.hostname, self.base.port, timeout=SECONDS_MAX)
        path = f"{self.base.path}/accounts/{self.ready['account_id']}/storage/kv/namespaces"
        made = self.json("POST", path, json.dumps({"title": "t"}).encode())
        self.path = f"{path}/{made['result']['id']}"

    def request(self, method, path, body=None, headers=None):
        self.connection.request(method, path, body, self.headers | (headers or {}))
        answer = self.connection.getresponse()
        return answer.status, answer.headers, answer.read()

    def json(self, method, path, body=None):
        return json.loads(self.request(method, path, body)[2])

    def put(self, key, body, headers=None):
        return self.request("PUT", f"{self.path}/values/{key}", body, headers)

    def get(self, key):
        return self.request("GET", f"{self.path}/values/{key}")

    def begun_upload(self, length, sent=b"x"):
        """A connection whose body the server waits for: it has said so."""
        begun = socket.create_connection((self.base.hostname, self.base.port), timeout=SECONDS_MAX)
        head = (
            f"PUT {self.path}/values/slow HTTP/1.1\r\nHost: x\r\n"
            f"Authorization: {self.headers['Authorization']}\r\nContent-Length: {length}\r\n"
            f"Expect: 100-continue\r\n\r\n"
        )
        begun.sendall(head.encode())
        if not begun.recv(64).startswith(b"HTTP/1.1 100"):
            begun.close()
            raise ConnectionError("the server does not want the body")
        begun.sendall(sent)
        return begun


@pytest.fixture
def client(edge_server):
    made = Client(edge_server)
    yield made
    made.connection.close()


@pytest.fixture
def guest(lent):
    """The same of a server that other tests have used."""
    made = Client(lent)
    yield made
    made.connection.close()


def rss_bytes(pid, name="VmRSS"):
    with open(f"/proc/{pid}/status") as status:
        (line,) = (line for line in status if line.startswith(name))
    return int(line.split()[1]) * 1024


def forget_peak(pid):
    """From here on peak_rss_bytes() counts anew (proc(5), clear_refs)."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")


def peak_rss_bytes(pid):
    return rss_bytes(pid, "VmHWM")


def test_memory_does_not_grow_while_the_largest_values_pass(edge_server, client):
    control = edge_server.children()["control"]
    content = bytes(VALUE_BYTES_MAX)
    for _ in range(3):  # threads, connections and caches come once
        client.put("warm", bytes(LARGE))
        client.get("warm")
        client.put("warm", b"v")
    before = rss_bytes(control)
    forget_peak(control)

    for key in ("a", "b"):
        assert client.put(key, content)[0] == 200
        assert client.get(key)[2] == content

    assert peak_rss_bytes(control) - before < RSS_GROWTH_BYTES_MAX


def bulk_body(octets):
    """Its portions and their Content-Length: in one piece it would be 100 MB of memory, several times."""

    def portions():
        rest = octets
        for number in range(BULK_PAIRS_MAX):
            portion = b'%b{"key":"%d","value":"%b"}' % (b"," if number else b"[", number, value)
            rest -= len(portion)
            yield portion
        yield b"]" + b" " * (rest - 1)

    value = b"x" * BULK_VALUE_BYTES
    return portions(), {"Content-Length": str(octets)}


def test_the_largest_bulk_body_is_taken_and_one_byte_more_is_not(edge_server, client):
    client.connection.timeout = 600
    control = edge_server.children()["control"]
    before = rss_bytes(control)
    forget_peak(control)

    status, _, answer = client.request("PUT", f"{client.path}/bulk", *bulk_body(BULK_BYTES_MAX))

    assert (status, json.loads(answer)["result"]["successful_key_count"]) == (200, BULK_PAIRS_MAX)
    assert peak_rss_bytes(control) - before < BULK_GROWTH_BYTES_MAX
    assert client.get(f"{BULK_PAIRS_MAX - 1}")[2] == b"x" * BULK_VALUE_BYTES
    status, _, answer = client.request("PUT", f"{client.path}/bulk", *bulk_body(BULK_BYTES_MAX + 1))
    assert (status, json.loads(answer)["errors"][0]["code"]) == (413, 1413)


def test_the_third_large_body_at_a_time_waits_its_turn(guest):
    first, second = (once_it_is_free(lambda: guest.begun_upload(LARGE)) for _ in range(2))
    try:
        status, headers, body = guest.put("third", bytes(LARGE))
        assert (status, headers["Retry-After"]) == (429, "1")
        assert json.loads(body)["errors"][0]["code"] == 10429
        assert guest.put("small", b"v")[0] == 200

        first.sendall(bytes(LARGE - 1))
        assert first.recv(12) == b"HTTP/1.1 200"
        assert guest.put("third", bytes(LARGE))[0] == 200
    finally:
        first.close()
        second.close()


def test_a_body_of_unknown_length_counts_as_large(guest):
    begun = [once_it_is_free(lambda: guest.begun_upload(LARGE)) for _ in range(2)]
    try:
        guest.connection.request(
            "PUT", f"{guest.path}/values/k", iter([b"v"]), guest.headers, encode_chunked=True
        )
        assert guest.connection.getresponse().status == 429
    finally:
        for connection in begun:
            connection.close()


def once_it_is_free(begin):
    """The server notices in its own time that a client has gone."""
    end = time.monotonic() + SECONDS_MAX
    while True:
        try:
            return begin()
        except ConnectionError:
            assert time.monotonic() < end, "the slots stay taken"
            time.sleep(0.01)


def test_an_upload_that_breaks_off_leaves_its_slot_and_nothing_else(guest):
    for _ in range(5):
        once_it_is_free(lambda: guest.begun_upload(LARGE, sent=bytes(LARGE - 1))).close()

    once_it_is_free(lambda: guest.begun_upload(LARGE)).close()
    assert guest.get("slow")[0] == 404


def test_a_client_that_sends_too_much_hears_why(guest):
    for key in ("a", "b"):
        status, _, body = guest.put(key, bytes(VALUE_BYTES_MAX + 1))
        assert (status, json.loads(body)["errors"][0]["code"]) == (413, 10047)


def test_a_client_that_asks_before_it_sends_too_much_is_spared_the_sending(guest):
    asking = socket.create_connection((guest.base.hostname, guest.base.port), timeout=SECONDS_MAX)
    head = (
        f"PUT {guest.path}/values/k HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n"
        f"Authorization: {guest.headers['Authorization']}\r\nContent-Length: {VALUE_BYTES_MAX + 1}\r\n\r\n"
    )
    asking.sendall(head.encode())

    assert asking.recv(64).startswith(b"HTTP/1.1 413")
    asking.close()


def test_a_damaged_value_is_never_answered_as_a_whole(client, edge_server):
    client.put("k", bytes(LARGE))
    (file,) = (edge_server.data_dir / "kv-blobs").iterdir()
    file.write_bytes(b"\x01" * LARGE)

    with pytest.raises(http.client.IncompleteRead):
        client.get("k")
    edge_server.wait_until(
        lambda: "does not have the bytes that were written" in edge_server.log, SECONDS_MAX
    )


def test_values_survive_a_kill(client, edge_server):
    client.put("small", b"1")
    client.put("large", bytes(LARGE))

    client.connection.close()
    edge_server.kill()
    edge_server.start()

    assert client.get("small")[2] == b"1"
    assert client.get("large")[2] == bytes(LARGE)


def rows_left(data_dir):
    with contextlib.closing(sqlite3.connect(data_dir / "kv.db")) as db:
        return db.execute("SELECT (SELECT count(*) FROM spaces), (SELECT count(*) FROM entries)").fetchone()


def test_a_kill_between_a_namespaces_deletion_and_that_of_its_values_leaves_none(client, edge_server):
    client.put("small", b"1")
    client.put("large", bytes(LARGE))
    base = client.base
    deleting = http.client.HTTPConnection(base.hostname, base.port, timeout=SECONDS_MAX)
    shell = sqlite3.connect(edge_server.data_dir / "kv.db", isolation_level=None)
    with contextlib.closing(deleting), contextlib.closing(shell):
        shell.execute("BEGIN IMMEDIATE")  # the values cannot be deleted, their namespace can
        deleting.request("DELETE", client.path, headers=client.headers)
        edge_server.wait_until(lambda: client.request("GET", client.path)[0] == 404, SECONDS_MAX)
        client.connection.close()
        edge_server.kill()
    assert rows_left(edge_server.data_dir) == (1, 2)

    edge_server.start()

    edge_server.wait_until(lambda: rows_left(edge_server.data_dir) == (0, 0), SECONDS_MAX)
    edge_server.wait_until(lambda: not any((edge_server.data_dir / "kv-blobs").iterdir()), SECONDS_MAX)


class Writers:
    """Threads that put small and large values; `written` is the last turn of each key that was answered."""

    def __init__(self, client):
        self.client = client
        self.begun, self.written = {}, {}
        self.enough = threading.Event()
        self._threads = [threading.Thread(target=self._write, args=(f"t{i}",)) for i in range(3)]
        for thread in self._threads:
            thread.start()

    def _write(self, key):
        connection = http.client.HTTPConnection(
            self.client.base.hostname, self.client.base.port, timeout=SECONDS_MAX
        )
        path = f"{self.client.path}/values/{key}"
        try:
            for turn in count():
                self.begun[key] = turn
                connection.request("PUT", path, content_of(turn), self.client.headers)
                answer = connection.getresponse()
                answer.read()
                if answer.status == 200:
                    self.written[key] = turn
                if turn >= 12 and len(self.written) == len(self._threads):
                    self.enough.set()
        except (OSError, http.client.HTTPException):
            pass  # the server is gone
        finally:
            connection.close()

    def join(self):
        for thread in self._threads:
            thread.join()


def content_of(turn):
    return b"%d " % turn * (LARGE if turn % 3 == 0 else 1)


def test_a_kill_under_load_loses_nothing_that_was_answered_and_leaves_nothing_else(client, edge_server):
    writers = Writers(client)
    try:
        assert writers.enough.wait(SECONDS_MAX)
    finally:
        client.connection.close()
        edge_server.kill()
        writers.join()
    edge_server.start()

    for key, turn in writers.written.items():
        possible = {content_of(turn), content_of(writers.begun[key])}
        assert client.get(key)[2] in possible, key

    client.connection.close()
    edge_server.stop()
    store = SqliteKvStore(edge_server.data_dir)
    check_blobs(store, edge_server.data_dir)
    store.close()


def test_data_of_a_namespace_that_control_forgot_is_swept_at_the_start(tmp_path):
    control, store = SqliteControlStore(tmp_path / "control.db", MIGRATIONS), SqliteKvStore(tmp_path)
    store.put("f" * 32, [Pair("left", b"behind")]).result(60)
    store.close()

    async def live():
        part = KvPart(tmp_path, control)
        part.open()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(SECONDS_MAX):
                while part.data.store.namespaces():  # noqa: ASYNC110  the sweep tells nobody
                    await asyncio.sleep(0.01)
        left = part.data.store.namespaces()
        part.close()
        return left

    assert asyncio.run(live()) == []
    control.close()
