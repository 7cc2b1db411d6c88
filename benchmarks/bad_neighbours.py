"""What do a hundred good clients notice of bad ones, at the API, the edge, the objects' address and DNS?

    python benchmarks/bad_neighbours.py [--faces API,edge,objects,DNS] [--rounds 3] [--bad 1000] [--elsewhere]

Good clients ask one after the other on connections that they keep, each from an address of its own, with a
pause between two questions: on two cores more would measure the queue of their own. Bad ones are another
process, ten connections for each of their addresses, and do the same again when they are refused:

    heads     half a head, an octet a second        endless   headers without an end
    bodies    a body, an octet a second             flood     requests behind one another, no answer is read
    connects  connections that come and go at once

At DNS (TCP) they are parts of a frame, queries whose replies nobody reads, and connects. The edge's origin is
a process that only answers.

A shared machine is another one every few seconds. So the good clients stay for the whole run, and phases
follow one another, a second or two each: idle, one bad client of a kind, idle, one of the next kind, idle,
all of them, idle, and so on, for each round. A phase is compared with the idle ones right before and behind
it, by the 99th percentile of the good clients' questions; printed is the median of these ratios over the
rounds, the lowest and the highest of them, and the machine's load. The whole run takes under four minutes.

On two cores bad clients take processor time from the good ones and the server by being there, which over a
network they would not; `--elsewhere` measures the same crowd at a process that only accepts. Server, origin
and good clients are real-time processes where that is allowed, and there are two figures: the time from the
question to the answer, and the same without the time in which one of these processes was ready and another
process of the machine had its core. Without the second one nothing can be said of a busy machine; on an idle
one they are the same. The kernel stops real-time processes that want a whole core for 50 ms of each second:
where a crowd keeps all processes of a face busy, as two of objects on two cores, that is part of the figure
(sched_rt_runtime_us).
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
WARM_SECONDS = 1.0  # until the good ones are connected and have asked a few times
IDLE_SECONDS = 1.0  # of a phase that is measured
ONE_SECONDS, ALL_SECONDS = 1.0, 1.5
COME_SECONDS, GO_SECONDS = 0.5, 0.3  # until one bad client is there, and gone
CROWD_TIMES = 3  # as long for a crowd
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


async def good(face: Face, times: list[Times], number: int) -> None:
    """Ask for ever."""
    own = (f"127.2.0.{number + 1}", 0)
    writer = None
    await asyncio.sleep(PAUSE_SECONDS * number / GOOD)
    while True:
        waited, begun = face.waited(), time.perf_counter()
        try:
            if writer is None:
                reader, writer = await asyncio.open_connection(face.host, face.port, local_addr=own)
            writer.write(face.ask)
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
        else:
            took = time.perf_counter() - begun
            away = max(after - before for before, after in zip(waited, face.waited(), strict=True)) / 1e9
            times.append(Times(took, max(took - away, 0.0)))
        await asyncio.sleep(PAUSE_SECONDS)


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


def attack(told: Connection, sent: Any, nice: int) -> None:
    """Be the bad clients that it is told to be: a face and their kinds; of none, go away."""

    async def run() -> None:
        loop, running = asyncio.get_running_loop(), list[asyncio.Task[None]]()

        def change() -> None:
            for task in running:
                task.cancel()
            os.set_blocking(told.fileno(), True)  # else half of a long message is an error
            face, kinds = told.recv()
            running[:] = [
                loop.create_task(bad(face, kind, number, sent)) for number, kind in enumerate(kinds)
            ]

        loop.add_reader(told.fileno(), change)
        await loop.create_future()

    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    os.nice(nice)
    uvloop.run(run())


class Attackers:
    """Bad clients in a process of their own."""

    def __init__(self, nice: int) -> None:
        self.sent = CONTEXT.Value(Sent, 0, 0, lock=False)
        hear, self._tell = CONTEXT.Pipe(duplex=False)
        self._process = CONTEXT.Process(target=attack, args=(hear, self.sent, nice))
        self._process.start()

    def be(self, face: Face, kinds: list[str]) -> None:
        self._tell.send((face._replace(processes=()), kinds))

    def close(self) -> None:
        self._process.terminate()
        self._process.join()


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


class Beside(NamedTuple):
    """A phase with bad clients, between two without."""

    before: Measured
    with_them: Measured
    after: Measured

    def ratio(self, column: int) -> float:
        return 2 * self.with_them[column] / (self.before[column] + self.after[column])


class Phases:
    """Phases of one face, while its good clients ask."""

    def __init__(self, face: Face, attackers: Attackers) -> None:
        self._face, self._attackers, self._times = face, attackers, list[Times]()

    async def measured(self, seconds: float) -> Measured:
        sent, self._times[:] = self._attackers.sent, []
        before, begun = (sent.octets, sent.connections), time.monotonic()
        await asyncio.sleep(seconds)
        took = time.monotonic() - begun
        columns = zip(*self._times, strict=True)
        rates = (sent.octets - before[0]) / took / 1e6, (sent.connections - before[1]) / took
        return Measured(*map(_p99, columns), *rates)

    async def run(self, crowds: dict[str, tuple[Face, list[str]]], rounds: int) -> dict[str, list[Beside]]:
        asking = [asyncio.ensure_future(good(self._face, self._times, n)) for n in range(GOOD)]
        await asyncio.sleep(WARM_SECONDS)
        found: dict[str, list[Beside]] = {name: [] for name in crowds}
        before = await self.measured(IDLE_SECONDS)
        for _ in range(rounds):
            for name, (attacked, kinds) in crowds.items():
                times = CROWD_TIMES if len(kinds) > 1 else 1
                self._attackers.be(attacked, kinds)
                await asyncio.sleep(COME_SECONDS * times)
                with_them = await self.measured(ALL_SECONDS if len(kinds) > 1 else ONE_SECONDS)
                self._attackers.be(attacked, [])
                await asyncio.sleep(GO_SECONDS * times)
                after = await self.measured(IDLE_SECONDS)
                found[name].append(Beside(before, with_them, after))
                before = after
        for task in asking:
            task.cancel()
        return found


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


def measure(name: str, face: Face, sink_port: int, attackers: Attackers, options: argparse.Namespace) -> None:
    kinds = list(face.attacks)
    everybody = ((options.kinds or kinds) * options.bad)[: options.bad]
    crowds = {f"one, {kind}": (face, [kind]) for kind in kinds} | {str(options.bad): (face, everybody)}
    if options.elsewhere:
        sink = face._replace(host=SINK_HOST, port=sink_port)
        crowds[f"{options.bad} elsewhere"] = (sink, everybody)
    loads = [os.getloadavg()[0]]
    found = uvloop.run(Phases(face, attackers).run(crowds, options.rounds))
    loads.append(os.getloadavg()[0])
    idle = [one for row in found.values() for beside in row for one in (beside.before, beside.after)]
    alone, wall = (statistics.median(one[column] for one in idle) for column in (1, 0))
    print(
        f"{name}: idle {alone:.2f} ms, with the machine's part {wall:.2f} ms;"
        f" load of the machine {loads[0]:.1f} to {loads[1]:.1f}"
    )
    for crowd, row in found.items():
        figures = [statistics.median(beside.with_them[column] for beside in row) for column in range(4)]
        print(
            f"    beside {crowd:14} {_ratios(row, 1)} {figures[1]:7.2f} ms;"
            f" with the machine's part {_ratios(row, 0)} {figures[0]:7.2f} ms;"
            f" they sent {figures[2]:.1f} MB/s, {figures[3]:.0f} connections/s",
            flush=True,
        )
    if options.all:
        for crowd, row in found.items():
            print(
                "       ", crowd, *(f"{b.with_them.alone:.2f}/{b.before.alone:.2f}" for b in row), flush=True
            )


def _ratios(row: list[Beside], column: int) -> str:
    ratios = [beside.ratio(column) for beside in row]
    return f"{statistics.median(ratios):5.1f} x ({min(ratios):.1f} to {max(ratios):.1f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--faces", default="API,edge,objects,DNS")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--bad", type=int, default=1_000)
    parser.add_argument(
        "--nice", type=int, default=NICE, help="of the bad ones, less than 0 where others would starve them"
    )
    parser.add_argument("--kinds", type=lambda text: text.split(","), help="of the crowd; else all")
    parser.add_argument("--elsewhere", action="store_true", help="the crowd at another process, too")
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
        attackers = Attackers(options.nice)
        try:
            found = faces(server, origin)
            for name in options.faces.split(","):
                measure(name, found[name], sink.port, attackers, options)
        finally:
            attackers.close()
            server.close()


if __name__ == "__main__":
    main()
