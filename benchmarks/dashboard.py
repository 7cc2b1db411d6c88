"""What does the dashboard take, on a server with many zones and security events?

    python benchmarks/dashboard.py [--zones 10000] [--events 1000000] [--rounds 100] [--at-once]

first byte    of each page that links lead to, one of those alike, on a connection that is kept: median, p99,
              and the processor time of control for one, which says more on a busy machine
weight        of a page with our style and script, as they come the first time; nothing is compressed
overview      processor time of control while a browser has it open, less that of the same time without
API           p99 of a GET of one record with ten overviews open, and with none, in turns

A whole server, next to this client: the load is printed, and on a busy machine a p99 is the machine's. Events
are written into the edge's files as those of eight processes over the last 20 hours: one keeps 128 MiB.
"""

import argparse
import http.client
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from processes import processor_seconds

from edgestead.edge.events import FILE_OCTETS_MAX, FILES_MAX
from edgestead.model import events
from edgestead.testing.server import EdgeServer
from tests.web.conftest import Visitor, link_of
from tests.web.walking import one_of_each, walk

FIRST_BYTE_MS, WEIGHT_BYTES, CORE_SHARE, P99_RATIO = 50, 60_000, 0.01, 1.1  # the goals
EDGES = 8  # so that the files hold them all
PAGES_OPEN = 10
SPREAD_US = 20 * 3_600_000_000
MANAGED_EVERY = 50
CALLS = 300  # of the API, in a round
TURNS = 6
PAGE_SECONDS_MAX = 10  # a slow page has fewer rounds


def fill(server: EdgeServer, zones: int) -> str:
    """The id of a zone with one record."""

    def make(number: int) -> str:
        return server.make_zone(f"zone-{number:05}.example")

    with ThreadPoolExecutor(8) as pool:
        ids = list(pool.map(make, range(zones)))
    server.make_record(ids[0], "A", "www", "192.0.2.1")
    return ids[0]


def write_events(folder: Path, zone_id: str, wanted: int) -> int:
    """As many as were wanted, or as the edge's files hold."""
    now_us = time.time_ns() // 1_000
    written = 0
    for worker in range(EDGES):
        number = count(1)
        for _ in range(FILES_MAX):
            lines: list[bytes] = []
            octets = 0
            while octets < FILE_OCTETS_MAX and written < wanted * (worker + 1) // EDGES:
                share = (written - wanted * worker // EDGES) / (wanted / EDGES)
                id_ = events.event_id(now_us - SPREAD_US + int(SPREAD_US * share), worker, next(number))
                line = events.encode(_event(id_, zone_id, written))
                lines.append(line)
                octets += len(line) + 1
                written += 1
            if lines:
                first = events.decode(lines[0]).id
                name = f"{events.file_prefix(worker)}{first}{events.SUFFIX}"
                (folder / name).write_bytes(b"\n".join((*lines, b"")))
    return written


def _event(id_: str, zone_id: str, number: int) -> events.Event:
    scores = _scores(number)
    return events.Event(
        id=id_,
        occurred_on=events.time_of(id_),
        zone_id=zone_id,
        ray_id=f"{number:016x}",
        phase="http_request_firewall_managed" if scores else "http_request_firewall_custom",
        action="block",
        status=403,
        ruleset_id="0" * 32,
        rule_id=f"{number % 20:032x}",
        description="a rule",
        reason="",
        client=f"192.0.2.{number % 250}",
        method="GET",
        scheme="http",
        host="www.zone-00000.example",
        path=f"/path/{number % 1000}",
        query="",
        user_agent="Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36",
        score=sum(one.score for one in scores) if scores else None,
        threshold=25 if scores else None,
        contributions=scores,
        dropped=0,
    )


def _scores(number: int) -> tuple[events.Contribution, ...]:
    """Each fiftieth was decided on by managed rules, in 500 different ways."""
    if number % MANAGED_EVERY:
        return ()
    way = number // MANAGED_EVERY % 500
    return tuple(
        events.Contribution(f"{rule:032x}", f"{rule}: a rule", 5, "ARGS:q", "1 or 1")
        for rule in range(way, way + 5 + way % 7)
    )


def index_seconds(server: EdgeServer, zone_id: str) -> float:
    """Until what is in the files is known."""
    began = time.perf_counter()
    path = f"/zones/{zone_id}/security/events/counts"
    while not server.call("GET", path).result["complete"]:
        time.sleep(1)
    return time.perf_counter() - began


def p99(values: list[float]) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * 0.99))]


def first_bytes(visitor: Visitor, target: str, rounds: int) -> tuple[list[float], int]:
    """Milliseconds of each, and the bytes of the last answer with its head."""
    connection = http.client.HTTPConnection(visitor.host, timeout=60)
    taken: list[float] = []
    octets = 0
    while len(taken) < rounds and sum(taken) < PAGE_SECONDS_MAX * 1_000:
        began = time.perf_counter()
        connection.request("GET", target, headers={"Cookie": visitor.cookie, "Accept": "text/html"})
        answer = connection.getresponse()
        taken.append((time.perf_counter() - began) * 1_000)
        octets = len(answer.read()) + len(str(answer.headers))
    connection.close()
    return taken, octets


@contextmanager
def overview_open(visitor: Visitor) -> Iterator[None]:
    """As a browser has it: its stream is read by the kernel."""
    while True:
        connection = http.client.HTTPConnection(visitor.host, timeout=60)
        connection.request("GET", "/ui/live?span=hour", headers={"Cookie": visitor.cookie})
        answer = connection.getresponse()
        if answer.status == 200:
            break
        connection.close()
        time.sleep(1)  # until those of the turn before are noticed to be gone
    answer.readline()
    try:
        yield
    finally:
        connection.close()


def control_share(server: EdgeServer, seconds: float) -> float:
    pid = server.children()["control"]
    before, began = processor_seconds(pid), time.perf_counter()
    time.sleep(seconds)
    return (processor_seconds(pid) - before) / (time.perf_counter() - began)


def api_calls(server: EdgeServer, path: str) -> list[float]:
    connection = http.client.HTTPConnection(server.ready["api_base"].split("/")[2], timeout=60)
    headers = {"Authorization": f"Bearer {server.ready['api_token']}"}
    taken = []
    for _ in range(CALLS):
        began = time.perf_counter()
        connection.request("GET", f"/client/v4{path}", headers=headers)
        connection.getresponse().read()
        taken.append((time.perf_counter() - began) * 1_000)
    connection.close()
    return taken


def row(what: str, seen: str, goal: str, *, is_reached: bool) -> None:
    print(f"{what:54} {seen:>34}   {goal:12} {'' if is_reached else 'missed'}", flush=True)


def measure(server: EdgeServer, zone_id: str, rounds: int, seconds: float) -> None:
    visitor = Visitor(server)
    visitor.send("/ui/enter", code=link_of(server).partition("code=")[2])
    files = sum(first_bytes(visitor, f"/ui/static/{name}", 1)[1] for name in ("style.css", "page.js"))
    for one in one_of_each(walk(visitor, "zone-00000")):
        control = server.children()["control"]
        before = processor_seconds(control)
        taken, octets = first_bytes(visitor, one.target, rounds)
        work_ms = (processor_seconds(control) - before) / len(taken) * 1_000
        octets += files
        is_reached = p99(taken) <= FIRST_BYTE_MS and octets <= WEIGHT_BYTES
        seen = f"{statistics.median(taken):.1f}, {p99(taken):.1f}, {work_ms:.1f} ms, {octets / 1_000:.1f} KB"
        row(one.target[:52], seen, "50 ms, 60 KB", is_reached=is_reached)
    idle = control_share(server, seconds)
    with overview_open(visitor):
        watched = control_share(server, seconds)
    seen = f"{idle:.2%}, {watched:.2%} of a core"
    row("control: no overview open, one open", seen, "1 % more", is_reached=watched - idle <= CORE_SHARE)
    path = f"/zones/{zone_id}/dns_records"
    none: list[float] = []
    ten: list[float] = []
    for _ in range(TURNS):
        none += api_calls(server, path)
        with ExitStack() as opened:
            for _ in range(PAGES_OPEN):
                opened.enter_context(overview_open(visitor))
            ten += api_calls(server, path)
    ratio = p99(ten) / p99(none)
    seen = f"{p99(none):.2f}, {p99(ten):.2f} ms, {ratio:.2f} x"
    row("API p99: no page open, ten open", seen, "1.1 x", is_reached=ratio <= P99_RATIO)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--zones", type=int, default=10_000)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--at-once", action="store_true", help="without waiting for the index of events")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        server = EdgeServer(Path(folder) / "data")
        try:
            server.start()
            began = time.perf_counter()
            zone_id = fill(server, asked.zones)
            made = write_events(Path(folder) / "data" / "events", zone_id, asked.events)
            took = time.perf_counter() - began
            print(
                f"{asked.zones} zones and {made} events, made in {took:.0f} s; load {os.getloadavg()[0]:.1f}"
            )
            if not asked.at_once:
                print(f"their index was whole after {index_seconds(server, zone_id):.0f} s")
            measure(server, zone_id, asked.rounds, asked.seconds)
            print(f"load {os.getloadavg()[0]:.1f}")
        finally:
            server.close()


if __name__ == "__main__":
    main()
