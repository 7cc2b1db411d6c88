"""The API on a node of a cluster: what is answered here, what the leader answers, and what nobody does.

Owns  whether an answer may leave; passing requests on to the leader, and waiting until there is one.
Not   what a request means (`rest`); who leads.

    request             this process leads   it follows                      it may not answer
    GET, HEAD of API    here                 here                            passed on, or 503 (but see below)
    others, dashboard   here                 passed on to the leader         passed on, or 503 in the end
    health, metrics     here                 here                            here

A process that may not answer and hears the database, as one that has just given the office away, has reads
answered by who leads next, and they wait for that as writes do; so does one whose lease ended under it. Where
the database is silent nobody has a lease for long, and it says so at once.

With `cluster.reads = stale` a GET of the API is answered here, too, while the database does not answer, with
a header that says for how long it has not. Once it does, a process that may not answer yet passes GETs on to
the leader as it does others: nobody is shown old data while a way to current data is known. Where it comes to
none, as after a failover while nobody leads yet, the read is answered here after all, with the header.

Whether an answer may leave is asked when it does: its lease may have ended meanwhile. A write whose answer
may not leave can have been written.

A request that is lost with its leader has a number, which the log has if it has written (`store.answered`):

    the log has it, with its answer          that answer
    the log has it, without                  503: it has written
    it has not, and another process leads    passed on again, if its body is kept and all it writes is there
    the rest                                 503: it may have written
"""

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Final, NamedTuple

import msgspec

from edgestead.cluster.silence import Age
from edgestead.http1.client import Answer, ExchangeError, Kept, Own, exchange
from edgestead.http1.head import Headers
from edgestead.http1.messages import Body, BodyBroken, BodyTooLarge, Request, Response
from edgestead.http1.protocol import Handler
from edgestead.model import envelope
from edgestead.model.refusals import EdgeError, NotFound, Unavailable
from edgestead.rest.pipeline import FIXED_HEADERS
from edgestead.rest.request_id import HEADER, PLACE
from edgestead.server.cluster.membership import HOLD_SECONDS_MAX, Membership
from edgestead.server.nodes import port
from edgestead.server.nodes.identity import Member
from edgestead.store.answered import PASSED, Passed
from edgestead.store.controllog import NotLeader, Unknown

API_ALPN: Final = "edgestead-api/1"
CLIENT_HEADER: Final = b"edge-passed-on-for"
LOCAL: Final = (b"/health", b"/metrics")
REQUEST_HEADER: Final = b"edge-passed-on-as"  # the number of a request
BETWEEN_NODES: Final = b"edge-between-nodes"  # a request of a node itself, which no client can make
SETTLED: Final = b"/settled"  # of those: to say when all have what the leader has, and what that is
LOST_SECONDS_MAX: Final = 15.0  # until it is known what became of a request: a lease, a claim, and some more
PASSED_ON_MAX: Final = 3  # times of one request
STALE: Final = b"edge-stale"  # of a read that may be old: for how many seconds
NOT_LEADER: Final = b"edge-not-leader"  # of an answer that says: nothing was done, ask who leads now
PERHAPS: Final = b"edge-perhaps-written"  # the same, of a write that was made, and may be undone or not
REPEATED_BYTES_MAX: Final = 1 << 20  # of a body that is kept, so that the request can be sent again
GATHERED_BYTES_MAX: Final = 64 << 10  # of an answer that leaves in one piece
ANSWER_SECONDS_MAX: Final = 600.0  # of an import that the leader works on
LOOK_SECONDS: Final = 0.1  # between two looks for the next leader
ASK_SECONDS_MAX: Final = 2.0  # for one answer to SETTLED, which waits for members whose lease ends, too
_OURS: Final = frozenset({CLIENT_HEADER, REQUEST_HEADER, BETWEEN_NODES})
_JSON: Final = ((b"content-type", b"application/json"), *FIXED_HEADERS)
_read_settled: Final = msgspec.json.Decoder(tuple[int, int]).decode
_READS: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_API: Final = b"/client/"

_log = logging.getLogger("edgestead.server")


Act = Callable[[bytes], Awaitable[bytes]]


class HasWritten(Unavailable):
    """A request whose answer is not kept was lost with its leader."""

    wording = (
        "The service lost the process that made this write, and its answer. It has been written, at least in "
        "part. Read it back before you send it again."
    )


class NotNow(Unavailable):
    """This node's lease is over: what it would answer may be old."""

    wording = (
        "This node has no lease of its cluster's database at the moment, and answers nothing that may be "
        "old. Try again, or another node."
    )


def refusal(error: EdgeError) -> Response:
    headers: Headers = [(b"content-type", b"application/json"), (b"retry-after", b"1")]
    return Response(error.status, headers, envelope.failure(error))


class Gate:
    """Stands before the handler of control's server.

    `age` is that of what this process has, None where it is current or too old to be shown. `reads_go_on` is
    whether the operator wants that at all.
    """

    def __init__(
        self,
        handler: Handler,
        membership: Membership,
        member: Member,
        *,
        reads_go_on: bool = False,
        age: Callable[[], Age | None] = lambda: None,
    ) -> None:
        self._reads_go_on, self._age = reads_go_on, age
        self._handler, self._membership, self._member = handler, membership, member
        self._kept: dict[str, Kept] = {}
        self._may_answer = membership.seat.may_answer
        self._running = 0  # requests that may write, of this process
        self._idle = asyncio.Event()
        self._idle.set()
        membership.drained = self._idle.wait
        self._asking: dict[
            asyncio.Timeout, int | None
        ] = {}  # requests that are passed on, and to which leader
        membership.on_other_leader = self._ask_no_more
        membership.on_unreached = self._ask_no_more
        self.acts: Mapping[bytes, Act] = {}
        """What a leader does for other nodes that is no request of a client, by target."""

    def __call__(self, request: Request) -> Response | Coroutine[Any, Any, Response | None]:
        """A client's request."""
        if _is_api_read(request):
            if not self._may_read_here() and not self._membership.is_silent:
                return self._read_elsewhere(request)
            return self._here(request, is_read=True, again=True)
        if request.target.startswith(LOCAL):
            return self._handler(request)
        if self._membership.leads:
            return self._here(request, is_read=False)
        return self._elsewhere(request)

    def passed_on(self, request: Request) -> Response | Coroutine[Any, Any, Response | None]:
        """A request that another node passed on, or its question about one."""
        request.client = client_of(request)
        is_of_node = request.header(BETWEEN_NODES) is not None
        if is_of_node and request.target == SETTLED:
            return self._tell_settled()
        number, _, leader = (request.header(REQUEST_HEADER) or b"").decode("latin-1").partition(" ")
        if not self._membership.leads or leader != str(self._membership.seat.office.number):
            answer = refusal(NotLeader())
            answer.headers = [*answer.headers, (NOT_LEADER, b"1")]
            return answer
        if is_of_node:
            return self._act(request)
        passed = Passed(number, lambda: str(self._membership.incarnation) == leader)
        here = self._here(request, is_read=False)
        return here if isinstance(here, Response) else _as_passed(passed, here)

    async def _act(self, request: Request) -> Response | None:
        try:
            content = await request.body.read(REPEATED_BYTES_MAX)
            act = self.acts.get(request.target)
            if act is None:  # of a node with a newer release
                raise NotFound()
            return Response(200, [], await act(content))
        except (BodyBroken, BodyTooLarge):
            return None
        except EdgeError as error:
            answer = refusal(error)
            if isinstance(error, Unknown):
                answer.headers = [*answer.headers, (PERHAPS, b"1")]
            return answer

    async def ask_leader(self, act: bytes, content: bytes) -> bytes:
        """Have the process that leads do one of its `acts`. Raises Unavailable; Unknown: it may be done."""
        request = Request("POST", act, [], "", Body(lambda: None))
        answer = await self._pass_on(request, content, secrets.token_hex(8), is_act=True)
        if answer is None or isinstance(answer, _Lost):
            raise Unknown()
        if answer.status != 200:
            raise Unavailable()
        if isinstance(answer.body, bytes):
            return answer.body
        try:
            return b"".join([one async for one in answer.body])
        except BodyBroken:
            raise Unknown() from None

    async def _tell_settled(self) -> Response:
        try:
            settled = await self._membership.settled()
        except Unavailable as error:
            return refusal(error)
        return Response(200, [], msgspec.json.encode(settled))

    # Here.

    def _here(
        self, request: Request, *, is_read: bool, again: bool = False
    ) -> Response | Coroutine[Any, Any, Response | None]:
        """`again`: a read whose answer may not leave any more is answered elsewhere."""
        if not self._may_answer() and not (is_read and self._age_shown() is not None):
            return refusal(NotNow())
        answer = self._handler(request)
        if not isinstance(answer, Response):
            return self._later(request, answer, is_read=is_read, again=again)
        return answer if self._may_answer() else self._left(request, answer, is_read=is_read, again=again)

    async def _later(
        self, request: Request, answer: Coroutine[Any, Any, Response | None], *, is_read: bool, again: bool
    ) -> Response | None:
        self._running += not is_read
        if not is_read:
            self._idle.clear()
        try:
            response = await answer
        finally:
            self._running -= not is_read
            if self._running == 0:
                self._idle.set()
        if response is None or self._may_answer():
            return response
        left = self._left(request, response, is_read=is_read, again=again)
        return left if isinstance(left, Response) else await left

    def _left(
        self, request: Request, response: Response, *, is_read: bool, again: bool
    ) -> Response | Coroutine[Any, Any, Response | None]:
        """What leaves where the answer was made under a lease that is over."""
        if is_read and (age := self._age_shown()) is not None:
            response.headers = [*response.headers, (STALE, str(age.seconds).encode())]
            return response
        response.done(None)
        if again and not self._membership.is_silent:
            return self._read_elsewhere(request)
        return refusal(NotNow() if is_read else Unknown())

    def _age_shown(self) -> Age | None:
        return self._age() if self._reads_go_on else None

    def _may_read_here(self) -> bool:
        """Whether a read is answered here at once: nothing newer can be had."""
        age = self._age_shown()
        return self._may_answer() or (age is not None and age.is_silent)

    # Elsewhere.

    async def _read_elsewhere(self, request: Request) -> Response | None:
        """Have the leader answer a read, again while it may not either: its lease may be over, too."""
        until = asyncio.get_running_loop().time() + HOLD_SECONDS_MAX
        while True:
            answer = await self._elsewhere(request)
            if answer is None or answer.status != 503:
                return answer
            is_late = asyncio.get_running_loop().time() > until
            if self._may_read_here() or (is_late and self._age_shown() is not None):
                here = self._here(request, is_read=True)
                return here if isinstance(here, Response) else await here
            if is_late or self._membership.is_silent:
                return answer
            await self._look()

    async def _elsewhere(self, request: Request) -> Response | None:
        """Have the leader answer. A request that reached none is tried again until there is one."""
        try:
            body = await _kept_body(request)
        except BodyBroken:
            return None
        number = secrets.token_hex(8)
        with self._membership.answers.waited_for(number):
            for _ in range(PASSED_ON_MAX):
                answer = await self._pass_on(request, body, number)
                if not isinstance(answer, _Lost):
                    return answer
                _log.warning("a request was lost with the leader at %s: %s", answer.address, answer.reason)
                if request.method in _READS:
                    continue
                found = await self._outcome(number, answer.leader)
                if found is not None:
                    return found
                if body is None or not _is_in_log(request.target):
                    break
        return refusal(Unknown())

    async def _pass_on(
        self, request: Request, body: bytes | None, number: str, *, is_act: bool = False
    ) -> "Response | _Lost | None":
        membership, loop = self._membership, asyncio.get_running_loop()
        until = loop.time() + HOLD_SECONDS_MAX
        while loop.time() < until:
            leader = membership.leader_number
            if membership.leads:
                if is_act and body is not None:
                    return Response(200, [], await self.acts[request.target](body))
                if body is not None:
                    request.body = _body_of(body)
                here = self._here(request, is_read=False)
                return here if isinstance(here, Response) else await here
            if address := membership.leader_address:
                try:
                    content = request.body if body is None else body
                    answer = await self._ask(address, request, content, number, is_act=is_act)
                    marks = {name for name, _ in answer.headers} & {NOT_LEADER, PERHAPS}
                    if PERHAPS in marks:
                        return _Lost(address, leader, "it does not know what became of it")
                    if body is None or not marks:
                        return answer
                except ExchangeError as error:
                    return _Lost(address, leader, str(error))
                except BodyBroken:
                    return None
                except OSError:
                    pass  # nothing was sent: it is gone, or not there yet
            await self._look()
            if _is_api_read(request) and (self._may_read_here() or membership.is_silent):
                break  # `_read_elsewhere` sees to it
        return refusal(NotLeader())

    async def _outcome(self, request: str, leader: int | None) -> Response | None:
        """What became of a request that was lost with a leader. None: it has written nothing, and what that
        leader still does comes too late.
        """
        membership = self._membership
        with suppress(TimeoutError):
            async with asyncio.timeout(LOST_SECONDS_MAX):
                while (settled := await self._ask_settled()) is None:
                    await self._look()
                now, position = settled
                while membership.position < position:
                    await self._look()
                answer = membership.answers.of(request)
                if answer:
                    return Response(200, [*_JSON, (HEADER, f"{request}-{PLACE}".encode())], answer)
                if answer is not None:
                    return refusal(HasWritten())
                return None if now != leader else refusal(Unknown())
        return refusal(Unknown())

    async def _ask_settled(self) -> tuple[int, int] | None:
        """As `Membership.settled`, of the process that leads; None when none says so."""
        membership, limit = self._membership, asyncio.timeout(ASK_SECONDS_MAX)
        try:
            async with limit:
                self._asking[limit] = membership.leader_number
                if membership.leads:
                    return await membership.settled()
                if address := membership.leader_address:
                    return await self._ask_settled_at(address)
        except (Unavailable, OSError, BodyBroken, msgspec.MsgspecError):  # a TimeoutError is an OSError
            pass
        finally:
            self._asking.pop(limit, None)
        return None

    async def _ask_settled_at(self, address: str) -> tuple[int, int] | None:
        headers = [(b"host", b"edgestead"), (BETWEEN_NODES, b"1")]
        answer = await exchange(self._to(address), "GET", SETTLED, headers, b"")
        content = b"".join([chunk async for chunk in answer.body])
        return _read_settled(content) if answer.status == 200 else None

    async def _look(self) -> None:
        """Wait for a moment, or until something has changed."""
        with suppress(TimeoutError):
            async with asyncio.timeout(LOOK_SECONDS):
                await self._membership.changed()

    async def _ask(
        self, address: str, request: Request, body: bytes | Body, number: str, *, is_act: bool
    ) -> Response:
        """Raises ExchangeError, BodyBroken; another OSError when the leader was not reached."""
        headers = [header for header in request.headers if header[0] not in _OURS]
        headers.append((CLIENT_HEADER, request.client.encode()))
        leader = self._membership.leader_number
        headers.append((REQUEST_HEADER, f"{number} {leader}".encode()))
        if request.header(b"host") is None:  # a client of HTTP/1.0
            headers.append((b"host", b"edgestead"))
        if is_act:
            headers.append((BETWEEN_NODES, b"1"))
        limit = asyncio.timeout(ANSWER_SECONDS_MAX)
        try:
            async with limit:
                self._asking[limit] = leader
                answer = await exchange(self._to(address), request.method, request.target, headers, body)
                return await _response(answer, is_whole=request.method != "HEAD")
        except TimeoutError:
            raise ExchangeError("no answer, or another process has the office") from None
        finally:
            self._asking.pop(limit, None)

    def _ask_no_more(self, unreached: int | None = None) -> None:
        """Of a process that has not the office any more: it may be dead, and its host keep the connection.
        Nor of one that is not reached: the way to it may be cut, while the database goes on knowing it.
        """
        now = asyncio.get_running_loop().time()
        for limit, leader in self._asking.items():
            is_unreached = unreached is not None and leader == unreached
            if (is_unreached or leader != self._membership.leader_number) and not limit.expired():
                limit.reschedule(now)

    def _to(self, address: str) -> Kept:
        if address not in self._kept:
            self.close()  # there is one leader
            host, _, number = address.rpartition(":")
            where = (host.strip("[]"), int(number))
            self._kept[address] = Kept(Own(partial(port.connect, self._member, where, API_ALPN)))
        return self._kept[address]

    def close(self) -> None:
        for kept in self._kept.values():
            kept.close()
        self._kept.clear()


async def _response(answer: Answer, *, is_whole: bool) -> Response:
    """The leader's answer as this node's own; in one piece if it is short. Raises ExchangeError.

    Where the leader ends its connection it has not read all of the body, and this node has not either.
    """
    length = None
    kept: Headers = []
    for header in answer.headers:
        if header[0] == b"content-length":
            length = int(header[1])
        elif header[0] != b"date":
            kept.append(header)
    if length is None or length > GATHERED_BYTES_MAX or not is_whole:
        return Response(answer.status, kept, answer.body, length, close=answer.ends)
    try:
        content = b"".join([chunk async for chunk in answer.body])
        return Response(answer.status, kept, content, close=answer.ends)
    except BodyBroken:
        raise ExchangeError("the answer ended before its end") from None


class _Lost(NamedTuple):
    """A request that reached a leader, or may have, and was not answered in words that say what it did."""

    address: str
    leader: int | None
    reason: str


async def _as_passed(passed: Passed, answer: Coroutine[Any, Any, Response | None]) -> Response | None:
    token = PASSED.set(passed)
    try:
        response = await answer
    finally:
        PASSED.reset(token)
    if response is not None and response.status == 503 and passed.kept is not None:
        response.headers = [*response.headers, (PERHAPS, b"1")]
    return response


def _is_api_read(request: Request) -> bool:
    return request.method in _READS and request.target.startswith(_API)


def _is_in_log(target: bytes) -> bool:
    """Whether all that a request may write is in the control log: key-values are not."""
    return target.startswith(_API) and b"/storage/kv/" not in target


async def _kept_body(request: Request) -> bytes | None:
    """The whole body, if it is short enough to be sent again. Raises BodyBroken."""
    length = request.header(b"content-length")
    if request.header(b"transfer-encoding") is not None or int(length or 0) > REPEATED_BYTES_MAX:
        return None
    try:
        return await request.body.read(REPEATED_BYTES_MAX)
    except BodyTooLarge:  # more than was said
        raise BodyBroken from None


def _body_of(content: bytes) -> Body:
    """A body that has arrived."""
    body = Body(lambda: None)
    if content:
        body.feed(content)
    body.end()
    return body


def client_of(request: Request) -> str:
    """The address of the client for whom another node asks."""
    return (request.header(CLIENT_HEADER) or b"").decode("latin-1")
