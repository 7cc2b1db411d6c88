"""The same scripts, here and in a JavaScript class of the reference runtime: one outcome.

Limits of 128 keys and 2,048 bytes are not among them: the specification has them, the runtime has them for
objects without SQL only. It is the npm package `workerd`, which the pinned clients of tests/clients bring.
"""

import importlib.util
import json
import random
import shutil
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from edgestead import StatefulObject
from edgestead.objects.host import Host
from edgestead.testing.server import wait_until
from tests.objects.hosts import Client, serve

HERE = Path(__file__).parent
INSTALLER = HERE.parent / "clients" / "install.py"
START_SECONDS_MAX = 60
SCRIPTS = 60
STEPS = 40
ALARM_MS = 4 * 10**12  # the reference takes none after 2189
Step = list[Any]

WRITTEN: dict[str, list[Step]] = {
    "an empty object": [["get", "a"], ["list"], ["delete", "a"], ["getAlarm"], ["deleteAll"], ["sync"]],
    "values": [
        ["put", "a", {"b": [1, 2.5, "é😀", None, True, {"c": {}}]}],
        ["get", "a"],
        ["put", {"x": 1, "y": 2}],
        ["get", ["y", "x", "missing"]],
        ["delete", ["x", "missing"]],
        ["list"],
    ],
    "order of keys": [
        ["put", {"b": 1, "a": 2, "é": 3, "z": 4, "😀": 5, "\uffee": 6, "A": 7, "": 8}],
        ["list"],
        ["list", {"reverse": True}],
        ["list", {"start": "b", "end": "z"}],
        ["list", {"startAfter": "b", "limit": 2}],
        ["list", {"prefix": "é"}],
        ["list", {"reverse": True, "start": "a", "limit": 1}],
        ["list", {"start": "z", "end": "a"}],
    ],
    "refusals": [
        ["put", "k" * 2_048, 1],
        ["put", "large", "x" * 3_000_000],
        ["list", {"start": "a", "startAfter": "b"}],
        ["list", {"limit": 0}],
        ["list", {"limit": -1}],
        ["list", {"prefix": "lar"}],
    ],
    "transactions": [
        ["put", "a", 1],
        ["transaction", [["put", "a", 2], ["get", "a"], ["list"]], "commit"],
        ["transaction", [["put", "a", 3], ["delete", "b"]], "throw"],
        ["get", "a"],
        ["transaction", [["put", "a", 4], ["put", "b", 1]], "rollback"],
        ["list"],
    ],
    "alarms": [
        ["setAlarm", ALARM_MS],
        ["getAlarm"],
        ["put", "a", 1],
        ["deleteAll"],
        ["getAlarm"],
        ["list"],
        ["deleteAlarm"],
        ["getAlarm"],
    ],
    "sql": [
        ["sql", "CREATE TABLE t (id INTEGER PRIMARY KEY, a, b REAL, c TEXT)"],
        ["sql", "INSERT INTO t (a, b, c) VALUES (?, ?, ?), (2, 2.5, 'x') RETURNING id, a", 1, 1.5, "é"],
        ["sql", "SELECT * FROM t"],
        ["raw", "SELECT a, a, b FROM t ORDER BY id DESC"],
        ["names", "SELECT a AS x, count(*) FROM t GROUP BY a"],
        ["one", "SELECT count(*) AS n FROM t"],
        ["one", "SELECT * FROM t"],
        ["one", "SELECT * FROM t WHERE id = 99"],
        ["next", "SELECT id FROM t"],
        ["sql", "SELECT 1 AS a; SELECT 2 AS b"],
        ["sql", "SELECT ?", 1, 2],
        ["sql", "SELECT ? + ?", 1],
        ["sql", "INSERT INTO t (id) VALUES (1)"],
        ["sql", "SELEC"],
        ["sql", ""],
        ["sql", "SELECT * FROM missing"],
        ["sql", "BEGIN"],
        ["sql", "SAVEPOINT a"],
        ["sql", "ATTACH 'x' AS y"],
        ["sql", "PRAGMA journal_mode = delete"],
        ["sql", "PRAGMA table_info(t)"],
        ["sql", "VACUUM"],
        ["sql", "CREATE TEMP TABLE x (a)"],
        ["sql", "SELECT sqlite_version()"],
        ["sql", "CREATE VIRTUAL TABLE f USING fts5(a)"],
        ["sql", "INSERT INTO f VALUES ('some words')"],
        ["sql", "SELECT a FROM f WHERE f MATCH 'words'"],
        ["transactionSync", [["sql", "UPDATE t SET a = 9"], ["sql", "SELECT a FROM t"]], "commit"],
        ["transactionSync", [["sql", "DELETE FROM t"]], "throw"],
        ["sql", "SELECT a FROM t"],
        ["sql", "CREATE TABLE child (t REFERENCES t (id))"],
        ["sql", "INSERT INTO child VALUES (77)"],
        ["deleteAll"],
        ["sql", "SELECT name FROM sqlite_master WHERE name = 't'"],
    ],
}


class Script(StatefulObject):
    """What `reference/worker.js` is, in Python."""

    storage = "sql"

    async def alarm(self) -> None:
        pass

    async def run(self, steps: list[Step], on: Any = None) -> list[Any]:
        said = []
        for operation, *arguments in steps:
            try:
                said.append(await self._step(operation, arguments, on or self.ctx.storage))
            except Exception:
                said.append("error")
        return said

    async def _step(self, operation: str, arguments: list[Any], on: Any) -> Any:
        storage = self.ctx.storage
        if operation == "transaction":
            return await self._transaction(*arguments)
        if operation == "transactionSync":
            return storage.transactionSync(lambda: self._statements(*arguments))
        if operation in ("sql", "raw", "one", "names", "next"):
            return _read(operation, storage.sql.exec(*arguments))
        said = await getattr(on, operation)(*arguments)
        return [[key, value] for key, value in said.items()] if _is_map(operation, arguments) else said

    async def _transaction(self, steps: list[Step], end: str) -> Any:
        async def closure(txn: Any) -> Any:
            said = await self.run(steps, txn)
            if end == "rollback":
                txn.rollback()
            if end == "throw":
                raise ValueError("on purpose")
            return said

        return await self.ctx.storage.transaction(closure)

    def _statements(self, steps: list[Step], end: str) -> Any:
        said = [self.ctx.storage.sql.exec(query, *bound).toArray() for _, query, *bound in steps]
        if end == "throw":
            raise ValueError("on purpose")
        return said


def _read(operation: str, cursor: Any) -> Any:
    if operation == "names":
        return list(cursor.columnNames)
    if operation == "next":
        first = cursor.next()
        return [first, cursor.toArray(), cursor.next()["done"]]
    if operation == "raw":
        return [list(row) for row in cursor.raw().toArray()]
    return cursor.one() if operation == "one" else cursor.toArray()


def _is_map(operation: str, arguments: list[Any]) -> bool:
    """JavaScript answers these with a Map, which keeps the order: as pairs it can be compared."""
    return operation == "list" or (operation == "get" and isinstance(arguments[0], list))


def generated(seed: int) -> list[Step]:
    """A script of random operations on few keys and one table."""
    chance = random.Random(seed)
    keys = ["a", "b", "ab", "é", "😀"]

    def keyed(key: str) -> list[Step]:
        value = chance.choice([1, -2.5, "text", None, [1, [2]], {"k": 1}])
        return [
            ["put", key, value],
            ["put", key, chance.randrange(100)],
            ["put", {key: value, "b": 2}],
            ["get", key],
            ["get", chance.sample(keys, 3)],
            ["delete", key],
            ["delete", chance.sample(keys, 2)],
            ["list", _options(chance, keys)],
        ]

    def other(key: str) -> list[Step]:
        inner = [chance.choice(keyed(chance.choice(keys))) for _ in range(chance.randrange(1, 5))]
        statements = [["sql", "UPDATE t SET a = a + 1"], ["sql", "SELECT * FROM t ORDER BY id LIMIT 3"]]
        return [
            ["transaction", inner, chance.choice(["commit", "rollback", "throw"])],
            ["transactionSync", statements, chance.choice(["commit", "throw"])],
            ["sql", "INSERT INTO t (a, b) VALUES (?, ?) RETURNING *", chance.randrange(5), key],
            ["sql", "SELECT a, count(*) AS n, max(b) AS m FROM t GROUP BY a ORDER BY a"],
            chance.choice([["setAlarm", ALARM_MS + chance.randrange(9)], ["deleteAlarm"], ["getAlarm"]]),
        ]

    def one() -> Step:
        key = chance.choice(keys)
        return chance.choice(keyed(key) if chance.random() < 0.6 else other(key))

    create = ["sql", "CREATE TABLE IF NOT EXISTS t (id INTEGER PRIMARY KEY, a, b)"]
    return [create, *(one() for _ in range(STEPS)), ["list"], ["sql", "SELECT * FROM t"], ["getAlarm"]]


def _options(chance: random.Random, keys: list[str]) -> dict[str, Any]:
    options: dict[str, Any] = {"reverse": chance.random() < 0.5}
    for name in chance.sample(["start", "end", "prefix", "startAfter"], chance.randrange(3)):
        options[name] = chance.choice(keys)
    return options | ({"limit": chance.randrange(1, 4)} if chance.random() < 0.5 else {})


ALL = {**WRITTEN, **{f"random {seed}": generated(seed) for seed in range(SCRIPTS)}}


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The runtime's URL."""
    spec = importlib.util.spec_from_file_location("clients_install", INSTALLER)
    assert spec is not None
    assert spec.loader is not None
    installer = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = installer
    spec.loader.exec_module(installer)
    installer.install("wrangler_kv")
    (binary,) = (installer.HOME / "npm" / "main" / "node_modules" / "@cloudflare").glob(
        "workerd-*/bin/workerd"
    )
    folder = tmp_path_factory.mktemp("reference")
    shutil.copytree(HERE / "reference", folder, dirs_exist_ok=True)
    (folder / "disk").mkdir()
    with socket.create_server(("127.0.0.1", 0)) as listener, (folder / "log").open("wb") as log:
        # The socket is handed down, so that nobody else can have its port.
        command = [str(binary), "serve", "config.capnp", f"--socket-fd=http={listener.fileno()}"]
        process = subprocess.Popen(command, cwd=folder, stderr=log, pass_fds=[listener.fileno()])
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        try:
            wait_until(lambda: _answers(process, url, folder / "log"), START_SECONDS_MAX)
            yield url
        finally:
            process.kill()
            process.wait()


def _answers(process: "subprocess.Popen[bytes]", url: str, log: Path) -> bool:
    assert process.poll() is None, log.read_text()
    return run_there(url, "first", []) == []


def run_there(url: str, name: str, steps: list[Step]) -> Any:
    body = json.dumps(steps).encode()
    quoted = urllib.request.quote(name)  # type: ignore[attr-defined]
    with urllib.request.urlopen(f"{url}/{quoted}", body, timeout=START_SECONDS_MAX) as answer:
        return json.loads(answer.read())


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What each script said here."""

    async def script(client: Client, host: Host) -> dict[str, Any]:
        return {name: await client.call(f"Script/{number}/run", steps) for number, (name, steps) in numbered}

    numbered = list(enumerate(ALL.items()))
    found: dict[str, Any] = serve(tmp_path_factory.mktemp("ours"), script, Script)
    return found


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", ALL)
def test_a_script_says_the_same_here_and_there(name: str, ours: dict[str, Any], reference: str) -> None:
    theirs = run_there(reference, name, ALL[name])

    differing = [
        (step, mine, its)
        for step, mine, its in zip(ALL[name], ours[name], theirs, strict=True)
        if mine != its
    ]
    assert differing == []
