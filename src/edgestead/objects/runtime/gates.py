"""The input gate: when events reach an object, and when code that waited may go on.

Owns  blocks (stretches in which only their own code runs), who waits, and in whose line.
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
from edgestead.objects.errors import ObjectError, RemoteError, TransactionError, words_of
from edgestead.objects.runtime import forks
from edgestead.objects.runtime.lines import Line, Lines
from edgestead.objects.runtime.stage import NOBODY, number_of

T = TypeVar("T")
TASK = number_of("a task")  # that an object's code started
_NO_WAITING = "A transaction_sync() block cannot wait: use transaction() around code that awaits."


class Block:
    """One stretch in which the gate is shut for everybody else."""

    __slots__ = ()


_block: ContextVar[Block | None] = ContextVar("block", default=None)
_line: ContextVar[Line] = ContextVar("line", default=None)


def stand_in(line: Line) -> None:
    """From here on what runs waits in this line, and so does what other objects do for it."""
    _line.set(line)


def standing_in() -> Line:
    """The line of what runs."""
    return _line.get()


class Account:
    """Processor time of all objects of a class, while this process runs."""

    __slots__ = ("cpu_ns",)

    def __init__(self) -> None:
        self.cpu_ns = 0


class InputGate:
    """The gate of one live object.

    Who waits is let through one at a time, by lines (`lines`), and the next one when that code has run until
    it waits for something or has let go of the gate. So each hand-over wakes one, however many wait.

        OPEN ── hold ──▶ SHUT ── the block ends, nobody waits ──▶ OPEN
                          │ ▲
          somebody waits  ▼ │ it holds the gate itself
                     HANDING OVER ── nobody waits any more ──▶ OPEN
                        ▲    │
                        └────┘ the next one

    While it is handed over, whoever comes waits behind those who do. Code of the block on top waits in lines
    of its own: for the blocks within that one.
    """

    __slots__ = (
        "_blocks",
        "_let_in",
        "_next",
        "_waiting",
        "account",
        "cpu_ns",
        "forgive",
        "is_shut",
        "part",
        "unwaiting",
    )

    def __init__(self, account: Account | None = None) -> None:
        self.part = NOBODY
        self.account = account or Account()
        self.forgive: Callable[[int], None] | None = None  # told which event has ended, if that may matter
        self.cpu_ns = 0  # that code behind this gate took, with the code that it ran within its own
        self.unwaiting = 0  # stretches, one inside another, in which nobody may wait for anything
        self.is_shut = False  # whether who comes has to ask: it is, or it is being handed over
        self._blocks: list[Block] = []
        self._waiting: dict[Block | None, Lines[asyncio.Future[None]]] = {}  # by the block whose code it is
        self._next: asyncio.Future[None] | None = None  # whose turn it is, and who has not run yet
        self._let_in: asyncio.Task[Any] | None = None  # whose turn it was, until it is handed on

    @property
    def passes(self) -> bool:
        """Whether the running code may go on."""
        if not self.is_shut:
            return True
        top = self._top
        if top is not None and _block.get() is not top:
            return False
        is_being_handed_over = self._next is not None or bool(self._waiting.get(top))
        return not is_being_handed_over or self._let_in is asyncio.current_task()

    @property
    def _top(self) -> Block | None:
        return self._blocks[-1] if self._blocks else None

    async def wait(self) -> None:
        """Wait until the running code may go on: for its turn, by lines."""
        if self.passes:
            return
        block = _block.get()
        own = block if block in self._blocks else None
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(own, Lines()).add(_line.get(), turn)
        self.is_shut = True
        try:
            await turn
        except BaseException:
            if self._next is turn:  # nobody takes it
                self._next = None
                self._hand_over()
            raise
        if self._next is turn:
            self._next, self._let_in = None, asyncio.current_task()
            asyncio.get_running_loop().call_soon(self._hand_over)

    @contextlib.asynccontextmanager
    async def hold(self) -> AsyncIterator[None]:
        """Shut the gate for everybody else. Holds nest. Raises ObjectError when too deep."""
        await self.wait()
        if len(self._blocks) >= limits.NESTED_MAX:
            raise ObjectError("block_concurrency_while() calls are nested too deeply.")
        block, loop = Block(), asyncio.get_running_loop()
        began = loop.time()
        self._blocks.append(block)
        self.is_shut = True
        before = _block.get()
        _block.set(block)
        try:
            yield
        finally:
            _block.set(before)
            if block in self._blocks:
                self._blocks.remove(block)
            self._end(block, loop.time() - began)

    def _end(self, block: Block, seconds: float) -> None:
        """Code that a block has left behind waits as everybody does."""
        everybody = self._waiting.get(None)
        left = self._waiting.pop(block, None)
        if everybody:
            everybody.charge(_line.get(), seconds)
        while left:
            self._waiting.setdefault(None, Lines()).add(_line.get(), left.pop())
        self._hand_over()

    def open(self) -> None:
        """The object's life is over: nobody is held any more, so that everybody learns of it."""
        self._blocks.clear()
        waiting, self._waiting, self._next = self._waiting, {}, None
        for lines in waiting.values():
            while lines:
                turn = lines.pop()
                if not turn.done():
                    turn.set_result(None)
        self._hand_over()

    def _hand_over(self) -> None:
        """To the next one, unless somebody has the gate, or is about to."""
        self._let_in = None
        top = self._top
        lines = self._waiting.get(top)
        while lines and self._next is None:
            turn = lines.pop()
            if not turn.done():  # cancelled
                self._next = turn
                turn.set_result(None)
        if lines is not None and not lines:
            del self._waiting[top]
        self.is_shut = top is not None or self._next is not None or bool(self._waiting)


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
    return RemoteError(words_of(error).removesuffix(": "))


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
