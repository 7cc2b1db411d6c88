"""How fast is the REST API, against the same server answering the same bytes, and against the disk?

    python benchmarks/rest.py [--seconds 3] [--rounds 3]

GET     one record and a list of 100, over a zone of 10,000 records, against a bare ASGI application on
        uvicorn with httptools and uvloop, which answers the very same bytes from memory.
POST    new records from 32 connections, each durable when it is answered, against the rate at which this
        disk completes one fdatasync after the other (4 KiB each, one at a time); of the API alone, and of
        a whole server, whose two DNS processes have each answer too, on whatever cores there are.

Server on one core, wrk (Debian's) on another. Rounds of the two sides alternate; medians are printed, with
the processor time that the server spent on a request: on a machine that does other things meanwhile, the
ratio of those is the steadier one.
"""

import argparse
import asyncio
import http.client
import json
import os
import re
import secrets
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import uvicorn
from processes import processor_seconds

sys.path.insert(0, str(Path(__file__).parent.parent))

from edgestead.cli.parent import end_with_parent
from edgestead.testing.server import EdgeServer
from tests.support.barrier import StoreBarrier

SERVER_CORE, LOAD_CORE = 0, 1
CONNECTIONS = 32
RECORDS = 10_000
TOKEN = secrets.token_hex(20)
POST_SCRIPT = """
local n = 0
request = function()
  n = n + 1
  local name = string.format("p%d-{run}", n)
  local body = '{{"type":"A","name":"' .. name .. '","content":"192.0.2.1","ttl":300}}'
  local head = {{["Authorization"]="Bearer {token}", ["Content-Type"]="application/json"}}
  return wrk.format("POST", nil, head, body)
end
"""


def serve(listener: socket.socket, folder: Path, token: str) -> None:
    """The product's API over its store, in this process, until it is ended."""
    import uvloop

    from edgestead.http1.server import Server
    from edgestead.model.call import Profile
    from edgestead.model.counters import private_page
    from edgestead.rest.app import Application
    from edgestead.rest.context import AppContext
    from edgestead.rest.kv_data import KvData
    from edgestead.rest.log import BatchedLog
    from edgestead.server import process
    from edgestead.sqlite.control import SqliteControlStore
    from edgestead.sqlite.kv import SqliteKvStore
    from edgestead.store.writes import Writes
    from edgestead.tables.schema import MIGRATIONS
    from edgestead.usecases.access import credentials
    from edgestead.usecases.access.identities import FedAccess
    from edgestead.usecases.platform import Platform

    store = SqliteControlStore(folder / "control.db", MIGRATIONS)
    owner = credentials.Credentials(
        account_id="a" * 32, email="bench@example.com", api_key="0" * 37, api_token=token
    )
    now_us = time.time_ns() // 1000
    store.write(
        lambda tx: credentials.install(tx, owner, now_us=now_us, new_id=lambda: secrets.token_hex(16))
    ).result()
    access = FedAccess()
    store.read(access.refresh)

    async def main() -> None:
        context = AppContext(
            barrier=StoreBarrier(store, Writes(store)),
            kv=KvData(SqliteKvStore(folder)),
            access=access.table,
            platform=Platform(
                nameservers=("ns1.edge.internal", "ns2.edge.internal"),
                edge_addresses=("203.0.113.1",),
                own_addresses=frozenset(),
                new_id=lambda: secrets.token_hex(16),
            ),
            profile=Profile.SPEC,
            counters=private_page(),
            metrics=str,
            not_ready=tuple,
            now_us=lambda: time.time_ns() // 1000,
            log=BatchedLog(os.open(os.devnull, os.O_WRONLY)),
        )
        app = Application(context)
        await Server(app, app.refuse, connections=context.connections).open([listener])
        process.rest_collector()
        await asyncio.Event().wait()

    uvloop.run(main())


def serve_bare(listener: socket.socket, folder: Path) -> None:
    """The least that can be answered: two sends of bytes that are ready, by path."""
    import uvloop

    answers = {name: (folder / name).read_bytes() for name in ("one", "list")}

    async def app(scope, receive, send):
        body = answers[scope["path"][1:]]
        headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    async def main() -> None:
        await _uvicorn(app).serve([listener])

    uvloop.run(main())


def _uvicorn(app) -> uvicorn.Server:
    return uvicorn.Server(
        uvicorn.Config(
            app,
            http="httptools",
            loop="none",
            ws="none",
            lifespan="off",
            access_log=False,
            log_config=None,
            proxy_headers=False,
            server_header=False,
        )
    )


class Child:
    """One of the two servers, in a process of its own on SERVER_CORE."""

    token = TOKEN

    def __init__(self, which: str, folder: Path) -> None:
        listener = socket.create_server(("127.0.0.1", 0))
        self.base = f"http://127.0.0.1:{listener.getsockname()[1]}"
        command = [sys.executable, __file__, "--serve", which, str(listener.fileno()), str(folder), TOKEN]
        self._process = subprocess.Popen(
            ["taskset", "-c", str(SERVER_CORE), *command],
            pass_fds=[listener.fileno()],
            preexec_fn=end_with_parent,
        )
        listener.close()

    def cpu_seconds(self) -> float:
        return processor_seconds(self._process.pid)

    def close(self) -> None:
        self._process.terminate()
        self._process.wait()


class Whole:
    """`edgecli serve` with all its processes."""

    def __init__(self, folder: Path) -> None:
        self._server = EdgeServer(folder / "whole").start()
        self.token = self._server.ready["api_token"]
        zone_id = self._server.make_zone("example.com")
        self.records = f"{self._server.ready['api_base']}/zones/{zone_id}/dns_records"

    def cpu_seconds(self) -> float:
        return sum(map(processor_seconds, self._server.children().values()))

    def close(self) -> None:
        self._server.stop()


def call(url: str, body: object = None) -> bytes:
    data = None if body is None else json.dumps(body).encode()
    headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
    with urllib.request.urlopen(urllib.request.Request(url, data, headers)) as answer:
        return answer.read()


class Rate(NamedTuple):
    per_second: float
    cpu_us: float = 0.0  # of the server, for one request


def wrk(server: Child | Whole, url: str, seconds: float, script: Path | None = None) -> Rate:
    """Every answer must be a success."""
    before = server.cpu_seconds()
    command = ["taskset", "-c", str(LOAD_CORE), "wrk", "-t1", f"-c{CONNECTIONS}", f"-d{seconds:g}s"]
    command += ["-s", str(script)] if script else ["-H", f"Authorization: Bearer {server.token}"]
    said = subprocess.run([*command, url], capture_output=True, text=True, check=True).stdout
    assert "Non-2xx" not in said, said
    cpu_us = (server.cpu_seconds() - before) * 1e6 / int(re.search(r"(\d+) requests in", said)[1])
    return Rate(float(re.search(r"Requests/sec:\s+([\d.]+)", said)[1]), cpu_us)


def disk_rate(folder: Path, seconds: float) -> Rate:
    """Completed fdatasyncs a second, one 4 KiB write before each."""
    descriptor = os.open(folder / "disk", os.O_RDWR | os.O_CREAT)
    os.truncate(descriptor, 1 << 20)
    block, done, began = b"x" * 4096, 0, time.perf_counter()
    while time.perf_counter() - began < seconds:
        os.pwrite(descriptor, block, done % 256 * 4096)
        os.fdatasync(descriptor)
        done += 1
    os.close(descriptor)
    return Rate(done / (time.perf_counter() - began))


def fill(zone: str) -> None:
    """RECORDS records, one after the other."""
    host, _, path = zone.removeprefix("http://").partition("/")
    connection = http.client.HTTPConnection(host)
    headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
    for number in range(RECORDS):
        body = {"type": "A", "name": f"host-{number}", "content": f"198.51.100.{number % 250}", "ttl": 300}
        connection.request("POST", f"/{path}", json.dumps(body), headers)
        answer = connection.getresponse()
        answer.read()
        assert answer.status == 200


def main(seconds: float, rounds: int) -> None:
    folder = Path(tempfile.mkdtemp(prefix="edgestead-rest-"))
    with ExitStack() as started:
        started.callback(shutil.rmtree, folder)
        ours = Child("ours", folder)
        started.callback(ours.close)
        zone_id = json.loads(call(f"{ours.base}/client/v4/zones", {"name": "example.com"}))["result"]["id"]
        records = f"{ours.base}/client/v4/zones/{zone_id}/dns_records"
        fill(records)
        one = f"{records}/{json.loads(call(records + '?per_page=1'))['result'][0]['id']}"
        (folder / "one").write_bytes(call(one))
        (folder / "list").write_bytes(call(records))
        bare = Child("bare", folder)
        started.callback(bare.close)
        whole = Whole(folder)
        started.callback(whole.close)
        time.sleep(1)
        script, whole_script = folder / "post.lua", folder / "whole.lua"
        rates: dict[str, list[Rate]] = {}
        for number in range(rounds):
            script.write_text(POST_SCRIPT.format(token=TOKEN, run=number))
            whole_script.write_text(POST_SCRIPT.format(token=whole.token, run=number))
            for name, measure in (
                ("one, bare", lambda: wrk(bare, f"{bare.base}/one", seconds)),
                ("one, ours", lambda: wrk(ours, one, seconds)),
                ("list, bare", lambda: wrk(bare, f"{bare.base}/list", seconds)),
                ("list, ours", lambda: wrk(ours, records, seconds)),
                ("fdatasync", lambda: disk_rate(folder, seconds / 2)),
                ("post, ours", lambda: wrk(ours, records, seconds, script)),
                ("post, whole", lambda: wrk(whole, whole.records, seconds, whole_script)),
            ):
                rates.setdefault(name, []).append(measure())
        report(rates)


def report(rates: dict[str, list[Rate]]) -> None:
    medians = {
        name: Rate(*(statistics.median(column) for column in zip(*values, strict=True)))
        for name, values in rates.items()
    }
    for name, values in rates.items():
        rounds = ", ".join(f"{value.per_second:,.0f}" for value in values)
        median = medians[name]
        print(f"{name:12} {median.per_second:9,.0f}/s {median.cpu_us:7.1f} us of CPU   rounds {rounds}")
    for title, mine, peer in (
        ("GET one record / bare answer", "one, ours", "one, bare"),
        ("GET list of 100 / bare answer", "list, ours", "list, bare"),
        (f"POST at c={CONNECTIONS} / fdatasync rate", "post, ours", "fdatasync"),
        ("the same of a whole server", "post, whole", "fdatasync"),
    ):
        print(f"{title:36} {medians[mine].per_second / medians[peer].per_second:.2f}", end="")
        cpu_us = medians[peer].cpu_us
        print(f"   by CPU {cpu_us / medians[mine].cpu_us:.2f}" if cpu_us else "")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        which, descriptor, folder_name, token = sys.argv[2:]
        inherited = socket.socket(fileno=int(descriptor))
        if which == "ours":
            serve(inherited, Path(folder_name), token)
        else:
            serve_bare(inherited, Path(folder_name))
    else:
        parser = argparse.ArgumentParser()
        parser.add_argument("--seconds", type=float, default=3)
        parser.add_argument("--rounds", type=int, default=3)
        main(**vars(parser.parse_args()))
