"""What an operator may do with an object, whatever its class does.

Owns  listing, facts, deletion; where copies are kept while they are needed.
Asks  `node` for an object's storage without its class; the object log for what there is; `operate_sql`,
      `copies` and `checks` for the rest.
Tells `operate_http`.
Not   HTTP, permissions, other processes; going back in time and alarms (`operations`).

Nothing here runs code of a class. What takes long works on a copy, on another thread, so that neither this
object nor the others stand still.
"""

import asyncio
import os
import secrets
import shutil
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Any, Protocol, TypeVar

import msgspec

from edgestead.objects import backing_up, checks, copies, operate_sql
from edgestead.objects.classes import Durability
from edgestead.objects.engine import Engine
from edgestead.objects.node import Node
from edgestead.objects.operate_sql import Rows
from edgestead.objects.operations import Operations
from edgestead.objects.own import OwnEngine
from edgestead.store.objectlog import CatalogueEntry, LogError, ObjectRef

T = TypeVar("T")
DELETED = "An operator deleted what the object had stored."


class Offload(Protocol):
    """Runs what takes long away from the loop, as `asyncio.to_thread` does."""

    def __call__(self, work: Callable[[], T], /) -> Awaitable[T]: ...


class Item(msgspec.Struct, frozen=True, rename={"class_name": "class"}):
    """One object in a list. `position` counts its commits; `alarm` is in milliseconds since the epoch."""

    class_name: str
    id: str
    name: str | None
    position: int
    alarm: int | None
    in_memory: bool


class Info(msgspec.Struct, frozen=True, rename={"class_name": "class"}):
    """What there is to know of one object; `storage` only where its class is loaded.

    `unmoved` of its commits are in the log and not in its database file yet; `calls` are not answered yet.
    """

    class_name: str
    id: str
    name: str | None
    storage: str | None
    durability: Durability
    position: int
    unmoved: int
    alarm: int | None
    in_memory: bool
    calls: int
    database_bytes: int
    tables: list[str]


class Operator:
    """Operations on the objects of one node. `spool` is a folder of its own, for copies.

    Every method raises ObjectError, LogError, OSError, apsw.Error when storage cannot be opened.
    """

    def __init__(self, node: Node, spool: str, offload: Offload = asyncio.to_thread) -> None:
        self._node, self._spool, self._offload = node, spool, offload
        os.makedirs(spool, mode=0o700, exist_ok=True)
        for entry in os.scandir(spool):  # of a process that was killed
            shutil.rmtree(entry) if entry.is_dir() else os.unlink(entry)

    @property
    def operations(self) -> Operations:
        """What concerns the past and the alarm."""
        return self._node.operations

    def find(self, ref: ObjectRef) -> CatalogueEntry | None:
        """What the log knows of an object; None when it never stored anything."""
        return self._node.log.find(ref)

    def page(self, class_name: str | None, after: tuple[str, str], limit: int) -> tuple[list[Item], bool]:
        """Objects by class and id, and whether there are more."""
        if class_name is not None:
            after = max(after, (class_name, ""))
        items: list[Item] = []
        for entry in self._node.log.catalogue(after):
            if class_name is not None and entry.ref.class_name != class_name:
                break
            if len(items) == limit:
                return items, True
            items.append(self._item(entry))
        return items, False

    def _item(self, entry: CatalogueEntry) -> Item:
        ref = entry.ref
        live = self._node.find_live(ref) is not None
        return Item(ref.class_name, ref.id, ref.name, entry.head, milliseconds(entry.alarm_us), live)

    async def info(self, entry: CatalogueEntry) -> Info:
        """Facts of one object."""
        ref = entry.ref
        live = self._node.find_live(ref)
        durability, size_bytes, tables = await self._node.with_storage(ref, _facts)
        info = self._node.classes.get(ref.class_name)
        return Info(
            class_name=ref.class_name,
            id=ref.id,
            name=ref.name,
            storage=info.backend if info else None,
            durability=durability,
            position=entry.head,
            unmoved=entry.head - entry.base,
            alarm=milliseconds(entry.alarm_us),
            in_memory=live is not None,
            calls=live.calls if live is not None else 0,
            database_bytes=size_bytes,
            tables=tables,
        )

    async def sql(self, ref: ObjectRef, query: str, bindings: list[Any], *, write: bool) -> Rows:
        """Run a query; one that writes is one transaction. Raises SqlError too: then nothing was changed."""
        work = operate_sql.write if write else operate_sql.read

        async def run(engine: Engine) -> Rows:
            return work(engine, query, bindings)

        return await self._node.visit(ref, run)

    async def delete(self, ref: ObjectRef) -> None:
        """Delete keys, tables and the alarm. The object is reset: it begins anew when it is called."""

        async def run(engine: Engine) -> None:
            engine.set_alarm(None)
            engine.erase()

        await self._node.visit(ref, run, ends=DELETED)

    async def copy(self, ref: ObjectRef) -> str:
        """The path of a plain SQLite file with what is committed, for the caller to remove."""
        path = f"{self._spool}/{secrets.token_hex(16)}.sqlite"
        try:
            await self._node.visit(ref, partial(copies.copy, path=path))
            await self._offload(partial(copies.finish, path))
        except BaseException:
            with suppress(FileNotFoundError):
                os.unlink(path)
            raise
        return path

    async def back_up(self) -> str:
        """The path of a new folder with what only this process can copy (`backing_up`), for the caller."""
        path = f"{self._spool}/backup-{secrets.token_hex(16)}"
        try:
            await backing_up.copy_log(self._node, path, self._offload)
        except BaseException:
            shutil.rmtree(path, ignore_errors=True)
            raise
        return path

    async def verify(self, entry: CatalogueEntry) -> checks.Verdict:
        """Look at every page, index and key of an object, and at every record of it."""
        path = await self.copy(entry.ref)
        try:
            verdict = await self._offload(partial(checks.check_database, path))
        finally:
            os.unlink(path)
        past = await self._check_past(entry.ref)
        return msgspec.structs.replace(verdict, problems=verdict.problems + past)

    async def _check_past(self, ref: ObjectRef) -> list[str]:
        """Every record of an object that log and history hold."""
        future: asyncio.Future[list[str]] = asyncio.get_running_loop().create_future()

        def done(problems: list[str] | None, error: LogError | None) -> None:
            if not future.done():
                future.set_result(problems or [] if error is None else [str(error)])

        self._node.log.check_past(ref, done)
        return await future


def milliseconds(alarm_us: int | None) -> int | None:
    """An alarm's time as users know it."""
    return None if alarm_us is None else alarm_us // 1_000


def _facts(engine: Engine) -> tuple[Durability, int, list[str]]:
    durability: Durability = "sqlite" if isinstance(engine, OwnEngine) else "log"
    if not engine.has_file:
        return durability, 0, []
    database = engine.open()
    return durability, database.size_bytes(), database.table_names()
