"""DNS over TLS: CPU time per answer and per handshake beside NSD, on the same core; the client on the other.

    PYTHONPATH=src:. python benchmarks/dns_private.py [--quick]

Both have the same certificate (ECDSA P-256) and zone; the client is OpenSSL under Python. Connections
are kept and carry a batch of queries each, or one at a time; or each query comes on a connection of its own,
with a full handshake.

Goal: >= 0.5 x NSD on kept connections, where TLS costs both the same.
"""

import asyncio
import contextlib
import os
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from itertools import cycle, islice
from pathlib import Path
from statistics import median

import dns.rdatatype
import uvloop

from benchmarks.dns_peer import (
    APEX,
    CLIENT_CORE,
    RUN_SECONDS,
    RUNS,
    SERVER_CORE,
    Place,
    cpu_seconds,
    zone_text,
)
from edgestead.cli.parent import end_with_parent
from edgestead.cli.server.authority import Authority
from edgestead.dns.counters import NoCounters
from edgestead.dns.table import Table
from edgestead.dns.tcp import Private, serve_tcp
from edgestead.edge.http.certificates import Certificates, Terms
from edgestead.server.places import private_place
from tests.dns import stock
from tests.dns.peers import PEERS
from tests.dns.random_zones import wire
from tests.dns.serving import changes_of, read_zone

CONNECTIONS = 20
BATCH = 10
START_SECONDS = 60
NSD = (
    stock.HEADS["NSD"]
    .replace("ip-address: {host}", "ip-address: {host}@{port}")
    .replace(
        "{options}",
        """  tls-port: {port}
  tls-service-key: "{folder}/key.pem"
  tls-service-pem: "{folder}/default.pem"
  logfile: "{folder}/nsd.log"
  minimal-responses: yes
  tcp-count: 200
  tcp-query-count: 0
""",
    )
    + """
zone:
  name: {apex}
  zonefile: zone
"""
)


def serve(folder, fd):
    """What the child does: our server, alone in its process, until SIGTERM."""
    table = Table()
    table.apply(changes_of(read_zone(APEX, (folder / "zone").read_text())))
    certificates = Certificates(folder)

    async def main():
        stop = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
        tcp = socket.create_server(("127.0.0.1", 0))
        private = Private(
            lambda host, protocols: certificates.context(host, Terms(protocols=tuple(protocols))),
            socket.socket(fileno=fd),
        )
        await serve_tcp(tcp, table, NoCounters(), stop, private=private)

    uvloop.run(main())


@contextlib.contextmanager
def pinned(command, place, context, **options):
    command = ["taskset", "-c", SERVER_CORE, *map(str, command)]
    process = subprocess.Popen(command, preexec_fn=end_with_parent, **options)
    try:
        found = Place(*place, process.pid)
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError), connected(found, context) as client:
                ask(client, [query(APEX, "SOA")])
                break
            time.sleep(0.05)
        yield found
    finally:
        process.terminate()
        process.wait(30)


@contextlib.contextmanager
def ours(folder, context):
    with socket.create_server(("127.0.0.1", 0)) as sock:
        command = [sys.executable, Path(__file__).resolve(), "--serve", folder, sock.fileno()]
        with pinned(command, sock.getsockname(), context, pass_fds=(sock.fileno(),)) as place:
            yield place


@contextlib.contextmanager
def nsd(folder, context):
    host, port = private_place()
    (folder / "nsd.conf").write_text(NSD.format(host=host, port=port, folder=folder, apex=APEX))
    with pinned([PEERS["NSD"].binary, "-d", "-c", folder / "nsd.conf"], (host, port), context) as place:
        yield place


def query(name, kind):
    message = bytes((0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0)) + wire(name)
    message += int(dns.rdatatype.from_text(kind)).to_bytes(2, "big") + b"\0\1"
    return len(message).to_bytes(2, "big") + message


def connected(place, context):
    plain = socket.create_connection((place.host, place.port), timeout=10)
    plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return context.wrap_socket(plain)


def ask(client, queries):
    send(client, queries)
    read(client, len(queries))


def send(client, queries):
    """Each in a record of its own: NSD 4.6 does not look behind the first query of a record."""
    for one in queries:
        client.sendall(one)


def read(client, answers):
    data, at = b"", 0
    while answers:
        while len(data) - at >= 2 and len(data) - at - 2 >= int.from_bytes(data[at : at + 2], "big"):
            at += 2 + int.from_bytes(data[at : at + 2], "big")
            answers -= 1
        if answers:
            received = client.recv(1 << 16)
            if not received:
                raise ConnectionError
            data, at = data[at:] + received, 0


def kept(place, context, queries, batch):
    """(CPU microseconds per answer, answers per second) of connections that stay."""
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(connected(place, context)) for _ in range(CONNECTIONS)]
        before, began, answers = cpu_seconds(place.pid), time.monotonic(), 0
        while time.monotonic() - began < RUN_SECONDS:
            for client in clients:
                send(client, islice(queries, batch))
            for client in clients:
                read(client, batch)
            answers += CONNECTIONS * batch
        took = time.monotonic() - began
        return (cpu_seconds(place.pid) - before) / answers * 1e6, answers / took


def new(place, context, queries, _):
    """The same of connections that are made for one query."""
    before, began, answers = cpu_seconds(place.pid), time.monotonic(), 0
    while time.monotonic() - began < RUN_SECONDS:
        with connected(place, context) as client:
            ask(client, [next(queries)])
        answers += 1
    return (cpu_seconds(place.pid) - before) / answers * 1e6, answers / (time.monotonic() - began)


LOADS = {
    f"{CONNECTIONS} kept, {BATCH} in flight each": (kept, BATCH),
    f"{CONNECTIONS} kept, one in flight each": (kept, 1),
    "a handshake for each": (new, 1),
}


def resident_kib(pid):
    line = next(one for one in Path(f"/proc/{pid}/status").read_text().splitlines() if "VmRSS" in one)
    return int(line.split()[1])


def memory(place, context):
    """KiB that a connection takes, of 200 that have asked."""
    before = resident_kib(place.pid)
    with contextlib.ExitStack() as stack:
        for _ in range(200):
            ask(stack.enter_context(connected(place, context)), [query(APEX, "SOA")])
        return (resident_kib(place.pid) - before) / 200


def main(arguments):
    if arguments[:1] == ["--serve"]:
        serve(Path(arguments[1]), int(arguments[2]))
        return
    os.sched_setaffinity(0, {int(CLIENT_CORE)})
    text, questions = zone_text()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(["dot"])
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        folder = Path(name)
        pem = Authority.new(datetime.now(UTC)).issue(["ns1.bench.test"], datetime.now(UTC)).pem
        (folder / "default.pem").write_bytes(pem)
        (folder / "key.pem").write_bytes(pem)
        (folder / "zone").write_text(text)
        places = {"ours": stack.enter_context(ours(folder, context))}
        if PEERS["NSD"].binary:
            places["NSD"] = stack.enter_context(nsd(folder, context))
        queries = cycle([query(name, kind) for name, kind in questions])
        for load, (run, batch) in LOADS.items():
            runs = [
                {who: run(place, context, queries, batch) for who, place in places.items()}
                for _ in range(1 + RUNS)
            ][1:]
            cost = {who: median(one[who][0] for one in runs) for who in places}
            rate = {who: median(one[who][1] for one in runs) for who in places}
            shown = "   ".join(f"{who} {cost[who]:.1f} us {rate[who]:,.0f}/s" for who in places)
            ratio = f"   |   {cost['NSD'] / cost['ours']:.2f} x NSD" if "NSD" in places else ""
            print(f"{load:32} {shown}{ratio}", flush=True)
        print(f"a connection takes {memory(places['ours'], context):.0f} KiB of ours")


if __name__ == "__main__":
    main(sys.argv[1:])
