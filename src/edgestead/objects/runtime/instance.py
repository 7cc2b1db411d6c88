"""One life of one object: from its start until it is evicted or reset.

Owns  the user's object, its gates, its calls, its end.
Not   which objects live (`node`); HTTP.

A reply leaves when every confirmed write of the object is durable, whoever made it. A reset ends all calls
at once: none of their messages leave.
"""

import asyncio
import contextlib
import contextvars
import logging
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable
from typing import Any, Literal, TypeVar

from edgestead.objects import limits
from edgestead.objects.errors import ObjectReset, Overloaded, words_of
from edgestead.objects.runtime.admission import AskAgain
from edgestead.objects.runtime.alarms import (
    HANDLER_SECONDS_MAX,
    AlarmInfo,
    pack_time,
    retry_time,
    unpack_time,
)
from edgestead.objects.runtime.calls import Reply, error_of, pack_error, pack_result, unpack_arguments
from edgestead.objects.runtime.classes import ClassInfo, StatefulObject
from edgestead.objects.runtime.context import Context
from edgestead.objects.runtime.engine import Engine
from edgestead.objects.runtime.env import Env
from edgestead.objects.runtime.gates import (
    Account,
    InputGate,
    contained,
    gated,
    held,
    marked,
    stand_in,
    standing_in,
)
from edgestead.objects.runtime.lines import Line
from edgestead.objects.runtime.patience import at_most
from edgestead.objects.runtime.stage import Part, number_of
from edgestead.objects.runtime.storage import Storage, settle
from edgestead.objects.runtime.web import Request, Response
from edgestead.store.objectlog import ObjectRef

log = logging.getLogger(__name__)
T = TypeVar("T")
State = Literal["starting", "running", "over"]
START, ALARM = number_of("on_start"), number_of("alarm")
OWNED_NO_MORE = "The object may live in another process by now: what the call wrote may be there or not."
STREAM_CHUNKS_MAX = 4  # of a streamed body, made and not sent yet


class Instance:
    """One live object. `deliver` sends its outgoing calls; `on_over` hears of its end once.

    `chance` gives numbers within 0 and 1. `account` is its class's. `may_answer` is asked when a message
    leaves: the object may live elsewhere by then.
    """

    def __init__(
        self,
        ref: ObjectRef,
        info: ClassInfo,
        loop: asyncio.AbstractEventLoop,
        now_ms: Callable[[], int],
        deliver: Callable[[ObjectRef, str, bytes], Awaitable[Reply]],
        on_over: Callable[["Instance"], None],
        chance: Callable[[], float],
        account: Account | None = None,
        may_answer: Callable[[], bool] = lambda: True,
    ) -> None:
        self.ref, self.info = ref, info
        self.state: State = "starting"
        self.error: ObjectReset | None = None
        self.calls = 0  # not answered yet
        self.used_at = loop.time()
        self.relaxed = False  # since it was last used
        self.gate = InputGate(account)
        self._loop, self._now_ms = loop, now_ms
        self._deliver, self._on_over, self._chance = deliver, on_over, chance
        self._may_answer = may_answer
        self._tasks: dict[asyncio.Task[Any], None] = {}  # in order, so that a run can be repeated
        self._context = contextvars.Context()  # events inherit nothing from their caller
        self._object: StatefulObject | None = None
        self._engine: Engine | None = None
        self._started: asyncio.Future[None] | None = None

    @property
    def engine(self) -> Engine:
        assert self._engine is not None
        return self._engine

    # life

    def watch(self, part: Part, forgive: Callable[[int], None] | None) -> None:
        """Have a stage know what runs; `forgive` is told which event has ended, if that may matter."""
        self.gate.part, self.gate.forgive = part, forgive

    def start(self, engine: Engine, make_env: Callable[["Instance"], Env]) -> None:
        """Make the user's object. What it raises goes to everybody who waits, and ends this life."""
        self._engine = engine
        storage = Storage(
            engine,
            self.gate,
            sql_backend=self.info.backend == "sql",
            has_alarm=self.info.has_alarm,
            now_ms=self._now_ms,
        )
        context = Context(self.ref, storage, self.gate, self)
        try:
            with marked(self.gate, START):
                self._object = self.info.kind(context, make_env(self))
        except BaseException as error:
            self._fail_start(contained(error))
            return
        if not self.info.has_start:
            self._begin_running()
            return
        self._started = self._loop.create_future()
        self._spawn(self._run_start(self._object, self._started))

    async def _run_start(self, made: Any, started: "asyncio.Future[None]") -> None:
        try:
            async with self.gate.hold(), at_most(limits.START_SECONDS_MAX):
                await gated(self.gate, made.on_start(), START)
        except (Exception, asyncio.CancelledError) as error:
            if self.state == "over":
                raise
            self._fail_start(contained(error))
        else:
            if self.state == "starting":
                self._begin_running()
        if not started.done():
            started.set_result(None)

    def _begin_running(self) -> None:
        self.state = "running"
        if self.gate.forgive is not None:
            self.gate.forgive(START)

    def _fail_start(self, error: Exception) -> None:
        if isinstance(error, TimeoutError) and not error.args:
            error = TimeoutError(f"on_start() may take {limits.START_SECONDS_MAX:g} s")
        log.warning("%s %s did not start", self.ref.class_name, self.ref.name or self.ref.id, exc_info=error)
        if isinstance(error, ObjectReset):
            self.reset(error)
        else:
            self.reset(ObjectReset(f"The object did not start: {words_of(error)}"))

    def reset(self, error: ObjectReset) -> None:
        """End this life: nothing more is stored, no message leaves, every caller gets the error."""
        if self.state == "over":
            return
        self.state, self.error = "over", error
        if self._engine is not None:
            self._engine.break_off(error)
        self.gate.open()
        for task in tuple(self._tasks):
            task.cancel()
        if self._started is not None and not self._started.done():
            self._started.set_result(None)
        self._on_over(self)

    # events

    async def call(self, method: str, arguments: bytes, ask_again: AskAgain | None = None) -> Reply:
        """Run one method; the reply when it may leave. Raises Overloaded, and what `ask_again` raises."""
        reply: Reply = await self.event(method, self._invoke, method, arguments, ask_again=ask_again)
        return reply

    async def call_within(
        self, method: str, arguments: bytes, ask_again: AskAgain | None, waited: bool
    ) -> Reply:
        """The same within the task of a caller that stays until the reply and shares no context.

        `waited`: the caller has, already.
        """
        reply: Reply = await self._within(
            method, self._invoke, method, arguments, ask_again=ask_again, waited=waited
        )
        return reply

    async def _within(
        self, name: str, run: Callable[..., Any], *arguments: Any, ask_again: AskAgain | None, waited: bool
    ) -> Any:
        """As `event`, within the task of a caller that stays until the reply and shares no context.

        It saves a task, which costs as much as the rest of a small call, and two turns of the loop. `waited`:
        the caller has, already.
        """
        task = asyncio.current_task()
        assert task is not None
        self._enter()
        self._tasks[task] = None
        try:
            reply = await self._run(name, run, *arguments, ask_again=ask_again, waited=waited)
        except asyncio.CancelledError:
            reply = self._cancelled()
        finally:
            del self._tasks[task]
            self._leave()
        if task.cancelling():
            await _forget_cancellation(task)
        return reply

    async def _invoke(self, method: str, arguments: bytes) -> Reply:
        values, named = unpack_arguments(arguments)
        return pack_result(await getattr(self._object, method)(*values, **named))

    async def alarm(self) -> Literal["done", "failed", "not due"]:
        """Run the alarm's handler, if it is due. What becomes of the alarm is in the handler's last commit.

        Raises ObjectReset when this life ended meanwhile, Overloaded.
        """

        async def run() -> str:
            fired_us = self.engine.begin_alarm(pack_time(self._now_ms()))
            if fired_us is None:
                return "not due"
            self.gate.part.alarm_begins(fired_us)
            scheduled_ms, failures = unpack_time(fired_us)
            info = (AlarmInfo(scheduled_ms, failures),) if self.info.alarm_takes_info else ()
            handler: Any = self._object
            try:
                async with at_most(HANDLER_SECONDS_MAX):
                    await gated(self.gate, handler.alarm(*info), ALARM)
            except (Exception, asyncio.CancelledError) as error:
                if isinstance(error, asyncio.CancelledError):
                    self._uncancelled(error)
                if self.error is None:
                    self.engine.end_alarm(retry_time(self._now_ms(), failures + 1, self._chance()))
                raise
            self.engine.end_alarm(None)
            return "done"

        try:
            end = await self.event("alarm", run)
        finally:
            self.gate.part.alarm_ends()  # what becomes of the alarm is durable now, or the object was reset
        if self.error is not None:
            raise self.error
        return "failed" if isinstance(end, Reply) else end

    async def fetch(
        self, request: Request, ask_again: AskAgain | None, *, within_task: bool = False
    ) -> Response | Reply:
        """Give one HTTP request to the object. A streamed body is sent chunk by chunk behind the gate.

        `within_task`: as `call_within`. Raises Overloaded, and what `ask_again` raises.
        """

        async def run() -> Response:
            made: Any = self._object
            response = await made.fetch(request)
            if not isinstance(response, Response):
                raise TypeError(f"fetch() must return a Response, not {type(response).__name__}")
            return response

        answer: Response | Reply
        if within_task:
            answer = await self._within("fetch", run, ask_again=ask_again, waited=True)
        else:
            answer = await self.event("fetch", run, ask_again=ask_again)
        if isinstance(answer, Response) and not isinstance(answer.body, bytes):
            answer.body = self._stream(answer.body)
        return answer

    async def _stream(self, body: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
        """The chunks of a body that user code makes: as an event of the object, behind its output gate."""
        chunks: asyncio.Queue[bytes | None] = asyncio.Queue(STREAM_CHUNKS_MAX)

        async def pump() -> None:
            async for chunk in body:
                await self.confirmed()
                await chunks.put(bytes(chunk))
            await self.confirmed()
            await chunks.put(None)

        task = self._spawn(held(self.gate, pump()))
        try:
            while (chunk := await self._next_chunk(chunks, task)) is not None:
                yield chunk
        finally:
            task.cancel()

    async def _next_chunk(
        self, chunks: "asyncio.Queue[bytes | None]", task: "asyncio.Task[Any]"
    ) -> bytes | None:
        """The next chunk, None behind the last. Raises what ended the body early."""
        getting = asyncio.ensure_future(chunks.get())
        try:
            await asyncio.wait({getting, task}, return_when=asyncio.FIRST_COMPLETED)
            if not getting.done() and chunks.empty():
                if task.cancelled():
                    raise self.error or ObjectReset("The response was cancelled.")
                task.result()
            return await getting
        finally:
            getting.cancel()

    async def visit(self, run: Callable[[Engine], Awaitable[T]], ask_again: AskAgain | None = None) -> T:
        """Do something with this object's storage, as one of its events. Raises what it raises, and what
        `ask_again` raises.
        """
        raised: list[Exception] = []

        async def kept() -> tuple[T] | None:
            try:
                return (await run(self.engine),)
            except ObjectReset:
                raise
            except Exception as error:
                raised.append(error)  # as it is: no message carries it
                return None

        answer = await self.event("visit", kept, ask_again=ask_again)
        if raised:
            raise raised[0]
        if isinstance(answer, Reply):
            raise error_of(answer)
        result: T = answer[0]
        return result

    async def event(
        self, name: str, run: Callable[..., Any], *arguments: Any, ask_again: AskAgain | None = None
    ) -> Any:
        """Deliver one event: wait for the gate, run it, wait for its writes. What it raises is a Reply.

        Raises what `ask_again` raises, right before it would run.
        """
        self._enter()
        reply: asyncio.Future[Any] = self._loop.create_future()

        def over(task: "asyncio.Task[Any]") -> None:
            self._leave()
            if reply.done():
                return
            if task.cancelled():  # perhaps before it ran at all
                reply.set_result(self._cancelled())
            elif (error := task.exception()) is not None:
                reply.set_exception(error)
            else:
                reply.set_result(task.result())

        running = self._run(name, run, *arguments, ask_again=ask_again)
        self._spawn(running, standing_in()).add_done_callback(over)
        # A caller that goes away does not stop the event.
        return await asyncio.shield(reply)

    def _enter(self) -> None:
        if self.calls >= limits.CALLS_WAITING_MAX:
            raise Overloaded(f"{self.calls} calls wait for the object already")
        self.calls += 1

    def _leave(self) -> None:
        self.calls -= 1
        self.used_at = self._loop.time()
        self.relaxed = False

    def _cancelled(self) -> Reply:
        return pack_error(self.error or ObjectReset("The call was cancelled."))

    async def _run(
        self,
        name: str,
        run: Callable[..., Any],
        *arguments: Any,
        ask_again: AskAgain | None = None,
        waited: bool = True,
    ) -> Any:
        if self._started is not None and self.state == "starting":
            await asyncio.shield(self._started)
            waited = True
        if self.gate.is_shut:
            await self.gate.wait()
            waited = True
        if waited and ask_again is not None:
            await self._ask_at_the_gate(ask_again)
        if self.error is not None:
            return pack_error(self.error)
        try:
            result = await gated(self.gate, run(*arguments), number_of(name))
        except (Exception, asyncio.CancelledError) as raised:
            error = raised if isinstance(raised, Exception) else self._uncancelled(raised)
            where = f" in {arguments[0]}" if arguments else ""
            with marked(self.gate, number_of(name)):  # its words are users' code
                result = pack_error(error, "method" if self.error is None else "platform")
                log.info(
                    "%s %s raised%s", self.ref.class_name, self.ref.name or self.ref.id, where, exc_info=error
                )
        if self.gate.forgive is not None:
            self.gate.forgive(number_of(name))
        engine = self.engine
        if not engine.is_confirmed:
            try:
                await self._confirmation(engine)
            except ObjectReset as error:
                return pack_error(error)
        return result if self._may_answer() else pack_error(ObjectReset(OWNED_NO_MORE))

    async def _ask_at_the_gate(self, ask_again: AskAgain) -> None:
        """Ask until the answer and an open gate fall into one turn of the loop: asking may wait, too."""
        await ask_again()
        while not self.gate.passes:
            await self.gate.wait()
            await ask_again()

    def _uncancelled(self, error: BaseException) -> Exception:
        """A cancellation that nobody asked for: the object's code raised it. Raises any other one."""
        task = asyncio.current_task()
        if self.error is not None or task is None or task.cancelling():
            raise error
        return contained(error)

    async def confirmed(self) -> None:
        """The output gate: wait until every confirmed write so far is durable. Raises ObjectReset, also when
        the object may live elsewhere by now.
        """
        engine = self.engine
        if not engine.is_confirmed:
            await self._confirmation(engine)
        if not self._may_answer():
            raise ObjectReset(OWNED_NO_MORE)

    def _confirmation(self, engine: Engine) -> "asyncio.Future[None]":
        future: asyncio.Future[None] = self._loop.create_future()
        engine.when_confirmed(settle(future))
        return future

    async def send(self, ref: ObjectRef, method: str, arguments: bytes) -> Reply:
        """Call another object, when everything written so far is durable."""
        await self.confirmed()
        return await self._deliver(ref, method, arguments)

    def _spawn(self, coroutine: Any, line: Line = None) -> "asyncio.Task[Any]":
        context = self._context.copy()
        if line is not None:
            context.run(stand_in, line)
        task = self._loop.create_task(coroutine, context=context)
        self._tasks[task] = None
        task.add_done_callback(lambda done: self._tasks.pop(done, None))
        return task

    @property
    def is_idle(self) -> bool:
        """Whether it can leave memory now."""
        return self.state == "running" and not self.calls and not self.gate.is_shut and not self._tasks


async def _forget_cancellation(task: "asyncio.Task[Any]") -> None:
    """The call was cancelled, not the task that it ran in."""
    with contextlib.suppress(asyncio.CancelledError):
        await asyncio.sleep(0)  # where it arrives, when the call ended before it did
    while task.cancelling():
        task.uncancel()
