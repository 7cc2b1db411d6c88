"""Do other requests wait while the largest key-value bodies pass?

    python benchmarks/kv_large.py [--seconds 5] [--rounds 3]

One connection asks for a zone's records, again and again, and the 99th percentile of its waiting is taken:
idle; while two clients put and get values of 25 MB; while one client, and while two, put bulks of 100 MB
(10,000 pairs of 10 KB). Clients share one core; the server may use both, as it does where it is installed.
Rounds alternate; medians, and the ratio to idle. The growth of the server's memory is printed too.
"""

import argparse
import http.client
import json
import multiprocessing
import os
import statistics
import tempfile
import time
from multiprocessing.synchronize import Event
from pathlib import Path
from urllib.parse import urlsplit

from edgestead.model.kv import VALUE_BYTES_MAX
from edgestead.testing.server import EdgeServer

CLIENT_CORE = 1
LOADS = {"one bulk": 1, "two bulks": 2, "two values": 2}  # and how many clients


class Client:
    def __init__(self, ready: dict[str, str]) -> None:
        self.base = urlsplit(ready["api_base"])
        self.headers = {"Authorization": f"Bearer {ready['api_token']}"}
        self.account = f"{self.base.path}/accounts/{ready['account_id']}"
        assert self.base.hostname is not None
        self.connection = http.client.HTTPConnection(self.base.hostname, self.base.port)

    def send(self, method: str, path: str, body: bytes | None = None) -> bytes:
        self.connection.request(method, path, body, self.headers)
        answer = self.connection.getresponse()
        content = answer.read()
        assert answer.status == 200, content
        return content


def load(ready: dict[str, str], what: str, path: str, number: int, ended: Event) -> None:
    os.sched_setaffinity(0, {CLIENT_CORE})
    os.nice(19)  # who measures does not wait for this one's turn on their core
    client = Client(ready)
    pairs = [{"key": f"{number}-{i}", "value": "x" * 10_000} for i in range(10_000)]
    body = bytes(VALUE_BYTES_MAX) if "values" in what else json.dumps(pairs).encode()
    while not ended.is_set():
        if "values" in what:
            client.send("PUT", f"{path}/values/large-{number}", body)
            client.send("GET", f"{path}/values/large-{number}")
        else:
            client.send("PUT", f"{path}/bulk", body)


def p99_ms(client: Client, path: str, seconds: float) -> float:
    times = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        began = time.perf_counter()
        client.send("GET", path)
        times.append((time.perf_counter() - began) * 1000)
    return statistics.quantiles(times, n=100)[98]


def p99_under_load(
    ready: dict[str, str], what: str, namespace: str, client: Client, path: str, seconds: float
) -> float:
    ended = multiprocessing.Event()
    loads = [
        multiprocessing.Process(target=load, args=(ready, what, namespace, number, ended))
        for number in range(LOADS[what])
    ]
    for process in loads:
        process.start()
    time.sleep(0.5)
    found = p99_ms(client, path, seconds)
    ended.set()
    for process in loads:
        process.join()
    return found


def rss_mb(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) / 1000


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        server = EdgeServer(Path(name, "data")).start()
        os.sched_setaffinity(0, {CLIENT_CORE})
        try:
            measure(server, options.seconds, options.rounds)
        finally:
            server.close()


def measure(server: EdgeServer, seconds: float, rounds: int) -> None:
    control = server.children()["control"]
    client = Client(server.ready)
    zone = json.loads(client.send("POST", f"{client.base.path}/zones", b'{"name":"bench.example"}'))
    path = f"{client.base.path}/zones/{zone['result']['id']}/dns_records"
    made = json.loads(client.send("POST", f"{client.account}/storage/kv/namespaces", b'{"title":"bench"}'))
    namespace = f"{client.account}/storage/kv/namespaces/{made['result']['id']}"
    p99_ms(client, path, 0.5)
    before_mb, found = rss_mb(control), {}
    for _ in range(rounds):
        found.setdefault("idle", []).append(p99_ms(client, path, seconds))
        for what in LOADS:
            under_load = p99_under_load(server.ready, what, namespace, client, path, seconds)
            found.setdefault(what, []).append(under_load)
    medians = {what: statistics.median(times) for what, times in found.items()}
    for what, median in medians.items():
        print(f"{what:10} p99 {median:6.2f} ms   {median / medians['idle']:.1f} times idle")
    print(f"memory     grew by {rss_mb(control) - before_mb:.1f} MB")


if __name__ == "__main__":
    main()
