"""Storage against a plain dict: any sequence of operations, transactions, evictions and power cuts agrees."""

import asyncio
import random
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from edgestead.objects.runtime.engine import Engine
from edgestead.objects.runtime.gates import InputGate
from edgestead.objects.runtime.node import Node
from edgestead.objects.runtime.storage import Storage
from edgestead.testing.disks import SimulatedDisk
from edgestead.testing.simulation import SimulatedLoop
from tests.objects.logs import Logs, leased, ref
from tests.objects.nodes import make_node

KEYS = st.sampled_from(["", "a", "aa", "b", "é", "\uffff", "\U00010000", "z" * 40])
SMALL = st.none() | st.integers() | st.text(max_size=5) | st.tuples(st.booleans())
BOUNDS = st.none() | KEYS


class StorageModel(RuleBasedStateMachine):
    """`kept` is what storage must hold; `levels` the copies that open transactions go back to."""

    def __init__(self) -> None:
        super().__init__()
        self.disk = SimulatedDisk()
        self.registered = self.disk.vfs(f"model-{id(self.disk)}")
        self.logs = Logs(self.disk, self.registered.__enter__())
        self.kept: dict[str, Any] = {}
        self.alarm: int | None = None
        self.levels: list[tuple[dict[str, Any], int | None]] = []
        self.open()

    def open(self) -> None:
        self.loop = SimulatedLoop(random.Random(0))
        asyncio.set_event_loop(self.loop)

        async def make() -> tuple[Node, Engine]:
            node = make_node(
                self.logs, self.loop, logging=random.Random(len(self.logs.opened)).choice(("keys", "pages"))
            )
            return node, node._make_engine(leased(node.log, ref()), lambda error: None, self.logs.durability)

        self.node, self.engine = self.loop.run_until_complete(make())
        self.storage = Storage(
            self.engine, InputGate(), sql_backend=True, has_alarm=True, now_ms=self.loop.now_ms
        )

    def settle(self) -> None:
        async def sync() -> None:
            await self.storage.sync()

        self.loop.run_until_complete(sync())

    @rule(key=KEYS, value=SMALL, no_cache=st.booleans())
    def put(self, key: str, value: Any, no_cache: bool) -> None:
        self.storage.put(key, value, no_cache=no_cache)
        self.kept[key] = value

    @rule(pairs=st.dictionaries(KEYS, SMALL, max_size=5))
    def put_many(self, pairs: dict[str, Any]) -> None:
        self.storage.put(pairs)
        self.kept |= pairs

    @rule(keys=st.lists(KEYS, max_size=3))
    def delete(self, keys: list[str]) -> None:
        assert self.wait(self.storage.delete(keys)) == len({key for key in keys if key in self.kept})
        for key in keys:
            self.kept.pop(key, None)

    @rule(time_ms=st.none() | st.integers(4_000_000_000_000, 5_000_000_000_000))
    def set_alarm(self, time_ms: int | None) -> None:
        if time_ms is None:
            self.storage.delete_alarm()
        else:
            self.storage.set_alarm(time_ms)
        self.alarm = time_ms

    @rule()
    def sql(self) -> None:
        self.storage.sql.exec("CREATE TABLE IF NOT EXISTS n (n); INSERT INTO n VALUES (1)")

    @rule(
        start=BOUNDS,
        end=BOUNDS,
        prefix=BOUNDS,
        reverse=st.booleans(),
        limit=st.none() | st.integers(1, 4),
    )
    def list(self, start: Any, end: Any, prefix: Any, reverse: bool, limit: Any) -> None:
        found = self.wait(
            self.storage.list(start=start, end=end, prefix=prefix, reverse=reverse, limit=limit)
        )
        keys = [
            key
            for key in sorted(self.kept, key=str.encode, reverse=reverse)
            if key >= (start or "") and (end is None or key < end) and key.startswith(prefix or "")
        ]
        assert list(found) == keys[:limit]
        assert found == {key: self.kept[key] for key in keys[:limit]}

    @precondition(lambda self: len(self.levels) < 3)
    @rule()
    def begin(self) -> None:
        self.engine.begin(apart=bool(len(self.kept) % 2))
        self.levels.append((dict(self.kept), self.alarm))

    @precondition(lambda self: self.levels)
    @rule(commit=st.booleans())
    def end(self, commit: bool) -> None:
        self.engine.end(commit=commit)
        before = self.levels.pop()
        if not commit:
            self.kept, self.alarm = before

    @precondition(lambda self: not self.levels)
    @rule()
    def delete_all(self) -> None:
        self.storage.delete_all()
        self.kept.clear()

    @precondition(lambda self: not self.levels)
    @rule()
    def checkpoint(self) -> None:
        self.engine.checkpoint()

    @precondition(lambda self: not self.levels)
    @rule(seed=st.integers(0, 1_000), how=st.sampled_from(["power", "kill", "evict"]))
    def come_back(self, seed: int, how: str) -> None:
        self.settle()
        if how == "evict":
            self.node._close_engine(("Counter", ref().id), self.engine)
            self.node.log.close()
        elif how == "kill":
            self.logs.killed()
        else:
            self.logs.power_cut(seed)
        self.loop.close()
        self.open()

    def wait(self, awaitable: Any) -> Any:
        async def run() -> Any:
            return await awaitable

        coroutine = run()
        try:
            coroutine.send(None)
        except StopIteration as stop:
            return stop.value
        raise AssertionError("storage made somebody wait")

    @invariant()
    def agrees(self) -> None:
        for key in ("", "a", "é", "missing"):
            assert self.wait(self.storage.get(key, default=...)) == self.kept.get(key, ...)
        assert self.wait(self.storage.get_alarm()) == self.alarm

    def teardown(self) -> None:
        self.logs.killed()
        self.logs.abandon()
        self.loop.close()
        asyncio.set_event_loop(None)
        self.registered.__exit__(None, None, None)


StorageModel.TestCase.settings = settings(
    max_examples=60,
    stateful_step_count=25,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
TestStorageModel = StorageModel.TestCase
