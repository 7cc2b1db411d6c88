"""From POST to the first UDP answer that shows the record, beside NSD's rewrite and reload of the same zone.

    PYTHONPATH=src:. python benchmarks/visible.py [names in the zone, default 10000]

Ours: the clock starts before the POST and stops when a UDP query, sent after the 200, has its answer; an
answer without the record is counted as a miss, and there must be none. NSD: the clock starts before the zone
file is written anew, SIGHUP makes NSD load it, and queries are sent until one shows the record.
Goal: at one client the median is at most a tenth of NSD's.
"""

import http.client
import json
import os
import signal
import socket
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median, quantiles
from urllib.parse import urlsplit

import dns.message
import dns.query

from edgestead.testing.server import EdgeServer
from tests.dns import peers

APEX = "visible.test"
CLIENTS = 32
CHANGES_ALONE = 200
CHANGES_EACH = 30
RELOADS = 15
_ANSWER_SECONDS_MAX = 10.0


class Client:
    """One keep-alive connection to the API and one UDP socket."""

    def __init__(self, server: EdgeServer, zone_id: str) -> None:
        self._token = server.ready["api_token"]
        base = urlsplit(server.ready["api_base"])
        self._path = f"{base.path}/zones/{zone_id}/dns_records"
        self._http = http.client.HTTPConnection(base.netloc, timeout=30)
        host, _, port = server.ready["dns"].rpartition(":")
        self._udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._udp.settimeout(5)
        self._udp.connect((host, int(port)))

    def post(self, name: str) -> None:
        body = json.dumps({"type": "A", "name": f"{name}.{APEX}", "content": "192.0.2.1", "ttl": 300})
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}
        self._http.request("POST", self._path, body, headers)
        answer = self._http.getresponse()
        text = answer.read()
        assert answer.status == 200, text

    def shows(self, name: str) -> bool:
        self._udp.send(dns.message.make_query(f"{name}.{APEX}", "A").to_wire())
        return int.from_bytes(self._udp.recv(4096)[6:8], "big") == 1

    def change(self, name: str) -> tuple[float, bool]:
        """Milliseconds until the record is answered, and whether the first answer showed it."""
        start = time.perf_counter()
        self.post(name)
        shown = self.shows(name)
        return (time.perf_counter() - start) * 1000, shown


def ours(server: EdgeServer, zone_id: str, clients: int, changes: int) -> list[float]:
    def run(number: int) -> list[tuple[float, bool]]:
        client = Client(server, zone_id)
        return [client.change(f"new-{clients}-{number}-{i}") for i in range(changes)]

    with ThreadPoolExecutor(clients) as pool:
        results = [one for many in pool.map(run, range(clients)) for one in many]
    misses = sum(not shown for _, shown in results)
    assert misses == 0, f"{misses} answers came without the record"
    return [took_ms for took_ms, _ in results]


def fill(server: EdgeServer, zone_id: str, names: int) -> None:
    def run(number: int) -> None:
        client = Client(server, zone_id)
        for i in range(number, names, CLIENTS):
            client.post(f"old-{i}")

    with ThreadPoolExecutor(CLIENTS) as pool:
        list(pool.map(run, range(CLIENTS)))


def zone_text(names: int, serial: int) -> str:
    lines = [f"$ORIGIN {APEX}.", f"@ 3600 IN SOA ns. host. {serial} 3600 600 86400 300", "@ 3600 IN NS ns."]
    lines += [f"old-{i} 300 IN A 192.0.2.1" for i in range(names)]
    lines += [f"new-{i} 300 IN A 192.0.2.1" for i in range(serial)]
    return "\n".join(lines) + "\n"


def nsd(folder: Path, names: int) -> list[float]:
    times_ms = []
    with peers.started("NSD", folder, {APEX: zone_text(names, 1)}) as peer:
        for serial in range(2, 2 + RELOADS):
            text = zone_text(names, serial)
            query = dns.message.make_query(f"new-{serial - 1}.{APEX}", "A")
            start = time.perf_counter()
            fresh = folder / "fresh"
            fresh.write_text(text)
            fresh.replace(folder / "0.zone")
            os.kill(peer.pid, signal.SIGHUP)
            while not dns.query.udp(query, peer.host, port=peer.port, timeout=5).answer:
                assert time.perf_counter() - start < _ANSWER_SECONDS_MAX, "NSD did not load the zone"
            times_ms.append((time.perf_counter() - start) * 1000)
            time.sleep(1.1)  # NSD tells a changed file by whole seconds of its time stamp
    return times_ms


def show(label: str, times_ms: list[float], peer_ms: float) -> None:
    p99 = quantiles(times_ms, n=100, method="inclusive")[98]
    middle = median(times_ms)
    print(f"{label:<18} p50 {middle:8.2f} ms   p99 {p99:8.2f} ms   NSD/ours {peer_ms / middle:6.1f}")


def main(names: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        nsd_folder = Path(folder, "nsd")
        nsd_folder.mkdir()
        reload_ms = nsd(nsd_folder, names)
        server = EdgeServer(Path(folder, "data"), "--profile", "clients").start()
        try:
            zone_id = server.make_zone(APEX)
            fill(server, zone_id, names)
            alone = ours(server, zone_id, 1, CHANGES_ALONE)
            together = ours(server, zone_id, CLIENTS, CHANGES_EACH)
        finally:
            server.close()
    print(f"{names} names in the zone")
    show("NSD reload", reload_ms, median(reload_ms))
    show("ours, 1 client", alone, median(reload_ms))
    show(f"ours, {CLIENTS} clients", together, median(reload_ms))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000)
