"""This control process in its cluster: the rounds, the link to the leader, taking office and leaving it.

Owns  carrying out what `cluster.seat` decides, on control's loop.
Not   deciding it; what a leader does beside writing (`Duties`).

All state is the loop's. Statements of a round run on one thread, entries of the log are read on others. A
loop that stands still for a lease answers nothing meanwhile, and loses it.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Final, Protocol

from edgestead.cluster.clocks import Clocks
from edgestead.cluster.lease import LEASE_MS, RENEW_MS
from edgestead.cluster.office import State
from edgestead.cluster.seat import Ask, Failed, Seat
from edgestead.cluster.silence import Age, Silence
from edgestead.model.refusals import Unavailable
from edgestead.model.seldom import Seldom
from edgestead.postgres.incarnations import Clerk
from edgestead.server.cluster.following import Following, Live
from edgestead.server.cluster.leading import Leading
from edgestead.server.nodes.identity import Member
from edgestead.server.process import boot_ms
from edgestead.sqlite.replica import ReplicaControlStore
from edgestead.store.answered import Answers
from edgestead.store.controllog import ControlLog, Diverged, Entry, NotLeader
from edgestead.store.migrations import SchemaError

POLL_SECONDS: Final = 1.0  # between two looks at the log without a link to the leader
TAKE_SECONDS_MAX: Final = 30.0  # of taking the office, without progress
DRAIN_SECONDS_MAX: Final = 1.0  # for requests under way, before the office is given to another process
HOLD_SECONDS_MAX: Final = 5.0  # of a write while no process leads
HURRY_SECONDS: Final = (
    2.0  # after a link ended: its other process may be dead, and its host is about to say so
)
HURRY_PAUSE_SECONDS: Final = 0.03  # between two rounds then

_log = logging.getLogger("edgestead.server")


class Duties(Protocol):
    """What only the leader does."""

    async def open(self) -> None:
        """This process leads. Cancelled when it leads no more."""
        ...

    def close(self) -> None: ...


class NoDuties:
    async def open(self) -> None: ...

    def close(self) -> None: ...


def _now_us() -> int:
    return time.time_ns() // 1_000


async def _at_once() -> None: ...


def _nobody_asks() -> None: ...


def _nobody_asks_it(leader: int | None) -> None: ...


class Membership:
    """Make, `open` and `close` it on control's loop.

    `applied` waits for the processes of this node; `live` are the machines without control that follow it and
    have what was waited for, by group of the feed; `fatal` ends the process, with a reason: its copy has to
    be loaded again, or it is older than the cluster.
    """

    def __init__(
        self,
        store: ReplicaControlStore,
        log: ControlLog,
        clerk: Clerk,
        member: Member,
        *,
        applied: Callable[[int], Awaitable[None]],
        live: Callable[[], Live],
        fatal: Callable[[Exception], None],
        lease_ms: float = LEASE_MS,
        now_ms: Callable[[], float] = boot_ms,
    ) -> None:
        self._store, self._control_log, self._clerk, self._member = store, log, clerk, member
        self._applied, self._live, self._fatal, self._lease_ms = applied, live, fatal, lease_ms
        self._now_ms = now_ms
        self.seat = Seat(now_ms, lease_ms)
        self._silence = Silence()
        self.clocks = Clocks(_now_us, now_ms)
        self.leading = Leading(self.seat, store, log, now_ms, on_unlinked=self._hurry)
        self.duties: Duties = NoDuties()
        self.drained: Callable[[], Awaitable[object]] = _at_once  # no request that may write runs here
        self.on_other_leader: Callable[[], None] = _nobody_asks
        self.on_unreached: Callable[[int | None], None] = _nobody_asks_it  # a leader that is not reached
        self.serve = self.leading.serve
        self._loop = asyncio.get_running_loop()
        self._statements = ThreadPoolExecutor(1, "cluster-office")
        self._wake = asyncio.Event()
        self._changed = asyncio.Event()  # after each round, for who waits for a leader
        self._rounds: asyncio.Task[None] | None = None
        self._link: asyncio.Task[None] | None = None
        self._linked: tuple[int | None, str] = (None, "")
        self._lost_links, self._failed_duties = Seldom(), Seldom()
        self._failed_rounds, self._odd_answers = Seldom(), Seldom()
        self._taking: asyncio.Task[None] | None = None
        self._on_duty: asyncio.Task[None] | None = None
        self._giving_way: asyncio.Task[None] | None = None
        self._was: State | None = None
        self._led_by: int | None = None
        self._polling: asyncio.Task[None] | None = None
        self._polled_at = 0.0
        self._hurries_until = 0.0
        self._closed = False
        self.may_link = False  # its node's processes can follow: a leader's writes may wait for them

    @property
    def leads(self) -> bool:
        """New writes are taken."""
        return self.seat.office.leads and self._giving_way is None

    def may_answer(self) -> bool:
        return self.seat.may_answer()

    def answers_until_ms(self) -> float:
        """When this process's lease is over, by CLOCK_MONOTONIC."""
        return time.monotonic() * 1000 + self.seat.office.answers_until_ms - boot_ms()

    def age(self, hours_max: float) -> Age | None:
        """As `Silence.age`, of the questions of this process's rounds."""
        return self._silence.age(self._now_ms(), hours_max)

    @property
    def is_silent(self) -> bool:
        """Whether the database did not answer this process's last question."""
        return self._silence.is_silent

    @property
    def leader_address(self) -> str:
        """Of another process that has the office; "" when it is this one, or there is none."""
        holder = self.seat.view.holder
        if holder is None or holder.number == self.seat.office.number:
            return ""
        return self.seat.view.address

    @property
    def leader_number(self) -> int | None:
        holder = self.seat.view.holder
        return None if holder is None else holder.number

    @property
    def answers(self) -> Answers:
        """Of the requests that this node passed on, as the log has them."""
        return self._store.answers

    @property
    def incarnation(self) -> int | None:
        """The number by which this process writes, on the writer's thread; None while it follows."""
        return self._store.incarnation

    @property
    def position(self) -> int:
        """The newest entry that this copy has."""
        return self._store.position.sequence

    async def settled(self) -> tuple[int, int]:
        """The number of this process, which leads, and its newest entry: every member has applied that and
        all before it, and no entry of an earlier leader comes any more. Raises NotLeader, Unknown.
        """
        number, position, head = self.seat.office.number, self.position, self._store.feed.head()
        if not self.leads or number is None:
            raise NotLeader
        await self._applied(head)
        await self.leading.replicated(position)
        return number, position

    @property
    def has_one_copy(self) -> bool:
        """Whether the database has no synchronous standby, as far as its settings said."""
        return self._clerk.has_one_copy

    async def changed(self) -> None:
        """Wait for the next round's end."""
        await self._changed.wait()

    # From other threads.

    def lost(self, reason: str) -> None:
        """The writer gave up leading."""
        self._from_thread(self._lose, reason)

    def appended(self, entry: Entry) -> None:
        self._from_thread(self.leading.appended, entry)

    def _from_thread(self, fn: Callable[..., None], *arguments: object) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(fn, *arguments)

    # Life.

    def open(self) -> None:
        self._rounds = self._loop.create_task(self._run())

    async def close(self) -> None:
        """Give the office back, so that another process can have it at once."""
        self._closed = True
        for task in (self._rounds, self._link, self._taking, self._on_duty, self._giving_way):
            if task is not None:
                task.cancel()
        self.duties.close()
        self.leading.drop_all()
        number = self.seat.office.number
        self.seat.lost()
        if number is not None and not self.seat.has_grants():
            try:
                await self._in_office_thread(self._clerk.leave, number)
            except Failed:
                _log.warning("this node's place in the cluster was not given back: others wait for its lease")
        self._statements.shutdown(wait=False, cancel_futures=True)
        self._clerk.close()

    async def _in_office_thread(self, fn: Callable[..., object], *arguments: object) -> object:
        return await self._loop.run_in_executor(self._statements, fn, *arguments)

    async def _run(self) -> None:
        while True:
            began = self._loop.time()
            self._wake.clear()  # before: what wakes during a round may be nothing that it has seen
            try:
                await self._round()
                self._after_round()
            except Exception:
                if times := self._failed_rounds.happened():
                    _log.exception("a round of the cluster failed (%d since the last line)", times)
            pause = self.pause_seconds - (self._loop.time() - began)
            with suppress(TimeoutError):
                async with asyncio.timeout(max(0.0, pause)):
                    await self._wake.wait()

    @property
    def pause_seconds(self) -> float:
        """Between the beginnings of two rounds."""
        hurries = self._loop.time() < self._hurries_until
        return HURRY_PAUSE_SECONDS if hurries else RENEW_MS / 1000

    def _hurry(self) -> None:
        """A link has ended: for a while each round comes soon after the one before."""
        self._hurries_until = self._loop.time() + HURRY_SECONDS
        self._wake.set()

    async def _round(self) -> None:
        generator = self.seat.round()
        answer: object = None
        failure: Failed | None = None
        while True:
            try:
                ask: Ask = generator.send(answer) if failure is None else generator.throw(failure)
            except StopIteration:
                return
            answer = failure = None
            asked_ms = self._now_ms()
            try:
                answer = await self._in_office_thread(self._clerk.answer, ask)
                self._silence.heard()
            except Failed as error:
                failure = error
                self._silence.failed(asked_ms)
            except Exception as error:
                # Nor is it known what became of this question, and the seat must not wait for its answer.
                if times := self._odd_answers.happened():
                    words = "a question to the cluster's database failed oddly (%d since the last line)"
                    _log.error(words, times, exc_info=error)
                failure = Failed()

    def _after_round(self) -> None:
        office = self.seat.office
        if office.state is not self._was:
            _log.info("this control process of the cluster is %s", office.state.value)
            if self._was is State.LEADING:
                self._leave()
            self._was = office.state
        if self.seat.is_to_give_way and self._giving_way is None:
            self._giving_way = self._loop.create_task(self._give_way())
        if office.state is State.CLAIMING:
            self._end_link()
            if self._taking is None or self._taking.done():
                self._taking = self._loop.create_task(self._take_office())
        elif office.state in (State.JOINING, State.FOLLOWING):
            self._keep_link()
        elif office.state is State.OUTSIDE:
            self._end_link()
        if self.may_answer():
            self._silence.may_answer()
        self.leading.settle()
        if self._led_by != self.leader_number:
            self._led_by = self.leader_number
            self.on_other_leader()
        self._tell_changed()

    def _tell_changed(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    def _lose(self, reason: str) -> None:
        if self.leads and reason:
            _log.error("this control process leads no more: %s", reason)
        self.seat.lost()
        self._leave()
        self._wake.set()

    # The office.

    async def _take_office(self) -> None:
        number = self.seat.office.number
        assert number is not None
        try:
            async with asyncio.timeout(TAKE_SECONDS_MAX) as limit:
                while not await self._try_office(number):
                    limit.reschedule(self._loop.time() + TAKE_SECONDS_MAX)
        except TimeoutError as error:
            self._fatal(error)  # others may do better
            return
        except NotLeader:
            return  # another process appended before it lost the office: the next round tries again
        except (Diverged, SchemaError) as error:
            self._fatal(error)
            return
        except Unavailable as error:
            _log.warning("the office could not be taken: %s", error)
            return
        except Exception as error:
            _log.exception("the office could not be taken")
            self._fatal(error)  # it would keep the office from others, who may do better
            return
        if self.seat.office.number != number or self.seat.office.state is not State.CLAIMING:
            self._store.resign()
            return
        self.seat.took_office()
        self._was = State.LEADING
        _log.info("this control process leads from entry %d", self._store.position.sequence)
        self._wake.set()
        self._tell_changed()
        self._on_duty = self._loop.create_task(self._begin_duty())

    async def _try_office(self, number: int) -> bool:
        """False: some of the log was missing, and is applied. Raises NotLeader; as `_read_log`, `apply` and
        `take_office`. Who followed has it all: it is not read first, every writer waits.
        """
        try:
            await asyncio.wrap_future(self._store.take_office(number))
        except NotLeader:
            entries = await self._read_log()
            if not entries or self.seat.office.number != number:
                raise
            await asyncio.wrap_future(self._store.apply(entries))
            return False
        return True

    async def _begin_duty(self) -> None:
        while self.leads:
            try:
                await self.duties.open()
                return
            except Exception as error:
                if times := self._failed_duties.happened():
                    _log.error(
                        "the leader's duties could not begin (%d since the last line): %r",
                        times,
                        error,
                        exc_info=None if isinstance(error, Unavailable) else error,
                    )
            await asyncio.sleep(POLL_SECONDS)

    async def _give_way(self) -> None:
        """Give the office to the process that is wanted: requests wait meanwhile, and none is refused."""
        _log.info("the office goes to another control process, as an operator wants")
        with suppress(TimeoutError):
            async with asyncio.timeout(DRAIN_SECONDS_MAX):
                await self.drained()
        try:
            await asyncio.wrap_future(self._store.resign())
            await self.leading.replicated(self._store.position.sequence)
        except Unavailable as error:
            _log.warning("the last writes were not applied everywhere: %s", error)
        finally:
            self._lose("")
            self._giving_way = None

    def _leave(self) -> None:
        """Lead no more."""
        if not self._closed:
            self._store.resign()
        if self._on_duty is not None:
            self._on_duty.cancel()
            self._on_duty = None
            self.duties.close()
        self.leading.drop_all()
        self._was = self.seat.office.state

    # Following.

    def _keep_link(self) -> None:
        number, address = self.seat.office.number, self.leader_address
        if self._link is not None and not self._link.done():
            if self._linked == (number, address):
                return
            self._end_link()
        if address and number is not None and self.may_link:
            self._linked = (number, address)
            self._link = self._loop.create_task(self._follow(address, number, self.leader_number))
        is_polling = (
            self._polling is not None and not self._polling.done()
        )  # for as long as a statement hangs
        if not is_polling and self._loop.time() - self._polled_at >= POLL_SECONDS:
            self._polled_at = self._loop.time()
            self._polling = self._loop.create_task(self._poll_log())

    def _end_link(self) -> None:
        if self._link is not None:
            self._link.cancel()
            self._link = None

    async def _follow(self, address: str, number: int, leader: int | None) -> None:
        host, _, port = address.rpartition(":")
        link = Following(
            self._store,
            self._member,
            (host.strip("[]"), int(port)),
            number,
            applied=self._applied,
            live=self._live,
            admitted=self._admitted,
            arrived=self.clocks.arrived,
        )
        self.clocks.forget()
        try:
            await link.run()
        except (OSError, EOFError, TimeoutError, Unavailable) as error:
            if times := self._lost_links.happened():
                _log.info(
                    "the link to the leader at %s ended (%d since the last line): %r", address, times, error
                )
            if not link.is_linked:
                self.on_unreached(leader)
        except (Diverged, SchemaError) as error:
            self._fatal(error)
        except Exception as error:
            _log.exception("following the leader failed")
            self._fatal(error)
        if link.was_admitted:
            self._hurry()

    def _admitted(self, leader: int) -> None:
        self.seat.admitted(leader)
        self._wake.set()

    async def _poll_log(self) -> None:
        """Without a link to the leader the log in the database is followed."""
        try:
            if entries := await self._read_log():
                await asyncio.wrap_future(self._store.apply(entries))
        except (Diverged, SchemaError) as error:
            self._fatal(error)
        except Unavailable as error:
            _log.info("the control log could not be read: %r", error)
        except Exception as error:
            _log.exception("following the control log failed")
            self._fatal(error)  # as in `_follow`: a copy that is not written falls behind unheard

    async def _read_log(self) -> list[Entry]:
        """What follows this copy. Raises Diverged, Unavailable."""
        after = self._store.position.sequence
        entries = await asyncio.to_thread(self._control_log.read, after)
        if entries is None:
            raise Diverged(f"the control log begins behind entry {after}, where this copy is")
        return entries
