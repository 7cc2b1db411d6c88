"""The objects' own HTTP address: calls of methods, and `fetch`.

Owns  the routes, the JSON of a call and its envelope, which refusal each error becomes.
Asks  `node` to call; `authorise`, a parameter, whether the caller may.
Tells `http1`.
Not   listening (`http1.server`); tokens.

    POST /objects/<class>/<name>/<method>        {"args": [], "kwargs": {}} → the envelope
    ANY  /objects/<class>/<name>/fetch/<path>    → whatever the object's `fetch` answers
    /operate/…                                   → `operate_http`
"""

import logging
from collections.abc import Awaitable, Callable
from functools import lru_cache
from typing import Any
from urllib.parse import unquote

import msgspec

from edgestead.http1.messages import BodyBroken, BodyTooLarge, Request, Response
from edgestead.model import envelope
from edgestead.model.errors import EdgeError
from edgestead.model.request_errors import Unreadable
from edgestead.objects import http_errors, ids, limits, web
from edgestead.objects.calls import NOTHING, Reply, error_of, has_no_result, pack_arguments
from edgestead.objects.classes import ClassInfo
from edgestead.objects.errors import LimitError, ObjectError, RemoteError
from edgestead.objects.jsonable import NotJson, to_json
from edgestead.objects.node import Node
from edgestead.objects.operate import Operator
from edgestead.objects.operate_http import PREFIX as OPERATE
from edgestead.objects.operate_http import Authorise, OperateHttp
from edgestead.objects.operate_routes import INVOKE, printable
from edgestead.objects.shards import CLIENT_HEADER, Shards
from edgestead.objects.values import decode
from edgestead.store.objectlog import ObjectRef

log = logging.getLogger(__name__)

PREFIX = b"/objects/"
ROUTES_KEPT = 4_096  # targets whose object is remembered: to read one takes two hashes
ROUTE_KEPT_BYTES_MAX = 256  # of such a target
_JSON = [(b"content-type", b"application/json")]


class _Call(msgspec.Struct, forbid_unknown_fields=True):
    args: list[Any] = []
    kwargs: dict[str, Any] = {}


_read_call = msgspec.json.Decoder(_Call).decode
_UNCALLED = pack_arguments((), {})
_DONE = Response(200, _JSON, envelope.success(None))


class ObjectsHttp:
    """The handler of the objects' address. `authorise` gives the refusal, or None.

    `answered` is told the status of each answer.
    """

    def __init__(
        self,
        node: Node,
        authorise: Authorise,
        answered: Callable[[int], None],
        operator: Operator,
        shards: Shards | None = None,
    ) -> None:
        self._node, self._authorise, self._answered = node, authorise, answered
        self._shards = shards
        self._kept_route = lru_cache(ROUTES_KEPT)(self._route)
        self._operate = OperateHttp(operator, authorise, self._call_any, shards)

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
            response = refused(http_errors.Busy(reason="The call could not be served."))
        self._answered(response.status)
        return response

    def _respond(self, request: Request) -> Awaitable[Response]:
        if request.target.startswith(OPERATE):
            return self._operate(request)
        refusal = self._authorise(request, INVOKE)
        if refusal is not None:
            raise refusal
        target = request.target
        route = self._kept_route if len(target) <= ROUTE_KEPT_BYTES_MAX else self._route
        ref, info, rest, query = route(target)
        if rest == "fetch" or rest.startswith("fetch/"):
            return self._fetch(request, ref, info, rest[len("fetch") :] or "/", query)
        return self._call(request, ref, info, rest)

    def _route(self, target: bytes) -> tuple[ObjectRef, ClassInfo, str, str]:
        path, _, query = target.partition(b"?")
        parts = path[len(PREFIX) :].decode("latin-1").split("/", 2)
        if not path.startswith(PREFIX) or len(parts) != 3 or not all(parts):
            raise http_errors.NoSuchRoute
        class_name, name, rest = parts
        info = self._class(class_name)
        try:
            ref = ids.from_name(class_name, unquote(name, errors="strict"))
        except (UnicodeDecodeError, LimitError) as error:
            raise http_errors.BadCall(reason=str(error)) from None
        return ref, info, rest, query.decode("latin-1")

    def _class(self, name: str) -> ClassInfo:
        info = self._node.classes.get(name)
        if info is None:
            raise http_errors.NoSuchClass(name=printable(name))
        return info

    # calls

    async def _call_any(self, request: Request, ref: ObjectRef, method: str) -> Response:
        return await self._call(request, ref, self._class(ref.class_name), method)

    async def _call(self, request: Request, ref: ObjectRef, info: ClassInfo, method: str) -> Response:
        if method not in info.methods:
            raise http_errors.NoSuchMethod(class_name=info.name, name=printable(method))
        if request.method != "POST":
            raise http_errors.NotPost
        body = request.body.taken_whole(limits.MESSAGE_BYTES_MAX)
        if body is None:
            try:
                body = await request.body.read(limits.MESSAGE_BYTES_MAX)
            except BodyTooLarge:
                raise http_errors.CallTooLarge(limit=limits.MESSAGE_BYTES_MAX) from None
        arguments = _UNCALLED
        if body:
            try:
                call = _read_call(body)
                arguments = pack_arguments(tuple(call.args), call.kwargs)
            except (msgspec.DecodeError, RecursionError, LimitError) as error:
                raise http_errors.BadCall(reason=str(error)) from None
        if self._shards is not None and not self._shards.is_local(ref):
            return self._answer(await self._node.deliver(ref, method, arguments))
        return self._answer(await self._node.call(ref, method, arguments, within_task=True))

    def _answer(self, reply: Reply) -> Response:
        if not reply.ok:
            error = error_of(reply)
            unsent = has_no_result(reply)
            return refused(http_errors.ResultNotJson(reason=str(error)) if unsent else _refusal(error))
        if reply.data == NOTHING:
            return _DONE
        try:
            return Response(200, _JSON, envelope.success(to_json(decode(reply.data))))
        except NotJson as unfit:
            return refused(http_errors.ResultNotJson(reason=str(unfit)))

    # fetch

    async def _fetch(
        self, request: Request, ref: ObjectRef, info: ClassInfo, path: str, query: str
    ) -> Response:
        if not info.has_fetch:
            raise http_errors.NoSuchMethod(class_name=info.name, name="fetch")
        if self._shards is not None and not self._shards.is_local(ref):
            try:
                return await self._shards.pass_on(ref, request)
            except OSError as error:
                raise http_errors.WasReset(reason=f"The object's process did not answer: {error}") from None
        answer = await self._node.fetch(ref, info, web.Request(request, path, query))
        if isinstance(answer, Reply):
            return refused(_refusal(error_of(answer)))
        return Response(answer.status, answer.headers, answer.body)


class PassedOnHttp(ObjectsHttp):
    """The handler of requests that another process has let in and passed on."""

    def __init__(self, node: Node, operator: Operator) -> None:
        super().__init__(node, lambda request, permission: None, lambda status: None, operator)

    async def __call__(self, request: Request) -> Response:
        """Answer one request as if its client had asked here. Never raises."""
        request.client = (request.header(CLIENT_HEADER) or b"").decode("latin-1")
        request.headers = [header for header in request.headers if header[0] != CLIENT_HEADER]
        return await super().__call__(request)


def refused(error: EdgeError) -> Response:
    """A refusal as an answer. RFC 9110 §15.5.6: 405 names the methods that there are."""
    allowed = str(error.facts.get("methods", "POST")).encode()
    headers = [*_JSON, (b"allow", allowed)] if error.status == 405 else _JSON
    return Response(error.status, headers, envelope.failure(error))


def unreadable(status: int, reason: str) -> Response:
    """What is said to a request that cannot be read."""
    return Response(status, _JSON, envelope.failure(Unreadable(reason=reason)))


def _refusal(error: Exception) -> EdgeError:
    if isinstance(error, ObjectError) and error.reset:
        return http_errors.WasReset(reason=str(error))
    if isinstance(error, ObjectError) and error.retryable:
        return http_errors.Busy(reason=str(error))
    named = str(error) if isinstance(error, RemoteError) else f"{type(error).__name__}: {error}"
    return http_errors.CallRaised(reason=named)
