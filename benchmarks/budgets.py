"""What do budgets cost a request, a query and a commit?

    python benchmarks/budgets.py [--rounds 9]

The same work with its accounts and without them, in one process, in turns; processor time of each. A request
goes from its bytes through the connection and the whole API to the bytes of its answer, a query of DNS over
TCP through its connection; a write into a store
in a temporary folder, whose other threads' time counts too. The two sides take turns at being first, and
printed are medians over the rounds, with the load of the machine; all of it takes less than two minutes.
"""

import argparse
import asyncio
import os
import statistics
import struct
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from pathlib import Path

import dns.message
import uvloop

sys.path.insert(0, str(Path(__file__).parent.parent))

from edgestead.dns import tcp
from edgestead.dns.journal import Journal
from edgestead.dns.keyring import Keyring
from edgestead.dns.settings import DEFAULTS
from edgestead.http1.answering import Answering
from edgestead.http1.connections import Connections
from edgestead.http1.messages import Response
from edgestead.model.budgets.ledger import Ledger, Levels
from tests.dns.conftest import ZONE
from tests.dns.serving import Counts, table_of
from tests.edge import bench as edge
from tests.support.api import BEARER, LocalApi

REQUESTS = 2_000
WRITES = 100
ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello"
GET = b"GET /client/v4/user HTTP/1.1\r\nHost: localhost\r\nAuthorization: %b\r\n\r\n"


def microseconds(work: Callable[[int], None], count: int) -> float:
    begun = time.process_time()
    work(count)
    return (time.process_time() - begun) / count * 1e6


def pair(
    without: Callable[[int], None], charged: Callable[[int], None], count: int, charged_first: bool
) -> tuple[float, float]:
    """Of one round: without budgets, with them."""
    if charged_first:
        after, before = microseconds(charged, count), microseconds(without, count)
    else:
        before, after = microseconds(without, count), microseconds(charged, count)
    return before, after


def requests(api: LocalApi, *, charged: bool) -> Callable[[int], None]:
    account = Connections().enter("192.0.2.1") if charged else None
    connection = Answering(lambda *_: Response(400), "192.0.2.1", account=account)
    data = GET % BEARER["authorization"].encode()

    def work(count: int) -> None:
        for _ in range(count):
            request = connection.receive(data)
            connection.answer(api.app(request))
            connection.actions.clear()

    return work


def proxied(*, charged: bool) -> Callable[[int], None]:
    bench = edge.Bench()
    if not charged:
        bench.connection._connection.account = None

    def work(count: int) -> None:
        for _ in range(count):
            bench.connection.data_received(edge.GET)
            bench.origin.data_received(ANSWER)
            bench.client.written = bench.server.written = b""

    return work


class Nowhere(asyncio.Transport):
    """Takes everything."""

    def get_extra_info(self, name: str, default: object = None) -> object:
        return ("192.0.2.1", 53)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def is_closing(self) -> bool:
        return False

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass

    def get_write_buffer_size(self) -> int:
        return 0

    def write(self, data: bytes | bytearray | memoryview) -> None:
        pass

    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview]) -> None:
        pass


class Bare(tcp._Connection):
    """A connection of DNS that draws on nothing, and takes no turns."""

    def data_received(self, data: bytes) -> None:
        self._waiting = self._waiting + data if self._waiting else data
        self._work()


def queries(house: tcp._House, *, charged: bool) -> Callable[[int], None]:
    connection = tcp._Connection(house) if charged else Bare(house)
    connection.connection_made(Nowhere())
    query = dns.message.make_query("www.example.test.", "A").to_wire()
    data = struct.pack("!H", len(query)) + query

    def work(count: int) -> None:
        for _ in range(count):
            connection.data_received(data)

    return work


def writes(api: LocalApi, path: str, *, charged: bool) -> Callable[[int], None]:
    drawn, number = Levels.drawn, iter(range(10**9))

    def work(count: int) -> None:
        if not charged:
            Levels.drawn = lambda self, subject, amount=1: nullcontext()
        try:
            for _ in range(count):
                body = {"type": "A", "name": f"{charged}{next(number)}".lower(), "content": "192.0.2.1"}
                assert api.post(path, body).status == 200
        finally:
            Levels.drawn = drawn

    return work


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=25)
    rounds = parser.parse_args().rounds
    loop = uvloop.new_event_loop()
    house = tcp._House(
        table_of({"example.test.": ZONE}),
        Counts(),
        tcp.DEFAULT_LIMITS,
        DEFAULTS,
        tcp.TransferPolicy(journal=Journal()),
        tcp.Watch(),
        loop,
        Ledger(),
        Keyring(),
    )
    with tempfile.TemporaryDirectory() as folder:
        api = LocalApi(Path(folder))
        path = f"/zones/{api.post('/zones', {'name': 'cost.test'}).result['id']}/dns_records"
        rows = {
            "a request of the API": (requests(api, charged=False), requests(api, charged=True), REQUESTS),
            "a request of the edge": (proxied(charged=False), proxied(charged=True), REQUESTS),
            "a query of DNS over TCP": (
                queries(house, charged=False),
                queries(house, charged=True),
                REQUESTS,
            ),
            "a commit": (writes(api, path, charged=False), writes(api, path, charged=True), WRITES),
        }
        for name, (without, charged, count) in rows.items():
            pairs = [pair(without, charged, count, number % 2 == 1) for number in range(rounds)]
            before, after = (statistics.median(side) for side in zip(*pairs, strict=True))
            ratio = statistics.median(with_them / bare for bare, with_them in pairs)
            print(
                f"{name}: {before:.1f} µs without, {after:.1f} µs with budgets ({(ratio - 1) * 100:+.1f} %)"
            )
        print(f"load of the machine {os.getloadavg()[0]:.1f}")
        api.close()


if __name__ == "__main__":
    main()
