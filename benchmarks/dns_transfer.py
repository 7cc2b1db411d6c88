"""A whole zone by AXFR: time and CPU time beside NSD and Knot, which got the zone from us.

    PYTHONPATH=src:. python benchmarks/dns_transfer.py [records, default 100000]

The client reads and throws away. CPU time is the server's process tree's, from one transfer to the next.
"""

import socket
import struct
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import dns.message
from processes import processor_seconds

from benchmarks.dns_start import fill
from edgestead.testing.server import EdgeServer
from tests.dns.secondaries import secondaries

APEX = "bench0.test."
RUNS = 5
SETTLE_SECONDS = 3.0


def transfer(host, port):
    """(octets, messages) of one AXFR."""
    query = dns.message.make_query(APEX, "AXFR").to_wire()
    octets = messages = 0
    with socket.create_connection((host, port), timeout=60) as sock, sock.makefile("rb") as stream:
        sock.sendall(struct.pack("!H", len(query)) + query)
        sock.shutdown(socket.SHUT_WR)
        while head := stream.read(2):
            octets += len(stream.read(int.from_bytes(head, "big")))
            messages += 1
    return octets, messages


def tree(pid):
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *(one for child in children for one in tree(int(child)))]


def measure(label, pids, host, port):
    times, cpus = [], []
    for _ in range(RUNS):
        before, began = sum(map(processor_seconds, pids)), time.perf_counter()
        octets, messages = transfer(host, port)
        times.append(time.perf_counter() - began)
        cpus.append(sum(map(processor_seconds, pids)) - before)
    print(
        f"{label:5} {median(times) * 1000:7.0f} ms, CPU {sum(cpus) / RUNS * 1000:6.0f} ms,"
        f" {octets / 2**20:.1f} MiB in {messages} messages"
    )


def main(records=100_000):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        fill(folder / "data", records, 1)
        server = EdgeServer(folder / "data", "--transfer-to", "127.0.0.0/8").start()
        try:
            host, _, port = server.ready["dns"].rpartition(":")
            print(f"AXFR of {records} records, medians of {RUNS}")
            measure("ours", [server.children()["dns-tcp"]], host, int(port))
            with secondaries(folder, int(port), [APEX]) as followers:
                time.sleep(SETTLE_SECONDS)
                for follower in followers:
                    measure(follower.kind, tree(follower.process.pid), follower.host, follower.port)
        finally:
            server.stop()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
