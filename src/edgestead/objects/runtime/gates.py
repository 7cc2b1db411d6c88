"""The input gate: when events reach an object, and when code that waited may go on.

Owns  blocks (stretches in which only their own code runs) and the order of those who wait.
Not   the output gate: that is `Engine.when_confirmed`, awaited before anything leaves.

Storage operations never wait here, so the gate is shut only during `block_concurrency_while` and
`transaction`. Code of the object that awaits anything else is held when it would go on during another's
block: `gated` looks each time a coroutine is resumed, by a result or by a cancellation. Tasks that user code
starts (`asyncio.gather`, `create_task`) are held like the event that started them: `hold_tasks`.
"""

import asyncio
import contextlib
import signal
import types
from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Iterator
from contextvars import Context, ContextVar
from time import thread_time_ns
from typing import Any, TypeVar

from edgestead.objects import limits
from edgestead.objects.errors import ObjectError, RemoteError, TransactionError
from edgestead.objects.runtime import forks
from edgestead.objects.runtime.stage import NOBODY, number_of

T = TypeVar("T")
TASK = number_of("a task")  # that an object's code started
_NO_WAITING = "A transaction_sync() block cannot wait: use transaction() around code that awaits."


class Block:
    """One stretch in which the gate is shut for everybody else."""

    __slots__ = ()


_block: ContextVar[Block | None] = ContextVar("block", default=None)


class Account:
    """Processor time of all objects of a class, while this process runs."""

    __slots__ = ("cpu_ns",)

    def __init__(self) -> None:
        self.cpu_ns = 0


class InputGate:
    """The gate of one live object."""

    def __init__(self, account: Account | None = None) -> None:
        self.part = NOBODY
        self.account = account or Account()
        self.forgive: Callable[[int], None] | None = None  # told which event has ended, if that may matter
        self.cpu_ns = 0  # that code behind this gate took, with the code that it ran within its own
        self.unwaiting = 0  # stretches, one inside another, in which nobody may wait for anything
        self._blocks: list[Block] = []
        self._waiting: list[asyncio.Future[None]] = []

    @property
    def is_shut(self) -> bool:
        return bool(self._blocks)

    @property
    def passes(self) -> bool:
        """Whether the running code may go on."""
        return not self._blocks or _block.get() is self._blocks[-1]

    async def wait(self) -> None:
        """Wait, in order of arrival, until the running code may go on."""
        while not self.passes:
            future = asyncio.get_running_loop().create_future()
            self._waiting.append(future)
            await future

    @contextlib.asynccontextmanager
    async def hold(self) -> AsyncIterator[None]:
        """Shut the gate for everybody else. Holds nest. Raises ObjectError when too deep."""
        await self.wait()
        if len(self._blocks) >= limits.NESTED_MAX:
            raise ObjectError("block_concurrency_while() calls are nested too deeply.")
        block = Block()
        self._blocks.append(block)
        before = _block.get()
        _block.set(block)
        try:
            yield
        finally:
            _block.set(before)
            if block in self._blocks:
                self._blocks.remove(block)
            self._wake()

    def open(self) -> None:
        """The object's life is over: nobody is held any more, so that everybody learns of it."""
        self._blocks.clear()
        self._wake()

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            if not future.done():
                future.set_result(None)


_gate: ContextVar[InputGate | None] = ContextVar("gate", default=None)  # of the object whose code runs


@types.coroutine
def gated(gate: InputGate, coroutine: Coroutine[Any, Any, T], event: int = TASK) -> Generator[Any, Any, T]:
    """Drive a coroutine, holding it at the gate each time it is resumed.

    `event` is the number that the stage has for it, marked while the coroutine runs.
    """
    before = _gate.get()
    _gate.set(gate)
    words, number = gate.part.words, gate.part.number
    mark = event << 32 | number if number else 0
    error: BaseException | None = None
    value: Any = None
    try:
        while True:
            outside = words[0]
            words[0] = mark
            began_ns = thread_time_ns()
            try:
                step = coroutine.send(value) if error is None else coroutine.throw(error)
            except StopIteration as stop:
                return stop.value  # type: ignore[no-any-return]
            except (Exception, asyncio.CancelledError):
                raise
            except BaseException as raised:
                raise contained(raised) from raised
            finally:
                if forks.in_child:
                    forks.end_child()
                words[0] = outside
                took_ns = thread_time_ns() - began_ns
                gate.cpu_ns += took_ns
                gate.account.cpu_ns += took_ns
            error = value = None
            if gate.unwaiting:
                error = TransactionError(_NO_WAITING)
                continue
            try:
                value = yield step
            except GeneratorExit:
                coroutine.close()
                raise
            except BaseException as raised:
                error = raised
            if gate.is_shut:
                try:
                    yield from gate.wait().__await__()
                except BaseException as raised:
                    error = raised
    finally:
        _gate.set(before)


@contextlib.contextmanager
def marked(gate: InputGate, event: int) -> Iterator[None]:
    """Mark code that is no coroutine, as `gated` does."""
    words, number = gate.part.words, gate.part.number
    outside = words[0]
    words[0] = event << 32 | number if number else 0
    try:
        yield
    finally:
        if forks.in_child:
            forks.end_child()
        words[0] = outside


def contained(error: BaseException) -> Exception:
    """What to raise instead of what users' code raised: an object's code ends its call, never the process.

    SystemExit and KeyboardInterrupt would end the loop, and GeneratorExit leave a caller without an answer.
    Raises a KeyboardInterrupt that may be a person's: where SIGINT raises one, as in a test.
    """
    if isinstance(error, Exception):
        return error
    by_signal = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if by_signal and isinstance(error, KeyboardInterrupt):
        raise error
    return RemoteError(f"{type(error).__name__}: {error}".removesuffix(": "))


def hold_tasks(loop: asyncio.AbstractEventLoop) -> None:
    """From now on hold the tasks that objects' own code starts on this loop like the code itself.

    A task with a context of its own is the platform's, and nobody's.
    """
    loop.set_task_factory(_make_task)


def _make_task(
    loop: asyncio.AbstractEventLoop, coroutine: Any, *, context: Context | None = None, **more: Any
) -> asyncio.Task[Any]:
    gate = _gate.get() if context is None else context.get(_gate)
    work = coroutine if gate is None else held(gate, coroutine)
    return asyncio.Task(work, loop=loop, context=context, **more)


async def held(gate: InputGate, coroutine: Coroutine[Any, Any, T]) -> T:
    """A coroutine that is held at the gate, before it begins too."""
    if gate.is_shut:
        await gate.wait()
    result = await gated(gate, coroutine)
    if gate.forgive is not None:
        gate.forgive(TASK)
    return result
