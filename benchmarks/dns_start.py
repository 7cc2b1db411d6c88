"""A DNS worker's start and memory with many records: exec to first answer, and RSS for each record.

    PYTHONPATH=src:. python benchmarks/dns_start.py [records, default 100000] [zones, default 1]

A server gets a data folder with so many records. Its UDP worker is killed several times; the clock runs from
the moment at which the next one exists to its answer to a query that waits in the socket meanwhile; beside it
stands the CPU time that it took, which does not depend on what else the machine does. Cold is without the
file that the last process left. RSS is the worker's, less that of a worker without records; peak is what it
ever had.
Goals at 100,000 records: at most 0.5 s from a warm snapshot, at most 300 octets of RSS a record.
"""

import os
import signal
import socket
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import dns.message
from processes import processor_seconds

from edgestead.model import names
from edgestead.model.records import TYPES
from edgestead.model.served import KIND_NAME, KIND_ZONE, ServedName, ServedRRset, encode
from edgestead.sqlite.control import SqliteControlStore
from edgestead.tables import schema
from edgestead.testing.server import EdgeServer, wait_until
from edgestead.usecases.serving.rendering import Renderer

STARTS = 7
SETTLE_SECONDS = 1.0
EMITS_PER_WRITE = 5_000
# The mix of benchmarks/dns_peer.py: 45 % A, 20 % AAAA, 15 % CNAME, 7 % MX, 8 % TXT, 5 % SRV.
MIX = ["A"] * 9 + ["AAAA"] * 4 + ["CNAME"] * 3 + ["MX", "TXT", "SRV", "A"]


def rdata(kind, number, apex):
    mail = names.wire_from_text(f"mail.{apex}")
    text = f"v=spf1 include:_spf{number}.{apex} -all".encode()
    return {
        "A": (0x0A000000 + number).to_bytes(4, "big"),
        "AAAA": (0x20010DB8 << 96 | number).to_bytes(16, "big"),
        "CNAME": mail,
        "MX": b"\0\x0a" + mail,
        "TXT": bytes((len(text),)) + text,
        "SRV": b"\0\0\0\5\x13\xc4" + mail,
    }[kind]


def documents(records, zones):
    """(scope, kind, key, document) of every name and zone."""
    renderer = Renderer(["ns1.example.net", "ns2.example.net"], [])
    for number in range(zones):
        text = f"bench{number}.test"
        apex = names.wire_from_text(text)
        scope = f"{number:032x}"
        for i in range(records // zones):
            kind = MIX[i % len(MIX)]
            owner = names.wire_from_text(f"n{i:06d}.{text}")
            rrset = ServedRRset(TYPES[kind].number, 300, (rdata(kind, i, text),))
            yield scope, KIND_NAME, owner.hex(), encode(ServedName(apex, owner, (rrset,)))
        yield scope, KIND_NAME, apex.hex(), encode(renderer.name(apex, apex, ()))
        yield scope, KIND_ZONE, "", encode(renderer.zone(apex, 1))


def fill(folder, records, zones):
    folder.mkdir(mode=0o700)
    store = SqliteControlStore(folder / "control.db", schema.MIGRATIONS)
    rows = list(documents(records, zones))
    for start in range(0, len(rows), EMITS_PER_WRITE):
        part = rows[start : start + EMITS_PER_WRITE]
        store.write(lambda tx, part=part: [tx.emit(*row) for row in part]).result(60)
    store.close()


def memory(pid, field="VmRSS"):
    """Octets."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024
    raise AssertionError(field)


def start_seconds(server, query):
    """Kill the worker; from its successor's exec to an answer, and its CPU time till then."""
    before = server.children()["dns-0"]
    host, _, port = server.ready["dns"].rpartition(":")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.connect((host, int(port)))
        sock.settimeout(30)
        os.kill(before, signal.SIGKILL)
        while server.children().get("dns-0", before) == before:
            time.sleep(0.0005)
        began = time.perf_counter()
        sock.send(query)
        reply = sock.recv(4096)
        seconds = time.perf_counter() - began
    assert (reply[3] & 15, reply[7]) == (0, 1), "the first answer was none"
    return seconds, processor_seconds(server.children()["dns-0"])


def starts(server, query, *, warm):
    """Medians of (seconds, CPU seconds)."""
    file = server.data_dir / "dns" / "served"
    wait_until(file.exists, 60)
    found = []
    for _ in range(STARTS):
        if not warm:
            file.unlink(missing_ok=True)
        found.append(start_seconds(server, query))
        time.sleep(SETTLE_SECONDS)  # a short life makes the supervisor wait longer, but never this long
    return tuple(map(median, zip(*found, strict=True)))


def measure(folder, records, zones):
    """Prints the starts; returns RSS and its peak after a warm one."""
    data = folder / f"data{records}"
    if records:
        fill(data, records, zones)
    server = EdgeServer(data)
    server.start()
    try:
        if not records:
            server.make_zone("bench0.test")
            server.make_record(server.call("GET", "/zones").result[0]["id"], "A", "n000000", "192.0.2.1")
        query = dns.message.make_query("n000000.bench0.test.", "A").to_wire()
        time.sleep(SETTLE_SECONDS)
        seconds, cpu = starts(server, query, warm=True)
        print(f"{records:7} records, warm: exec to first answer {seconds:.3f} s, CPU {cpu:.3f} s")
        pid = server.children()["dns-0"]
        found = memory(pid), memory(pid, "VmHWM")
        seconds, cpu = starts(server, query, warm=False)
        print(f"{records:7} records, cold: exec to first answer {seconds:.3f} s, CPU {cpu:.3f} s")
        return found
    finally:
        server.stop()


def main(records=100_000, zones=1):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        print(f"{records} records in {zones} zones; medians of {STARTS} starts")
        empty_rss, empty_peak = measure(folder, 0, 1)
        rss, peak = measure(folder, records, zones)
    print(f"RSS:  {rss / 2**20:.1f} MiB, {(rss - empty_rss) / records:.0f} octets a record")
    print(f"peak: {peak / 2**20:.1f} MiB, {(peak - empty_peak) / records:.0f} octets a record")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
