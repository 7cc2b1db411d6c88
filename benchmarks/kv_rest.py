"""How fast is a durable put, and a get, over REST, against miniflare's local store and redis?

    python benchmarks/kv_rest.py [--seconds 3] [--rounds 3]

put     values of 100 bytes under keys that change, from 32 connections, each durable when it is answered;
        against miniflare (a worker that puts into its local store) and against redis-server with
        `appendfsync always` (redis-benchmark, SET of 100 bytes, 32 connections).
get     one value of 100 bytes, from 32 connections; against miniflare (a worker that gets it).

Every server on one core, its load (wrk, redis-benchmark) on another; rounds alternate, medians are printed.
miniflare comes with wrangler (tests/clients/install.py wrangler_kv). redis answers a protocol of its own
without authentication or JSON: it is here for what a durable write costs, not as an equal.
"""

import argparse
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import tempfile
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from processes import free_port, wait_for

from edgestead.cli.parent import end_with_parent
from edgestead.testing.server import EdgeServer

SERVER_CORE, LOAD_CORE = 0, 1
CONNECTIONS = 32
VALUE_BYTES = 100
HARNESS_HOME = Path(os.environ.get("HARNESS_HOME", Path.home() / ".cache" / "edge-clients"))
MINIFLARE = HARNESS_HOME / "npm" / "main" / "node_modules" / "miniflare"

WORKER = """
import { Miniflare } from "MINIFLARE/dist/src/index.js";
const worker = `export default { async fetch(request, env) {
  const key = new URL(request.url).pathname.slice(1);
  if (request.method === "PUT") { await env.KV.put(key, await request.text()); return new Response("{}"); }
  return new Response(await env.KV.get(key));
} }`;
const mf = new Miniflare({ modules: true, script: worker, port: PORT, kvNamespaces: ["KV"],
  kvPersist: "FOLDER", compatibilityDate: "2024-01-01" });
await mf.ready;
console.log("ready");
"""
PUT_SCRIPT = """
local n = 0
wrk.headers["Authorization"] = "Bearer TOKEN"
request = function()
  n = n + 1
  return wrk.format("PUT", "PATH" .. "k" .. (n % 100000) .. "ROUND", nil, string.rep("x", BYTES))
end
"""
GET_SCRIPT = """
wrk.headers["Authorization"] = "Bearer TOKEN"
request = function() return wrk.format("GET", "PATH" .. "one") end
"""


def on_core(core: int, command: list[str]) -> list[str]:
    return ["taskset", "-c", str(core), *command]


@contextmanager
def running(command: list[str], port: int, cwd: Path) -> Iterator[int]:
    process = subprocess.Popen(
        on_core(SERVER_CORE, command),
        cwd=cwd,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        preexec_fn=end_with_parent,
    )
    try:
        wait_for(port)
        yield port
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait()


class Target:
    """Where wrk sends: a base address, the path before a key, and a token."""

    def __init__(self, name: str, address: str, path: str, token: str) -> None:
        self.name, self.address, self.path, self.token = name, address, path, token
        self._round = 0
        self.send("PUT", "one", b"x" * VALUE_BYTES)

    def send(self, method: str, key: str, body: bytes | None = None) -> None:
        url, headers = f"{self.address}{self.path}{key}", {"Authorization": f"Bearer {self.token}"}
        urllib.request.urlopen(urllib.request.Request(url, body, headers, method=method)).read()

    def rate(self, script: str, seconds: int, folder: Path) -> float:
        """Good answers a second."""
        self._round += 1
        text = script.replace("TOKEN", self.token).replace("PATH", self.path)
        text = text.replace("ROUND", f"-{self._round}").replace("BYTES", str(VALUE_BYTES))
        (folder / "wrk.lua").write_text(text)
        load = ["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{seconds}s", "-s", "wrk.lua", self.address]
        done = subprocess.run(on_core(LOAD_CORE, load), cwd=folder, capture_output=True, text=True)
        assert "Non-2xx" not in done.stdout, done.stdout
        return float(re.search(r"Requests/sec:\s+([\d.]+)", done.stdout)[1])  # type: ignore[index]


def edgestead(stack: ExitStack, folder: Path) -> Target:
    server = EdgeServer(folder / "data")
    stack.callback(server.close)
    server.start()
    for pid in (server.pid, *server.children().values()):
        subprocess.run(
            ["taskset", "-a", "-p", "-c", str(SERVER_CORE), str(pid)], capture_output=True, check=True
        )
    ready = server.ready
    namespaces = f"{ready['api_base']}/accounts/{ready['account_id']}/storage/kv/namespaces"
    headers = {"Authorization": f"Bearer {ready['api_token']}"}
    made = urllib.request.urlopen(urllib.request.Request(namespaces, b'{"title":"bench"}', headers))
    id_ = json.load(made)["result"]["id"]
    address, _, path = namespaces.removeprefix("http://").partition("/")
    return Target("edgestead", f"http://{address}", f"/{path}/{id_}/values/", ready["api_token"])


def miniflare(stack: ExitStack, folder: Path) -> Target:
    port = free_port()
    text = WORKER.replace("MINIFLARE", str(MINIFLARE)).replace("PORT", str(port))
    (folder / "worker.mjs").write_text(text.replace("FOLDER", str(folder / "miniflare")))
    stack.enter_context(running(["node", "worker.mjs"], port, folder))
    return Target("miniflare", f"http://127.0.0.1:{port}", "/", "none")


def redis(stack: ExitStack, folder: Path) -> Callable[[int], float]:
    port = free_port()
    server = f"redis-server --port {port} --dir {folder} --save '' --appendonly yes --appendfsync always"
    stack.enter_context(running(["sh", "-c", f"exec {server}"], port, folder))

    def rate(seconds: int) -> float:
        options = f"-p {port} -t set -c {CONNECTIONS} -d {VALUE_BYTES} -r 100000 -n {seconds * 8000} --csv"
        load = on_core(LOAD_CORE, ["redis-benchmark", *options.split()])
        shown = subprocess.run(load, capture_output=True, text=True, check=True).stdout
        return float(shown.splitlines()[-1].split(",")[1].strip('"'))

    return rate


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    rates: dict[tuple[str, str], list[float]] = {}
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        targets = [edgestead(stack, folder)]
        if MINIFLARE.exists() and shutil.which("node"):
            targets.append(miniflare(stack, folder))
        set_rate = redis(stack, folder) if shutil.which("redis-server") else None
        for _ in range(options.rounds):
            for what, script in (("put", PUT_SCRIPT), ("get", GET_SCRIPT)):
                for target in targets:
                    found = rates.setdefault((what, target.name), [])
                    found.append(target.rate(script, options.seconds, folder))
            if set_rate is not None:
                rates.setdefault(("put", "redis"), []).append(set_rate(options.seconds))
    medians = {key: statistics.median(found) for key, found in rates.items()}
    for (what, who), rate in medians.items():
        ratio = medians[what, "edgestead"] / rate
        print(f"{what}  {who:10} {rate:9.0f}/s   edgestead is {ratio:.2f} times this")


if __name__ == "__main__":
    main()
