"""What the access log costs: a GET at the edge with a line in a file, against the same without.

    PYTHONPATH=src:. python benchmarks/access_log.py

A line is measured in one process without sockets (tests/edge/bench.py), in short turns with and without
each form: processor time of the whole process, so that of the log's thread is in it, and of the file it
writes. What a request over TLS costs with its sockets is measured right after (benchmarks/edge_proxy.py:
nginx as the origin, wrk): a line is a small part of that, which its own noise would hide.

Goal: a line costs <= 5 % of a request over TLS.
"""

import os
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from statistics import median

from benchmarks import edge_proxy
from edgestead.edge.access.lines import writer
from edgestead.edge.access.log import AccessLog
from edgestead.edge.access.sinks import FileSink
from edgestead.model.access import FORMS
from edgestead.server.process import rest_collector
from tests.edge.bench import HEAD_200, Bench
from tests.edge.test_access_log import Counts

ROUNDS = 30
REQUESTS = 2_000
TLS_ROUNDS, TLS_SECONDS = 5, 3
GET = (
    b"GET /index.html?a=1 HTTP/1.1\r\nHost: www.example.com\r\n"
    b"User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0\r\n"
    b"Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\r\n"
    b"Accept-Language: en-US,en;q=0.5\r\nCookie: session=0123456789abcdef; theme=dark\r\n\r\n"
)
ANSWER = HEAD_200 + b"page"


def microseconds(bench: Bench) -> float:
    began = time.process_time()
    for _ in range(REQUESTS):
        bench.connection.data_received(GET)
        bench.origin.data_received(ANSWER)
        bench.client.written = bench.server.written = b""
    log = bench.edge.access
    while log is not None and log._pending:  # what waits is a cost, too
        time.sleep(0.1)
    return (time.process_time() - began) / REQUESTS * 1e6


def line_microseconds() -> dict[str, tuple[float, float]]:
    """By form: a request without a line, and the line: the median difference of neighbouring turns."""
    found = {}
    for form in FORMS:
        with tempfile.TemporaryDirectory() as folder:
            fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            counts, bench = Counts(), Bench()
            sink = FileSink(fd, "access.log", octets_max=1 << 40, files_max=1)
            log = AccessLog(sink, writer(form), counts)
            without, with_ = [], []
            for _ in range(ROUNDS):
                bench.edge.access = None
                without.append(microseconds(bench))
                bench.edge.access = log
                with_.append(microseconds(bench))
            log.close()
            lines = Path(folder, "access.log").read_bytes().count(b"\n")
            assert lines == counts.lines == ROUNDS * REQUESTS, (lines, counts.lines, counts.lost)
            os.close(fd)
        costs = [one - other for one, other in zip(with_, without, strict=True)]
        found[form] = (median(without), median(costs))
    return found


def tls_microseconds() -> float:
    """Of the edge, for a GET over TLS 1.3 on a kept connection."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        sides = stack.enter_context(edge_proxy._sides(folder))
        url = f"https://{sides.edge.tls}/index.html?a=1"
        seen = [
            edge_proxy._load(url, sides.edge.pid, sides.origin_pid, TLS_SECONDS) for _ in range(TLS_ROUNDS)
        ]
    return median(one.cpu_us for one in seen)


def main() -> None:
    rest_collector()  # as the server does
    found, request = line_microseconds(), tls_microseconds()
    print(f"a request over TLS: {request:.1f} µs of processor time")
    for form, (without, line) in found.items():
        print(f"{form:8} a line {line:.2f} µs, beside {without:.1f} of a request without sockets")
        print(f"{form:8} {line / request:.1%} of a request")


if __name__ == "__main__":
    main()
