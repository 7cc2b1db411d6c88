"""A node of stateful objects in memory, on invented time, for plain synchronous tests.

Owns  `ObjectNode`: calls, time, kills, snapshots, a look inside.
Not   HTTP addresses, tokens, several processes: `testing.server` starts the real thing.

    def test_a_hold_ends(objects):
        room = objects.Booking["room-1"]
        room.hold("ann", seconds=60)
        objects.advance(61)
        assert room.state() == "free"

Nothing here waits: a day of invented time passes as fast as what happens in it can be computed.
"""

import asyncio
import inspect
import itertools
import random as random_module
import sys
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from os import PathLike, fspath
from types import ModuleType, TracebackType
from typing import Any, Self, TypeVar

from edgestead.objects.errors import UnknownClass
from edgestead.objects.operate.operations import Operations
from edgestead.objects.operate.shapes import Moment
from edgestead.objects.runtime.calls import Reply, pack_arguments, unpack
from edgestead.objects.runtime.classes import ClassInfo, StatefulObject, describe
from edgestead.objects.runtime.engine import Engine
from edgestead.objects.runtime.env import Env
from edgestead.objects.runtime.gates import InputGate
from edgestead.objects.runtime.loader import load
from edgestead.objects.runtime.storage import Storage
from edgestead.store.objectlog import ObjectRef
from edgestead.testing.answers import Answer, ask
from edgestead.testing.clock import UserClock
from edgestead.testing.disks import SimulatedDisk
from edgestead.testing.handles import Handle, Handles, StorageAccess
from edgestead.testing.lives import Life, new_stage
from edgestead.testing.namespaces import NamespaceAccess, Namespaces
from edgestead.testing.network import Network, Respond
from edgestead.testing.snapshots import Snapshot

T = TypeVar("T")
Source = type[StatefulObject] | str | PathLike[str]
START = datetime(2026, 1, 1, tzinfo=UTC)
CALL_SECONDS_MAX = 24 * 60 * 60.0  # of invented time: a call that polls for ever is a failure
LAGGING_MAX = 10_000  # databases brought up to the log by one `advance`
IDLE_AT_ONCE = 1_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_numbers = itertools.count(1)
_empty: list[Snapshot] = []  # what the first node made: half of a start is making databases
_loaded: dict[str, dict[str, ClassInfo]] = {}


def describe_all(sources: Iterable[Source]) -> dict[str, ClassInfo]:
    """The classes themselves, and those of each FILE.py, folder or module, imported once.

    Raises LoadError; TypeError for a class that breaks a rule.
    """
    found: dict[str, ClassInfo] = {}
    for source in sources:
        if isinstance(source, type):
            found[source.__name__] = describe(source)
            continue
        text = fspath(source)
        if text not in _loaded:
            _loaded[text] = load([text])
        found |= _loaded[text]
    return found


class ObjectNode:
    """Runs objects of these classes; a source is a class, a FILE.py, a folder of such files, or a module.

    `start` is a snapshot to begin from, or the time at which an empty node begins. With a `seed` things that
    could happen in any order do so in an order of that number; without one in the order of a real loop.
    `namespaces` are names of key-value namespaces, which objects find in `env` by them.
    Use it as a context manager, or `close` it. Attributes that begin with a capital are loaded classes.
    """

    def __init__(
        self,
        *sources: Source,
        start: Snapshot | datetime = START,
        seed: int | None = None,
        namespaces: Iterable[str] = (),
    ) -> None:
        self._classes = describe_all(sources)
        self._seed = seed
        self._undo = ExitStack()
        self.disk = SimulatedDisk()
        self._vfs = self._undo.enter_context(self.disk.vfs(f"edgestead-node-{next(_numbers)}"))
        time_us = _microseconds(start) if isinstance(start, datetime) else start.time_us
        self._network = Network()
        self._namespaces = Namespaces(namespaces, lambda: self.now_ms // 1_000)
        self._clock = UserClock(lambda: self._life.loop.now_us(), _modules(self._classes))
        begin = start if isinstance(start, Snapshot) else _empty[0] if _empty else None
        if begin is not None:
            self._put_back(begin)
        self._stage = new_stage()
        self._life = self._begin(time_us)
        if begin is None:
            _empty.append(Snapshot.of(self.disk, {}, time_us))
        self._closed = False

    def _begin(self, time_us: int) -> Life:
        return Life(
            self.disk,
            self._vfs,
            self._classes,
            time_us=time_us,
            seed=self._seed,
            bindings=self._namespaces.bindings,
            stage=self._stage,
        )

    def _put_back(self, snapshot: Snapshot) -> None:
        snapshot.put_back(self.disk)
        self._namespaces.put_back(snapshot.namespaces)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End it. Idempotent."""
        if not self._closed:
            self._closed = True
            self._life.kill()
            self._undo.close()

    # calls

    def __getattr__(self, class_name: str) -> Handles:
        if not class_name[:1].isupper():
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {class_name!r}")
        return self[class_name]

    def __getitem__(self, class_name: str | type[StatefulObject]) -> Handles:
        """The objects of a class: `objects["Booking"]["room-1"]`, or `objects.Booking["room-1"]`."""
        name = class_name if isinstance(class_name, str) else class_name.__name__
        if name not in self._classes:
            known = ", ".join(sorted(self._classes)) or "none"
            raise UnknownClass(f"no class {name!r} was loaded; loaded are: {known}")
        return Handles(self, name)

    def run(self, script: Callable[[Env], Coroutine[Any, Any, T]]) -> T:
        """Run `await script(env)` on the node's loop: for calls that happen at the same time.

        async def both(env):
            return await asyncio.gather(env.Booking["r"].hold("ann"), env.Booking["r"].hold("bob"))

        first, second = objects.run(both)
        """
        return self._run(script(self._life.node.env))

    def _call(self, ref: ObjectRef, method: str, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        packed = pack_arguments(arguments, named)

        async def call() -> Reply:
            return await self._life.node.call(ref, method, packed)

        return unpack(self._run(call()))

    def _run(self, work: Coroutine[Any, Any, T], seconds_max: float | None = CALL_SECONDS_MAX) -> T:
        if asyncio._get_running_loop() is not None:
            work.close()
            raise RuntimeError("a node has a loop of its own: use it in a plain `def`, and objects.run()")
        with self._clock.installed(), self._network.installed():
            result = self._life.run(work, seconds_max)
        if self._life.fatal:
            raise self._life.fatal[0]
        return result

    def fetch(
        self,
        of: Handle,
        path: str = "/",
        *,
        method: str = "GET",
        headers: dict[str, str] | None = None,
        body: bytes | str = b"",
    ) -> Answer:
        """An HTTP request to the object's `fetch`; a streamed body is read to its end.

        Raises what its caller would see: ObjectReset, or what `fetch` raised.
        """
        ref = of._ref
        return self._run(
            ask(self._life.node, ref, self._classes[ref.class_name], path, method, headers or {}, body)
        )

    def on_fetch(self, respond: Respond | None) -> None:
        """Answer what objects ask of the world with `ctx.fetch`: `respond(request)` gives an Answer.

        There is no network here: without it, or for None, every `ctx.fetch` raises FetchError.
        """
        self._network.respond = respond

    # time

    @property
    def now(self) -> datetime:
        """What the clock of the node says, in UTC."""
        return _EPOCH + timedelta(microseconds=self._life.loop.now_us())

    @property
    def now_ms(self) -> int:
        """The same in milliseconds since the epoch."""
        return self._life.loop.now_ms()

    def advance(self, seconds: float = 0, **parts: float) -> None:
        """Let time go by: `advance(90)`, `advance(days=1, hours=2)`; names are those of timedelta.

        Everything that is due meanwhile happens at its time. An object that nobody called for 10 s has left
        memory then, as on a server. Raises ValueError for a negative time.
        """
        time_seconds = (timedelta(**parts) + timedelta(seconds=seconds)).total_seconds()
        if time_seconds < 0:
            raise ValueError("time does not go back: set_clock() makes the clock say something else")
        self._run(asyncio.sleep(time_seconds), None)
        self._run(self._upkeep(), None)

    async def _upkeep(self) -> None:
        node = self._life.node
        self._life.log.tend()
        while node.evict_idle(IDLE_AT_ONCE):
            pass
        for _ in range(LAGGING_MAX):
            if not (behind := node.log.lagging(1)):
                break
            node._move_base(behind[0])
            await asyncio.sleep(0)

    def set_clock(self, time: datetime) -> None:
        """Have the clock say another time, earlier ones too, without any time going by."""
        self._life.loop.epoch_us += _microseconds(time) - self._life.loop.now_us()
        self._run(self._look_at_alarms())

    async def _look_at_alarms(self) -> None:
        self._life.node.alarms.look()

    # alarms and the past

    @property
    def _operations(self) -> Operations:
        return Operations(self._life.node)

    def run_alarm(self, of: Handle) -> bool:
        """Run an object's alarm handler now, whenever it is due; False when no alarm is set.

        What the handler raises sets a retry, as ever; `inside(of, lambda self: self.alarm())` raises it.
        """
        return self._run(self._operations.run_alarm(of._ref))

    def release(self, of: Handle) -> bool:
        """Let an object run again whose alarm was under way in three crashes; False when it may anyway."""
        return self._life.node.release(of._ref)

    def bookmark(self, of: Handle, at: datetime | None = None) -> str:
        """The bookmark of an object as it is, or was at a time. Raises BookmarkError."""
        time_ms = None if at is None else _microseconds(at) // 1_000
        return self._run(self._operations.bookmark(of._ref, time_ms))

    def restore(self, of: Handle, to: str | datetime) -> str:
        """Take an object back to a bookmark or a time, now; gives the bookmark that undoes it.

        Objects of both backends, whatever their class says. Raises BookmarkError: nothing was changed.
        """
        bookmark = self.bookmark(of, to) if isinstance(to, datetime) else to
        return self._run(self._operations.restore(of._ref, bookmark))

    def undo(self, of: Handle) -> str:
        """Take back the last restore; gives what undoes that. Raises BookmarkError when there was none."""
        return self._run(self._operations.undo(of._ref))

    def timeline(self, of: Handle) -> list[Moment]:
        """The moments that an object can be taken back to, newest first."""
        return self._run(self._operations.timeline(of._ref))

    # processes

    def crash(self, *, power: bool = False, seed: int = 0) -> None:
        """Kill the process, as `kill -9` does, and start the next one on what is on the disk.

        With `power` the machine goes down too: of what no sync had made durable any part may be lost, by the
        number of `seed`. What an object had answered is there in either case.
        """
        stage = memoryview(bytearray(self._stage))  # before tasks that are closed change what a kill leaves
        self._end_life()
        if power:
            self.disk.cut_power(random_module.Random(seed))
        else:
            self._stage = stage
        self._start_again(self._time_us)

    def snapshot(self) -> Snapshot:
        """Everything that is stored, and the time. What runs in memory is not in it."""
        self._run(_settle())
        self._life.node.log.settle()
        return Snapshot.of(self.disk, self._namespaces.contents(), self._life.loop.now_us())

    def rollback(self, to: Snapshot) -> None:
        """Go back to a snapshot, storage and time. Objects start anew when they are called."""
        self._end_life()
        self._put_back(to)
        self._start_again(to.time_us)

    def _end_life(self) -> None:
        self._time_us = self._life.loop.now_us()
        self._stage = new_stage()
        self._life.kill()
        self.disk.restart()

    def _start_again(self, time_us: int) -> None:
        self._life = self._begin(time_us)

    # inside

    def storage(self, of: Handle) -> StorageAccess:
        """An object's storage, for a test to read and write. The object needs no method for it.

        No code of an object that is not in memory runs: what an older version had stored can be put there
        before the first call.
        """
        return StorageAccess(self, of._ref)

    def namespace(self, name: str) -> NamespaceAccess:
        """A key-value namespace, for a test to read and fill. Raises KeyError for one that is not bound."""
        return NamespaceAccess(self._namespaces.bindings.ids[name], self._namespaces, self._run)

    def inside(self, of: Handle, look: Callable[[Any], T | Awaitable[T]]) -> T:
        """`look(self)` with the living object itself, as one of its events; starts it if need be."""
        ref = of._ref
        node = self._life.node

        async def visit() -> T:
            instance = await node._find(ref, self._classes[ref.class_name])

            async def run(engine: Engine) -> T:
                found = look(instance._object)
                return await found if inspect.isawaitable(found) else found

            return await instance.visit(run)

        return self._run(visit())

    def evict(self, of: Handle) -> bool:
        """Have an object leave memory now; the next call starts it anew. False when it is not idle."""
        self._run(_settle())
        key = (of._ref.class_name, of._ref.id)
        return key not in self._life.node._live or self._life.node.evict(key)

    def is_live(self, of: Handle) -> bool:
        """Whether an object is in memory."""
        return (of._ref.class_name, of._ref.id) in self._life.node._live

    def _on_storage(self, ref: ObjectRef, use: Callable[[Storage], Any]) -> Any:
        info = self._classes[ref.class_name]

        async def run(engine: Engine) -> Any:
            made = Storage(
                engine,
                InputGate(),
                sql_backend=info.backend == "sql",
                has_alarm=info.has_alarm,
                now_ms=self._life.loop.now_ms,
            )
            result = use(made)
            return await result if inspect.isawaitable(result) else result

        return self._run(self._life.node.visit(ref, run))


async def _settle() -> None:
    """Let everything happen that needs no time."""
    for _ in range(3):
        await asyncio.sleep(0)


def _microseconds(moment: datetime) -> int:
    if moment.tzinfo is None:
        raise TypeError("a naive datetime names no moment: give it a tzinfo")
    return (moment - _EPOCH) // _MICROSECOND


def _modules(classes: dict[str, ClassInfo]) -> list[ModuleType]:
    """Where the classes are defined, and the modules beside them."""
    homes = {sys.modules.get(info.kind.__module__) for info in classes.values()}
    folders = {_folder(module) for module in homes if module is not None}
    folders.discard(None)
    beside = [module for module in list(sys.modules.values()) if _folder(module) in folders]
    return [module for module in homes if module is not None and module not in beside] + beside


def _folder(module: ModuleType | None) -> str | None:
    file = getattr(module, "__file__", None)
    return file.rpartition("/")[0] if isinstance(file, str) else None
