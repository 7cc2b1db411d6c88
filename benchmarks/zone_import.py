"""Single writes while zone files are imported: from POST to the first DNS answer, alone and beside imports.

    PYTHONPATH=src:. python benchmarks/zone_import.py [records in a file, default 5000]

One client changes single records of one zone. Meanwhile another imports zone files, each into a zone of its
own, one after another without a pause. Then the same number of records is written one POST after the other,
as the peer of an import.
Goal: a p99 of at most 10 ms from POST to answer while an import runs.
"""

import http.client
import sys
import tempfile
import threading
import time
from pathlib import Path
from statistics import median, quantiles
from urllib.parse import urlsplit

from benchmarks.visible import APEX, Client
from edgestead.testing.server import EdgeServer

CHANGES = 400
IMPORTS_MIN = 2
SINGLES = 500
BOUNDARY = "zone-file"


def import_file(server: EdgeServer, zone_id: str, text: str) -> float:
    """Seconds that one import takes."""
    base = urlsplit(server.ready["api_base"])
    connection = http.client.HTTPConnection(base.netloc, timeout=120)
    body = (
        f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="file"\r\n\r\n{text}\r\n--{BOUNDARY}--\r\n'
    ).encode()
    headers = {
        "Authorization": f"Bearer {server.ready['api_token']}",
        "Content-Type": f"multipart/form-data; boundary={BOUNDARY}",
    }
    start = time.perf_counter()
    connection.request("POST", f"{base.path}/zones/{zone_id}/dns_records/import", body, headers)
    answer = connection.getresponse()
    said = answer.read()
    assert answer.status == 200, said
    connection.close()
    return time.perf_counter() - start


class Importer(threading.Thread):
    """Imports until it is told to stop, and at least IMPORTS_MIN times."""

    def __init__(self, server: EdgeServer, records: int) -> None:
        super().__init__()
        self._server = server
        self._text = "".join(f"host-{i} 300 IN A 192.0.2.{i % 250}\n" for i in range(records))
        self.ending = threading.Event()
        self.seconds: list[float] = []

    def run(self) -> None:
        while not self.ending.is_set() or len(self.seconds) < IMPORTS_MIN:
            zone_id = self._server.make_zone(f"import-{len(self.seconds)}.test")
            self.seconds.append(import_file(self._server, zone_id, self._text))


def changes(client: Client, label: str) -> list[float]:
    found = [client.change(f"{label}-{i}") for i in range(CHANGES)]
    assert all(shown for _, shown in found), "an answer came without the record"
    return [took_ms for took_ms, _ in found]


def show(label: str, times_ms: list[float]) -> None:
    p99 = quantiles(times_ms, n=100, method="inclusive")[98]
    print(f"{label:<24} p50 {median(times_ms):7.2f} ms   p99 {p99:7.2f} ms   max {max(times_ms):7.2f} ms")


def main(records: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        server = EdgeServer(Path(folder, "data"), "--profile", "clients").start()
        try:
            client = Client(server, server.make_zone(APEX))
            alone = changes(client, "alone")
            importer = Importer(server, records)
            importer.start()
            beside = changes(client, "beside")
            importer.ending.set()
            importer.join()
            start = time.perf_counter()
            for i in range(SINGLES):
                client.post(f"single-{i}")
            single_s = (time.perf_counter() - start) / SINGLES
        finally:
            server.close()
    show("alone", alone)
    show("while an import runs", beside)
    rate = records / median(importer.seconds)
    print(f"import of {records}: median {median(importer.seconds):.2f} s, {rate:,.0f} records/s,")
    print(f"{rate * single_s:.1f} times the rate of single POSTs on one connection")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5000)
