"""What an operator may do with any object, its class loaded or not.

Owns  reading an object's past, taking it back, its alarm, checking it.
Not   HTTP, permissions; SQL of operators.

Both backends and both durabilities have a past: only user code of the key-value backend cannot name it.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple, Protocol, TypeVar

import msgspec

from edgestead.objects.errors import BookmarkError, ObjectError
from edgestead.objects.operate.shapes import Moment
from edgestead.objects.runtime import recovery
from edgestead.objects.runtime.admission import AskAgain
from edgestead.objects.runtime.alarms import Alarms, pack_time, unpack_time
from edgestead.objects.runtime.asking import ask
from edgestead.objects.runtime.bookmarks import Bookmark, pack, parse
from edgestead.objects.runtime.classes import ClassInfo
from edgestead.objects.runtime.engine import Engine
from edgestead.store.objectlog import CommitKind, ObjectRef, Target, TooLarge, Unknown
from edgestead.store.past import END_OF_SESSION, LoggedPosition, ObjectState, Past

T = TypeVar("T")
MOMENTS_MAX = 10_000  # of one answer
LOOK_BYTES_MAX = 32 * 1024 * 1024  # of a database of the past: it is in memory three times for a moment
RECALLED_BYTES_MAX = 4 * LOOK_BYTES_MAX  # of what it is put together from: it may have been larger before


class AlarmState(msgspec.Struct, frozen=True):
    """`time_ms` as `get_alarm` says; `retries` counts failures so far; `running`: the handler runs."""

    time_ms: int | None
    retries: int
    running: bool


class Stored(NamedTuple):
    """What an object had stored at a moment, and the name of that."""

    bookmark: str
    time_us: int
    state: ObjectState


class Running(Protocol):
    """What is asked of a node."""

    classes: Mapping[str, ClassInfo]
    past: Past
    alarms: Alarms

    async def with_storage(
        self, ref: ObjectRef, use: Callable[[Engine], T], *, ask_again: AskAgain | None = None
    ) -> T: ...

    async def visit(
        self, ref: ObjectRef, run: Callable[[Engine], Awaitable[T]], *, ask_again: AskAgain | None = None
    ) -> T: ...

    async def take_back(self, ref: ObjectRef) -> None: ...

    async def check(self, ref: ObjectRef) -> list[str]: ...

    def now_ms(self) -> int: ...

    def check_held(self, ref: ObjectRef) -> None: ...


class Operations:
    """Every method may raise ObjectError, LogError, OSError, apsw.Error.

    With `ask_again` it is somebody from outside who operates: he is asked when the object's turn has come.
    """

    def __init__(self, node: Running, ask_again: AskAgain | None = None) -> None:
        self._node, self._ask_again = node, ask_again

    def _with_storage(self, ref: ObjectRef, use: Callable[[Engine], T]) -> Awaitable[T]:
        return self._node.with_storage(ref, use, ask_again=self._ask_again)

    # the past

    async def bookmark(self, ref: ObjectRef, time_ms: int | None = None) -> str:
        """The bookmark of now, or of a time; it is kept. Raises BookmarkError."""
        if time_ms is None:
            return await self._with_storage(ref, recovery.current)
        recovery.check_window(time_ms, self._node.now_ms())
        found = await recovery.locate_time(self._node.past, ref, time_ms)
        await self._with_storage(ref, lambda engine: engine.keep_position(found.position))
        return recovery.text_of(ref, found)

    async def timeline(
        self, ref: ObjectRef, *, since_ms: int = 0, until_ms: int | None = None, limit: int = 1_000
    ) -> list[Moment]:
        """The moments between two times, newest first."""
        until_us = (self._node.now_ms() if until_ms is None else until_ms) * 1_000 + 999
        count = max(1, min(limit, MOMENTS_MAX))
        found: list[LoggedPosition] = await ask(
            lambda done: self._node.past.moments(ref, since_ms * 1_000, until_us, count, done)
        )
        return [
            Moment(
                recovery.text_of(ref, one),
                one.time_us,
                one.stored,
                "restore" if one.kind == CommitKind.RESTORED else "commit",
                one.pinned,
            )
            for one in found
        ]

    async def state_at(self, ref: ObjectRef, at: str | int | None) -> Stored:
        """What was stored at a bookmark, at a time in milliseconds, or is now. Nothing is kept for it.

        Raises BookmarkError, ObjectError: it is too large to be put together.
        """
        size_bytes = await self._with_storage(
            ref, lambda engine: engine.open().size_bytes() if engine.has_file else 0
        )
        if size_bytes > LOOK_BYTES_MAX:
            raise ObjectError(
                f"The object has {size_bytes} bytes; the past of up to {LOOK_BYTES_MAX} can be looked at."
            )
        target, generation = await self._moment(ref, at)
        try:
            found: tuple[LoggedPosition, ObjectState] = await ask(
                lambda done: self._node.past.recall(
                    ref, target, generation, done, bytes_max=RECALLED_BYTES_MAX
                )
            )
        except TooLarge as error:
            raise ObjectError(f"What was stored then cannot be put together: {error}.") from None
        except Unknown as error:
            raise BookmarkError(str(error)) from None
        return Stored(recovery.text_of(ref, found[0]), found[0].time_us, found[1])

    async def _moment(self, ref: ObjectRef, at: str | int | None) -> tuple[Target, int]:
        if isinstance(at, str):
            said = parse(ref.id, at)
            return said.target, said.generation
        if at is not None:
            recovery.check_window(at, self._node.now_ms())
            found = await recovery.locate_time(self._node.past, ref, at)
            return Target(found.session, found.position), found.generation
        lease = await self._with_storage(ref, lambda engine: engine.lease)
        return Target(lease.session, END_OF_SESSION), lease.life

    async def restore(self, ref: ObjectRef, bookmark: str) -> str:
        """Take the object back now; callers of what it is doing get a reset. Gives what undoes it.

        Raises BookmarkError: nothing was changed.
        """
        target = await recovery.find(self._node.past, ref, bookmark)

        def schedule(engine: Engine) -> tuple[int, str]:
            return engine.lease.session, recovery.schedule(engine, target)

        session, undo = await self._with_storage(ref, schedule)
        await self._node.take_back(ref)
        lease = await self._with_storage(ref, lambda engine: engine.lease)
        if lease.session == session and lease.pending is None:
            raise BookmarkError("what is kept of that moment cannot be read: the object stays as it was")
        return undo

    async def undo(self, ref: ObjectRef) -> str:
        """Take back the last restore; gives what undoes that. Raises BookmarkError when there was none."""
        lease = await self._with_storage(ref, lambda engine: engine.lease)
        if not lease.session:
            raise BookmarkError("the object was never restored")
        before = Bookmark(lease.life, lease.session - 1, END_OF_SESSION)
        return await self.restore(ref, pack(ref.id, before))

    # the alarm

    async def alarm(self, ref: ObjectRef) -> AlarmState:
        running = self._node.alarms.is_running(ref)
        alarm_us = await self._with_storage(ref, lambda engine: engine.alarm_us)
        if alarm_us is None:
            return AlarmState(None, 0, running)
        return AlarmState(*unpack_time(alarm_us), running)

    async def set_alarm(self, ref: ObjectRef, time_ms: int | None) -> None:
        """Set it, whether or not the class has a handler, or delete it with None. Durable when it returns."""
        alarm_us = None if time_ms is None else pack_time(max(time_ms, self._node.now_ms()))

        async def set_it(engine: Engine) -> None:
            engine.set_alarm(alarm_us)

        await self._node.visit(
            ref, set_it, ask_again=self._ask_again
        )  # as an event: not inside a transaction that may be rolled back

    async def run_alarm(self, ref: ObjectRef) -> bool:
        """Run the handler now, whenever it is due, and wait for its end. False when no alarm is set.

        Raises ObjectError without a loaded class that has one, Quarantined: the alarm stays as it is.
        """
        info = self._node.classes.get(ref.class_name)
        if info is None or not info.has_alarm:
            raise ObjectError(f"no class {ref.class_name} with an alarm() method was loaded")
        self._node.check_held(ref)
        if (await self.alarm(ref)).time_ms is None:
            return False
        await self.set_alarm(ref, self._node.now_ms())
        await self._node.alarms.run_now(ref)
        return True

    # health

    async def verify(self, ref: ObjectRef) -> list[str]:
        """Read everything of an object: its database and indexes, its past. What is wrong, in words."""
        wrong = await self._node.check(ref)
        past: list[list[str]] = await ask(lambda done: self._node.past.check([ref], done))
        return wrong + past[0]
