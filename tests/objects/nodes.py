"""Objects on a simulated disk and a simulated loop: `run(logs, classes, script)`."""

import asyncio
import random
from collections.abc import Callable, Coroutine
from typing import Any

import msgspec

from edgestead.objects.errors import ObjectReset
from edgestead.objects.runtime.classes import StatefulObject, describe
from edgestead.objects.runtime.gates import InputGate
from edgestead.objects.runtime.node import UPKEEP_SECONDS, Node
from edgestead.objects.runtime.storage import Storage
from edgestead.sqlite.objectlog.local import KEEPING, LocalObjectLog
from edgestead.testing.simulation import SimulatedLoop, SimulatedRunner, simulate
from tests.objects.logs import SEGMENT_BYTES, Logs, leased, ref


class TendedNode(Node):
    """A node whose log is tended, as the process does that opens one."""

    log: LocalObjectLog

    def start(self, *, alarms: bool = True) -> None:
        super().start(alarms=alarms)
        self._loop.call_later(UPKEEP_SECONDS, self._tend)

    def _tend(self) -> None:
        if not self.log.is_closed:
            self.log.tend()
            self._loop.call_later(UPKEEP_SECONDS, self._tend)


Script = Callable[[Node], Coroutine[Any, Any, Any]]


def make_node(logs: Logs, loop: SimulatedLoop, *classes: type[StatefulObject], **options: Any) -> Node:
    """A node on what the disk holds."""
    log = LocalObjectLog(
        "/objects",
        files=logs.disk,
        commits=SimulatedRunner(loop),
        upkeep=SimulatedRunner(loop, 0.05),
        now_us=loop.now_us,
        random=random.Random(1).randbytes,
        fatal=logs.fatal.append,
        vfs=logs.vfs,
        segment_bytes=options.pop("segment_bytes", SEGMENT_BYTES * 4),
        keeping=options.pop("keeping", KEEPING),
        clock=options.pop("clock", None),
    )
    logs.opened.append(log)
    node = TendedNode(
        {
            kind.__name__: msgspec.structs.replace(describe(kind), durability=logs.durability)
            for kind in classes
        },
        log.store,
        logs.disk,
        now_ms=loop.now_ms,
        random=random.Random(2).randbytes,
        vfs=logs.vfs,
        **options,
    )
    opens = node._open_database

    def open_database(*arguments: Any) -> Any:
        database = opens(*arguments)
        logs.databases.append(database)
        return database

    node._open_database = open_database  # type: ignore[method-assign, assignment]
    return node


def run(
    logs: Logs,
    script: Script,
    *classes: type[StatefulObject],
    seed: int = 0,
    close: bool = True,
    watch: Callable[[], None] | None = None,
    **options: Any,
) -> Any:
    """Run a script with a node, end the node, and give the script's result."""

    async def main(loop: SimulatedLoop) -> Any:
        loop.watch = watch or loop.watch
        node = make_node(logs, loop, *classes, **options)
        node.start()
        try:
            return await script(node)
        finally:
            if close and not logs.disk.dead:
                await node.close()

    return simulate(main, seed)


Body = Callable[[Storage], Coroutine[Any, Any, Any]]


def with_storage(logs: Logs, body: Body, backend: str = "sql", **options: Any) -> Any:
    """Run a body with the storage of a fresh object, without the object around it."""

    async def main(loop: SimulatedLoop) -> Any:
        node = make_node(logs, loop, **options)
        broken: list[ObjectReset] = []
        engine = node._make_engine(leased(node.log, ref()), broken.append, logs.durability)
        storage = Storage(
            engine, InputGate(), sql_backend=backend == "sql", has_alarm=True, now_ms=loop.now_ms
        )
        try:
            return await body(storage)
        finally:
            if engine.broken is None:
                engine.commit()
                node.log.flush()
            decided = asyncio.Event()
            engine.when_decided(lambda error: decided.set())
            await decided.wait()
            node._close_engine(("Counter", ref().id), engine)
            await node.close()

    return simulate(main, 0)
