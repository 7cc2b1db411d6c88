"""The objects' own HTTP address: the rows of the table that are served there.

Owns  which row a request is, which object its path names, the steps until it is answered.
Not   the rows (`rest.routes.objects`, `rest.routes.objects_node`); JSON of calls (`rest.objects_calls`); who
      may (`authorise`, a parameter); listening (`http1.server`).

    match       the row, the object and the query: remembered by method and target
    let in      who asks, and may they? A call is answered from here
    body        all of it; who asked is looked at again behind a slow one
    object      of another process: passed on. Else what the log knows of it
    decode      query and body, as the row declares them
    handler     who asked is looked at again when the object's turn has come, or others have answered
    answer      the envelope; of what only reads, if the caller still may

A call costs the table nothing: what its target means is found once, and kept with the handler bound to it.
"""

import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple

import apsw
import msgspec

from edgestead.http1.messages import BodyBroken, Request, Response
from edgestead.model import envelope
from edgestead.model.refusals import EdgeError
from edgestead.model.refusals import object as refusals
from edgestead.model.refusals import request as of_requests
from edgestead.model.refusals.request import InvalidQuery, NoRoute, Unreadable
from edgestead.objects import ids
from edgestead.objects.errors import BookmarkError, LimitError, ObjectError
from edgestead.objects.operate.operations import Operations
from edgestead.objects.operate.operator import Operator
from edgestead.objects.runtime.admission import AskAgain, Authorise, guard, let_in, let_in_whole
from edgestead.objects.runtime.node import Node
from edgestead.objects.runtime.shards import CLIENT_HEADER, Others, Where, client_of
from edgestead.rest import body
from edgestead.rest.objects_calls import JSON, Calls, printable
from edgestead.rest.query import Query
from edgestead.rest.routes import objects_node  # noqa: F401 - importing the rows fills ROUTES
from edgestead.rest.routes.objects import CALLS
from edgestead.rest.routing import OBJECTS, Answer, Download, Route, Router, rows_of
from edgestead.store.objectlog import CatalogueEntry, LogError, ObjectRef

log = logging.getLogger(__name__)

MATCHES_KEPT = 4_096  # targets whose row and object are remembered: an object's id takes two hashes
MATCH_BYTES_MAX = 256  # of such a target

Handler = Callable[[Request], Awaitable[Response]]


class Parts(NamedTuple):
    """What requests are answered with. With `shards` some objects live in other processes."""

    node: Node
    operator: Operator
    shards: Others | None


class Match(NamedTuple):
    """What a method and target mean. `call` answers a caller's request; operators' take the steps."""

    route: Route
    permission: str
    parameters: Sequence[str]  # those that the handler gets
    ref: ObjectRef | None
    query: Query
    call: Handler | None


class Exchange:
    """An operator's request while the steps work on it: the arguments that handlers may ask for by name."""

    __slots__ = (
        "ask_again",
        "body",
        "calls",
        "entry",
        "operations",
        "operator",
        "others",
        "query",
        "ref",
        "request",
        "where",
    )

    ref: ObjectRef
    entry: CatalogueEntry
    body: Any

    def __init__(self, face: "ObjectsFace", found: Match, request: Request) -> None:
        self.ask_again = face.asking_again(request, found.permission)
        self.calls: Calls = face.calls
        self.operator: Operator = face.operator.asking(self.ask_again)
        self.operations: Operations = self.operator.operations
        self.others = partial(face.ask_others, request, self.ask_again)
        self.where = face.where
        self.request, self.query = request, found.query


class ObjectsFace:
    """The handler of the objects' address. `authorise` gives the refusal, or None.

    `answered` is told the status of each answer.
    """

    def __init__(self, parts: Parts, authorise: Authorise, answered: Callable[[int], None]) -> None:
        self._permits, self._answered, self._shards = authorise, answered, parts.shards
        self.calls = Calls(parts.node, self._authorise, self.asking_again, parts.shards)
        self.operator = parts.operator
        self._router = Router(rows_of(OBJECTS))
        self._kept_match = lru_cache(MATCHES_KEPT)(self._match)

    async def __call__(self, request: Request) -> Response:
        """Answer one request. Never raises."""
        try:
            response = await self._respond(request)
        except EdgeError as error:
            response = refused(error)
        except BodyBroken:
            response = refused(Unreadable(reason="its body is not complete"))
        except Exception:
            log.exception("serving %s", request.method)
            response = refused(refusals.Busy(reason="The call could not be served."))
        self._answered(response.status)
        return response

    def _respond(self, request: Request) -> Awaitable[Response]:
        match = self._kept_match if len(request.target) <= MATCH_BYTES_MAX else self._match
        found = match(request.method, request.target)
        if found.call is None:
            return self._operate(found, request)
        refusal = self._authorise(request, found.permission)
        if refusal is None:
            return found.call(request)
        if isinstance(refusal, refusals.Unsure):
            return self._call_later(found, request)
        raise refusal

    # match

    def _match(self, method: str, target: bytes) -> Match:
        path, _, query = target.partition(b"?")
        try:
            route, parameters = self._router.find(method, path.decode("latin-1"))
        except NoRoute:
            raise refusals.NoSuchRoute from None
        ref, call, asked = None, None, Query(query)
        if route.parameters[:1] == ("class_name",):  # and its name or id
            ref = _ref_of(route, *parameters[:2])
            parameters = parameters[2:]
        if route.family is CALLS:
            known = {"calls": self.calls, "ref": ref, "query": asked}
            call = partial(route.handler, *parameters, *[known[name] for name in route.wants[:-1]])
        assert route.permission is not None
        return Match(route, route.permission, parameters, ref, asked, call)

    # let in

    def _authorise(self, request: Request, permission: str) -> EdgeError | None:
        """The refusal; without one, of the body that is still to come too."""
        refusal = self._permits(request, permission)
        if refusal is None:
            guard(request, self.asking_again(request, permission))
        return refusal

    def asking_again(self, request: Request, permission: str) -> AskAgain:
        return partial(let_in, self._permits, request, permission)

    async def _call_later(self, found: Match, request: Request) -> Response:
        assert found.call is not None
        await let_in(self._authorise, request, found.permission)
        return await found.call(request)

    # the steps of operators' requests

    async def _operate(self, found: Match, request: Request) -> Response:
        route, exchange = found.route, Exchange(self, found, request)
        await let_in_whole(self._authorise, request, found.permission, route.body_bytes_max)
        _refuse_unknown_parameters(route, found.query)
        if found.ref is not None:
            exchange.ref = found.ref
        if "entry" in route.wants:
            if self._shards is not None and not self._shards.is_local(exchange.ref):
                return await self._pass_on(exchange.ref, request)
            exchange.entry = await self._entry(exchange.ref)
        if "body" in route.wants:
            octets = await request.body.read(route.body_bytes_max)
            exchange.body = body.decode(octets, route.body, route.family.not_json)
        try:
            result = route.handler(*found.parameters, *route.arguments(exchange))
            if isinstance(result, Awaitable):
                result = await result
                if found.permission.endswith(" Read"):
                    await _still_permitted(result, exchange.ask_again)
            return _answer(result)
        except ObjectError as error:
            raise _refusal_of(error) from None
        except (LogError, OSError, apsw.Error) as error:
            raise refusals.WasReset(reason=f"Object storage failed: {error}") from error
        except msgspec.DecodeError as error:  # what they answered is a refusal
            raise refusals.WasReset(reason=f"Another process did not answer: {error}") from None

    async def _entry(self, ref: ObjectRef) -> CatalogueEntry:
        try:
            entry = await self.operator.find(ref)
        except LogError as error:
            raise refusals.WasReset(reason=f"Object storage failed: {error}") from error
        if entry is None:
            name = printable(ref.id if ref.name is None else ref.name)
            raise refusals.NoSuchObject(class_name=printable(ref.class_name), name=name)
        return entry

    # other processes

    async def _pass_on(self, ref: ObjectRef, request: Request) -> Response:
        assert self._shards is not None
        try:
            return await self._shards.pass_on(ref, request)
        except OSError as error:
            raise refusals.WasReset(reason=f"The object's process did not answer: {error}") from None

    async def where(self, ref: ObjectRef) -> Where:
        """Raises Overloaded."""
        return Where(0) if self._shards is None else await self._shards.where(ref)

    async def ask_others(
        self, request: Request, ask_again: AskAgain, method: str, target: str
    ) -> list[bytes]:
        """What every other process answers to the same caller. Raises WasReset, what `ask_again` raises."""
        if self._shards is None:
            return []
        asked = msgspec.structs.replace(request, method=method, target=target.encode("latin-1"))
        try:
            answers = await self._shards.ask_others(asked)
        except OSError as error:
            raise refusals.WasReset(reason=f"Another process did not answer: {error}") from None
        await ask_again()
        return answers


class PassedOnFace(ObjectsFace):
    """The handler of requests that another process has let in and passed on.

    They are asked again: here they may wait, for their object.
    """

    def __init__(self, parts: Parts, authorise: Authorise) -> None:
        super().__init__(parts, authorise, lambda status: None)

    async def __call__(self, request: Request) -> Response:
        """Answer one request as if its client had asked here. Never raises."""
        request.client = client_of(request)
        no_host = b" " in (request.header(CLIENT_HEADER) or b"")
        ours = (CLIENT_HEADER, b"host") if no_host else (CLIENT_HEADER,)
        request.headers = [header for header in request.headers if header[0] not in ours]
        return await super().__call__(request)


def refused(error: EdgeError) -> Response:
    """A refusal as an answer. RFC 9110 §15.5.6: 405 names the methods that there are; 429 says how long."""
    headers = JSON
    if error.status == 405:
        headers = [*JSON, (b"allow", error.facts["allow"].encode())]
    elif error.status == 429:
        headers = [*JSON, (b"retry-after", b"%d" % error.facts.get("seconds", 1))]
    return Response(error.status, headers, envelope.failure(error))


def unreadable(status: int, reason: str, client: str) -> Response:
    """What is said to a request that cannot be read."""
    return refused(of_requests.unreadable(status, reason))


def _ref_of(route: Route, class_name: str, text: str) -> ObjectRef:
    """The object of a name or an id. Raises BadCall, BadObjectName."""
    try:
        if route.parameters[1] == "id":
            return ids.from_text(class_name, text)
        return ids.from_name(class_name, text)
    except (LimitError, TypeError) as error:
        wrong = refusals.BadCall if route.family is CALLS else refusals.BadObjectName
        raise wrong(reason=str(error)) from None


def _refuse_unknown_parameters(route: Route, query: Query) -> None:
    """Raises InvalidQuery: an operator who misspells a bound must not get everything."""
    known = [one.name for one in route.query]
    for name in query.names:
        if name not in known:
            takes = ", ".join(known) or "none"
            raise InvalidQuery(parameter=printable(name), reason=f"this route takes {takes}")


async def _still_permitted(result: Any, ask_again: AskAgain) -> None:
    """Before what was read is given out. Raises what `ask_again` raises."""
    try:
        await ask_again()
    except EdgeError:
        if isinstance(result, Download):
            result.close()
        raise


def _refusal_of(error: ObjectError) -> EdgeError:
    if error.reset:
        return refusals.WasReset(reason=str(error))
    kind = refusals.BadBookmark if isinstance(error, BookmarkError) else refusals.OperationFailed
    return kind(reason=str(error))


def _answer(result: Any) -> Response:
    if isinstance(result, Response):
        return result
    if isinstance(result, Answer):
        assert result.body is not None
        return Response(result.status, [(b"content-type", result.content_type)], result.body)
    if isinstance(result, Download):
        headers, close = [(b"content-type", result.content_type)], result.close
        return Response(200, headers, result.chunks, length=result.length, done=lambda error: close())
    return Response(200, JSON, envelope.success(result))
