"""What the DNS benchmarks share: the zone, the questions, every server on one core, CPU time per answer.

CPU time (user and system, of the server's processes) divided by answers is compared, because it does not
depend on the client and hardly on what else the machine does; the queries per second that were seen are
printed beside it. Everything is switched on in every server that has it, ours included: cookies, rate limits
far above the load (not in BIND, whose limit cannot be more than 1,000, nor in PowerDNS, which has none), our
watch for operators. PowerDNS answers repeated questions from its packet cache.
"""

import asyncio
import os
import random
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import NamedTuple

import dns.rdatatype

from edgestead.cli.parent import end_with_parent
from edgestead.dns.counters import NoCounters
from edgestead.dns.rates import Rates, memory_octets
from edgestead.dns.settings import DnsSettings
from edgestead.dns.table import Table
from edgestead.dns.tcp import serve_tcp
from edgestead.dns.udp import serve_udp
from tests.dns import peers
from tests.dns.random_zones import wire
from tests.dns.serving import changes_of, read_zone

APEX = "bench.test."
NAMES = 10_000
RUNS = 1 if "--quick" in sys.argv else 3
RUN_SECONDS = 2 if "--quick" in sys.argv else 3
RATE = 1_000_000
COOKIES = 100
SERVER_CORE, CLIENT_CORE = "0", "1"
_TICKS = os.sysconf("SC_CLK_TCK")


class Place(NamedTuple):
    """Where a server answers, and its process."""

    host: str
    port: int
    pid: int


def zone_text(names=NAMES):
    """A zone of many kinds of names: 45 % A, 20 % AAAA, 15 % CNAME, 7 % MX, 8 % TXT, 5 % SRV."""
    chosen = random.Random(1)
    lines = [
        f"{APEX} 3600 SOA ns1.{APEX} hostmaster.{APEX} 1 7200 900 86400 300",
        f"{APEX} 3600 NS ns1.{APEX}",
        f"ns1.{APEX} 3600 A 192.0.2.1",
        f"mail.{APEX} 3600 A 192.0.2.2",
        f"*.wild.{APEX} 300 A 192.0.2.3",
        f"sub.{APEX} 300 NS ns.sub.{APEX}",
        f"ns.sub.{APEX} 300 A 192.0.2.4",
    ]
    makers = {
        "A": lambda i: f"10.0.{i >> 8 & 255}.{i & 255}",
        "AAAA": lambda i: f"2001:db8::{i:x}",
        "CNAME": lambda i: f"mail.{APEX}",
        "MX": lambda i: f"10 mail.{APEX}",
        "TXT": lambda i: f'"v=spf1 include:_spf{i}.{APEX} -all"',
        "SRV": lambda i: f"0 5 5060 mail.{APEX}",
    }
    questions = []
    for i in range(names):
        (kind,) = chosen.choices(list(makers), (45, 20, 15, 7, 8, 5))
        lines.append(f"n{i:06d}.{APEX} 300 {kind} {makers[kind](i)}")
        questions.append((f"n{i:06d}.{APEX}", "A" if kind == "CNAME" else kind))
    return "\n".join(lines) + "\n", questions


def mixed_case(name, chosen):
    return "".join(chosen.choice((c, c.upper())) for c in name)


def loads(questions):
    """Loads by name: lists of (name, type, with a cookie)."""
    chosen = random.Random(2)
    repeated = [(*chosen.choice(questions), False) for _ in range(100_000)]
    unknown = [(f"x{chosen.getrandbits(48):012x}.{APEX}", "A", False) for _ in range(400_000)]
    mixed = [
        (mixed_case(name, chosen), kind, False)
        for name, kind in (chosen.choice(questions) for _ in range(400_000))
    ]
    return {
        "mix": _mix(questions, unknown, mixed, chosen),
        "repeated names": repeated,
        "80 % repeated, 20 % NXDOMAIN": [
            unknown[i] if i % 5 == 0 else question for i, question in enumerate(repeated)
        ],
        "random NXDOMAIN": unknown,
        "random case (0x20)": mixed,
        "cookies": [(name, kind, True) for name, kind, _ in repeated],
    }


def _mix(questions, unknown, mixed, chosen):
    """40 % plain, 30 % with cookies, 15 % random case, 15 % random missing names."""
    makers = (
        lambda i: (*chosen.choice(questions), False),
        lambda i: (*chosen.choice(questions), True),
        lambda i: mixed[i],
        lambda i: unknown[i],
    )
    return [chosen.choices(makers, (40, 30, 15, 15))[0](i) for i in range(400_000)]


def write_queries(file, questions, place):
    """The queries as dnsperf reads them with -B, with cookies that this server has given out."""
    wanted = range(COOKIES) if any(with_cookie for _, _, with_cookie in questions) else ()
    cookies = [cookie(place, number.to_bytes(8, "big")) for number in wanted]
    for number, (name, kind, with_cookie) in enumerate(questions):
        body = wire(name) + struct.pack("!HH", dns.rdatatype.from_text(kind), 1)
        if with_cookie:
            option = cookies[number % COOKIES]
            body += struct.pack("!BHHIHHH", 0, 41, 1232, 0, 4 + len(option), 10, len(option)) + option
        query = struct.pack("!6H", 0, 0, 1, 0, 0, with_cookie) + body
        file.write(struct.pack("!H", len(query)) + query)
    file.flush()


def cookie(place, client_cookie):
    """Client and server cookie as the server says; the client's alone from a server without cookies."""
    option = struct.pack("!HH", 10, 8) + client_cookie
    query = struct.pack("!6H", 1, 0, 1, 0, 0, 1) + wire(APEX) + struct.pack("!HH", 6, 1)
    query += struct.pack("!BHHIH", 0, 41, 1232, 0, len(option)) + option
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.settimeout(5)
        client.connect((place.host, place.port))
        client.send(query)
        reply = client.recv(4096)
    at = reply.find(client_cookie)
    return reply[at : at + int.from_bytes(reply[at - 2 : at], "big")] if at > 0 else client_cookie


def serve(text, fd, tcp):
    """What the child does: our server, alone in its process, until SIGTERM."""
    table = Table()
    table.apply(changes_of(read_zone(APEX, text)))
    if not tcp:
        stop = threading.Event()
        signal.signal(signal.SIGTERM, lambda *_: stop.set())
        memory = memoryview(bytearray(memory_octets(1)))
        rates = Rates(RATE, memory, loopback_exempt=False)
        serve_udp(socket.socket(fileno=fd), table, NoCounters(), stop, DnsSettings(), rates)
        return
    import uvloop

    async def main():
        stop = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
        await serve_tcp(socket.socket(fileno=fd), table, NoCounters(), stop)

    uvloop.run(main())


@contextmanager
def ours(script, text, *, tcp=False):
    """Our server on the server's core; yields its place."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM if tcp else socket.SOCK_DGRAM) as sock:
        sock.bind(("127.0.0.1", 0))
        if tcp:
            sock.listen(100)
        port, fd = sock.getsockname()[1], sock.fileno()
        with tempfile.NamedTemporaryFile("w", suffix=".zone") as file:
            file.write(text)
            file.flush()
            command = ["taskset", "-c", SERVER_CORE, sys.executable, script, "--serve", file.name, str(fd)]
            process = subprocess.Popen(command, pass_fds=(fd,), preexec_fn=end_with_parent)
            try:
                dig(port, tcp=tcp)
                yield Place("127.0.0.1", port, process.pid)
            finally:
                process.send_signal(signal.SIGTERM)
                process.wait(10)


def dig(port, *, tcp):
    """Wait until the server answers."""
    flags = ["+tcp"] if tcp else []
    subprocess.run(
        ["dig", "@127.0.0.1", "-p", str(port), "+tries=20", "+time=1", *flags, APEX, "SOA"],
        check=True,
        stdout=subprocess.DEVNULL,
    )


@contextmanager
def peer(name, text) -> Iterator[Place]:
    """Another server on the server's core."""
    with (
        tempfile.TemporaryDirectory() as folder,
        peers.started(
            name, Path(folder), {APEX: text}, prefix=("taskset", "-c", SERVER_CORE), rate=RATE
        ) as started,
    ):
        yield Place(started.host, started.port, started.pid)


def cpu_seconds(pid):
    """User and system time of a process and its descendants so far."""
    total, todo = 0, [pid]
    while todo:
        process = Path(f"/proc/{todo.pop()}")
        fields = (process / "stat").read_text().rpartition(")")[2].split()
        total += int(fields[11]) + int(fields[12])
        for children in process.glob("task/*/children"):
            todo += map(int, children.read_text().split())
    return total / _TICKS


def dnsperf(place, file, *flags, seconds=RUN_SECONDS, nice=False):
    """A running dnsperf on the client's core; a nice one lets others before it."""
    command = [
        *(("nice",) if nice else ()),
        "taskset",
        "-c",
        CLIENT_CORE,
        "dnsperf",
        "-s",
        place.host,
        "-p",
        str(place.port),
        "-B",
    ]
    command += ["-d", file, "-c", "10", "-q", "100", "-T", "1", "-l", str(seconds), *flags]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, preexec_fn=end_with_parent)


def outcome(process):
    """(answers, answers per second) of a dnsperf."""
    output = process.communicate()[0]
    return (
        int(re.search(r"Queries completed:\s+(\d+)", output)[1]),
        float(re.search(r"Queries per second:\s+([\d.]+)", output)[1]),
    )


def measure(place, questions_file, *, tcp=False):
    """(CPU microseconds per answer, answers per second) under dnsperf for one run."""
    before = cpu_seconds(place.pid)
    answers, rate = outcome(dnsperf(place, questions_file, *(("-m", "tcp") if tcp else ())))
    return (cpu_seconds(place.pid) - before) / answers * 1e6, rate


def compare(script, load, text, questions, *, tcp=False):
    """Runs of all servers that are installed in turn; prints medians and how many times cheaper we are."""
    only = [word.removeprefix("--only=") for word in sys.argv if word.startswith("--only=")]
    names = [name for name in only or peers.PEERS if peers.is_installed(name)]
    with ExitStack() as stack:
        places = {"ours": stack.enter_context(ours(script, text, tcp=tcp))}
        places |= {name: stack.enter_context(peer(name, text)) for name in names}
        files = {}
        for who, place in places.items():
            files[who] = stack.enter_context(tempfile.NamedTemporaryFile(suffix=".queries"))
            write_queries(files[who], questions, place)
        runs = [
            {who: measure(place, files[who].name, tcp=tcp) for who, place in places.items()}
            for _ in range(1 + RUNS)
        ][1:]  # the first fills caches
    cost = {who: median(run[who][0] for run in runs) for who in places}
    rate = {who: median(run[who][1] for run in runs) for who in places}
    columns = [f"{who} {cost[who]:.2f} us {rate[who] / 1000:.0f}k/s" for who in places]
    ratios = [f"{cost[who] / cost['ours']:.2f} x {who}" for who in names]
    print(f"{load:30} {'   '.join(columns)}   |   {'  '.join(ratios)}", flush=True)
