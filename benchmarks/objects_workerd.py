"""Stateful objects beside the reference runtime, in one run: inside the object, and durable puts over HTTP.

    python benchmarks/objects_workerd.py WORKERD [--seconds N] [--only inside|http]

WORKERD is the binary of the npm package `workerd`. Every put stores a new value: the reference's storage
writes nothing for an equal one. Medians of the rounds; the ratio is reference time over ours, or our rate
over the reference's. `wrk` makes the HTTP load.
"""

import argparse
import asyncio
import json
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

from edgestead.http1.messages import Request
from edgestead.objects.classes import StatefulObject, describe
from edgestead.objects.host import Host

ROUNDS = 5
OBJECTS = 1_000
TOKEN = "t" * 40

CONFIG = """
using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = "main", worker = .worker),
    (name = "disk", disk = (path = "%(disk)s", writable = true)),
  ],
  sockets = [(name = "http", address = "127.0.0.1:%(port)d", http = (), service = "main")],
);
const worker :Workerd.Worker = (
  modules = [(name = "worker", esModule = embed "worker.js")],
  compatibilityDate = "2025-06-01",
  durableObjectNamespaces = [(className = "Bench", uniqueKey = "bench", enableSql = true)],
  durableObjectStorage = (localDisk = "disk"),
  bindings = [(name = "NS", durableObjectNamespace = "Bench")],
);
"""
WORKER = """
import { DurableObject } from "cloudflare:workers";
const V = (i) => ({ a: i, b: "hello world", c: [1, 2, 3] });
export class Bench extends DurableObject {
  constructor(ctx, env) { super(ctx, env); this.s = ctx.storage; this.i = 0; }
  async put() {
    this.i++;
    await this.s.put("k" + (this.i % 64), "v".repeat(90) + String(this.i).padStart(10, "0"));
  }
  async inside(op, n) {
    const s = this.s, sql = s.sql;
    if (op === "setup") {
      for (let i = 0; i < 128; i++) await s.put("key" + i, V(i));
      sql.exec("CREATE TABLE IF NOT EXISTS users(id INTEGER PRIMARY KEY, name TEXT, score REAL)");
      for (let i = 0; i < 1000; i++)
        sql.exec("INSERT OR REPLACE INTO users VALUES(?,?,?)", i, "name" + i, i * 1.5);
      await s.sync();
    }
    if (op === "get") for (let i = 0; i < n; i++) await s.get("key5");
    if (op === "put") for (let i = 0; i < n; i++) await s.put("key5", V(++this.i));
    if (op === "pk") for (let i = 0; i < n; i++) sql.exec("SELECT * FROM users WHERE id=?", i % 1000).one();
    if (op === "insert") for (let i = 0; i < n; i++)
      sql.exec("INSERT OR REPLACE INTO users VALUES(?,?,?)", i % 1000, "name" + (++this.i), i * 1.5);
    if (op === "rows") for (let i = 0; i < n; i++) sql.exec("SELECT * FROM users").toArray();
    await s.sync();
  }
}
export default {
  async fetch(request, env) {
    const u = new URL(request.url);
    const stub = env.NS.get(env.NS.idFromName(u.searchParams.get("o") || "a"));
    if (u.pathname === "/durable") await stub.put();
    else await stub.inside(u.pathname.slice(1), Number(u.searchParams.get("n") || 0));
    return new Response("ok");
  }
};
"""
INSIDE = {"get": 100_000, "put": 100_000, "pk": 50_000, "insert": 50_000, "rows": 300}
GOALS = {"get": 5.0, "put": 5.0, "pk": 2.0, "insert": 1.5, "rows": 1.0}


def _value(number: int) -> dict[str, Any]:
    return {"a": number, "b": "hello world", "c": [1, 2, 3]}


class Bench(StatefulObject):
    """The same object."""

    storage = "sql"

    async def on_start(self) -> None:
        self.count = 0

    async def put(self) -> None:
        self.count += 1
        await self.ctx.storage.put(f"k{self.count % 64}", "v" * 90 + f"{self.count:010}")

    async def inside(self, operation: str, count: int = 0) -> None:
        await getattr(self, f"_{operation}")(count)
        await self.ctx.storage.sync()

    async def _setup(self, count: int) -> None:
        storage = self.ctx.storage
        for number in range(128):
            await storage.put(f"key{number}", _value(number))
        storage.sql.exec("CREATE TABLE IF NOT EXISTS users(id INTEGER PRIMARY KEY, name TEXT, score REAL)")
        await self._insert(1_000)

    async def _get(self, count: int) -> None:
        storage = self.ctx.storage
        for _ in range(count):
            await storage.get("key5")

    async def _put(self, count: int) -> None:
        storage, start = self.ctx.storage, self.count
        for number in range(count):
            await storage.put("key5", {"a": start + number, "b": "hello world", "c": [1, 2, 3]})
        self.count += count

    async def _pk(self, count: int) -> None:
        sql = self.ctx.storage.sql
        for number in range(count):
            sql.exec("SELECT * FROM users WHERE id=?", number % 1_000).one()

    async def _insert(self, count: int) -> None:
        sql, start = self.ctx.storage.sql, self.count
        for number in range(count):
            sql.exec(
                "INSERT OR REPLACE INTO users VALUES(?,?,?)",
                number % 1_000,
                f"name{start + number}",
                number * 1.5,
            )
        self.count += count

    async def _rows(self, count: int) -> None:
        sql = self.ctx.storage.sql
        for _ in range(count):
            sql.exec("SELECT * FROM users").to_array()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as bound:
        return int(bound.getsockname()[1])


def wait_for(port: int) -> None:
    for _ in range(200):
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.05)
    raise SystemExit("a server did not start")


def start_reference(binary: str, folder: Path) -> tuple["subprocess.Popen[bytes]", int]:
    port = free_port()
    (folder / "disk").mkdir(parents=True)
    (folder / "worker.js").write_text(WORKER)
    (folder / "config.capnp").write_text(CONFIG % {"disk": folder / "disk", "port": port})
    process = subprocess.Popen([binary, "serve", str(folder / "config.capnp")])
    wait_for(port)
    return process, port


def start_ours(folder: Path, logging: str) -> tuple["subprocess.Popen[bytes]", int]:
    command = [sys.executable, __file__, "--serve", str(folder), logging]
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert process.stdout is not None
    return process, int(process.stdout.readline())


async def serve(folder: str, logging: Any) -> None:
    import uvloop

    assert isinstance(asyncio.get_running_loop(), uvloop.Loop)
    allowed = f"Bearer {TOKEN}".encode()

    def authorise(request: Request) -> Any:
        from edgestead.model.errors import Unauthenticated

        return None if request.header(b"authorization") == allowed else Unauthenticated()

    host = Host(folder, {"Bench": describe(Bench)}, logging=logging)
    bound = socket.create_server(("127.0.0.1", 0))
    await host.open([bound], authorise)
    print(bound.getsockname()[1], flush=True)
    await asyncio.Event().wait()


def ask_reference(port: int, operation: str, count: int) -> None:
    urllib.request.urlopen(f"http://127.0.0.1:{port}/{operation}?n={count}").read()


def ask_ours(port: int, operation: str, count: int) -> None:
    body = json.dumps({"args": [operation, count]}).encode()
    request = urllib.request.Request(f"http://127.0.0.1:{port}/objects/Bench/a/inside", body)
    request.add_header("authorization", f"Bearer {TOKEN}")
    urllib.request.urlopen(request).read()


def micros(ask: Any, port: int, operation: str, count: int) -> float:
    """Per operation, without the request around it."""
    began = time.perf_counter()
    ask(port, operation, 1)
    around = min(time.perf_counter() - began, 0.005)
    began = time.perf_counter()
    ask(port, operation, count)
    return (time.perf_counter() - began - around) / count * 1e6


def compare_inside(reference: int, ours: int) -> None:
    print(f"{'inside the object':22}{'reference µs':>14}{'ours µs':>10}{'ratio':>8}{'goal':>8}")
    for ask, port in ((ask_reference, reference), (ask_ours, ours)):
        ask(port, "setup", 0)
    for operation, count in INSIDE.items():
        rounds = [
            (micros(ask_reference, reference, operation, count), micros(ask_ours, ours, operation, count))
            for _ in range(ROUNDS)
        ]
        theirs, mine = (statistics.median(column) for column in zip(*rounds, strict=True))
        print(f"{operation:22}{theirs:14.2f}{mine:10.2f}{theirs / mine:7.1f}x{GOALS[operation]:7.1f}x")


LUA = """
local n = 0
request = function()
  n = n + 1
  local o = "o" .. (%(one)s and 1 or math.random(%(objects)d))
  return wrk.format("%(method)s", "%(before)s" .. o .. "%(after)s", {%(headers)s}, "")
end
"""


def wrk(port: int, connections: int, seconds: float, lua: str, folder: Path) -> tuple[float, float]:
    """(requests per second, p99 in ms)."""
    script = folder / "load.lua"
    script.write_text(lua)
    command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds:g}s", "--latency", "-s", str(script)]
    output = subprocess.run(
        [*command, f"http://127.0.0.1:{port}"], capture_output=True, text=True, check=True
    ).stdout
    if "Non-2xx" in output:
        raise SystemExit(output)
    rate = float(re.search(r"Requests/sec:\s+([\d.]+)", output)[1])  # type: ignore[index]
    number, unit = re.search(r"99%\s+([\d.]+)(us|ms|s)", output).groups()  # type: ignore[union-attr]
    return rate, float(number) * {"us": 0.001, "ms": 1.0, "s": 1_000.0}[unit]


def compare_http(binary: str, root: Path, seconds: float) -> None:
    reference, reference_port = start_reference(binary, root / "reference-http")
    keys, keys_port = start_ours(root / "keys", "keys")
    pages, pages_port = start_ours(root / "pages", "pages")
    servers = {
        "reference": (reference_port, {"method": "GET", "before": "/durable?o=", "after": "", "headers": ""}),
        **{
            name: (
                port,
                {
                    "method": "POST",
                    "before": "/objects/Bench/",
                    "after": "/put",
                    "headers": f'["authorization"] = "Bearer {TOKEN}"',
                },
            )
            for name, port in (("keys", keys_port), ("pages", pages_port))
        },
    }
    print(
        f"{'durable puts over HTTP':26}"
        + "".join(f"{name + '/s':>14}{'p99 ms':>9}" for name in servers)
        + "   ratios"
    )
    try:
        for one in (True, False):
            for connections in (1, 32, 256):
                line, rates = f"{'one object' if one else f'{OBJECTS} objects'} c={connections}", []
                found = []
                for port, words in servers.values():
                    lua = LUA % {"one": str(one).lower(), "objects": OBJECTS, **words}
                    wrk(port, connections, 1, lua, root)
                    rate, late = wrk(port, connections, seconds, lua, root)
                    rates.append(rate)
                    found.append(f"{rate:14,.0f}{late:9.1f}")
                ratios = " ".join(f"{rate / rates[0]:6.1f}x" for rate in rates[1:])
                print(f"{line:26}{''.join(found)}  {ratios}", flush=True)
    finally:
        for process in (reference, keys, pages):
            process.kill()
            process.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("binary")
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--only", choices=("inside", "http"))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=".") as name:
        root = Path(name).resolve()
        if options.only != "http":
            reference, reference_port = start_reference(options.binary, root / "reference")
            ours, our_port = start_ours(root / "ours", "keys")
            try:
                compare_inside(reference_port, our_port)
            finally:
                for process in (reference, ours):
                    process.kill()
                    process.wait()
        if options.only != "inside":
            compare_http(options.binary, root, options.seconds)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        import uvloop

        uvloop.run(serve(*sys.argv[2:]))
    else:
        main()
