"""What do a hundred good clients notice of bad ones, at the API, the edge, the objects' address and DNS?

    python benchmarks/bad_neighbours.py [--seconds 4] [--bad 1000]

Good clients ask one after the other on connections that they keep, with a pause between two questions: on two
cores more would measure the queue of their own. Bad ones are another process, on addresses of their own, ten
connections each, and do the same again when they are refused:

    heads     half a head, an octet a second        endless   headers without an end
    bodies    a body, an octet a second             flood     requests behind one another, no answer is read
    connects  connections that come and go at once

At DNS (TCP) they are parts of a frame, queries whose replies nobody reads, and connects. Printed is the 99th
percentile of the good ones: idle, beside one bad client of each kind, and beside all; and the ratios.
"""

import argparse
import asyncio
import multiprocessing
import statistics
import struct
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import uvloop

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.edge.conftest import Site

GOOD = 100
PAUSE_SECONDS = 0.2
PORTION_SECONDS = 0.5  # between two portions of a bad client: a thousand send 32 MB a second at most
PER_ADDRESS = 10
WARM_SECONDS = 1.5
OBJECT = """
from edgestead import Response, StatefulObject


class Echo(StatefulObject):
    async def fetch(self, request):
        return Response("ok")
"""


class Face(NamedTuple):
    """`ask` is one good question, `attacks` what bad ones send: once, then again and again, and how often."""

    host: str
    port: int
    ask: bytes
    attacks: dict[str, tuple[bytes, bytes, float]]


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


async def good(face: Face, latencies: list[float], begin: asyncio.Event, seconds: float, number: int) -> None:
    reader, writer = await asyncio.open_connection(face.host, face.port)
    await begin.wait()
    until = time.monotonic() + seconds
    await asyncio.sleep(PAUSE_SECONDS * number / GOOD)
    while time.monotonic() < until:
        begun = time.perf_counter()
        try:
            if writer is None:
                reader, writer = await asyncio.open_connection(face.host, face.port)
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
            latencies.append(float("inf"))
            if writer is not None:
                writer.close()
            writer = None
        latencies.append(time.perf_counter() - begun)
        await asyncio.sleep(PAUSE_SECONDS)
    if writer is not None:
        writer.close()


async def bad(face: Face, kind: str, number: int) -> None:
    once, again, seconds = face.attacks[kind]
    address = f"127.1.{number // PER_ADDRESS // 250}.{number // PER_ADDRESS % 250 + 1}"
    await asyncio.sleep((seconds or PORTION_SECONDS) * (number % 100) / 100)
    while True:
        with suppress(OSError):
            reader, writer = await asyncio.open_connection(face.host, face.port, local_addr=(address, 0))
            reader._transport.pause_reading()
            try:
                writer.write(once)
                while seconds and not writer.is_closing():
                    await asyncio.sleep(seconds)
                    if writer.transport.get_write_buffer_size() < 65_536:
                        writer.write(again)
                    reader._transport.resume_reading() if kind != "flood" else None
                    if reader.at_eof():
                        break
            finally:
                writer.transport.abort()
        await asyncio.sleep(PORTION_SECONDS)


def attack(face: Face, kinds: list[str]) -> None:
    async def run() -> None:
        await asyncio.gather(*(bad(face, kind, number) for number, kind in enumerate(kinds)))

    uvloop.run(run())


def p99(face: Face, seconds: float, kinds: list[str]) -> float:
    """Of the good clients, who are connected before the bad ones come, in milliseconds."""
    latencies: list[float] = []
    attacking = multiprocessing.get_context("spawn").Process(target=attack, args=(face, kinds))

    async def run() -> None:
        begin = asyncio.Event()
        asking = [asyncio.ensure_future(good(face, latencies, begin, seconds, n)) for n in range(GOOD)]
        await asyncio.sleep(WARM_SECONDS)
        if kinds:
            attacking.start()
            await asyncio.sleep(2 * WARM_SECONDS)
        begin.set()
        await asyncio.gather(*asking)

    try:
        uvloop.run(run())
    finally:
        if kinds:
            attacking.terminate()
            attacking.join()
    return statistics.quantiles(latencies, n=100, method="inclusive")[98] * 1_000


def faces(site: Site) -> dict[str, Face]:
    host, _ = site.origin()
    site.server.wait_until(lambda: site.get(host).status == 200, 60)
    ready = site.server.ready
    api, objects = (ready[name].split("//")[-1].split("/")[0] for name in ("api_base", "objects"))
    bearer = f"Authorization: Bearer {ready['api_token']}"
    return {
        "API": http_face(api, "localhost", "/client/v4/user", bearer),
        "edge": http_face(site.http, host, "/"),
        "objects": http_face(objects, "localhost", "/objects/Echo/a/fetch/", bearer),
        "DNS": dns_face(ready["dns"], host),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--bad", type=int, default=1_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "echo.py"
        source.write_text(OBJECT)
        site = Site(Path(folder), "--objects", str(source))
        try:
            for name, face in faces(site).items():
                idle = p99(face, options.seconds, [])
                kinds = list(face.attacks)
                one = {kind: p99(face, options.seconds, [kind]) for kind in kinds}
                many = p99(face, options.seconds, (kinds * options.bad)[: options.bad])
                worst = max(one, key=lambda kind: one[kind])
                print(
                    f"{name}: p99 idle {idle:.1f} ms, beside one bad client {one[worst]:.1f} ms ({worst},"
                    f" {one[worst] / idle:.1f} x), beside {options.bad} {many:.1f} ms ({many / idle:.1f} x)",
                    flush=True,
                )
        finally:
            site.close()


if __name__ == "__main__":
    main()
