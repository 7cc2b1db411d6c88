"""What do a hundred good clients notice of bad ones, at the API, the edge, the objects' address and DNS?

    python benchmarks/bad_neighbours.py [--faces API,edge,objects,DNS] [--seconds 4] [--rounds 3] [--bad 1000]

Good clients ask one after the other on connections that they keep, each from an address of its own, with a
pause between two questions: on two cores more would measure the queue of their own. Bad ones are another
process, ten connections for each of their addresses, and do the same again when they are refused:

    heads     half a head, an octet a second        endless   headers without an end
    bodies    a body, an octet a second             flood     requests behind one another, no answer is read
    connects  connections that come and go at once

At DNS (TCP) they are parts of a frame, queries whose replies nobody reads, and connects. The edge's origin is
a process that only answers.

Printed are medians over the rounds of the 99th percentile of the good ones: idle, beside one bad client of
each kind, and beside all. On two cores bad clients take processor time from the good ones and the server by
being there, which over a network they would not, and so does what else the machine does. So server, origin
and good clients are real-time processes where that is allowed (the kernel still stops who wants a whole core
for 50 ms of each second), and there are two figures: the time from the question to the answer, and the same
without the time in which one of these processes was ready and another process of the machine had its core.
Without the second one nothing can be said of a busy machine; on an idle one they are the same.

What the bad ones have sent is printed, since they get what is left of the processors.
"""

import argparse
import asyncio
import ctypes
import multiprocessing
import os
import statistics
import struct
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple, cast

import uvloop

sys.path.insert(0, str(Path(__file__).parent.parent))

from edgestead.testing.server import EdgeServer
from tests.edge.talk import get

GOOD = 100
PAUSE_SECONDS = 0.2
PORTION_SECONDS = 0.5  # between two portions of a bad client: a thousand send 32 MB a second at most
PER_ADDRESS = 10
WARM_SECONDS = 1.5
START_SECONDS = 60.0
SETTLE_SECONDS = 5.0  # a new server makes its rules ready meanwhile
NICE = 10
SERVER_PRIORITY, OTHERS_PRIORITY = (
    1,
    2,
)  # over a network good clients and origins have processors of their own
ZONE, ORIGIN_HOST, SINK_HOST = "edge.example", "127.3.0.1", "127.3.0.2"
CONTEXT = multiprocessing.get_context("spawn")
OBJECT = """
from edgestead import Response, StatefulObject


class Echo(StatefulObject):
    async def fetch(self, request):
        return Response("ok")
"""


class Face(NamedTuple):
    """`ask` is one good question, `attacks` what bad ones send: once, then again and again, and how often.

    `processes` are those that it needs, as ids.
    """

    host: str
    port: int
    ask: bytes
    attacks: dict[str, tuple[bytes, bytes, float]]
    processes: tuple[int, ...] = ()

    def waited(self) -> list[int]:
        """How long each of them was ready and did not run, in nanoseconds (sched-stats.rst)."""
        return [int(Path(f"/proc/{pid}/schedstat").read_text().split()[1]) for pid in self.processes]


class Times(NamedTuple):
    """Of one question, in seconds."""

    wall: float
    alone: float  # without what the machine took


def http_face(address: str, host: str, path: str, *lines: str) -> Face:
    name, _, port = address.rpartition(":")
    head = "\r\n".join((f"GET {path} HTTP/1.1", f"Host: {host}", *lines))
    post = head.replace("GET", "POST", 1)
    get = f"{head}\r\n\r\n".encode()
    return Face(
        name,
        int(port),
        get,
        {
            "heads": (head.encode(), b"x", 1.0),
            "bodies": (f"{post}\r\nContent-Length: 100000\r\n\r\n".encode(), b"x", 1.0),
            "endless": (f"{head}\r\n".encode(), b"a: b\r\n" * 2_700, PORTION_SECONDS),
            "flood": (b"", get * (16_384 // len(get)), PORTION_SECONDS),
            "connects": (b"", b"", 0.0),
        },
    )


def dns_face(address: str, name: str) -> Face:
    host, _, port = address.rpartition(":")
    labels = b"".join(bytes((len(label),)) + label.encode() for label in name.split("."))
    query = b"\0\1\1\0\0\1\0\0\0\0\0\0" + labels + b"\0\0\1\0\1"
    frame = struct.pack("!H", len(query)) + query
    return Face(
        host,
        int(port),
        frame,
        {
            "parts": (frame[:-1], b"", 1.0),
            "flood": (b"", frame * (16_384 // len(frame)), PORTION_SECONDS),
            "connects": (b"", b"", 0.0),
        },
    )


async def good(face: Face, times: list[Times], end: asyncio.Event, number: int) -> None:
    own = (f"127.2.0.{number + 1}", 0)
    reader, writer = await asyncio.open_connection(face.host, face.port, local_addr=own)
    await asyncio.sleep(PAUSE_SECONDS * number / GOOD)
    while not end.is_set():
        waited, begun = face.waited(), time.perf_counter()
        try:
            if writer is None:
                reader, writer = await asyncio.open_connection(face.host, face.port, local_addr=own)
            writer.write(face.ask)
            assert reader is not None
            if face.ask.startswith(b"GET"):
                head = await reader.readuntil(b"\r\n\r\n")
                assert head.startswith(b"HTTP/1.1 200"), head
                await reader.readexactly(
                    int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
                )
            else:
                await reader.readexactly(int.from_bytes(await reader.readexactly(2), "big"))
        except (OSError, asyncio.IncompleteReadError):
            times.append(Times(float("inf"), float("inf")))
            if writer is not None:
                writer.close()
            writer = None
        took = time.perf_counter() - begun
        away = max(after - before for before, after in zip(waited, face.waited(), strict=True)) / 1e9
        times.append(Times(took, max(took - away, 0.0)))
        await asyncio.sleep(PAUSE_SECONDS)
    if writer is not None:
        writer.close()


class Sent(ctypes.Structure):
    """What the bad clients did since they began."""

    _fields_ = (("octets", ctypes.c_long), ("connections", ctypes.c_long))


async def bad(face: Face, kind: str, number: int, sent: Any) -> None:
    once, again, seconds = face.attacks[kind]
    address = f"127.1.{number // PER_ADDRESS // 250}.{number // PER_ADDRESS % 250 + 1}"
    await asyncio.sleep((seconds or PORTION_SECONDS) * (number % 100) / 100)
    while True:
        with suppress(OSError):
            reader, writer = await asyncio.open_connection(face.host, face.port, local_addr=(address, 0))
            sent.connections += 1
            reader._transport.pause_reading()
            try:
                writer.write(once)
                while seconds and not writer.is_closing():
                    await asyncio.sleep(seconds)
                    if writer.transport.get_write_buffer_size() < 65_536:
                        writer.write(again)
                        sent.octets += len(again)
                    reader._transport.resume_reading() if kind != "flood" else None
                    if reader.at_eof():
                        break
            finally:
                writer.transport.abort()
        await asyncio.sleep(PORTION_SECONDS)


def attack(face: Face, kinds: list[str], sent: Any, nice: int) -> None:
    async def run() -> None:
        await asyncio.gather(*(bad(face, kind, number, sent) for number, kind in enumerate(kinds)))

    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    os.nice(nice)
    uvloop.run(run())


class Origin(asyncio.Protocol):
    """Answers each GET, and nothing else."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        if data.startswith(b"GET"):
            self.transport.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok" * data.count(b"\r\n\r\n"))


def hurry(priority: int) -> None:
    """Before everybody with less, where that is allowed. Children have the same."""
    with suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(priority))


def listen(protocol: type[asyncio.Protocol], host: str, told: Connection) -> None:
    hurry(OTHERS_PRIORITY)

    async def run() -> None:
        server = await asyncio.get_running_loop().create_server(protocol, host, 0, backlog=1_024)
        told.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    uvloop.run(run())


class Listening(NamedTuple):
    """A process with a port of its own."""

    port: int
    pid: int


@contextmanager
def listening(protocol: type[asyncio.Protocol], host: str) -> Iterator[Listening]:
    hear, tell = CONTEXT.Pipe(duplex=False)
    process = CONTEXT.Process(target=listen, args=(protocol, host, tell))
    process.start()
    try:
        yield Listening(hear.recv(), process.pid or 0)
    finally:
        process.terminate()
        process.join()


class Measured(NamedTuple):
    """The 99th percentiles of good clients, in milliseconds; what bad ones sent each second."""

    wall: float
    alone: float
    sent_mb: float = 0.0
    connections: float = 0.0

    def beside(self, idle: "Measured") -> str:
        wall, alone = self.wall / idle.wall, self.alone / idle.alone
        return (
            f"{self.alone:.2f} ms ({alone:.1f} x), with the machine's part {self.wall:.2f} ms ({wall:.1f} x)"
        )


def measured(
    face: Face, options: argparse.Namespace, kinds: list[str], attacked: Face | None = None
) -> Measured:
    """The good ones are connected before the bad ones come."""
    times: list[Times] = []
    sent = CONTEXT.Value(Sent, 0, 0, lock=False)
    attacking = CONTEXT.Process(target=attack, args=(attacked or face, kinds, sent, options.nice))
    rates = [0.0, 0.0]

    async def run() -> None:
        end = asyncio.Event()
        asking = [asyncio.ensure_future(good(face, times, end, n)) for n in range(GOOD)]
        await asyncio.sleep(WARM_SECONDS)
        if kinds:
            attacking.start()
            await asyncio.sleep(2 * WARM_SECONDS)
        before, begun = (sent.octets, sent.connections), time.monotonic()
        times.clear()
        await asyncio.sleep(options.seconds)
        end.set()
        await asyncio.gather(*asking)
        took = time.monotonic() - begun
        rates[:] = (sent.octets - before[0]) / took / 1e6, (sent.connections - before[1]) / took

    try:
        uvloop.run(run())
    finally:
        if kinds:
            attacking.terminate()
            attacking.join()
    return Measured(*(_p99(column) for column in zip(*times, strict=True)), *rates)


def _p99(seconds: Sequence[float]) -> float:
    return statistics.quantiles(seconds, n=100, method="inclusive")[98] * 1_000


def faces(server: EdgeServer, origin: Listening) -> dict[str, Face]:
    host, zone_id = f"www.{ZONE}", server.make_zone(ZONE)
    assert server.make_record(zone_id, "A", host, ORIGIN_HOST, proxied=True).status == 200
    ready = server.ready
    server.wait_until(lambda: get(ready["http"], host).status == 200, START_SECONDS)
    time.sleep(SETTLE_SECONDS)
    api, objects = (ready[name].split("//")[-1].split("/")[0] for name in ("api_base", "objects"))
    bearer = f"Authorization: Bearer {ready['api_token']}"
    good_and_origin = (os.getpid(), origin.pid)
    pids = server.children()

    def needs(face: Face, *names: str) -> Face:
        return face._replace(processes=good_and_origin + tuple(pids[name] for name in names))

    return {
        "API": needs(http_face(api, "localhost", "/client/v4/user", bearer), "control"),
        "edge": needs(http_face(ready["http"], host, "/"), "edge-0"),
        "objects": needs(
            http_face(objects, "localhost", "/objects/Echo/a/fetch/", bearer), "objects-0", "objects-1"
        ),
        "DNS": needs(dns_face(ready["dns"], host), "dns-tcp"),
    }


def measure(name: str, face: Face, sink_port: int, options: argparse.Namespace) -> None:
    kinds = list(face.attacks)
    everybody = (options.kinds or kinds) * options.bad
    everybody = everybody[: options.bad]
    sink = face._replace(host=SINK_HOST, port=sink_port)
    rows: dict[str, list[Measured]] = {}
    for _ in range(options.rounds):
        for kind in ("idle", *kinds):
            bad_ones = [kind] if kind != "idle" else []
            rows.setdefault(kind, []).append(measured(face, options, bad_ones))
        rows.setdefault("all", []).append(measured(face, options, everybody))
        rows.setdefault("elsewhere", []).append(measured(face, options, everybody, sink))
    found = {
        kind: Measured(*(statistics.median(column) for column in zip(*row, strict=True)))
        for kind, row in rows.items()
    }
    idle, everyone = found["idle"], found["all"]
    worst = max(kinds, key=lambda kind: found[kind].alone)
    load = " ".join(f"{value:.1f}" for value in os.getloadavg())
    print(
        f"{name}: idle {idle.alone:.2f} ms, with the machine's part {idle.wall:.2f} ms\n"
        f"    beside one bad client ({worst}): {found[worst].beside(idle)}\n"
        f"    beside {options.bad}: {everyone.beside(idle)};"
        f" they sent {everyone.sent_mb:.1f} MB/s, {everyone.connections:.0f} connections/s\n"
        f"    while these are elsewhere: {found['elsewhere'].beside(idle)}; load of the machine {load}",
        flush=True,
    )
    if options.all:
        for kind, row in rows.items():
            print("       ", kind, *(f"{one.alone:.2f}/{one.wall:.2f}" for one in row), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--faces", default="API,edge,objects,DNS")
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--bad", type=int, default=1_000)
    parser.add_argument(
        "--nice", type=int, default=NICE, help="of the bad ones, less than 0 where others would starve them"
    )
    parser.add_argument("--kinds", type=lambda text: text.split(","), help="of the crowd; else all")
    parser.add_argument("--all", action="store_true", help="print the rounds, too")
    options = parser.parse_args()
    hurry(OTHERS_PRIORITY)
    with (
        tempfile.TemporaryDirectory() as folder,
        listening(Origin, ORIGIN_HOST) as origin,
        listening(asyncio.Protocol, SINK_HOST) as sink,
    ):
        source = Path(folder) / "echo.py"
        source.write_text(OBJECT)
        flags = ("--origin-port", str(origin.port), "--objects", str(source))
        hurry(SERVER_PRIORITY)
        server = EdgeServer(Path(folder) / "data", *flags).start()
        hurry(OTHERS_PRIORITY)
        try:
            found = faces(server, origin)
            for name in options.faces.split(","):
                measure(name, found[name], sink.port, options)
        finally:
            server.close()


if __name__ == "__main__":
    main()
