"""What the DNS benchmarks share: the zone, the questions, both servers on one core, CPU time per answer.

CPU time (user and system, of the server's processes) divided by answers is compared, because it does not
depend on the client and hardly on what else the machine does; the queries per second that were seen are
printed beside it.
"""

import asyncio
import os
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from edgestead.dns.counters import NoCounters
from edgestead.dns.table import Table
from edgestead.dns.tcp import serve_tcp
from edgestead.dns.udp import serve_udp
from tests.dns import peers
from tests.dns.serving import changes_of, read_zone

APEX = "bench.test."
NAMES = 10_000
RUNS = 3
RUN_SECONDS = 3
SERVER_CORE, CLIENT_CORE = "0", "1"
_TICKS = os.sysconf("SC_CLK_TCK")


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
    """Query files by name: lists of (name, type)."""
    chosen = random.Random(2)
    repeated = [chosen.choice(questions) for _ in range(100_000)]
    unknown = [(f"x{chosen.getrandbits(48):012x}.{APEX}", "A") for _ in range(400_000)]
    return {
        "repeated names": repeated,
        "80 % repeated, 20 % NXDOMAIN": [
            unknown[i] if i % 5 == 0 else question for i, question in enumerate(repeated)
        ],
        "random NXDOMAIN": unknown,
        "random case (0x20)": [
            (mixed_case(name, chosen), kind)
            for name, kind in (chosen.choice(questions) for _ in range(400_000))
        ],
    }


def serve(text, fd, tcp):
    """What the child does: our server, alone in its process, until SIGTERM."""
    table = Table()
    table.apply(changes_of(read_zone(APEX, text)))
    if not tcp:
        stop = threading.Event()
        signal.signal(signal.SIGTERM, lambda *_: stop.set())
        serve_udp(socket.socket(fileno=fd), table, NoCounters(), stop)
        return
    import uvloop

    async def main():
        stop = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
        await serve_tcp(socket.socket(fileno=fd), table, NoCounters(), stop)

    uvloop.run(main())


@contextmanager
def ours(script, text, *, tcp=False):
    """Our server on the server's core; yields (port, pid)."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM if tcp else socket.SOCK_DGRAM) as sock:
        sock.bind(("127.0.0.1", 0))
        if tcp:
            sock.listen(100)
        port, fd = sock.getsockname()[1], sock.fileno()
        with tempfile.NamedTemporaryFile("w", suffix=".zone") as file:
            file.write(text)
            file.flush()
            command = ["taskset", "-c", SERVER_CORE, sys.executable, script, "--serve", file.name, str(fd)]
            process = subprocess.Popen(command, pass_fds=(fd,))
            try:
                dig(port, tcp=tcp)
                yield port, process.pid
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
def peer(text):
    """NSD on the server's core; yields (port, pid)."""
    with (
        tempfile.TemporaryDirectory() as folder,
        peers.started("NSD", Path(folder), {APEX: text}, prefix=("taskset", "-c", SERVER_CORE)) as started,
    ):
        yield started


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


def measure(port, pid, questions_file, *, tcp=False):
    """(CPU microseconds per answer, answers per second) under dnsperf for one run."""
    flags = ["-m", "tcp"] if tcp else []
    before = cpu_seconds(pid)
    command = ["taskset", "-c", CLIENT_CORE, "dnsperf", "-s", "127.0.0.1", "-p", str(port)]
    command += ["-d", questions_file, "-c", "10", "-q", "100", "-T", "1", "-l", str(RUN_SECONDS), *flags]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    spent = cpu_seconds(pid) - before
    answers = int(re.search(r"Queries completed:\s+(\d+)", output)[1])
    rate = float(re.search(r"Queries per second:\s+([\d.]+)", output)[1])
    return spent / answers * 1e6, rate


def compare(script, load, text, questions, *, tcp=False):
    """Runs of both servers in turn; prints the medians and returns how many times cheaper than NSD we are."""
    with tempfile.NamedTemporaryFile("w", suffix=".queries") as file:
        file.writelines(f"{name} {kind}\n" for name, kind in questions)
        file.flush()
        figures = {"NSD": [], "ours": []}
        with peer(text) as theirs, ours(script, text, tcp=tcp) as we:
            for _ in range(RUNS):
                figures["NSD"].append(measure(*theirs, file.name, tcp=tcp))
                figures["ours"].append(measure(*we, file.name, tcp=tcp))
    cost = {who: median(us for us, _ in runs) for who, runs in figures.items()}
    rate = {who: median(rate for _, rate in runs) for who, runs in figures.items()}
    ratio = cost["NSD"] / cost["ours"]
    print(
        f"{load:32} NSD {cost['NSD']:5.2f} us {rate['NSD']:8.0f}/s   ours {cost['ours']:5.2f} us"
        f" {rate['ours']:8.0f}/s   ratio {ratio:4.2f}",
        flush=True,
    )
    return ratio
