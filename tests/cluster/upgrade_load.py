"""Clients of a cluster that is upgraded: they write and read by the API, in key-values and by DNS.

Owns  one client for each way and node, what it was answered first, and what it made of that.
Not   calls of objects (`objects_nodes`); upgrading.

A client does what the documentation asks of it: it repeats what is answered 503, and a DNS query that nobody
answers. All else that is no success is a failure.
"""

import http.client
import itertools
import threading
import time
from collections import Counter

import dns.exception
import dns.message
import dns.query

from edgestead.testing.server import EdgeServer, wait_until

SECONDS_MAX = 300
QUERY_SECONDS = 2.0
PAUSE_SECONDS = 0.02  # of a client between two requests, and before it repeats one
FAILED = (OSError, http.client.HTTPException)
IDENTICAL = 81058  # a record that is there: the answer of before was lost, and it was written


class Traffic:
    """`servers` are asked in every way, `machines` without control by DNS alone."""

    def __init__(
        self, servers: dict[str, EdgeServer], machines: dict[str, EdgeServer], zone: str, space: str
    ):
        self._servers, self._zone = servers | machines, zone
        account = next(iter(servers.values())).ready["account_id"]
        self._values = f"/accounts/{account}/storage/kv/namespaces/{space}/values"
        self.first: Counter[tuple[str, str]] = Counter()
        """What each way was answered the first time."""
        self.failed: list[str] = []
        self.records: dict[str, str] = {}
        self.values: dict[str, str] = {}
        self._newest = dict.fromkeys(self._servers, ("first.upgrade.test", "192.0.2.1"))
        """What each has to answer: no answer to a write has named it as behind since."""
        self._numbers = itertools.count(1)
        self._ended = threading.Event()
        ways = {"write": self._write, "read": self._read, "value": self._value, "query": self._query}
        clients = [*itertools.product(servers, ways), *((name, "query") for name in machines)]
        self._turns = {client: threading.Lock() for client in clients}
        self._left: set[str] = set()
        self._done = Counter(dict.fromkeys(clients, 0))
        self._threads = [threading.Thread(target=self._run, args=(*one, ways[one[1]])) for one in clients]

    def __enter__(self) -> "Traffic":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join()

    def leave(self, node: str) -> None:
        """As a load balancer does: nobody asks it any more, and what it was asked is answered first."""
        self._left.add(node)
        for (name, _), turn in self._turns.items():
            if name == node:
                with turn:
                    pass

    def come_back(self, node: str) -> None:
        self._left.discard(node)

    def wait_for(self, more: int) -> None:
        """So many more successes of each client that asks."""
        before = dict(self._done)
        wait_until(
            lambda: (
                self.failed
                or all(
                    self._done[client] >= before[client] + more
                    for client in before
                    if client[0] not in self._left
                )
            ),
            SECONDS_MAX,
        )

    def _run(self, node, way, ask) -> None:
        while not self._ended.is_set():
            with self._turns[node, way]:
                if node not in self._left:
                    try:
                        ask(node, way, self._servers[node])
                        self._done[node, way] += 1
                    except (*FAILED, AssertionError, TimeoutError) as error:
                        self.failed.append(f"{way} at {node}: {error!r}")
            time.sleep(PAUSE_SECONDS)

    def _write(self, node, way, server) -> None:
        number = next(self._numbers)
        name, address = f"w{number}.upgrade.test", f"192.0.{number >> 8}.{number & 255}"
        body = {"type": "A", "name": name, "content": address}
        answer = self._until_done(way, server, "POST", f"/zones/{self._zone}/dns_records", body)
        self.records[name] = address
        behind = answer.headers.get("edge-behind", "")
        if behind:
            self.first[way, f"edge-behind: {behind}"] += 1
        self._newest |= dict.fromkeys(self._servers.keys() - set(behind.split(", ")), (name, address))

    def _read(self, node, way, server) -> None:
        """What was acknowledged by any node before is there."""
        name, address = self._newest[node]
        path = f"/zones/{self._zone}/dns_records?name={name}"
        (record,) = self._until_done(way, server, "GET", path).result
        assert record["content"] == address, record

    def _value(self, node, way, server) -> None:
        number = next(self._numbers)
        key, value = f"{node}-{number % 50}", str(number)
        self._until_done("put", server, "PUT", f"{self._values}/{key}", number)
        self.values[key] = value
        found = self._until_done("get", server, "GET", f"{self._values}/{key}").body
        assert str(found) == value, (key, found)

    def _query(self, node, way, server) -> None:
        name, address = self._newest[node]
        host, _, port = server.ready["dns"].rpartition(":")
        for is_first in itertools.chain([True], itertools.repeat(False, 10)):
            try:
                reply = dns.query.udp(
                    dns.message.make_query(name, "A"), host, port=int(port), timeout=QUERY_SECONDS
                )
            except dns.exception.Timeout:
                self._note(way, "nothing", is_first)
                continue
            self._note(way, reply.rcode().name, is_first)
            assert [one.to_text() for rrset in reply.answer for one in rrset] == [address], reply
            return
        raise TimeoutError(name)

    def _until_done(self, way, server, method, path, body=None):
        end = time.monotonic() + SECONDS_MAX
        for is_first in itertools.chain([True], itertools.repeat(False)):
            answer = server.call(method, path, body)
            self._note(way, str(answer.status), is_first)
            was_written = not is_first and answer.status == 400 and str(IDENTICAL) in str(answer.body)
            if answer.status == 200 or was_written:
                return answer
            assert (answer.status, "retry-after" in answer.headers) == (503, True), answer
            assert time.monotonic() < end, answer
            time.sleep(PAUSE_SECONDS)
        raise AssertionError

    def _note(self, way, answer, is_first) -> None:
        if is_first:
            self.first[way, answer] += 1

    def check(self, servers) -> None:
        """Everything that was acknowledged is at each of them."""
        assert not self.failed, (self.failed, self.first)
        for server in servers:
            path = f"/zones/{self._zone}/dns_records?per_page=50000"
            found = {one["name"]: one["content"] for one in server.call("GET", path).result}
            assert self.records.items() <= found.items()
            for key, value in self.values.items():
                assert str(server.call("GET", f"{self._values}/{key}").body) == value
