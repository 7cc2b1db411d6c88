"""The objects of all processes of a cluster, seen from one of them.

Owns  where a call or request goes: to this process's node, or to the process that has its object's slot.
Not   who has a slot (`Owners`); how another process is reached (`Reach`); running anything (`node`).

A call that is passed on names the map by which its owner was found. Who gets it looks at a map that is not
older before it says anything; if it has not the slot, it answers with the version of what it knows, and
whoever asked waits for that map and asks again, some times: nothing has run. Requests, whose bodies stream,
are passed on to the owner by who got them, after another look at the map.

A process that cannot be reached may be dead before others can know it: calls try again, as long as a slot
without an owner is waited for. One that was lost with a question open may have run it; so may one that the
map does not have any more, which may never hang up.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple, Protocol
from weakref import WeakSet

import msgspec

from edgestead.cluster.forms import FORMS, Forms
from edgestead.http1 import client
from edgestead.http1.messages import Request, Response
from edgestead.model.budgets.turns import Turns
from edgestead.model.refusals import EdgeError
from edgestead.objects.errors import ObjectReset, Overloaded
from edgestead.objects.runtime.admission import Authorise
from edgestead.objects.runtime.calls import Reply, pack_error
from edgestead.objects.runtime.gates import standing_in
from edgestead.objects.runtime.node import Node
from edgestead.objects.runtime.shards import (
    REFUSED,
    Call,
    Passing,
    Where,
    give,
    give_whole,
    passed_back,
)
from edgestead.objects.runtime.wire import Asker, Lost, Open
from edgestead.store.objectlog import ObjectRef, WrongOwner

WRONG_MAX: Final = 4  # answers that another process has the slot, for one call
UNREACHED_SECONDS_MAX: Final = 5.0  # above the 2.5 s of a take-over
OTHERS_SECONDS_MAX: Final = 5.0  # of one other process's answer to a list
MOVES: Final = "The object moves to another process."
LOST: Final = "The object's process ended during the call, or is not reached any more."


class Owner(NamedTuple):
    """A process that has a slot. `number` is its incarnation, which no other process has; `place` counts
    those of its `node`, which is in a `region`. `form` is the newest that it reads.
    """

    number: int
    address: str
    place: int
    node: str = ""
    region: str = ""
    form: int = FORMS.newest


class Owners(Protocol):
    """The map, as this process knows it."""

    @property
    def number(self) -> int:
        """This process's."""
        ...

    @property
    def version(self) -> int: ...

    def slot_of(self, ref: ObjectRef) -> int: ...

    def version_of(self, ref: ObjectRef) -> int:
        """Of a map by which this process knows who has the object; newer than its own where it has given that
        away since.
        """
        ...

    def has(self, ref: ObjectRef) -> bool:
        """Whether a call to the object may begin here."""
        ...

    async def owner(self, ref: ObjectRef, since: int = -1) -> Owner:
        """Who has it by a map that is not older. Waits while nobody has, or it is just being given.

        Raises Overloaded after some seconds.
        """
        ...

    def others(self) -> list[Owner]:
        """All other processes."""
        ...

    async def looked(self) -> None:
        """Wait for the next look at the map."""
        ...


class Reach(NamedTuple):
    """How to connect to a process, for calls and for requests."""

    calls: Open
    requests: Open


class ReachOf(Protocol):
    def __call__(self, owner: Owner) -> Reach: ...


class FarCall(msgspec.Struct, array_like=True):
    """Its form is read first: what follows is known only then."""

    form: int
    call: msgspec.Raw  # a `Call`
    version: int  # of the map by which it was asked


class FarReply(msgspec.Struct, array_like=True):
    """With `elsewhere` nothing ran: the version of a map by which another process has the object."""

    ok: bool
    data: bytes
    elsewhere: int | None = None


class _Way:
    """One way to a process, until that is gone: then its connections end, those that are being made, too.

    A machine that stands still or is cut off hangs up on nobody.
    """

    def __init__(self, open_: Open) -> None:
        self._open = open_
        self._made: WeakSet[asyncio.Protocol] = WeakSet()
        self._connecting: set[asyncio.Task[object]] = set()

    async def connect(self, make: Callable[[], asyncio.Protocol]) -> None:
        """Raises OSError."""

        def made() -> asyncio.Protocol:
            protocol = make()
            self._made.add(protocol)
            return protocol

        connecting: asyncio.Task[object] = asyncio.ensure_future(_await(self._open(made)))
        self._connecting.add(connecting)
        connecting.add_done_callback(self._connecting.discard)
        try:
            await connecting
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            raise ConnectionError("the object's process is gone") from None

    def end(self) -> None:
        for connecting in list(self._connecting):
            connecting.cancel()
        for protocol in list(self._made):
            transport = getattr(protocol, "transport", None)  # every protocol of ours that asks has it
            if transport is not None:
                transport.abort()


def _refused(error: Overloaded) -> FarReply:
    """Nothing ran."""
    refusal = pack_error(error)
    return FarReply(refusal.ok, refusal.data)


async def _await(opening: Awaitable[object]) -> object:
    return await opening


class _Known(NamedTuple):
    """The ways to one process."""

    asker: Asker
    requests: client.Kept
    ways: tuple[_Way, _Way]


_read_inner = msgspec.msgpack.Decoder(Call).decode
_encode = msgspec.msgpack.Encoder().encode
_read_call = msgspec.msgpack.Decoder(FarCall).decode
_read_reply = msgspec.msgpack.Decoder(FarReply).decode


class Spread(Passing):
    """`reach` also leads to this process itself: for a request that comes back to it."""

    def __init__(
        self,
        node: Node,
        authorise: Authorise,
        owners: Owners,
        reach: ReachOf,
        processor: Turns | None = None,
        *,
        forms: Forms = FORMS,
    ) -> None:
        super().__init__(node, authorise, processor)
        self._forms = forms
        self._owners, self._reach = owners, reach
        self._known: dict[int, _Known] = {}
        node.deliver = self.call

    def is_local(self, ref: ObjectRef) -> bool:
        return self._owners.has(ref)

    async def where(self, ref: ObjectRef) -> Where:
        owner = await self._owners.owner(ref)
        return Where(owner.place, owner.node, self._owners.slot_of(ref), owner.region)

    async def call(self, ref: ObjectRef, method: str, arguments: bytes) -> Reply:
        """As `Node.call`, wherever the object lives."""
        since = -1
        if self._owners.has(ref):
            try:
                return await self._node.call(ref, method, arguments)
            except WrongOwner as error:
                since = error.version
        call = Call(ref.class_name, ref.id, ref.name, method, arguments, None, standing_in())
        return await self._pass(call, since)

    async def _pass(self, call: Call, since: int = -1) -> Reply:
        ref = ObjectRef(call.class_name, call.id, call.name)
        loop, wrong = asyncio.get_running_loop(), 0
        ends_s = loop.time() + UNREACHED_SECONDS_MAX
        while wrong < WRONG_MAX:
            try:
                owner = await self._owners.owner(ref, since)
                reply = await self._ask(owner, ref, call)
            except Overloaded as error:
                return pack_error(error)
            except Lost:
                return pack_error(ObjectReset(LOST))
            except OSError as error:
                if loop.time() > ends_s:
                    return pack_error(Overloaded(f"The object's process takes no calls: {error}"))
                await self._owners.looked()
                continue
            if reply.elsewhere is None:
                return Reply(reply.ok, reply.data)
            wrong, since = wrong + 1, reply.elsewhere
            if since <= self._owners.version:  # nothing newer to wait for: the slot begins to move
                await self._owners.looked()
        return pack_error(Overloaded(MOVES))

    async def _ask(self, owner: Owner, ref: ObjectRef, call: Call) -> FarReply:
        """Raises Lost, OSError."""
        if owner.number == self._owners.number:
            return await self._run(ref, call, 0)
        form = self._forms.for_other(owner.form)
        if form is None:
            return _refused(Overloaded(f"The object's node {owner.node} has an older release: upgrade it."))
        far = FarCall(form, msgspec.Raw(_encode(call)), self._owners.version)
        return _read_reply(await self._ways_to(owner).asker.ask(_encode(far)))

    async def _answer(self, body: bytes) -> bytes:
        asked = _read_call(body)
        if words := self._forms.refusal(asked.form):
            return _encode(_refused(Overloaded(words)))
        call = _read_inner(asked.call)
        ref = ObjectRef(call.class_name, call.id, call.name)
        try:
            owner = await self._owners.owner(ref, asked.version)
        except Overloaded as error:
            return _encode(_refused(error))
        if owner.number != self._owners.number:
            return _encode(FarReply(*REFUSED, self._owners.version_of(ref)))
        return _encode(await self._run(ref, call, len(body)))

    async def _run(self, ref: ObjectRef, call: Call, octets: int) -> FarReply:
        ask_again = await self._begin(call, octets)
        try:
            reply = await self._node.call(ref, call.method, call.arguments, ask_again=ask_again)
        except WrongOwner as error:
            return FarReply(*REFUSED, max(error.version, self._owners.version_of(ref)))
        except EdgeError:
            return FarReply(*REFUSED)
        return FarReply(reply.ok, reply.data)

    async def pass_on(self, ref: ObjectRef, request: Request) -> Response:
        """Have the owner answer a request. Bodies stream both ways. Raises OSError, BodyBroken."""
        try:
            owner = await self._owners.owner(ref)
        except Overloaded as error:
            raise OSError(str(error)) from None
        return passed_back(await give(self._ways_to(owner).requests, request, request.body))

    async def ask_others(self, request: Request) -> list[bytes]:
        """What each other process answers to a request without a body. Raises OSError, BodyBroken."""
        return await asyncio.gather(*(self._ask_other(owner, request) for owner in self._owners.others()))

    async def _ask_other(self, owner: Owner, request: Request) -> bytes:
        """One that stands still, or cannot be reached, is named. Raises OSError, BodyBroken."""
        try:
            async with asyncio.timeout(OTHERS_SECONDS_MAX):
                return await give_whole(self._ways_to(owner).requests, request)
        except TimeoutError:
            process = f"process {owner.place} of node {owner.node}"
            raise OSError(f"{process} has not answered within {OTHERS_SECONDS_MAX:g} s") from None

    def of_passed_on(self) -> "PassedOnHere":
        return PassedOnHere(self, self._owners)

    def _ways_to(self, owner: Owner) -> _Known:
        known = self._known.get(owner.number)
        if known is None:
            self.forget_gone()
            calls, requests = map(_Way, self._reach(owner))
            known = self._known[owner.number] = _Known(
                Asker(calls.connect), client.Kept(client.Own(requests.connect)), (calls, requests)
            )
        return known

    def forget_gone(self) -> None:
        """Of processes that the map does not know any more, nothing is waited for: others may have what they
        had. To be called after each look at the map.
        """
        living = {owner.number for owner in self._owners.others()} | {self._owners.number}
        for number in self._known.keys() - living:
            self._end(self._known.pop(number))

    def _end(self, known: _Known) -> None:
        known.requests.close()
        for way in known.ways:
            way.end()

    async def close(self) -> None:
        for known in self._known.values():
            self._end(known)
        self._known.clear()


class PassedOnHere:
    """The same for requests that another process passed on: answered here, or by whom a newer map names."""

    def __init__(self, spread: Spread, owners: Owners) -> None:
        self._spread, self._owners = spread, owners
        self.is_local, self.call_for, self.where = spread.is_local, spread.call_for, spread.where

    async def pass_on(self, ref: ObjectRef, request: Request) -> Response:
        await self._owners.looked()
        return await self._spread.pass_on(ref, request)

    async def ask_others(self, request: Request) -> list[bytes]:
        """Who passed it on asks them."""
        return []
