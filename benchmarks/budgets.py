"""What do budgets cost a request, a query and a commit?

    python benchmarks/budgets.py [--rounds 9]

The same work with its accounts and without them, in one process, in turns; processor time of each. A request
goes from its bytes through the connection and the whole API to the bytes of its answer; a write into a store
in a temporary folder, whose other threads' time counts too.
"""

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from edgestead.http1.answering import Answering
from edgestead.http1.connections import Connections
from edgestead.http1.messages import Response
from edgestead.model.budgets.ledger import Levels
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
    parser.add_argument("--rounds", type=int, default=9)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as folder:
        api = LocalApi(Path(folder))
        path = f"/zones/{api.post('/zones', {'name': 'cost.test'}).result['id']}/dns_records"
        rows = {
            "a request of the API": (requests(api, charged=False), requests(api, charged=True), REQUESTS),
            "a request of the edge": (proxied(charged=False), proxied(charged=True), REQUESTS),
            "a commit": (writes(api, path, charged=False), writes(api, path, charged=True), WRITES),
        }
        for name, (without, charged, count) in rows.items():
            pairs = [(microseconds(without, count), microseconds(charged, count)) for _ in range(rounds)]
            before, after = (statistics.median(side) for side in zip(*pairs, strict=True))
            ratio = statistics.median(with_them / bare for bare, with_them in pairs)
            print(
                f"{name}: {before:.1f} µs without, {after:.1f} µs with budgets ({(ratio - 1) * 100:+.1f} %)"
            )
        api.close()


if __name__ == "__main__":
    main()
