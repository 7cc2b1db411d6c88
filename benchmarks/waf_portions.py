"""How long an inspection keeps others waiting: its longest step, and small requests beside heavy ones.

    python benchmarks/waf_portions.py [--heavy 10] [--seconds 6]

First, in this process, the longest step of each body of `tests/waf/test_portions.py` at level 4:
milliseconds of processor time (the smaller of two, as whatever else runs can only add), and the
work that was counted. Then a server with the system's rules: GETs of one address, first alone, then
while another address sends bodies that are dear to inspect, on several connections and from a process
of its own, as threads would take turns with the one that measures. Printed are medians and 99th
percentiles, and their ratio to the server at rest.
"""

import argparse
import multiprocessing
import socket
import sys
import tempfile
import threading
from pathlib import Path
from statistics import median
from time import monotonic, perf_counter, thread_time_ns

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.edge.conftest import Site
from tests.edge.talk import read_answer, send
from tests.edge.test_managed_server import deployed
from tests.waf.conftest import engine_of
from tests.waf.test_portions import BODIES, BODY_BYTES, post

HEAVY_ADDRESS, LIGHT_ADDRESS = "127.0.0.2", "127.0.0.3"


def steps_of(inspection):
    """Milliseconds of each step."""
    steps, found = inspection.request(), []
    while True:
        start = thread_time_ns()
        ended = next(steps, steps) is steps
        found.append((thread_time_ns() - start) / 1e6)
        if ended:
            return found


def longest_steps():
    engine = engine_of()
    policy = engine.level_policy(4, 60)
    print(f"{'body':<32}{'longest ms':>12}{'counted units':>15}{'all ms':>9}")
    for name, (kind, body) in BODIES.items():
        runs = []
        for _ in range(3):
            inspection = engine.inspect(post(kind, body[:BODY_BYTES]), policy)
            runs.append(steps_of(inspection))
        each = [min(times) for times in zip(*runs[1:], strict=False)]
        print(f"{name:<32}{max(each):>12.2f}{inspection.longest_units:>15,}{sum(each):>9.1f}")


def connect(http, source):
    host, _, port = http.rpartition(":")
    return socket.create_connection((host, int(port)), 60, (source, 0))


def gets(site, host, seconds):
    """Milliseconds of GETs, one after the other."""
    times = []
    with connect(site.http, LIGHT_ADDRESS) as connection, connection.makefile("rb") as stream:
        end = monotonic() + seconds
        while monotonic() < end:
            start = perf_counter()
            connection.sendall(f"GET /?q=shoes&page={len(times)} HTTP/1.1\r\nhost: {host}\r\n\r\n".encode())
            assert read_answer(stream).status == 200
            times.append((perf_counter() - start) * 1e3)
    return times


def heavy(http, host, name, stopped):
    kind, body = BODIES[name]
    fields = f"host: {host}\r\ncontent-type: {kind.decode()}\r\ncontent-length: {len(body)}\r\n\r\n"
    while not stopped.is_set():
        with connect(http, HEAVY_ADDRESS) as connection, connection.makefile("rb") as stream:
            send(connection, f"POST / HTTP/1.1\r\n{fields}".encode() + body)
            read_answer(stream)


def many_heavy(http, host, name, count, began, stopped):
    threads = [threading.Thread(target=heavy, args=(http, host, name, stopped)) for _ in range(count)]
    for thread in threads:
        thread.start()
    began.set()
    for thread in threads:
        thread.join()


def beside(site, host, name, count, seconds):
    apart = multiprocessing.get_context("spawn")
    began, stopped = apart.Event(), apart.Event()
    process = apart.Process(target=many_heavy, args=(site.http, host, name, count, began, stopped))
    process.start()
    try:
        began.wait()
        return gets(site, host, seconds)
    finally:
        stopped.set()
        process.join()


def percentile(times, share):
    return sorted(times)[min(int(len(times) * share), len(times) - 1)]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--heavy", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=6)
    given = parser.parse_args()
    longest_steps()
    with tempfile.TemporaryDirectory() as folder:
        site = Site(Path(folder))
        try:
            host, _ = deployed(site, 1_000)
            idle = gets(site, host, given.seconds)
            print(f"\n{'GETs beside':<40}{'median ms':>10}{'p99 ms':>9}{'of median':>11}{'of p99':>8}")
            print(f"{'nothing':<40}{median(idle):>10.2f}{percentile(idle, 0.99):>9.2f}")
            for name in list(BODIES)[:4]:
                times = beside(site, host, name, given.heavy, given.seconds)
                p99 = percentile(times, 0.99)
                ratios = median(times) / median(idle), p99 / percentile(idle, 0.99)
                label = f"{given.heavy} of {name}"
                print(f"{label:<40}{median(times):>10.2f}{p99:>9.2f}{ratios[0]:>11.1f}{ratios[1]:>8.1f}")
        finally:
            site.close()


if __name__ == "__main__":
    main()
