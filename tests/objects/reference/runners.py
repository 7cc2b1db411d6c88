"""Runs scripts on the reference runtime and on ours."""

import asyncio
import http.client
import json
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.clients import install as installer
from tests.objects.hosts import Client, serve
from tests.objects.reference.subject import KeysSubject, SqlSubject
from tests.objects.reference.wire import to_wire

HERE = Path(__file__).parent
CLIENT = "wrangler_kv"  # what is installed for this client brings the runtime along
ANSWER_SECONDS_MAX = 120
CONFIG = """
using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = "main", worker = .worker),
    (name = "disk", disk = (path = "%(disk)s", writable = true)),
  ],
  sockets = [(name = "http", address = "unused", http = (), service = "main")],
);
const worker :Workerd.Worker = (
  modules = [(name = "subject.js", esModule = embed "subject.js")],
  compatibilityDate = "2025-06-16",
  durableObjectNamespaces = [
    (className = "SqlSubject", uniqueKey = "sql", enableSql = true),
    (className = "KeysSubject", uniqueKey = "keys"),
  ],
  durableObjectStorage = (localDisk = "disk"),
  bindings = [
    (name = "SqlSubject", durableObjectNamespace = "SqlSubject"),
    (name = "KeysSubject", durableObjectNamespace = "KeysSubject"),
  ],
);
"""


class NotHere(Exception):
    """The reference runtime cannot run on this machine; the words say why."""


def find_runtime() -> Path:
    """The binary, installed from npm at the first time. Raises NotHere."""
    try:
        installer.install(CLIENT)
    except (OSError, RuntimeError) as error:
        raise NotHere(f"npm could not install the reference runtime: {error}") from None
    found = sorted((installer.HOME / "npm").glob("main/node_modules/@cloudflare/workerd-*/bin/workerd"))
    if not found:
        raise NotHere("npm has no reference runtime for this machine")
    return found[0]


class Reference:
    """The reference runtime's subjects."""

    def __init__(self, port: int) -> None:
        self._port = port

    def run(self, kind: str, name: str, steps: list[Any]) -> list[Any]:
        """The outcome of each step on a fresh object of this class."""
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=ANSWER_SECONDS_MAX)
        connection.request("POST", "/", json.dumps({"kind": kind, "name": name, "steps": to_wire(steps)}))
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        assert answer.status == 200, text
        outcomes: list[Any] = json.loads(text)
        return outcomes


@contextmanager
def reference(folder: Path) -> Iterator[Reference]:
    """Run the reference runtime on a folder. Raises NotHere."""
    binary = find_runtime()
    (folder / "disk").mkdir(parents=True)
    (folder / "subject.js").write_bytes((HERE / "subject.js").read_bytes())
    (folder / "config.capnp").write_text(CONFIG % {"disk": folder / "disk"})
    with socket.create_server(("127.0.0.1", 0)) as bound:
        command = [binary, "serve", folder / "config.capnp", f"--socket-fd=http={bound.fileno()}"]
        process = subprocess.Popen(command, pass_fds=[bound.fileno()])
        try:
            yield Reference(bound.getsockname()[1])
        finally:
            process.kill()
            process.wait()


def run_ours(folder: Path, kind: str, cases: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """The outcomes of all cases on ours, each on a fresh object of this class."""

    async def script(client: Client, host: object) -> dict[str, list[Any]]:
        found = {}
        for number, (name, steps) in enumerate(cases.items()):
            async with asyncio.timeout(ANSWER_SECONDS_MAX):
                found[name] = await client.call(f"{kind}/case-{number}/run", to_wire(steps))
        return found

    outcomes: dict[str, list[Any]] = serve(folder, script, SqlSubject, KeysSubject)
    return outcomes
