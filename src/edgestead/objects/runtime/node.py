"""The objects of one process.

Owns  which objects live, one instance each; starting, evicting and resetting them; moving bases.
Not   HTTP; other processes; when alarms fire (`alarms`).

Runs on the loop it was made on: the real one, or a simulated one. `start` begins upkeep, `close` ends all.
"""

import asyncio
import errno
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from contextvars import Context
from functools import partial
from itertools import islice
from typing import TypeVar

import apsw

from edgestead.model.budgets import table
from edgestead.model.budgets.ledger import Ledger, Levels, Refusal
from edgestead.objects import limits
from edgestead.objects.errors import (
    Aborted,
    ObjectError,
    ObjectReset,
    Overloaded,
    Quarantined,
    StorageBroken,
    UnknownClass,
    UnknownMethod,
)
from edgestead.objects.runtime import own
from edgestead.objects.runtime.admission import AskAgain
from edgestead.objects.runtime.alarms import (
    NEVER,
    UNCOUNTED_SECONDS,
    Alarms,
    Seconds,
    pack_time,
    retry_time,
    unpack_time,
)
from edgestead.objects.runtime.asking import entries_of, tell
from edgestead.objects.runtime.calls import Reply, pack_error
from edgestead.objects.runtime.classes import ClassInfo, Durability, why_not_callable
from edgestead.objects.runtime.commits import Turns
from edgestead.objects.runtime.database import Database
from edgestead.objects.runtime.engine import Engine, Logging
from edgestead.objects.runtime.env import Bindings, Env
from edgestead.objects.runtime.gates import Account, hold_tasks
from edgestead.objects.runtime.instance import OWNED_NO_MORE, Instance
from edgestead.objects.runtime.quarantine import ClassRecord, Quarantine
from edgestead.objects.runtime.stage import Stage
from edgestead.objects.runtime.storage import settle
from edgestead.objects.runtime.taking_back import take_back
from edgestead.objects.runtime.web import Request, Response
from edgestead.store.files import Files
from edgestead.store.objectlog import Lease, LogError, ObjectRef, WrongOwner
from edgestead.store.objects import ObjectStore

log = logging.getLogger(__name__)

UPKEEP_SECONDS = 1.0
BASES_SECONDS = 0.002  # between two batches while the log has full segments
BASES_AT_ONCE = 4
EVICT_AT_ONCE = 8
EVICT_SECONDS = 0.002  # between two batches
_FREE: AbstractContextManager[None] = nullcontext()  # of calls that are counted alone
DRAIN_SECONDS = 5.0
T = TypeVar("T")
Key = tuple[str, str]
OpenDatabase = Callable[[Lease, Files, str], Database]


def _give_back(told: "asyncio.Future[Lease]") -> None:
    """A lease that came when nobody waited for it any more."""
    if not told.cancelled() and told.exception() is None:
        with suppress(LogError):
            lease = told.result()
            lease.release(lease.tail)


def open_logged(lease: Lease, files: Files, vfs: str) -> Database:
    """Open the database of an object whose commits are the log's. Raises apsw.Error, OSError."""
    if lease.has_file and not files.exists(lease.path):  # SQLite would make an empty one
        raise FileNotFoundError(errno.ENOENT, "its file is gone", lease.path)
    return Database(lease.path, files, fresh=not lease.has_file, vfs=vfs)


class _Sender:
    """Calls on behalf of one object, behind its output gate."""

    def __init__(self, instance: Instance) -> None:
        self._instance = instance

    async def call(self, ref: ObjectRef, method: str, arguments: bytes) -> Reply:
        return await self._instance.send(ref, method, arguments)

    async def confirmed(self) -> None:
        await self._instance.confirmed()


class Node:
    """Runs the objects of `classes` over one log.

    `databases_max` bounds how many databases are open at once (three descriptors each).
    """

    def __init__(
        self,
        classes: Mapping[str, ClassInfo],
        store: ObjectStore,
        files: Files,
        *,
        now_ms: Callable[[], int],
        random: Callable[[int], bytes],
        vfs: str = "",
        logging: Logging = "keys",
        idle_seconds: float = limits.IDLE_SECONDS,
        databases_max: int = 1_000,
        bindings: Bindings | None = None,
        stage: Stage | None = None,
        quarantine: Quarantine | None = None,
        ledger: Ledger | None = None,
    ) -> None:
        self.ledger = ledger or Ledger()
        self._arguments = Levels(self.ledger, table.OBJECT_BYTES)
        self.classes = classes
        self._stage, self.quarantine = stage, quarantine
        self.store, self.log, self.past, self.room = store, store.log, store.past, store.room
        self._files, self._vfs, self._logging = files, vfs, logging
        self._loop = asyncio.get_running_loop()
        hold_tasks(self._loop)
        self._now_ms, self._random = now_ms, random
        self._idle_seconds, self._databases_max = idle_seconds, databases_max
        self._live: dict[Key, Instance] = {}
        self.accounts = {name: Account() for name in classes}  # what the code of each class took
        self._ending: dict[Key, asyncio.Future[None]] = {}
        self._turns = Turns(store.log, self._loop.call_soon, lambda: self._events)
        self._events = 0
        self._waiting: dict[Key, int] = {}  # how many wait for an object to begin
        self._opened: dict[Key, None] = {}  # objects with an open database, oldest first
        self._taking_back: set[asyncio.Task[None]] = set()
        self._is_base_stuck = False  # one could not be moved since the last look
        self._closed = False
        # How calls of this node's own objects go out: to this node, or to the one that owns the object.
        self.deliver: Callable[[ObjectRef, str, bytes], Awaitable[Reply]] = self.call
        # Whether an object that is not in memory may begin here; a process may have lost its class.
        self.may_begin: Callable[[ObjectRef], bool] = lambda ref: True
        self.begun: Callable[[Key], object] = bool  # told of each object that comes into memory
        self.left: Callable[[Key], object] = bool  # and of each that has left it, or was visited
        self._bindings = bindings
        self.alarms = Alarms(store.alarms, self._loop, lambda: pack_time(now_ms()), self._run_alarm)
        self.env = Env(self, classes, random, bindings)

    # calls

    async def call(
        self,
        ref: ObjectRef,
        method: str,
        arguments: bytes,
        *,
        within_task: bool = False,
        ask_again: AskAgain | None = None,
    ) -> Reply:
        """Call a method of an object; never raises what the method raised, but gives it as a reply.

        Raises WrongOwner: nothing ran.

        `within_task`: the call is all that the running task is there for, and nobody cancels it. `ask_again`:
        what a caller is asked that waited for the object; raises what that raises.
        """
        info = self.classes.get(ref.class_name)
        if info is None:
            return pack_error(UnknownClass(f"no class {ref.class_name!r} was loaded"))
        if method not in info.methods:
            why = why_not_callable(info, method)
            words = f"class {ref.class_name} has no method {method!r}{why and ': '}{why}"
            return pack_error(UnknownMethod(words))
        self._events += 1
        try:
            with self._holding(ref, len(arguments)) as refusal:
                if refusal is not None:
                    return pack_error(Overloaded(f"there would be {refusal.reason}"))
                instance = self._live.get((ref.class_name, ref.id))
                waited = instance is None
                if instance is None:
                    instance = await self._find(ref, info)
                if within_task:
                    return await instance.call_within(method, arguments, ask_again, waited)
                return await instance.call(method, arguments, ask_again)
        except WrongOwner:
            raise
        except (LogError, OSError) as error:
            return pack_error(StorageBroken(f"Object storage cannot be opened: {error}"))
        except ObjectError as error:
            return pack_error(self._counted(error, ref))
        finally:
            self._events -= 1

    async def fetch(
        self,
        ref: ObjectRef,
        info: ClassInfo,
        request: Request,
        ask_again: AskAgain | None = None,
        *,
        within_task: bool = False,
    ) -> Response | Reply:
        """Give an HTTP request to an object's `fetch`: its response, or the error as a reply.

        `within_task`: as in `call`. Raises what `ask_again` raises, right before; WrongOwner.
        """
        self._events += 1
        try:
            instance = await self._find(ref, info)
            answer: Response | Reply = await instance.fetch(request, ask_again, within_task=within_task)
            return answer
        except WrongOwner:
            raise
        except (LogError, OSError) as error:
            return pack_error(StorageBroken(f"Object storage cannot be opened: {error}"))
        except ObjectError as error:
            return pack_error(self._counted(error, ref))
        finally:
            self._events -= 1

    def _holding(self, ref: ObjectRef, octets: int) -> AbstractContextManager[Refusal | None]:
        """Draw on the object's budget for the arguments of a call."""
        if octets <= limits.SMALL_BYTES_MAX:
            return _FREE
        return self._arguments.drawn(f"{ref.class_name}/{ref.id}", octets)

    def _counted(self, error: ObjectError, ref: ObjectRef) -> ObjectError:
        if isinstance(error, Overloaded):
            self.ledger.refuse(table.OBJECT_CALLS, f"{ref.class_name}/{ref.name or ref.id}")
        return error

    async def _run_alarm(self, ref: ObjectRef) -> Seconds:
        """Run one alarm; the seconds until it is to be looked at again if it is still there, or NEVER."""
        info = self.classes.get(ref.class_name)
        if info is None or not info.has_alarm or self.is_held(ref):
            return NEVER  # it waits until its class is loaded again, or the object released
        self._events += 1
        try:
            await (await self._find(ref, info)).alarm()
        except StorageBroken:
            pass
        except WrongOwner:
            return NEVER  # its owner runs it
        except ObjectReset as error:
            if not self._closed and await self._count_failure(ref, error):
                return 0.0
        except (ObjectError, LogError, OSError, apsw.Error) as error:
            log.error("the alarm of %s/%s cannot run: %s", ref.class_name, ref.name or ref.id, error)
        else:
            return 0.0
        finally:
            self._events -= 1
        return UNCOUNTED_SECONDS

    async def _count_failure(self, ref: ObjectRef, error: ObjectReset) -> bool:
        """The object was reset by its own code, so nobody has set the retry. False when that fails too."""
        log.info("the alarm of %s/%s was reset", ref.class_name, ref.name or ref.id, exc_info=error)

        def fail(engine: Engine) -> None:
            fired_us = engine.begin_alarm(pack_time(self._now_ms()))
            if fired_us is not None:
                failures = unpack_time(fired_us)[1] + 1
                engine.end_alarm(retry_time(self._now_ms(), failures, self.chance()))

        try:
            await self.with_storage(ref, fail)
        except (ObjectError, LogError, OSError, apsw.Error):
            return False
        return True

    def is_held(self, ref: ObjectRef) -> bool:
        """Whether the object is in quarantine."""
        return self.quarantine is not None and self.quarantine.holds(ref)

    def why_held(self, ref: ObjectRef) -> str | None:
        """Why the object is in quarantine, and the way out."""
        info = self.classes.get(ref.class_name)
        known = info.methods if info else ()
        return self.quarantine.why_held(ref, known) if self.quarantine is not None else None

    def check_held(self, ref: ObjectRef) -> None:
        """Raises Quarantined."""
        if why := self.why_held(ref):
            raise Quarantined(why)

    def held(self) -> list[ObjectRef]:
        """The objects in quarantine, by class and id."""
        return self.quarantine.held() if self.quarantine is not None else []

    def release(self, ref: ObjectRef) -> bool:
        """Let an object run again that is in quarantine; False when it is not. Raises OSError."""
        if self.quarantine is None or not self.quarantine.release(ref):
            return False
        self.store.alarms.give_back(ref)
        return True

    def held_classes(self) -> list[ClassRecord]:
        """The classes in quarantine, by name."""
        return self.quarantine.held_classes() if self.quarantine is not None else []

    async def release_class(self, class_name: str) -> bool:
        """Let a class run again that is in quarantine; False when it is not. Raises OSError, LogError."""
        if class_name not in {one.class_name for one in self.held_classes()}:
            return False
        alarms = []  # first: a log that is away is no reason to keep them waiting for ever
        async for entry in entries_of(self.log, (class_name, "")):
            if entry.ref.class_name != class_name:
                break
            if entry.alarm_us is not None:
                alarms.append(entry.ref)
        if self.quarantine is None or not self.quarantine.release_class(class_name):
            return False
        for ref in alarms:
            if not self.is_held(ref):
                self.store.alarms.give_back(ref)
        return True

    def now_ms(self) -> int:
        """The wall clock."""
        return self._now_ms()

    async def check(self, ref: ObjectRef) -> list[str]:
        """What SQLite finds wrong with an object's database and indexes; empty when nothing is."""
        return await self.with_storage(ref, lambda engine: engine.verify())

    def chance(self) -> float:
        return int.from_bytes(self._random(4)) / 2**32

    async def visit(
        self,
        ref: ObjectRef,
        run: Callable[[Engine], Awaitable[T]],
        *,
        ends: str | None = None,
        ask_again: AskAgain | None = None,
    ) -> T:
        """Do something with the storage of an object, not through its class.

        An object in memory takes it as an event, or is reset first, with the reason `ends`. Of another one
        only the storage is opened, no code of its class runs, and calls wait until the visit is over. What
        it wrote is durable then. Raises what `run` raises, ObjectError, LogError, OSError, apsw.Error, and
        what `ask_again` raises: right before it ends or does anything, if the visitor waited.
        """
        key = (ref.class_name, ref.id)
        while True:
            if ask_again is not None and (ends is not None or key not in self._live):
                await ask_again()
            if ends is not None and key in self._live:
                self._live[key].reset(ObjectReset(ends))
            if key in self._live:
                break
            if key in self._ending:
                await asyncio.shield(self._ending[key])
                continue
            if self._closed:
                break
            held = self._keep_out(key)
            try:
                lease = await self._acquire(ref)
                if lease.pending is None:
                    return await self._visit_storage(key, lease, run, ask_again)
                lease.release(lease.tail)
            finally:
                self._let_in(key, held)
            await self._take_back(key, ref)
        if self._closed:
            raise ObjectReset("The node is closing.")
        self._events += 1
        try:
            return await self._live[key].visit(run, ask_again)
        finally:
            self._events -= 1

    async def _visit_storage(
        self, key: Key, lease: Lease, run: Callable[[Engine], Awaitable[T]], ask_again: AskAgain | None
    ) -> T:
        """While others are kept out."""
        self._events += 1
        try:
            engine = self._make_visited(lease)
            try:
                if ask_again is not None:  # acquiring may have waited
                    await ask_again()
                result = await run(engine)
                synced: asyncio.Future[None] = self._loop.create_future()
                engine.when_synced(settle(synced))
                await synced
                if not self.log.may_answer():
                    raise ObjectReset(OWNED_NO_MORE)
                return result
            finally:
                self._let_go(key, engine)
        finally:
            self._events -= 1

    def _make_visited(self, lease: Lease) -> Engine:
        ref = lease.ref

        def broken(error: ObjectReset) -> None:
            log.warning("visiting %s/%s: %s", ref.class_name, ref.name or ref.id, error)

        info = self.classes.get(ref.class_name)
        durability: Durability = info.durability if info else "log"
        return self._make_engine(lease, broken, durability, as_found=True)

    async def _acquire(self, ref: ObjectRef) -> Lease:
        """The lease of an object. Others have to be kept out until it is used. Raises LogError."""
        told: asyncio.Future[Lease] = self._loop.create_future()
        self.log.acquire(ref, partial(tell, told))
        try:
            return await asyncio.shield(told)  # at once, without another turn, where the log is local
        except asyncio.CancelledError:
            told.add_done_callback(_give_back)
            raise

    def _keep_out(self, key: Key) -> "asyncio.Future[None]":
        """Nobody begins the object until `_let_in`."""
        held = self._ending[key] = self._loop.create_future()
        return held

    def _let_in(self, key: Key, held: "asyncio.Future[None]") -> None:
        """Unless others are kept out for another reason meanwhile."""
        if self._ending.get(key) is held:
            del self._ending[key]
        held.set_result(None)

    async def with_storage(
        self, ref: ObjectRef, use: Callable[[Engine], T], *, ask_again: AskAgain | None = None
    ) -> T:
        """The same, for what takes no time: an object in memory does not take it as an event.

        So it also reaches an object whose code keeps others out. Raises what `use` raises, and as `visit`.
        """
        key = (ref.class_name, ref.id)
        while (instance := self._live.get(key)) is None and (ending := self._ending.get(key)) is not None:
            await asyncio.shield(ending)
        if instance is not None and ask_again is not None:
            await ask_again()
            instance = self._live.get(key)
        if instance is not None:
            result = use(instance.engine)
            await instance.confirmed()
            return result

        async def run(engine: Engine) -> T:
            return use(engine)

        return await self.visit(ref, run, ask_again=ask_again)

    async def confirmed(self) -> None:
        """Calls from outside of objects wait for nobody's writes."""

    def _deliver(self, ref: ObjectRef, method: str, arguments: bytes) -> Awaitable[Reply]:
        return self.deliver(ref, method, arguments)

    async def _find(self, ref: ObjectRef, info: ClassInfo) -> Instance:
        """An object in memory. Raises Overloaded, also when as many wait for it as an object has calls."""
        key = (ref.class_name, ref.id)
        if (instance := self._live.get(key)) is not None:
            return instance
        waiting = self._waiting.get(key, 0)
        if waiting >= limits.CALLS_WAITING_MAX:
            raise Overloaded(f"{waiting} calls wait for the object already")
        self._waiting[key] = waiting + 1
        try:
            return await self._have_begun(key, ref, info)
        finally:
            self._waiting[key] -= 1
            if not self._waiting[key]:
                del self._waiting[key]

    async def _have_begun(self, key: Key, ref: ObjectRef, info: ClassInfo) -> Instance:
        while (instance := self._live.get(key)) is None:
            if self._closed:
                raise ObjectReset("The node is closing.")
            ending = self._ending.get(key)
            if ending is not None:
                await asyncio.shield(ending)
            elif not self.may_begin(ref):
                raise Overloaded("The object is about to live in another process.")
            else:
                held = self._keep_out(key)
                try:
                    lease = await self._acquire(ref)
                    if lease.pending is None and not self.is_held(ref) and not self._closed:
                        return self._begin(key, ref, lease, info)
                    lease.release(lease.tail)
                finally:
                    self._let_in(key, held)
                if lease.pending is None:
                    self.check_held(ref)
                elif not self._closed:
                    await self._take_back(key, ref)
        return instance

    async def take_back(self, ref: ObjectRef) -> None:
        """Do now what is pending: end the object's life, and take it back before the next one."""
        key = (ref.class_name, ref.id)
        if (instance := self._live.get(key)) is not None:
            instance.reset(Aborted("The object is being taken back to an earlier moment."))
        while (ending := self._ending.get(key)) is not None:
            await asyncio.shield(ending)
        if key not in self._live:
            await self._take_back(key, ref)

    def _take_back(self, key: Key, ref: ObjectRef) -> Awaitable[None]:
        """Keep everybody out of an object while it becomes what it was. Raises StorageBroken, LogError.

        In a task of nobody's: the caller that comes first may be another object's code, which is held at that
        object's gate or ended in the middle of it, while others wait for this object.
        """
        held = self._keep_out(key)
        task = self._loop.create_task(self._become(key, ref, held), context=Context())
        self._taking_back.add(task)
        task.add_done_callback(self._taking_back.discard)
        return asyncio.shield(task)

    async def _become(self, key: Key, ref: ObjectRef, held: "asyncio.Future[None]") -> None:
        try:
            engine = self._make_visited(await self._acquire(ref))
            try:
                engine.give_tail(await take_back(self.past, engine))
            finally:
                self._let_go(key, engine)
        finally:
            self._let_in(key, held)

    # lives

    def _begin(self, key: Key, ref: ObjectRef, lease: Lease, info: ClassInfo) -> Instance:
        engine_of: list[Engine] = []

        def is_over(ended: Instance) -> None:
            if engine_of:  # else its storage was refused as it was made, and lets itself go
                self._over(key, engine_of[0], ended)

        instance = Instance(
            ref,
            info,
            self._loop,
            self._now_ms,
            self._deliver,
            is_over,
            self.chance,
            self.accounts[ref.class_name],
            self.log.may_answer,
        )
        engine = self._make_engine(lease, instance.reset, info.durability)
        engine_of.append(engine)
        if lease.ref.name is not None:
            instance.ref = lease.ref
        self._live[key] = instance
        self.begun(key)
        if self._stage is not None and self.quarantine is not None:
            forgive = self.quarantine.forgiving(ref, lambda: pack_time(self._now_ms()))
            instance.watch(self._stage.take(instance.ref), forgive)
        instance.start(engine, self._make_env)
        return instance

    def _make_engine(
        self,
        lease: Lease,
        on_broken: Callable[[ObjectReset], None],
        durability: Durability | None = None,
        *,
        as_found: bool = False,
    ) -> Engine:
        """The storage of an object; without a `durability` only for its base to be moved.

        `as_found`: of one that was written with the other durability, too.
        """
        key = (lease.ref.class_name, lease.ref.id)
        if as_found and durability is not None:
            durability = own.durability_of(lease, self._files, durability)
        if durability is not None and (reason := own.mixed(lease, self._files, durability)):
            lease.release(lease.tail)
            raise ObjectError(reason)
        if durability == "sqlite":
            made = own.OwnEngine(
                self.store,
                lease,
                self._turns,
                open_database=lambda held: self._open_database(key, held, own.open_own),
                on_broken=on_broken,
                logging="pages",
            )
            try:
                made.adopt(self._files)
            except BaseException:  # it has opened the database, which would be locked for the next life
                self._let_go(key, made)
                raise
            return made
        return Engine(
            self.store,
            lease,
            self._turns,
            open_database=lambda held: self._open_database(key, held),
            on_broken=on_broken,
            logging=self._logging,
        )

    def _make_env(self, instance: Instance) -> Env:
        return Env(_Sender(instance), self.classes, self._random, self._bindings)

    def _open_database(self, key: Key, lease: Lease, opens: OpenDatabase = open_logged) -> Database:
        if len(self._opened) >= self._databases_max:
            for oldest in list(islice(self._opened, EVICT_AT_ONCE)):
                if not self.evict(oldest):
                    self._opened[oldest] = self._opened.pop(oldest)  # others, behind it, may be idle
        database = opens(lease, self._files, self._vfs)
        self._opened[key] = None
        return database

    def _close_engine(self, key: Key, engine: Engine) -> None:
        self._opened.pop(key, None)  # first: what cannot be closed would stay among them
        engine.close()

    def _over(self, key: Key, engine: Engine, instance: Instance) -> None:
        """A life ended by a reset: let the object go when the log has decided its commits."""
        if self._live.get(key) is instance:
            del self._live[key]
        self._leave_stage(instance)
        self._let_go(key, engine)

    def _leave_stage(self, instance: Instance) -> None:
        if self._stage is not None:
            self._stage.give_back(instance.gate.part)

    def _let_go(self, key: Key, engine: Engine) -> None:
        """Close an engine when the log has decided its commits; until then nobody else begins the object."""
        ended = self._ending[key] = self._loop.create_future()

        def close() -> None:
            if not engine.is_settled:  # the end of a turn has come first, with a commit
                wait()
                return
            try:
                self._close_engine(key, engine)
            finally:  # its lease is taken from it if it is not given back
                del self._ending[key]
                self.left(key)
                ended.set_result(None)

        def decided(error: Exception | None) -> None:
            self._loop.call_soon(close)

        def wait() -> None:
            engine.when_decided(decided)
            self.log.flush()

        wait()

    def evict(self, key: Key) -> bool:
        """Let an object leave memory, if nothing of it is going on."""
        instance = self._live.get(key)
        if instance is None or not instance.is_idle:
            return False
        engine = instance.engine
        if not engine.is_clean:
            return False
        del self._live[key]
        instance.state = "over"
        instance.error = ObjectReset("The object left memory.")
        self._leave_stage(instance)
        self._close_engine(key, engine)
        self.left(key)
        return True

    # upkeep

    def start(self, *, alarms: bool = True) -> None:
        """Begin eviction, the moving of bases, and alarms, unless only operators are to run them."""
        if self.quarantine is not None:
            self._every(UPKEEP_SECONDS, self.quarantine.tend)
        self._every(UPKEEP_SECONDS, self._tend_idle)
        self._loop.call_later(BASES_SECONDS, self._move_bases)  # behind callers who wait since the start
        if alarms:
            self.alarms.start()

    def _every(self, seconds: float, run: Callable[[], None]) -> None:
        def again() -> None:
            if not self._closed:
                self._loop.call_later(seconds, again)  # first: what goes wrong once is not the last time
                run()

        self._loop.call_later(seconds, again)

    def _tend_idle(self) -> None:
        if not self._closed and self.evict_idle(EVICT_AT_ONCE):
            self._loop.call_later(EVICT_SECONDS, self._tend_idle)

    def evict_idle(self, at_once: int) -> bool:
        """Let some idle objects leave memory, or give back what they only remember.

        True when there are more: each takes about as long as a call, so a thousand at once would be felt.
        """
        now, count = self._loop.time(), 0
        for key, instance in list(self._live.items()):
            idle_seconds = now - instance.used_at
            if idle_seconds >= self._idle_seconds:
                count += self.evict(key)
            elif idle_seconds >= UPKEEP_SECONDS and not instance.relaxed:
                instance.relaxed = True
                count += instance.engine.relax()
            if count >= at_once:
                return True
        return False

    def _move_bases(self) -> None:
        """Bring a few lagging databases up to the log, so that full segments can go."""
        if self._closed:
            return
        behind = self.log.lagging(BASES_AT_ONCE)
        soon = BASES_SECONDS if behind else UPKEEP_SECONDS / 10
        # on a full disk, say, the same ones would fail, and say so, fifty times a second
        waits, self._is_base_stuck = self.room.is_full or self._is_base_stuck, False
        self._loop.call_later(UPKEEP_SECONDS if waits else soon, self._move_bases)
        for ref in behind:
            self._move_base(ref)

    def _move_base(self, ref: ObjectRef) -> None:
        key = (ref.class_name, ref.id)
        instance = self._live.get(key)
        if instance is not None:
            if instance.state == "running":
                instance.engine.checkpoint()
            return
        if key in self._ending:
            return
        held = self._keep_out(key)

        def acquired(lease: Lease | None, error: Exception | None) -> None:
            self._let_in(key, held)
            try:
                if lease is None:
                    raise error or LogError("there is no lease")
                engine = self._make_engine(lease, lambda error: log.error("moving a base: %s", error))
                try:
                    engine.checkpoint()
                finally:
                    self._let_go(key, engine)
            except (ObjectError, LogError, OSError, apsw.Error) as reason:
                self._is_base_stuck = True
                log.error("moving the base of %s/%s: %s", ref.class_name, ref.id, reason)

        self.log.acquire(ref, acquired)

    async def bring_up(self, doing: Callable[[str], None]) -> None:
        """Bring every database up to the log, so that the log holds nothing more."""
        for count, entry in enumerate([one async for one in entries_of(self.log)]):
            doing(f"{count:,} databases are brought up to the log")
            if entry.base < entry.head:
                self._move_base(entry.ref)
                await asyncio.sleep(0)

    # the end

    async def close(self) -> None:
        """Finish what runs, make everything durable, end. Calls that come now are refused."""
        if self._closed:
            return
        self._closed = True
        self.alarms.close()
        until = self._loop.time() + DRAIN_SECONDS
        while any(not one.is_idle or not one.engine.is_clean for one in self._live.values()):
            if self._loop.time() > until:
                break
            await asyncio.sleep(0.01)
        for instance in list(self._live.values()):
            if not instance.is_idle or not self.evict((instance.ref.class_name, instance.ref.id)):
                instance.reset(ObjectReset("The node is closing."))
        while self._ending:
            self.log.flush()
            await asyncio.wait([asyncio.shield(f) for f in self._ending.values()], timeout=1)
        self.log.close()

    def break_off_child(self) -> None:
        """In a forked process: no storage is used any more, and nothing is written."""
        error = ObjectReset("This process was forked by an object: its storage is the parent's.")
        for instance in self._live.values():
            instance.engine.disown(error)

    def find_live(self, ref: ObjectRef) -> Instance | None:
        """An object in memory."""
        return self._live.get((ref.class_name, ref.id))

    def has(self, ref: ObjectRef) -> bool:
        """Whether the object is in memory or has stored anything here."""
        key = (ref.class_name, ref.id)
        return key in self._live or key in self._ending or self.log.has(ref)

    def has_any(self, class_name: str) -> bool:
        """The same of a class."""
        return any(one == class_name for one, _ in (*self._live, *self._ending)) or self.log.has_any(
            class_name
        )

    def is_here(self, key: Key) -> bool:
        """Whether the object is in memory, or somebody is kept out of it."""
        return key in self._live or key in self._ending

    @property
    def live_count(self) -> int:
        return len(self._live)

    def live(self) -> list[ObjectRef]:
        """The objects in memory."""
        return [instance.ref for instance in self._live.values()]
