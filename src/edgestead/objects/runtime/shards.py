"""The objects of all processes, seen from one of them.

Owns  where a call or request goes: to this process's node, or over a Unix socket to the owner's.
Not   running anything (`node`); which classes are apart (`containment`).

Each object has a home, by its id. Of a class that went apart the home sends on what it does not have itself,
to the process of these classes: so an object that began at home stays in one place, and nobody but its home
has to know which one.
"""

import asyncio
import socket
from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from functools import partial
from typing import NamedTuple, Protocol

import msgspec

from edgestead.http1 import client, limits
from edgestead.http1.head import Headers
from edgestead.http1.messages import Body, Request, Response
from edgestead.model.budgets.networks import network_of
from edgestead.model.budgets.turns import Turns
from edgestead.model.refusals import EdgeError
from edgestead.model.refusals.object import Unsure
from edgestead.objects.errors import ObjectReset, Overloaded
from edgestead.objects.ids import owner_of
from edgestead.objects.runtime.admission import CREDENTIAL_HEADERS, INVOKE, AskAgain, Authorise, let_in
from edgestead.objects.runtime.calls import Reply, pack_error
from edgestead.objects.runtime.containment import Classes, Nowhere
from edgestead.objects.runtime.gates import stand_in, standing_in
from edgestead.objects.runtime.lines import Line
from edgestead.objects.runtime.node import Node
from edgestead.objects.runtime.wire import Answering, Asker, Lost
from edgestead.store.objectlog import ObjectRef

CLIENT_HEADER = b"edge-forwarded-client"  # of a request that was passed on: whom it came from
NO_HOST = b"none"  # behind that client, and in place of Host: HTTP/1.0 needs none, and HTTP/1.1 one
PASSED_ON_HEADERS_MAX = limits.HEADERS_MAX + 3  # a client's, that one, Host, and the connection's
ANSWER_BYTES_MAX = 16 * 1024 * 1024  # of another process, for one list
_BACKLOG = 1_024


class Call(msgspec.Struct, array_like=True):
    """As one process passes it to another."""

    class_name: str
    id: str
    name: str | None
    method: str
    arguments: bytes
    caller: tuple[str, Headers] | None = None  # from outside: its address and credentials
    line: Line = None  # for whom, if that is known: its call waits where others of the same one do


REFUSED = (False, b"")  # a reply to a caller whose rights ended while it waited
_encode = msgspec.msgpack.Encoder().encode
_read_call = msgspec.msgpack.Decoder(Call).decode
_read_reply = msgspec.msgpack.Decoder(tuple[bool, bytes]).decode


class Where(NamedTuple):
    """The process that has an object, counted from 0 on its machine; the rest in a cluster only."""

    process: int
    node: str | None = None
    slot: int | None = None
    region: str | None = None


class Others(Protocol):
    """What the HTTP address asks of the other processes."""

    async def where(self, ref: ObjectRef) -> Where:
        """Raises Overloaded: nobody has it for some seconds."""
        ...

    def is_local(self, ref: ObjectRef) -> bool: ...

    async def call_for(self, request: Request, ref: ObjectRef, method: str, arguments: bytes) -> Reply: ...

    async def pass_on(self, ref: ObjectRef, request: Request) -> Response: ...

    async def ask_others(self, request: Request) -> list[bytes]: ...


class Passing(ABC):
    """Passes calls on to the process that has their object, and runs what others pass on.

    `authorise` gives the refusal of a caller from outside, or None. `processor` has the loop's turns, in
    which callers from outside that other processes let in have theirs.
    """

    def __init__(self, node: Node, authorise: Authorise, processor: Turns | None) -> None:
        self._node, self._authorise, self._processor = node, authorise, processor
        self._running: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    async def open(self, bound: socket.socket) -> None:
        """Take the calls of the other processes."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_unix_server(
            lambda: Answering(self._answer, self._running), sock=bound, backlog=_BACKLOG
        )

    @abstractmethod
    async def _pass(self, call: Call) -> Reply:
        """Have a call run by the process that has its object."""

    @abstractmethod
    async def _answer(self, body: bytes) -> bytes:
        """What another process passed on."""

    async def call_for(self, request: Request, ref: ObjectRef, method: str, arguments: bytes) -> Reply:
        """Call an object of another process for a caller that was let in here.

        The owner asks again when the call's turn has come. Raises the refusal.
        """
        caller = request.client, [header for header in request.headers if header[0] in CREDENTIAL_HEADERS]
        line = network_of(request.client)
        reply = await self._pass(Call(ref.class_name, ref.id, ref.name, method, arguments, caller, line))
        if (reply.ok, reply.data) == REFUSED:
            await let_in(self._authorise, request, INVOKE)
            raise Unsure  # we do not know yet what the owner knows
        return reply

    async def _begin(self, call: Call, octets: int) -> AskAgain | None:
        """Wait for the turn of whom a call is for; returns what its caller is asked before it runs."""
        ask_again = None
        if call.caller is not None:
            address, headers = call.caller
            asking = Request("POST", b"", headers, address, Body(lambda: None))
            ask_again = partial(let_in, self._authorise, asking, INVOKE)
        if call.line is not None:
            stand_in(call.line)
            await self._turn(call.line, octets)
        return ask_again

    async def _turn(self, address: str, octets: int) -> None:
        """While this process has more work than it can do."""
        if self._processor is not None and self._processor.must_wait(octets):
            turn = asyncio.Event()
            self._processor.wait(address, turn.set)
            await turn.wait()

    async def finish(self, drain_seconds: float) -> None:
        """Take no more connections, and let calls that other processes have passed on end."""
        if self._server is not None:
            self._server.close()
        if self._running:
            await asyncio.wait(tuple(self._running), timeout=drain_seconds)

    @abstractmethod
    async def close(self) -> None:
        """Ask nobody any more."""


async def give(to: client.Kept, request: Request, body: bytes | Body) -> client.Answer:
    """Pass a request on to another process. Raises OSError, BodyBroken."""
    headers: Headers = [header for header in request.headers if header[0] != CLIENT_HEADER]
    caller = request.client.encode()
    if request.header(b"host") is None:
        headers.append((b"host", NO_HOST))
        caller += b" " + NO_HOST
    headers.append((CLIENT_HEADER, caller))
    return await client.exchange(to, request.method, request.target, headers, body)


async def give_whole(to: client.Kept, request: Request) -> bytes:
    """What another process answers to a request without a body. Raises OSError, BodyBroken."""
    answer = await give(to, request, b"")
    parts, length = [], 0
    async for chunk in answer.body:
        length += len(chunk)
        if length > ANSWER_BYTES_MAX:
            raise OSError("its answer is too long")
        parts.append(chunk)
    return b"".join(parts)


def passed_back(answer: client.Answer) -> Response:
    """Another process's answer to a request that was given to it, as this one's. Its body streams."""
    length = [value for name, value in answer.headers if name == b"content-length"]
    headers = [header for header in answer.headers if header[0] != b"content-length"]
    return Response(answer.status, headers, answer.body, int(length[0]) if length else None)


class Shards(Passing):
    """`calls` and `requests` are the Unix sockets of every process, by worker; `worker` is this one.

    `processes` and `apart`: as in `owner_of`; one more process is for classes that `went` apart since.
    """

    def __init__(
        self,
        node: Node,
        authorise: Authorise,
        worker: int,
        calls: Sequence[str],
        requests: Sequence[str],
        apart: Collection[str] = (),
        processes: int | None = None,
        went: Classes | None = None,
        processor: Turns | None = None,
    ) -> None:
        super().__init__(node, authorise, processor)
        self._worker = worker
        self._processes = len(calls) if processes is None else processes
        self._apart, self._went = apart, went or Nowhere()
        self._aside = self._processes - bool(apart)
        self._askers = [Asker(path) for path in calls]
        self._requests = [client.Kept(client.Unix(path)) for path in requests]
        node.deliver, node.may_begin = self.call, self._may_begin

    def _owner_of(self, ref: ObjectRef) -> int:
        home = owner_of(ref, self._processes, self._apart)
        if ref.class_name not in self._went.classes:
            return home
        if self.goes_on(ref):
            return self._aside
        return self._worker if self._worker == self._aside and self._node.has(ref) else home

    def goes_on(self, ref: ObjectRef) -> bool:
        """Whether this process is the object's home, and sends on what is for it."""
        return (
            ref.class_name in self._went.classes
            and self._worker == owner_of(ref, self._processes, self._apart) != self._aside
            and not self._node.has(ref)
        )

    def is_local(self, ref: ObjectRef) -> bool:
        return self._owner_of(ref) == self._worker

    async def where(self, ref: ObjectRef) -> Where:
        return Where(self._owner_of(ref))

    def _may_begin(self, ref: ObjectRef) -> bool:
        """Whether an object that is not here may begin here. Not of a class that is not apart any more."""
        if (
            self._worker != self._aside
            or ref.class_name in self._apart
            or ref.class_name in self._went.classes
        ):
            return True
        self._went.look()
        return ref.class_name in self._went.classes or self._node.has(ref)

    async def call(self, ref: ObjectRef, method: str, arguments: bytes) -> Reply:
        """As `Node.call`, wherever the object lives."""
        owner = self._owner_of(ref)
        if owner == self._worker:
            return await self._node.call(ref, method, arguments)
        call = Call(ref.class_name, ref.id, ref.name, method, arguments, None, standing_in())
        return await self._ask_owner(call, owner)

    async def _pass(self, call: Call) -> Reply:
        return await self._ask_owner(call, self._owner_of(ObjectRef(call.class_name, call.id, call.name)))

    async def _ask_owner(self, call: Call, owner: int) -> Reply:
        try:
            answer = await self._askers[owner].ask(_encode(call))
        except Lost:
            return pack_error(ObjectReset("The object's process ended during the call."))
        except OSError as error:
            return pack_error(Overloaded(f"The object's process takes no calls: {error}"))
        return Reply(*_read_reply(answer))

    async def _answer(self, body: bytes) -> bytes:
        call = _read_call(body)
        ref = ObjectRef(call.class_name, call.id, call.name)
        ask_again = await self._begin(call, len(body))
        if self.goes_on(ref):
            reply = await self._ask_owner(call, self._aside)
            return _encode((reply.ok, reply.data))
        try:
            reply = await self._node.call(ref, call.method, call.arguments, ask_again=ask_again)
        except EdgeError:
            return _encode(REFUSED)
        return _encode((reply.ok, reply.data))

    async def pass_on(self, ref: ObjectRef, request: Request) -> Response:
        """Have the owner answer a request. Bodies stream both ways. Raises OSError, BodyBroken."""
        return passed_back(await give(self._requests[self._owner_of(ref)], request, request.body))

    async def ask_others(self, request: Request) -> list[bytes]:
        """What each other process answers to a request without a body. Raises OSError, BodyBroken."""
        count = max(self._processes, self._aside + bool(self._went.classes))
        others = (worker for worker in range(count) if worker != self._worker)
        return await asyncio.gather(*(give_whole(self._requests[worker], request) for worker in others))

    def of_passed_on(self) -> "PassedOn":
        return PassedOn(self)

    async def close(self) -> None:
        for asker in self._askers:
            asker.close()
        for kept in self._requests:
            kept.close()


def client_of(request: Request) -> str:
    """Whom a request came from that another process has passed on."""
    address, _, _ = (request.header(CLIENT_HEADER) or b"").partition(b" ")
    return address.decode("latin-1")


class PassedOn:
    """The same for requests that another process passed on: here, or sent on by their object's home."""

    def __init__(self, shards: Shards) -> None:
        self._shards = shards
        self.call_for, self.pass_on, self.where = shards.call_for, shards.pass_on, shards.where

    def is_local(self, ref: ObjectRef) -> bool:
        return not self._shards.goes_on(ref)

    async def ask_others(self, request: Request) -> list[bytes]:
        """Who passed it on asks them."""
        return []
