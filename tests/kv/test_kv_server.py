"""Key-values on the real server: large bodies, many at once, and what a crash leaves."""

import asyncio
import http.client
import json
import socket
import time
from urllib.parse import urlsplit

import pytest

from edgestead.model.kv import VALUE_BYTES_MAX
from edgestead.server.kv_part import KvPart
from edgestead.store.kv import INLINE_BYTES_MAX, Pair
from edgestead.store.sqlite.control import SqliteControlStore
from edgestead.store.sqlite.kv import SqliteKvStore
from edgestead.tables.schema import MIGRATIONS

LARGE = INLINE_BYTES_MAX + 1
RSS_GROWTH_BYTES_MAX = 8_000_000


class Client:
    """One connection to a namespace of its own."""

    def __init__(self, server):
        self.ready = server.ready
        self.base = urlsplit(self.ready["api_base"])
        self.headers = {"Authorization": f"Bearer {self.ready['api_token']}"}
        self.connection = http.client.HTTPConnection(self.base.hostname, self.base.port, timeout=20)
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
        begun = socket.create_connection((self.base.hostname, self.base.port), timeout=20)
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


def rss_bytes(pid):
    with open(f"/proc/{pid}/status") as status:
        (line,) = (line for line in status if line.startswith("VmRSS"))
    return int(line.split()[1]) * 1024


def test_memory_does_not_grow_while_the_largest_values_pass(edge_server, client):
    control = edge_server.children()["control"]
    content = bytes(VALUE_BYTES_MAX)
    for _ in range(3):  # threads, connections and caches come once
        client.put("warm", bytes(LARGE))
        client.get("warm")
        client.put("warm", b"v")
    before = rss_bytes(control)
    most = 0

    for key in ("a", "b"):
        assert client.put(key, content)[0] == 200
        most = max(most, rss_bytes(control))
        assert client.get(key)[2] == content
        most = max(most, rss_bytes(control))

    assert most - before < RSS_GROWTH_BYTES_MAX


def test_the_third_large_body_at_a_time_waits_its_turn(client):
    first, second = (client.begun_upload(LARGE) for _ in range(2))
    try:
        status, headers, body = client.put("third", bytes(LARGE))
        assert (status, headers["Retry-After"]) == (429, "1")
        assert json.loads(body)["errors"][0]["code"] == 10429
        assert client.put("small", b"v")[0] == 200

        first.sendall(bytes(LARGE - 1))
        assert first.recv(12) == b"HTTP/1.1 200"
        assert client.put("third", bytes(LARGE))[0] == 200
    finally:
        first.close()
        second.close()


def test_a_body_of_unknown_length_counts_as_large(client):
    begun = [client.begun_upload(LARGE) for _ in range(2)]
    try:
        client.connection.request(
            "PUT", f"{client.path}/values/k", iter([b"v"]), client.headers, encode_chunked=True
        )
        assert client.connection.getresponse().status == 429
    finally:
        for connection in begun:
            connection.close()


def once_it_is_free(begin):
    """The server notices in its own time that a client has gone."""
    for _ in range(200):
        try:
            return begin()
        except ConnectionError:
            time.sleep(0.01)
    raise AssertionError("the slots stay taken")


def test_an_upload_that_breaks_off_leaves_its_slot_and_nothing_else(client, edge_server):
    for _ in range(5):
        once_it_is_free(lambda: client.begun_upload(LARGE, sent=bytes(LARGE - 1))).close()

    once_it_is_free(lambda: client.begun_upload(LARGE)).close()
    assert client.get("slow")[0] == 404


def test_a_client_that_sends_too_much_hears_why(client):
    for key in ("a", "b"):
        status, _, body = client.put(key, bytes(VALUE_BYTES_MAX + 1))
        assert (status, json.loads(body)["errors"][0]["code"]) == (413, 10047)


def test_a_client_that_asks_before_it_sends_too_much_is_spared_the_sending(client):
    asking = socket.create_connection((client.base.hostname, client.base.port), timeout=20)
    head = (
        f"PUT {client.path}/values/k HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n"
        f"Authorization: {client.headers['Authorization']}\r\nContent-Length: {VALUE_BYTES_MAX + 1}\r\n\r\n"
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
    edge_server.wait_until(lambda: "does not have the bytes that were written" in edge_server.log, 5)


def test_values_survive_a_kill(client, edge_server):
    client.put("small", b"1")
    client.put("large", bytes(LARGE))

    client.connection.close()
    edge_server.kill()
    edge_server.start()

    assert client.get("small")[2] == b"1"
    assert client.get("large")[2] == bytes(LARGE)


def test_data_of_a_namespace_that_control_forgot_is_swept_at_the_start(tmp_path):
    control, store = SqliteControlStore(tmp_path / "control.db", MIGRATIONS), SqliteKvStore(tmp_path)
    store.put("f" * 32, [Pair("left", b"behind")]).result(5)
    store.close()

    async def live():
        part = KvPart(tmp_path, control)
        part.open()
        for _ in range(200):
            if not part.data.store.namespaces():
                break
            await asyncio.sleep(0.01)
        left = part.data.store.namespaces()
        part.close()
        return left

    assert asyncio.run(live()) == []
    control.close()
