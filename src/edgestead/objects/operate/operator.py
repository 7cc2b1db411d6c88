"""What an operator may do with an object, whatever its class does.

Owns  listing, facts, deletion; where copies are kept while they are needed.
Not   HTTP, permissions, other processes; going back in time and alarms (`operations`).

Nothing here runs code of a class. What takes long works on a copy, on another thread, so that neither this
object nor the others stand still.
"""

import asyncio
import os
import secrets
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from copy import copy
from functools import partial
from typing import Any, Protocol, Self, TypeVar

import msgspec

from edgestead.objects.operate import checks, copies, looking, verifying
from edgestead.objects.operate import sql as operate_sql
from edgestead.objects.operate.operations import Operations
from edgestead.objects.operate.shapes import (
    Changes,
    ClassApart,
    ClassItem,
    Contents,
    ObjectInfo,
    ObjectItem,
    ObjectVerdict,
    Quarantined,
    Rows,
    Verdict,
)
from edgestead.objects.runtime import quarantine
from edgestead.objects.runtime.admission import AskAgain
from edgestead.objects.runtime.asking import PAGE_ENTRIES, ask, entries_of, find
from edgestead.objects.runtime.classes import Durability
from edgestead.objects.runtime.containment import Classes, Nowhere
from edgestead.objects.runtime.engine import Engine
from edgestead.objects.runtime.instance import Instance
from edgestead.objects.runtime.node import Node
from edgestead.objects.runtime.own import OwnEngine
from edgestead.store.objectlog import CatalogueEntry, LogError, ObjectRef

T = TypeVar("T")
_BACKUP = "backup-"  # a folder of the spool
DELETED = "An operator deleted what the object had stored."


class Offload(Protocol):
    """Runs what takes long away from the loop, as `asyncio.to_thread` does."""

    def __call__(self, work: Callable[[], T], /) -> Awaitable[T]: ...


class Operator:
    """Operations on the objects of one node. `spool` is a folder of its own, for copies; `copy_log` copies
    into a new one what of a backup only this process can copy.

    Every method raises ObjectError, LogError, OSError, apsw.Error when storage cannot be opened.
    """

    def __init__(
        self,
        node: Node,
        spool: str,
        copy_log: Callable[[str], Awaitable[None]],
        offload: Offload = asyncio.to_thread,
    ) -> None:
        self._node, self._spool, self._copy_log, self._offload = node, spool, copy_log, offload
        self._ask_again: AskAgain | None = None
        self._looking = asyncio.Lock()  # one state of the past in memory at a time
        self.went: Classes = Nowhere()  # of which classes the objects have a process of their own
        os.makedirs(spool, mode=0o700, exist_ok=True)
        for entry in os.scandir(spool):  # of a process that was killed
            shutil.rmtree(entry) if entry.is_dir() else os.unlink(entry)

    def asking(self, ask_again: AskAgain) -> Self:
        """The same for somebody from outside, who is asked when an object's turn has come."""
        made = copy(self)
        made._ask_again = ask_again
        return made

    @property
    def operations(self) -> Operations:
        """What concerns the past and the alarm."""
        return Operations(self._node, self._ask_again)

    async def find(self, ref: ObjectRef) -> CatalogueEntry | None:
        """What the log knows of an object; None when it never stored anything, and is in no quarantine."""
        found = await find(self._node.log, ref)
        return found or (_unstored(ref) if self._node.is_held(ref) else None)

    async def page(
        self, class_name: str | None, after: tuple[str, str], limit: int
    ) -> tuple[list[ObjectItem], bool]:
        """Objects by class and id, and whether there are more."""
        if class_name is not None:
            after = max(after, (class_name, ""))
        items: list[ObjectItem] = []
        async for entry in self._entries(after, page_entries=limit + 1):
            if class_name is not None and entry.ref.class_name != class_name:
                break
            if len(items) == limit:
                return items, True
            items.append(self._item(entry))
        return items, False

    async def _entries(
        self, after: tuple[str, str], *, page_entries: int = PAGE_ENTRIES
    ) -> AsyncIterator[CatalogueEntry]:
        """What the log has, and what never got so far as to store anything because its process ended."""
        held = [
            _unstored(ref)
            for ref in self._node.held()
            if (ref.class_name, ref.id) > after and await find(self._node.log, ref) is None
        ]
        async for entry in entries_of(self._node.log, after, page_entries=page_entries):
            while held and _place(held[0]) < _place(entry):
                yield held.pop(0)
            yield entry
        for entry in held:
            yield entry

    def release(self, ref: ObjectRef) -> bool:
        """Let an object in quarantine run again; False when it was in none."""
        return self._node.release(ref)

    def quarantined(self) -> list[Quarantined]:
        """What is not run: classes, and objects for themselves."""
        classes = [
            Quarantined(one.class_name, None, None, quarantine.words_of_class(one))
            for one in self._node.held_classes()
        ]
        return classes + [
            Quarantined(ref.class_name, ref.id, ref.name, self._node.why_held(ref) or "")
            for ref in self._node.held()
        ]

    def apart(self) -> list[ClassApart]:
        """Classes that ended processes others share, and how far that has gone. Raises OSError."""
        self.went.look()
        found = sorted(self.went.rows.values(), key=lambda row: row.class_name)
        return [
            ClassApart(row.class_name, row.state, row.ends, row.since_us // 1_000, row.last_us // 1_000)
            for row in found
        ]

    def share_class(self, class_name: str) -> bool:
        """Let a class that is apart go back; False when it is not. Raises OSError."""
        return self.went.release(class_name)

    async def release_class(self, class_name: str) -> bool:
        """Let a class in quarantine run again; False when it was in none."""
        return await self._node.release_class(class_name)

    def _item(self, entry: CatalogueEntry) -> ObjectItem:
        ref = entry.ref
        live = self._node.find_live(ref)
        return ObjectItem(
            class_name=ref.class_name,
            id=ref.id,
            name=ref.name,
            position=entry.head,
            alarm=milliseconds(entry.alarm_us),
            in_memory=live is not None,
            quarantine=self._node.is_held(ref),
            cpu_ms=_cpu_ms(live),
        )

    async def info(self, entry: CatalogueEntry) -> ObjectInfo:
        """Facts of one object."""
        ref = entry.ref
        live = self._node.find_live(ref)
        durability, size_bytes, tables = await self._node.with_storage(ref, _facts, ask_again=self._ask_again)
        info = self._node.classes.get(ref.class_name)
        return ObjectInfo(
            class_name=ref.class_name,
            id=ref.id,
            name=ref.name,
            storage=info.backend if info else None,
            durability=durability,
            position=entry.head,
            unmoved=entry.head - entry.base,
            alarm=milliseconds(entry.alarm_us),
            in_memory=live is not None,
            quarantine=self._node.why_held(ref),
            cpu_ms=_cpu_ms(live),
            calls=live.calls if live is not None else 0,
            database_bytes=size_bytes,
            tables=tables,
        )

    async def sql(self, ref: ObjectRef, query: str, bindings: list[Any], *, write: bool) -> Rows:
        """Run a query; one that writes is one transaction. Raises SqlError too: then nothing was changed."""
        work = operate_sql.write if write else operate_sql.read

        async def run(engine: Engine) -> Rows:
            return work(engine, query, bindings)

        return await self._node.visit(ref, run, ask_again=self._ask_again)

    async def sql_at(self, ref: ObjectRef, at: str | int, query: str, bindings: list[Any]) -> Rows:
        """Run a query that writes nothing against a moment of the past. Raises SqlError, BookmarkError."""
        async with self._looking:
            stored = await self.operations.state_at(ref, at)
            return await self._offload(partial(looking.read_sql, stored, query, bindings))

    async def contents(self, ref: ObjectRef, at: str | int | None, page: looking.Page) -> Contents:
        """Keys and tables, now or at a moment of the past. Raises BookmarkError."""
        if at is None:
            return await self._node.with_storage(
                ref, lambda engine: looking.live(engine, page), ask_again=self._ask_again
            )
        async with self._looking:
            stored = await self.operations.state_at(ref, at)
            return await self._offload(partial(looking.kept, stored, page))

    async def changes(self, ref: ObjectRef, since: str | int | None, until: str | int | None) -> Changes:
        """What differs between two moments; None is now. Raises BookmarkError."""
        async with self._looking:
            before = await self.operations.state_at(ref, since)
            after = await self.operations.state_at(ref, until)
            return await self._offload(partial(looking.changes, before, after))

    async def classes(self) -> list[ClassItem]:
        """The classes that are loaded, and those that have objects, by name."""
        held = {one.class_name: quarantine.words_of_class(one) for one in self._node.held_classes()}
        found = {
            name: ClassItem(
                name,
                info.backend,
                info.durability,
                info.has_alarm,
                held.get(name),
                self._node.accounts[name].cpu_ns // 1_000_000,
            )
            for name, info in self._node.classes.items()
        }
        after = ("", "")
        while (entry := await anext(self._entries(after, page_entries=1), None)) is not None:
            name = entry.ref.class_name
            found.setdefault(name, ClassItem(name, None, None, False, held.get(name)))
            after = (name, "g")  # behind every id, which is hexadecimal
        return [found[name] for name in sorted(found)]

    async def delete(self, ref: ObjectRef) -> None:
        """Delete keys, tables and the alarm. The object is reset: it begins anew when it is called."""

        async def run(engine: Engine) -> None:
            engine.set_alarm(None)
            engine.erase()

        await self._node.visit(ref, run, ends=DELETED, ask_again=self._ask_again)

    async def copy(self, ref: ObjectRef) -> str:
        """The path of a plain SQLite file with what is committed, for the caller to remove."""
        path = f"{self._spool}/{secrets.token_hex(16)}.sqlite"
        try:
            await self._node.visit(ref, partial(copies.copy, path=path), ask_again=self._ask_again)
            await self._offload(partial(copies.finish, path))
        except BaseException:
            with suppress(FileNotFoundError):
                os.unlink(path)
            raise
        return path

    async def back_up(self) -> str:
        """The path of a new folder with what only this process can copy, for the caller to remove.

        One that nobody has removed goes: where another process had no copy, nobody was told of it.
        """
        await self._offload(partial(_remove_all, self._spool, _BACKUP))
        path = f"{self._spool}/{_BACKUP}{secrets.token_hex(16)}"
        try:
            await self._copy_log(path)
        except BaseException:
            shutil.rmtree(path, ignore_errors=True)
            raise
        return path

    async def verify(self, entry: CatalogueEntry) -> Verdict:
        """Look at every page, index and key of an object, and at every record of it."""
        verdict = await self.verify_database(entry)
        past = await self._check_past(entry.ref)
        return msgspec.structs.replace(verdict, problems=verdict.problems + past)

    async def verify_database(self, entry: CatalogueEntry) -> Verdict:
        """Look at a copy of an object's database."""
        path = await self.copy(entry.ref)
        try:
            return await self._offload(partial(checks.check_database, path))
        finally:
            os.unlink(path)

    async def verify_page(
        self, class_name: str | None, after: tuple[str, str], upto: tuple[str, str]
    ) -> list[ObjectVerdict]:
        """The same of all objects with after < (class, id) <= upto, of one class or of all, in one pass."""
        entries = []
        async for entry in entries_of(self._node.log, after):
            if (entry.ref.class_name, entry.ref.id) > upto:
                break
            if class_name in (None, entry.ref.class_name):
                entries.append(entry)
        return await verifying.look_at(self._node, entries, self._offload, self.verify_database)

    async def verify_log(self) -> list[str]:
        """What is wrong with the log of this process."""
        return await verifying.log_problems(self._node)

    async def _check_past(self, ref: ObjectRef) -> list[str]:
        """Every record of an object that log and history hold."""
        try:
            found: list[list[str]] = await ask(lambda done: self._node.past.check([ref], done))
            return found[0]
        except LogError as error:
            return [str(error)]


def _remove_all(folder: str, beginning: str) -> None:
    for entry in os.scandir(folder):
        if entry.name.startswith(beginning):
            shutil.rmtree(entry, ignore_errors=True)


def _cpu_ms(live: Instance | None) -> int | None:
    return None if live is None else live.gate.cpu_ns // 1_000_000


def _unstored(ref: ObjectRef) -> CatalogueEntry:
    return CatalogueEntry(ref, 0, 0, None)


def _place(entry: CatalogueEntry) -> tuple[str, str]:
    return entry.ref.class_name, entry.ref.id


def milliseconds(alarm_us: int | None) -> int | None:
    """An alarm's time as users know it."""
    return None if alarm_us is None else alarm_us // 1_000


def _facts(engine: Engine) -> tuple[Durability, int, list[str]]:
    durability: Durability = "sqlite" if isinstance(engine, OwnEngine) else "log"
    if not engine.has_file:
        return durability, 0, []
    database = engine.open()
    return durability, database.size_bytes(), database.table_names()
