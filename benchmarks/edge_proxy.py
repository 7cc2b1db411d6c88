"""How fast is the edge proxy, against nginx and Caddy as proxies of the same origin?

    python benchmarks/edge_proxy.py [plain|tls|http2|stream] [--seconds 5] [--rounds 3]

plain   GET of 1 KiB over connections that are kept, one process each, on one core; p99 of both
tls     the same over TLS 1.3
http2   the same with ten connections of ten streams each (h2load)
stream  a download of 64 MiB

The proxy runs on one core; origin (nginx, a process of its own) and wrk (Debian's) share another. Caddy
(Debian's) has one thread for its Go (GOMAXPROCS=1); without it the others run alone, and a line says so.
The goals are shares of nginx's figure, Caddy stands beside it. Rounds of the sides alternate; medians are
printed, with the processor time of the proxy for each request: on a machine that does other things
meanwhile, the ratio of those is the steadier one. The p99 says something of a proxy only where proxy, origin
and wrk seldom waited for their cores: beside it stand the shares of the time in which each was ready and
another process ran. One such wait takes 3 to 5 ms, and all 32 requests that are under way have it
(docs/design/0015-edge.md). What rules cost is benchmarks/edge_rules.py.
"""

import argparse
import http.client
import os
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from edgestead.cli.parent import end_with_parent
from edgestead.cli.server.authority import Authority
from edgestead.server.places import private_place
from edgestead.testing.server import EdgeServer, wait_until

PROXY_CORE, LOAD_CORE = 0, 1
CONNECTIONS = 32
PAGE_BYTES = 1_024
BIG_BYTES = 64 << 20
HOST = "www.example.com"
HEADERS = (
    "User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0",
    "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
    "Accept-Language: en-US,en;q=0.5",
    "Cookie: session=0123456789abcdef; theme=dark",
)
NGINX = """
daemon off; worker_processes 1; pid {folder}/pid; error_log {folder}/errors;
events {{ worker_connections 4096; }}
http {{
  access_log off; keepalive_requests 100000000; client_max_body_size 0;
  client_body_temp_path {folder}/a; proxy_temp_path {folder}/b; fastcgi_temp_path {folder}/c;
  uwsgi_temp_path {folder}/d; scgi_temp_path {folder}/e;
  {servers}
}}
"""
ORIGIN = """
server {{
  listen {host}:{port};
  location / {{ default_type text/html; return 200 '{page}'; }}
  location /big {{ root {folder}; }}
  location /take {{ client_body_buffer_size 1m; proxy_pass http://{host}:{port}/; }}
}}
"""
PROXY = """
upstream origin {{ server {origin}; keepalive 256; }}
server {{
  listen {host}:{port}; listen {host}:{tls_port} ssl http2;
  ssl_certificate {certificate}; ssl_certificate_key {certificate}; ssl_protocols TLSv1.3;
  location / {{
    proxy_pass http://origin; proxy_http_version 1.1;
    proxy_set_header Connection ''; proxy_set_header Host $host;
    proxy_set_header X-Forwarded-For $remote_addr; proxy_set_header X-Forwarded-Proto $scheme;
    proxy_request_buffering off;
  }}
}}
"""
CADDY = """
{{
  admin off
  auto_https off
  default_sni {name}
  servers {{
    protocols h1 h2
  }}
}}
(proxy) {{
  bind {host}
  reverse_proxy {origin} {{
    transport http {{
      keepalive_idle_conns_per_host 256
    }}
  }}
}}
http://:{port} {{
  import proxy
}}
https://:{tls_port} {{
  import proxy
  tls {certificate} {certificate} {{
    protocols tls1.3
  }}
}}
"""
START_SECONDS_MAX = 30


class Side(NamedTuple):
    """A proxy under load: its process, and where it listens."""

    name: str
    pid: int
    plain: str
    tls: str


class Seen(NamedTuple):
    requests_per_second: float
    cpu_us: float
    p99_ms: float
    proxy_waited: float
    origin_waited: float
    wrk_waited: float


def main() -> None:
    arguments = _arguments()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        sides = stack.enter_context(_sides(folder))
        runs: dict[str, Callable[[], None]] = {
            "plain": lambda: _compare(sides, arguments, lambda side: f"http://{side.plain}/index.html?a=1"),
            "tls": lambda: _compare(sides, arguments, lambda side: f"https://{side.tls}/index.html?a=1"),
            "http2": lambda: _compare_http2(sides, arguments),
            "stream": lambda: _stream(sides, arguments),
        }
        for name in arguments.what or runs:
            print(f"\n{name}")
            runs[name]()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("what", nargs="*", choices=["plain", "tls", "http2", "stream", []])
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    return parser.parse_args()


class Sides(NamedTuple):
    nginx: Side
    edge: Side
    caddy: Side | None
    origin_pid: int

    @property
    def proxies(self) -> list[Side]:
        return [one for one in (self.nginx, self.edge, self.caddy) if one is not None]


@contextmanager
def _sides(folder: Path) -> Iterator[Sides]:
    origin_host, origin_port = private_place()
    certificate = folder / "tls" / "default.pem"  # wrk names no host
    folder.chmod(0o755)  # nginx reads as somebody else
    certificate.parent.mkdir()
    now = datetime.now(UTC)
    certificate.write_bytes(Authority.new(now).issue([HOST], now).pem)
    (folder / "big").write_bytes(os.urandom(1 << 20) * (BIG_BYTES >> 20))
    page = "x" * PAGE_BYTES
    with ExitStack() as stack:
        origin = ORIGIN.format(host=origin_host, port=origin_port, page=page, folder=folder)
        origin_pid = stack.enter_context(_nginx(folder / "origin", origin, LOAD_CORE))
        host, port = private_place()
        tls_port = private_place()[1]
        proxy = PROXY.format(
            host=host,
            port=port,
            tls_port=tls_port,
            origin=f"{origin_host}:{origin_port}",
            certificate=certificate,
        )
        nginx_pid = stack.enter_context(_nginx(folder / "proxy", proxy, PROXY_CORE))
        caddy = stack.enter_context(_caddy(folder / "caddy", f"{origin_host}:{origin_port}", certificate))
        server = _server(folder, origin_port, certificate.parent)
        stack.callback(server.close)
        zone_id = server.make_zone("example.com")
        assert server.make_record(zone_id, "A", HOST, origin_host, proxied=True).status == 200
        on = {"value": "on"}
        assert server.call("PATCH", f"/zones/{zone_id}/settings/http2", on).status == 200
        pid = server.children()["edge-0"]
        os.sched_setaffinity(pid, {PROXY_CORE})
        _wait_for_rest(pid)
        edge = Side("edge", pid, server.ready["http"], server.ready["https"])
        nginx = Side("nginx", nginx_pid, f"{host}:{port}", f"{host}:{tls_port}")
        yield Sides(nginx, edge, caddy, origin_pid)


def _server(folder: Path, origin_port: int, tls_dir: Path) -> EdgeServer:
    config = folder / "edge.toml"
    config.write_text("barrier-ms = 30000\n")
    host, port = private_place()
    return EdgeServer(
        folder / "data",
        *("--config", str(config), "--origin-port", str(origin_port)),
        *("--https", f"{host}:{port}", "--tls-dir", str(tls_dir)),
    ).start()


def _wait_for_rest(pid: int) -> None:
    """Until it works at nothing: a new server compiles the managed rules in a thread."""
    before = _cpu_seconds(pid)
    while (time.sleep(1.0), now := _cpu_seconds(pid))[1] - before > 0.05:
        before = now


@contextmanager
def _nginx(folder: Path, servers: str, core: int) -> Iterator[int]:
    """Yields the worker's pid."""
    folder.mkdir()
    config = folder / "config"
    config.write_text(NGINX.format(folder=folder, servers=servers))
    command = ["nginx", "-c", str(config), "-p", str(folder), "-e", str(folder / "errors")]
    process = subprocess.Popen(command, preexec_fn=end_with_parent)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    try:
        while not children.read_text().split():
            time.sleep(0.05)
        worker = int(children.read_text().split()[0])
        os.sched_setaffinity(worker, {core})
        yield worker
    finally:
        process.terminate()
        process.wait()


@contextmanager
def _caddy(folder: Path, origin: str, certificate: Path) -> Iterator[Side | None]:
    """None where it is not installed."""
    if shutil.which("caddy") is None:
        print("NOT MEASURED: caddy is not installed")
        yield None
        return
    folder.mkdir()
    host, port = private_place()
    tls_port = private_place()[1]
    config = folder / "config"
    config.write_text(
        CADDY.format(
            name=HOST, host=host, port=port, tls_port=tls_port, origin=origin, certificate=certificate
        )
    )
    command = ["taskset", "-c", str(PROXY_CORE), "caddy", "run", "--config", str(config)]
    environment = os.environ | {"HOME": str(folder), "GOMAXPROCS": "1"}
    with (folder / "said").open("wb") as said:
        process = subprocess.Popen(
            [*command, "--adapter", "caddyfile"],
            env=environment,
            stdout=said,
            stderr=said,
            preexec_fn=end_with_parent,
        )
    try:
        wait_until(lambda: _is_open(host, tls_port), START_SECONDS_MAX)
        yield Side("caddy", process.pid, f"{host}:{port}", f"{host}:{tls_port}")
    finally:
        process.terminate()
        process.wait()


def _is_open(host: str, port: int) -> bool:
    with suppress(OSError), socket.create_connection((host, port)):
        return True
    return False


def _compare(sides: Sides, arguments: argparse.Namespace, url: Callable[[Side], str]) -> None:
    seen: dict[str, list[Seen]] = {side.name: [] for side in sides.proxies}
    for _ in range(arguments.rounds):
        for side in sides.proxies:
            seen[side.name].append(_load(url(side), side.pid, sides.origin_pid, arguments.seconds))
    found = {name: _median(rows) for name, rows in seen.items()}
    for name, one in found.items():
        print(
            f"  {name:6}{one.requests_per_second:>10,.0f} requests/s  {one.cpu_us:6.1f} µs of CPU a request"
            f"  p99 {one.p99_ms:.2f} ms; waited for a core: proxy {one.proxy_waited:.1%},"
            f" origin {one.origin_waited:.1%}, wrk {one.wrk_waited:.1%} of the time"
        )
    print_ratios({name: (one.requests_per_second, one.cpu_us) for name, one in found.items()})


def _compare_http2(sides: Sides, arguments: argparse.Namespace) -> None:
    """(requests a second, CPU microseconds of each) of all, in turns."""
    seen: dict[str, list[tuple[float, float]]] = {side.name: [] for side in sides.proxies}
    for _ in range(arguments.rounds):
        for side in sides.proxies:
            seen[side.name].append(_load_http2(side, arguments.seconds))
    found = {name: _medians(rows) for name, rows in seen.items()}
    for name, (rate, cpu) in found.items():
        print(f"  {name:6}{rate:>10,.0f} requests/s  {cpu:6.1f} µs of CPU a request")
    print_ratios(found)


def _medians(rows: list[tuple[float, float]]) -> tuple[float, float]:
    rates, cpus = zip(*rows, strict=True)
    return statistics.median(rates), statistics.median(cpus)


def print_ratios(found: dict[str, tuple[float, float]]) -> None:
    """The edge's, of (each a second, CPU microseconds of each) by side."""
    rate, cpu = found["edge"]
    for name, (other_rate, other_cpu) in found.items():
        if name != "edge":
            print(f"  {rate / other_rate:.2f} x {name} by rate, {other_cpu / cpu:.2f} x {name} by CPU")


def _load_http2(side: Side, seconds: int) -> tuple[float, float]:
    port = side.tls.rpartition(":")[2]
    command = ["taskset", "-c", str(LOAD_CORE), "h2load", "-c10", "-m10", "-t1", f"-D{seconds}"]
    command += [f"--connect-to={side.tls}"]
    for line in HEADERS:
        command += ["-H", line]
    before = _cpu_seconds(side.pid)
    text = subprocess.run(
        [*command, f"https://{HOST}:{port}/index.html?a=1"], capture_output=True, text=True, check=True
    ).stdout
    assert "Application protocol: h2" in text, text
    count = int(_found(r" (\d+) succeeded, 0 failed, 0 errored", text))
    assert " 2xx, 0 3xx, 0 4xx, 0 5xx" in text, text  # some have a head when the time is over, and no more
    return count / seconds, (_cpu_seconds(side.pid) - before) / count * 1e6


def _stream(sides: Sides, arguments: argparse.Namespace) -> None:
    for side in sides.proxies:
        spent, before = [], _cpu_seconds(side.pid)
        for _ in range(arguments.rounds):
            began = time.perf_counter()
            connection = http.client.HTTPConnection(side.plain)
            connection.request("GET", "/big", headers={"Host": HOST})
            response, total = connection.getresponse(), 0
            while data := response.read(1 << 18):
                total += len(data)
            assert total == BIG_BYTES, (response.status, total)
            spent.append(time.perf_counter() - began)
        cpu = (_cpu_seconds(side.pid) - before) / arguments.rounds
        rate = BIG_BYTES / statistics.median(spent) / 1e6
        print(f"  {side.name:6} download {rate:8,.0f} MB/s  {cpu * 1e3:6.0f} ms of CPU for 64 MiB")


def _load(url: str, pid: int, origin_pid: int, seconds: int) -> Seen:
    command = ["taskset", "-c", str(LOAD_CORE), "wrk", f"-c{CONNECTIONS}", "-t1", f"-d{seconds}", "--latency"]
    for line in (f"Host: {HOST}", *HEADERS):
        command += ["-H", line]
    before, began = _cpu_seconds(pid), time.perf_counter()
    waited = (_waited_seconds(pid), _waited_seconds(origin_pid))
    pipe = subprocess.PIPE
    with subprocess.Popen([*command, url], stdout=pipe, text=True, preexec_fn=end_with_parent) as wrk:
        wrk_waited = 0.0
        while wrk.poll() is None:
            with suppress(OSError):  # it ends as it is looked at
                wrk_waited = max(wrk_waited, _waited_seconds(wrk.pid))
            time.sleep(0.1)
        assert wrk.stdout is not None
        text = wrk.stdout.read()
    assert wrk.returncode == 0, text
    took = time.perf_counter() - began
    shares = [
        (_waited_seconds(one) - first) / took for one, first in zip((pid, origin_pid), waited, strict=True)
    ]
    assert "Non-2xx" not in text, text
    assert "Socket errors" not in text, text
    count = int(_found(r"(\d+) requests in", text))
    cpu_us = (_cpu_seconds(pid) - before) / count * 1e6
    return Seen(
        float(_found(r"Requests/sec:\s+([\d.]+)", text)),
        cpu_us,
        _milliseconds(text),
        *shares,
        wrk_waited / took,
    )


def _found(pattern: str, text: str) -> str:
    match = re.search(pattern, text)
    assert match is not None, text
    return match[1]


def _milliseconds(text: str) -> float:
    match = re.search(r"99%\s+([\d.]+)(us|ms|s)", text)
    assert match is not None, text
    return float(match[1]) * {"us": 0.001, "ms": 1.0, "s": 1_000.0}[match[2]]


def _median(rows: list[Seen]) -> Seen:
    return Seen(*(statistics.median(column) for column in zip(*rows, strict=True)))


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _waited_seconds(pid: int) -> float:
    """In which its threads were ready and something else ran."""
    return sum(int(one.read_text().split()[1]) for one in Path(f"/proc/{pid}/task").glob("*/schedstat")) / 1e9


if __name__ == "__main__":
    sys.exit(main())
