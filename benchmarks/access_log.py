"""What the access log costs: a GET at the edge with a line in a file, against the same without.

    PYTHONPATH=src:. python benchmarks/access_log.py

One process without sockets (tests/edge/bench.py), in turns of a second; processor time of the whole process,
so that of the log's thread is in it, and of the file it writes. With its sockets a request costs several
times as much (benchmarks/edge_proxy.py), and a line as much as here.

Goal: a line costs <= 5 % of a request with its sockets.
"""

import os
import tempfile
import time
from pathlib import Path
from statistics import median

from edgestead.edge.access.lines import writer
from edgestead.edge.access.log import AccessLog
from edgestead.edge.access.sinks import FileSink
from tests.edge.bench import HEAD_200, Bench
from tests.edge.test_access_log import Counts

ROUNDS = 9
REQUESTS = 10_000
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
        time.sleep(0.01)
    return (time.process_time() - began) / REQUESTS * 1e6


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        sink = FileSink(fd, "access.log", octets_max=1 << 40, files_max=1)
        counts, bench = Counts(), Bench()
        log = AccessLog(sink, writer("json"), counts)
        seen: dict[bool, list[float]] = {False: [], True: []}
        for _ in range(ROUNDS):
            for on in (False, True):
                bench.edge.access = log if on else None
                seen[on].append(microseconds(bench))
        log.close()
        lines = Path(folder, "access.log").read_bytes().count(b"\n")
        assert lines == counts.lines == ROUNDS * REQUESTS, (lines, counts.lines, counts.lost)
        os.close(fd)
    without, with_ = median(seen[False]), median(seen[True])
    print(f"processor time a request: {without:.1f} µs without, {with_:.1f} µs with a line in a file")
    print(f"{with_ / without:.2f} x")


if __name__ == "__main__":
    main()
