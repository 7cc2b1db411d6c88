"""The subject as a class of ours. Its twin is subject.js; a script of steps runs on both.

Storage is called by the camelCase names, the reference's own. Values travel as in `wire`.
"""

import time
from typing import Any

from edgestead.objects.errors import DataCloneError, LimitError
from edgestead.objects.runtime.classes import StatefulObject
from tests.objects.reference.wire import from_wire, to_wire

SOON_MS = 60_000


def caught(error: Exception) -> dict[str, Any]:
    """An error as the reference would name it."""
    kinds = ((DataCloneError, "DataCloneError"), (TypeError, "TypeError"), (LimitError, "RangeError"))
    kind = next((name for known, name in kinds if isinstance(error, known)), "Error")
    return {"error": [kind, str(error)]}


class Script:
    """One run of steps; `log` has an outcome for each, in the order in which they ended."""

    def __init__(self, storage: Any) -> None:
        self.storage = storage
        self.kept: Any = None
        self.cursors: dict[str, Any] = {}
        self.log: list[dict[str, Any]] = []

    async def run(self, steps: list[Any], txn: Any = None) -> str:
        for step in steps:
            if step[0] == "throw":
                raise TypeError(step[1])
            try:
                self.log.append({"ok": to_wire(await self.step(txn, *step))})
            except Exception as error:
                self.log.append(caught(error))
        return "done"

    def run_sync(self, steps: list[Any]) -> str:
        for step in steps:
            if step[0] == "throw":
                raise TypeError(step[1])
            try:
                self.log.append({"ok": to_wire(self.step_sync(*step))})
            except Exception as error:
                self.log.append(caught(error))
        return "done"

    async def step(self, txn: Any, op: str, *rest: Any) -> Any:
        if op == "transaction":
            return await self.storage.transaction(lambda inner: self.run(rest[0], inner))
        if op in PROBES:
            return await PROBES[op](self)
        if op.startswith(("sql", "transactionSync")):
            return self.step_sync(op, *rest)
        target, _, method = op.rpartition(".")
        receiver = {"txn": txn, "kept": self.kept, "": self.storage}[target]
        result = getattr(receiver, method)(*map(from_wire, rest))
        return result if result is None else await result

    def step_sync(self, op: str, *rest: Any) -> Any:
        if op == "transactionSync":
            return self.storage.transactionSync(lambda: self.run_sync(rest[0]))
        if op == "transactionSync of async":
            return self.storage.transactionSync(_nothing)
        arguments = map(from_wire, rest)
        if op in CURSORS:
            name, *query = arguments
            return CURSORS[op](self, name, *query)
        if op.startswith("sql"):
            return QUERIES[op](self.storage.sql.exec(*arguments))
        getattr(self.storage, op)(*arguments)
        return None


async def _nothing() -> str:
    return "done"


async def _keep(script: Script) -> None:
    async def closure(txn: Any) -> None:
        script.kept = txn

    await script.storage.transaction(closure)


async def _shared(script: Script) -> bool:
    one = [1]
    await script.storage.put("shared", {"a": one, "b": one})
    found = await script.storage.get("shared")
    return found["a"] is found["b"]


async def _cycle(script: Script) -> bool:
    one: list[Any] = []
    one.append(one)
    await script.storage.put("cycle", one)
    found = await script.storage.get("cycle")
    return found[0] is found


async def _fresh(script: Script) -> Any:
    await script.storage.put("fresh", [1])
    (await script.storage.get("fresh")).append(2)
    return await script.storage.get("fresh")


async def _alarm_is_soon(script: Script) -> bool:
    return bool(abs(await script.storage.getAlarm() - time.time() * 1_000) < SOON_MS)


PROBES = {
    "keep": _keep,
    "shared": _shared,
    "cycle": _cycle,
    "fresh": _fresh,
    "alarm is soon": _alarm_is_soon,
}


def _counted(counter: str) -> Any:
    def count(cursor: Any) -> Any:
        cursor.toArray()
        return getattr(cursor, counter)

    return count


QUERIES = {
    "sqlRaw": lambda cursor: [cursor.columnNames, list(cursor.raw())],
    "sqlRows": lambda cursor: cursor.toArray(),
    "sqlEach": list,
    "sqlOne": lambda cursor: cursor.one(),
    "sqlRawOne": lambda cursor: cursor.raw().one(),
    "sqlWritten": _counted("rowsWritten"),
    "sqlRead": _counted("rowsRead"),
}


def _open(script: Script, name: str, *query: Any) -> None:
    script.cursors[name] = script.storage.sql.exec(*query)


def _size_is_of_pages(script: Script, *_: Any) -> bool:
    size = script.storage.sql.databaseSize
    return size > 0 and size % 4_096 == 0


CURSORS = {
    "sqlOpen": _open,
    "sqlNext": lambda script, name: script.cursors[name].next(),
    "sqlRawNext": lambda script, name: script.cursors[name].raw().next(),
    "sqlRest": lambda script, name: script.cursors[name].toArray(),
    "sqlRestOne": lambda script, name: script.cursors[name].one(),
    "sqlNames": lambda script, name: script.cursors[name].columnNames,
    "sqlSizeIsOfPages": _size_is_of_pages,
}


class SqlSubject(StatefulObject):
    storage = "sql"

    async def run(self, steps: list[Any]) -> list[dict[str, Any]]:
        script = Script(self.ctx.storage)
        await script.run(steps)
        return script.log

    async def alarm(self) -> None:
        pass


class KeysSubject(StatefulObject):
    run = SqlSubject.run
    alarm = SqlSubject.alarm
