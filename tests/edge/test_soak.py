"""Load with everything on: TLS, HTTP/2 both ways, gRPC, compression, rules, packed bodies, the access log.

Each client checks what it gets, so that nobody has somebody else's answer; with `--long` it takes an hour,
after which no process may have grown.
"""

import gzip
import http.client
import json
import os
import random
import shutil
import subprocess
import threading
import time
import zlib
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC, datetime

import brotli
import grpc
import pytest
import zstandard

from edgestead.cli.server.authority import Authority
from tests.edge.conftest import Site
from tests.edge.origin import loopback
from tests.edge.test_grpc import Service
from tests.edge.test_life import GROWTH_KIB_MAX, resident_kib
from tests.edge.tls import client_context, put

SECONDS = 8
SOAK_SECONDS = 3_600
WORKERS = 2
# Growth shows by hours and answers, not by rate: an hour at full rate would want a machine of its own.
KINDS = {"plain", "tls", "http2", "grpc"}
RESTS_SECONDS = {"plain": 0.2, "tls": 0.2, "http2": 4, "grpc": 0.2}
UNPACK = {
    "gzip": lambda data: zlib.decompress(data, 31),
    "br": brotli.decompress,
    "zstd": lambda data: zstandard.ZstdDecompressor().decompressobj().decompress(data),
    None: lambda data: data,
}


def text(number):
    return b"".join(b"line %d of page %d\n" % (line, number) for line in range(number % 400 + 20))


def pages(head, body, connection):
    """A page by its number; a body's length where there is one."""
    path = head.split(b" ", 2)[1]
    content = text(int(path[1:])) if head.startswith(b"GET /") else b"%d" % len(body)
    return b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: %d\r\n\r\n%b" % (
        len(content),
        content,
    )


class Load:
    """Clients in threads. `wrong` is what none of them may see, `asked` how much each kind did."""

    def __init__(self, rests):
        self.stop, self.wrong, self.asked = threading.Event(), [], {}
        self._rests = rests
        self._threads, self._lock = [], threading.Lock()

    def start(self, kind, step, count):
        for number in range(count):
            thread = threading.Thread(target=self._run, args=(kind, step, random.Random(number)))
            self._threads.append(thread)
            thread.start()

    def _run(self, kind, step, chance):
        while True:
            try:
                done = step(chance)
            except (OSError, http.client.HTTPException) as error:
                done, error_said = 0, repr(error)
                with self._lock:
                    self.wrong.append((kind, error_said))
            except Exception as error:
                done = 0
                with self._lock:
                    self.wrong.append((kind, repr(error)))
            with self._lock:
                self.asked[kind] = self.asked.get(kind, 0) + done
            if len(self.wrong) > 20 or self.stop.wait(self._rests.get(kind, 0)):
                return

    def leave(self):
        self.stop.set()
        for thread in self._threads:
            thread.join(600)


@pytest.fixture
def site(tmp_path):
    """A server with everything on, and what its certificates rest on."""
    authority, tls_dir = Authority.new(datetime.now(UTC)), tmp_path / "tls"
    tls_dir.mkdir()
    put(authority, tls_dir, "_.edge.example", "*.edge.example")
    put(authority, tls_dir, "_.calls.edge.example", "*.calls.edge.example")
    made = Site(
        tmp_path,
        *("--edge-workers", str(WORKERS)),
        *("--https", f"{loopback(99)}:0", "--tls-dir", str(tls_dir)),
        *("--access-log", str(tmp_path / "access.log")),
    )
    made.authority, made.log = authority, tmp_path / "access.log"
    made.set("http2", "on")
    made.set("waf_packed_bodies", "unpack")
    rules = [
        {"action": "block", "expression": 'http.request.uri.path eq "/blocked"'},
        {"action": "log", "expression": 'http.user_agent contains "curl"'},
    ]
    path = f"/zones/{made.zone_id}/rulesets/phases/http_request_firewall_custom/entrypoint"
    assert made.server.call("PUT", path, {"rules": rules}).status == 200
    yield made
    made.close()


def plain_pages(site, host):
    """HTTP/1.1, each with another coding; some are blocked, some send packed bodies."""

    def step(chance):
        connection, done = http.client.HTTPConnection(site.http, timeout=300), 0
        try:
            for _ in range(chance.randrange(1, 30)):
                number, coding = chance.randrange(1_000), chance.choice(("gzip", "br", "zstd", "identity"))
                said = {"Host": host, "Accept-Encoding": coding}
                if chance.random() < 0.1:
                    connection.request("GET", "/blocked", headers=said)
                    answer = connection.getresponse()
                    answer.read()
                    assert answer.status == 403
                elif chance.random() < 0.2:
                    body = gzip.compress(b"a=%d" % number)
                    said |= {"Content-Encoding": "gzip", "Content-Type": "application/x-www-form-urlencoded"}
                    connection.request("POST", "/", body, said)
                    answer = connection.getresponse()
                    assert (answer.status, answer.read()) == (200, b"%d" % len(body))
                else:
                    connection.request("GET", f"/{number}", headers=said)
                    answer = connection.getresponse()
                    assert answer.headers["Content-Encoding"] == (None if coding == "identity" else coding)
                    assert UNPACK[answer.headers["Content-Encoding"]](answer.read()) == text(number)
                done += 1
        finally:
            connection.close()
        return done

    return step


def tls_pages(site, host):
    """A handshake each, over HTTP/1.1."""
    ip, _, port = site.server.ready["https"].rpartition(":")

    def step(chance):
        connection = http.client.HTTPSConnection(ip, int(port), timeout=300, context=Named(site, host))
        number = chance.randrange(1_000)
        connection.request("GET", f"/{number}", headers={"Host": host})
        content = connection.getresponse().read()
        connection.close()
        assert content == text(number)
        return 1

    return step


def Named(site, host):
    context = client_context(site.authority)
    wrap = context.wrap_socket
    context.wrap_socket = lambda plain, server_hostname: wrap(plain, server_hostname=host)
    return context


def http2_pages(site, host):
    """h2load, a hundred streams at a time."""
    address = site.server.ready["https"]
    port = address.rpartition(":")[2]

    def step(chance):
        command = ["h2load", "-n2000", "-c4", "-m25", "-t1", f"--connect-to={address}"]
        command += ["-H", f"accept-encoding: {chance.choice(('gzip', 'br', 'identity'))}"]
        done = subprocess.run(
            [*command, f"https://{host}:{port}/{chance.randrange(1_000)}"], capture_output=True, text=True
        )
        counts = done.stdout[done.stdout.find("requests:") :][:300]  # with statuses by class
        assert "2000 succeeded, 0 failed, 0 errored, 0 timeout" in counts, counts
        return 2_000

    return step


def calls(site, host):
    """gRPC of several kinds; each reader has its own words back."""
    options = (
        ("grpc.ssl_target_name_override", host),
        ("grpc.default_authority", host),
        ("grpc.use_local_subchannel_pool", 1),
    )
    trusted = grpc.ssl_channel_credentials(site.authority.certificate_pem)

    def step(chance):
        with grpc.secure_channel(site.server.ready["https"], trusted, options) as channel:
            for _ in range(chance.randrange(1, 100)):
                word = chance.randbytes(chance.choice((10, 5_000, 200_000)))
                assert channel.unary_unary("/test/Echo")(word, timeout=300) == word
                heard = channel.stream_stream("/test/Talk")(iter([word[:50]] * 3), timeout=300)
                assert list(heard) == [b"you said " + word[:50]] * 3
        return 2

    return step


@pytest.mark.skipif(not shutil.which("h2load"), reason="NOT TESTED: h2load (nghttp2-client) is not installed")
@pytest.mark.parametrize("seconds", [SECONDS, pytest.param(SOAK_SECONDS, marks=pytest.mark.long)])
def test_everything_at_once_gives_everybody_the_right_answer_and_leaves_nothing_behind(site, seconds):
    host, origin = site.origin(pages)
    origin.keeps = False
    load = Load(RESTS_SECONDS if seconds == SOAK_SECONDS else {})
    with ExitStack() as stack:
        server = grpc.server(ThreadPoolExecutor(8), (Service(),))
        address = loopback(41)
        server.add_insecure_port(f"{address}:{site.first.port}")
        server.start()
        stack.callback(lambda: server.stop(None).wait(60))
        talks = in_http2(site, address)
        load.start("plain", plain_pages(site, host), 4)
        load.start("tls", tls_pages(site, host), 2)
        load.start("http2", http2_pages(site, host), 2)
        load.start("grpc", calls(site, talks), 3)
        began, first, told = time.monotonic(), None, 0
        try:
            # Where nobody ran for a while, not every kind has asked: it goes on until each has.
            while not load.wrong and (
                (passed := time.monotonic() - began) < seconds or first is None or load.asked.keys() < KINDS
            ):
                time.sleep(min(10, seconds / 4))
                pids = [site.server.children()[f"edge-{number}"] for number in range(WORKERS)]
                sizes = [resident_kib(pid) for pid in pids]
                if passed // 300 > told:
                    told = passed // 300
                    print(f"{passed:.0f} s: {load.asked}, KiB {sizes}")  # noqa: T201 - for who waits
                if first is None and passed > seconds / 6:
                    first = (pids, sizes)
        finally:
            load.leave()
    print(f"{load.asked}, KiB {first and first[1]} -> {sizes}")  # noqa: T201 - for the docs
    assert load.wrong == []
    assert all(load.asked.get(kind) for kind in KINDS)
    assert pids == first[0], "a worker died"
    if seconds == SOAK_SECONDS:
        assert max(after - before for before, after in zip(first[1], sizes, strict=True)) < GROWTH_KIB_MAX
    site.server.wait_until(lambda: all(len(os.listdir(f"/proc/{pid}/fd")) < 80 for pid in pids), 180)
    site.server.wait_until(lambda: site.log.exists() and site.log.read_bytes().endswith(b"\n"), 180)
    statuses = {json.loads(line)["status"] for line in site.log.read_bytes().splitlines()[-500:]}
    assert statuses <= {200, 403, 499}


def in_http2(site, address):
    """A name of a zone of its own, whose origins are asked in HTTP/2."""
    zone_id, host = site.server.make_zone("calls.edge.example"), "www.calls.edge.example"
    for setting in ("http2", "origin_h2c"):
        answer = site.server.call("PATCH", f"/zones/{zone_id}/settings/{setting}", {"value": "on"})
        assert answer.status == 200, answer
    assert site.server.make_record(zone_id, "A", host, address, proxied=True).status == 200
    return host
