"""Calls of objects over HTTP: a method's arguments and result as JSON, a request given to `fetch`.

Owns  the JSON of a call and its envelope, which refusal each error of a call becomes.
Not   which request is a call, and whose it may be (`rest.objects_face`); running it (`objects.runtime.node`).

    POST /objects/<class>/<name>/<method>        {"args": [], "kwargs": {}} → the envelope
    ANY  /objects/<class>/<name>/fetch/<path>    → whatever the object's `fetch` answers
"""

import json
from collections.abc import Callable

import msgspec

from edgestead.http1.messages import Request, Response
from edgestead.model import envelope
from edgestead.model.budgets.networks import network_of
from edgestead.model.budgets.table import CALL_VALUES
from edgestead.model.refusals import EdgeError
from edgestead.model.refusals import object as refusals
from edgestead.objects import limits
from edgestead.objects.errors import LimitError, ObjectError, RemoteError
from edgestead.objects.operate.shapes import Arguments
from edgestead.objects.runtime import web
from edgestead.objects.runtime.admission import INVOKE, AskAgain, Authorise, let_in_whole, refusal_of
from edgestead.objects.runtime.calls import NOTHING, Reply, error_of, has_no_result, pack_arguments
from edgestead.objects.runtime.classes import ClassInfo, why_not_callable
from edgestead.objects.runtime.gates import stand_in
from edgestead.objects.runtime.node import Node
from edgestead.objects.runtime.shards import Others
from edgestead.objects.values.codec import decode
from edgestead.objects.values.jsonable import NotJson, to_json
from edgestead.rest.body import has_more_values
from edgestead.rest.query import Query
from edgestead.store.objectlog import ObjectRef, WrongOwner

JSON = [(b"content-type", b"application/json")]

_read_call = msgspec.json.Decoder(Arguments).decode
_UNCALLED = pack_arguments((), {})
_DONE = Response(200, JSON, envelope.success(None))


class Calls:
    """Answers calls. `authorise` is asked again for a caller whose body took its time, what `asking_again`
    gives for one that has waited for the object.

    With `shards` some objects live in other processes. Every method may raise EdgeError, BodyBroken.
    """

    def __init__(
        self,
        node: Node,
        authorise: Authorise,
        asking_again: Callable[[Request, str], AskAgain],
        shards: Others | None,
    ) -> None:
        self._node, self._authorise, self._shards = node, authorise, shards
        self._asking_again = asking_again

    async def call(self, ref: ObjectRef, method: str, request: Request) -> Response:
        info = self._class(ref.class_name)
        if method not in info.methods:
            raise _no_method(info, method)
        body = request.body.taken_whole(limits.MESSAGE_BYTES_MAX)
        if body is None:  # its caller was let in some time ago
            await let_in_whole(self._authorise, request, INVOKE, limits.MESSAGE_BYTES_MAX)
            body = request.body.taken_whole(limits.MESSAGE_BYTES_MAX)
        arguments = _UNCALLED
        if body:
            self._check_values(body)
            try:
                call = _read_call(body)
                arguments = pack_arguments(tuple(call.args), call.kwargs)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, LimitError) as error:
                raise refusals.BadCall(reason=str(error)) from None
        if self._shards is not None and not self._shards.is_local(ref):
            return _answer(await self._shards.call_for(request, ref, method, arguments))
        stand_in(network_of(request.client))
        ask_again = self._asking_again(request, INVOKE)
        try:
            reply = await self._node.call(ref, method, arguments, within_task=True, ask_again=ask_again)
        except WrongOwner:  # just now: nothing has run
            if self._shards is None:
                raise
            reply = await self._shards.call_for(request, ref, method, arguments)
        return _answer(reply)

    def _check_values(self, body: bytes) -> None:
        """Raises BadCall."""
        if len(body) > CALL_VALUES.limit and has_more_values(body, CALL_VALUES.limit):
            refusal = self._node.ledger.refuse(CALL_VALUES, "a caller")
            raise refusals.BadCall(reason=f"there are more than {refusal.limit} {refusal.budget.unit}")

    async def fetch(self, ref: ObjectRef, path: str, query: Query, request: Request) -> Response:
        """`path` begins with a slash, and is still percent-encoded."""
        info = self._class(ref.class_name)
        if not info.has_fetch:
            raise _no_method(info, "fetch")
        if (request.header(b"upgrade") or b"").lower() == b"websocket":
            raise refusals.NoWebSocket
        if self._shards is not None and not self._shards.is_local(ref):
            return await self._pass_on(self._shards, ref, request)
        stand_in(network_of(request.client))
        received = web.Request(request, path, query.raw.decode("latin-1"))
        ask_again = self._asking_again(request, INVOKE)
        try:
            answer = await self._node.fetch(ref, info, received, ask_again, within_task=True)
        except WrongOwner:
            if self._shards is None:
                raise
            return await self._pass_on(self._shards, ref, request)
        if (ended := refusal_of(request)) is not None:
            raise ended
        if isinstance(answer, Reply):
            raise _refusal(error_of(answer))
        return Response(answer.status, answer.headers, answer.body)

    async def _pass_on(self, others: Others, ref: ObjectRef, request: Request) -> Response:
        try:
            return await others.pass_on(ref, request)
        except OSError as error:
            raise refusals.WasReset(reason=f"The object's process did not answer: {error}") from None

    def _class(self, name: str) -> ClassInfo:
        info = self._node.classes.get(name)
        if info is None:
            raise refusals.NoSuchClass(name=printable(name))
        return info


def _answer(reply: Reply) -> Response:
    if not reply.ok:
        error = error_of(reply)
        raise refusals.ResultNotJson(reason=str(error)) if has_no_result(reply) else _refusal(error)
    if reply.data == NOTHING:
        return _DONE
    try:
        return Response(200, JSON, envelope.success(to_json(decode(reply.data))))
    except NotJson as unfit:
        raise refusals.ResultNotJson(reason=str(unfit)) from None


def _no_method(info: ClassInfo, name: str) -> EdgeError:
    why = why_not_callable(info, name)
    return refusals.NoSuchMethod(class_name=info.name, name=printable(name), why=why and f": {why}")


def _refusal(error: Exception) -> EdgeError:
    if isinstance(error, ObjectError) and error.reset:
        return refusals.WasReset(reason=str(error))
    if isinstance(error, ObjectError) and error.held:
        return refusals.Quarantined(reason=str(error))
    if isinstance(error, ObjectError) and error.retryable:
        return refusals.Busy(reason=str(error))
    named = str(error) if isinstance(error, RemoteError) else f"{type(error).__name__}: {error}"
    return refusals.CallRaised(reason=named.encode(errors="backslashreplace").decode())


def printable(text: str) -> str:
    """A name for a message, whatever it holds."""
    return text[:100] if text.isprintable() else json.dumps(text)[:100]
