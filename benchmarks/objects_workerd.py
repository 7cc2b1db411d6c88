"""Stateful objects beside the reference runtime, in one run: inside the object, and durable writes over HTTP.

    python benchmarks/objects_workerd.py WORKERD [--seconds N] [--only inside|http]

Ours is the product's own server with authentication. WORKERD is the binary of the npm package `workerd`.
Every write stores a new value: the reference's storage writes nothing for an equal one. Medians of the
rounds; the ratio is reference time over ours, or our rate over the reference's. `wrk` makes the HTTP load.
"""

import argparse
import re
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

from processes import free_port, wait_for

from edgestead.cli.parent import end_with_parent
from edgestead.testing.server import EdgeServer

ROUNDS = 5
OBJECTS = 1_000
TOUCHING, TOUCH_SECONDS = 32, 3  # connections and seconds of the load before each measurement
CLASS = Path(__file__).with_name("objects_class.py")
Ask = Callable[[str, int], Any]

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
  constructor(ctx, env) {
    super(ctx, env); this.s = ctx.storage; this.i = 0;
    this.s.sql.exec("CREATE TABLE IF NOT EXISTS slots(id INTEGER PRIMARY KEY, value TEXT)");
  }
  row() {
    this.i++;
    this.s.sql.exec("INSERT OR REPLACE INTO slots VALUES(?,?)",
      this.i % 64, "v".repeat(90) + String(this.i).padStart(10, "0"));
  }
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
    if (u.pathname === "/one/put") await stub.put();
    else if (u.pathname === "/one/row") await stub.row();
    else await stub.inside(u.pathname.slice(1), Number(u.searchParams.get("n") || 0));
    return new Response("ok");
  }
};
"""
INSIDE = {"get": 100_000, "put": 100_000, "pk": 50_000, "insert": 50_000, "rows": 300}
GOALS = {"get": 5.0, "put": 5.0, "pk": 2.0, "insert": 1.5, "rows": 1.0}


def start_reference(binary: str, folder: Path) -> tuple["subprocess.Popen[bytes]", int]:
    port = free_port()
    (folder / "disk").mkdir(parents=True)
    (folder / "worker.js").write_text(WORKER)
    (folder / "config.capnp").write_text(CONFIG % {"disk": folder / "disk", "port": port})
    command = [binary, "serve", str(folder / "config.capnp")]
    process = subprocess.Popen(command, preexec_fn=end_with_parent)
    wait_for(port)
    return process, port


def start_ours(folder: Path) -> EdgeServer:
    """The product's own server, as `edgecli serve` starts it."""
    return EdgeServer(folder, "--objects", str(CLASS)).start()


def asking_reference(port: int) -> Ask:
    url = f"http://127.0.0.1:{port}"
    return lambda operation, count: urllib.request.urlopen(f"{url}/{operation}?n={count}").read()


def asking(server: EdgeServer) -> Ask:
    return lambda operation, count: server.call_object("Bench/a/inside", operation, count).result


def micros(ask: Ask, operation: str, count: int) -> float:
    """Per operation, without the request around it."""
    began = time.perf_counter()
    ask(operation, 1)
    around = min(time.perf_counter() - began, 0.005)
    began = time.perf_counter()
    ask(operation, count)
    return (time.perf_counter() - began - around) / count * 1e6


def compare_inside(reference: Ask, ours: Ask) -> None:
    print(f"{'inside the object':22}{'reference µs':>14}{'ours µs':>10}{'ratio':>8}{'goal':>8}")
    for ask in (reference, ours):
        ask("setup", 0)
    for operation, count in INSIDE.items():
        rounds = [
            (micros(reference, operation, count), micros(ours, operation, count)) for _ in range(ROUNDS)
        ]
        theirs, mine = (statistics.median(column) for column in zip(*rounds, strict=True))
        print(f"{operation:22}{theirs:14.2f}{mine:10.2f}{theirs / mine:7.1f}x{GOALS[operation]:7.1f}x")


LUA = """
local n = 0
request = function()
  n = n + 1
  local o = "o" .. (%(one)s and 1 or %(choice)s)
  return wrk.format("%(method)s", "%(before)s" .. o .. "%(after)s", {%(headers)s}, "")
end
"""


def wrk(address: str, connections: int, seconds: int, lua: str, folder: Path) -> tuple[float, float]:
    """(requests per second, p99 in ms)."""
    script = folder / "load.lua"
    script.write_text(lua)
    command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--latency", "-s", str(script)]
    output = subprocess.run(
        [*command, f"http://{address}"], capture_output=True, text=True, check=True
    ).stdout
    if "Non-2xx" in output:
        raise SystemExit(output)
    rate = float(re.search(r"Requests/sec:\s+([\d.]+)", output)[1])  # type: ignore[index]
    number, unit = re.search(r"99%\s+([\d.]+)(us|ms|s)", output).groups()  # type: ignore[union-attr]
    return rate, float(number) * {"us": 0.001, "ms": 1.0, "s": 1_000.0}[unit]


def compare_http(reference: str, ours: str, token: str, seconds: int, folder: Path) -> None:
    """Requests that each make one durable write: a key, then a row of a table."""
    sides = (
        (reference, {"method": "GET", "before": "/one/%s?o=", "after": "", "headers": ""}),
        (
            ours,
            {
                "method": "POST",
                "before": "/objects/Bench/",
                "after": "/%s",
                "headers": f'["authorization"] = "Bearer {token}"',
            },
        ),
    )
    print(
        f"{'durable writes over HTTP':32}{'reference/s':>14}{'p99 ms':>9}{'ours/s':>14}{'p99 ms':>9}   ratio"
    )
    for operation in ("put", "row"):
        for one in (True, False):
            for connections in (1, 32, 256):
                found, rates = "", []
                for address, words in sides:
                    filled = {name: word.replace("%s", operation) for name, word in words.items()}
                    filled["one"] = str(one).lower()
                    touch = LUA % {"choice": f"n % {OBJECTS}", **filled}  # so that all are in memory
                    wrk(address, TOUCHING, TOUCH_SECONDS, touch, folder)
                    lua = LUA % {"choice": f"math.random({OBJECTS})", **filled}
                    rate, late = wrk(address, connections, seconds, lua, folder)
                    rates.append(rate)
                    found += f"{rate:14,.0f}{late:9.1f}"
                what = f"{operation}, {'one object' if one else f'{OBJECTS} objects'} c={connections}"
                print(f"{what:32}{found}{rates[1] / max(rates[0], 1):7.1f}x", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("binary")
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--only", choices=("inside", "http"))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=".") as name:
        root = Path(name).resolve()
        reference, port = start_reference(options.binary, root / "reference")
        ours = start_ours(root / "ours")
        try:
            if options.only != "http":
                compare_inside(asking_reference(port), asking(ours))
            if options.only != "inside":
                address, token = ours.ready["objects"], ours.ready["api_token"]
                compare_http(f"127.0.0.1:{port}", address, token, options.seconds, root)
        finally:
            reference.kill()
            reference.wait()
            ours.close()


if __name__ == "__main__":
    main()
