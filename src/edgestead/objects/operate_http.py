"""The handler of operators' requests, on the objects' own address.

Owns  where each is answered, what each refusal becomes, lists of several processes as one.
Asks  `operate_routes` what is meant, `operate` and `operate_time` for the work; `authorise`, a parameter;
      `shards` for objects of other processes.
Tells `serve`, which has the address.
Not   what is done with an object (`operate`).

No class or method can have these paths: calls begin with `/objects/`. A class need not be loaded.
"""

import os
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import Any

import apsw
import msgspec

from edgestead.http1.messages import Request, Response
from edgestead.model import envelope
from edgestead.model.errors import EdgeError
from edgestead.objects import http_errors, operate_time
from edgestead.objects import operate_routes as routes
from edgestead.objects.errors import ObjectError
from edgestead.objects.operate import Item, Operator
from edgestead.objects.operate_routes import Query, Route
from edgestead.objects.shards import Shards
from edgestead.store.objectlog import CatalogueEntry, LogError, ObjectRef

PREFIX = b"/operate/"
CHUNK_BYTES = 256 * 1024
_JSON = [(b"content-type", b"application/json")]

Authorise = Callable[[Request, str], EdgeError | None]
Call = Callable[[Request, ObjectRef, str], Awaitable[Response]]
Work = Callable[[Request, CatalogueEntry, Query], Awaitable[Any]]


class ListInfo(msgspec.Struct, frozen=True):
    """`cursor` asks for the next page; empty behind the last one."""

    count: int
    cursor: str


class OperateHttp:
    """The handler of operators' requests. `authorise` gives the refusal, or None; `call` makes a call."""

    def __init__(self, operator: Operator, authorise: Authorise, call: Call, shards: Shards | None) -> None:
        self._operator, self._authorise, self._shards = operator, authorise, shards
        self._call = call
        self._work: dict[Route, Work] = {
            routes.INFO: self._info,
            routes.DELETE: self._delete,
            routes.SQL: partial(self._sql, write=False),
            routes.SQL_WRITE: partial(self._sql, write=True),
            routes.EXPORT: self._export,
            routes.VERIFY: self._verify,
            **{route: partial(work, operator.operations) for route, work in operate_time.WORK.items()},
        }

    async def __call__(self, request: Request) -> Response:
        """Answer one request. Raises EdgeError, BodyBroken."""
        path, _, query = request.target[len(PREFIX) :].partition(b"?")
        parts = path.decode("latin-1").removesuffix("/").split("/")
        if parts == ["objects"]:
            self._check(request, routes.route_of(request.method, "", of_object=False).permission)
            return await self._list(request, routes.read_query(query, routes.LIST))
        if parts == ["backup"]:
            self._check(request, routes.route_of(request.method, "backup", of_object=False).permission)
            return await self._back_up(request)
        if parts[0] not in ("objects", "ids") or not 3 <= len(parts) <= 4 or not all(parts):
            raise http_errors.NoSuchRoute
        route = routes.route_of(request.method, parts[3] if len(parts) == 4 else "")
        self._check(request, route.permission)
        ref = routes.ref_of(*parts[:3])
        if route is routes.CALL:
            return await self._call(request, ref, routes.read_query(query, route).get("method", ""))
        if self._shards is not None and not self._shards.is_local(ref):
            return await self._pass_on(ref, request)
        entry = self._operator.find(ref)
        if entry is None:
            class_name, name = map(routes.printable, (ref.class_name, parts[2]))
            raise http_errors.NoSuchObject(class_name=class_name, name=name)
        try:
            result = await self._work[route](request, entry, routes.read_query(query, route))
        except ObjectError as error:
            if error.reset:
                raise http_errors.WasReset(reason=str(error)) from None
            raise http_errors.OperationFailed(reason=str(error)) from None
        except (LogError, OSError, apsw.Error) as error:
            raise http_errors.WasReset(reason=f"Object storage failed: {error}") from error
        if isinstance(result, Response):
            return result
        return Response(200, _JSON, envelope.success(result))

    def _check(self, request: Request, permission: str) -> None:
        refusal = self._authorise(request, permission)
        if refusal is not None:
            raise refusal

    async def _pass_on(self, ref: ObjectRef, request: Request) -> Response:
        assert self._shards is not None
        try:
            return await self._shards.pass_on(ref, request)
        except OSError as error:
            raise http_errors.WasReset(reason=f"The object's process did not answer: {error}") from None

    # of the node

    async def _list(self, request: Request, query: Query) -> Response:
        limit = routes.limit_of(query)
        items, more = self._operator.page(query.get("class"), routes.after_of(query), limit)
        if self._shards is not None:
            for theirs, theirs_more in await self._others(request):
                items += theirs
                more = more or theirs_more
        items.sort(key=lambda item: (item.class_name, item.id))
        more, items = more or len(items) > limit, items[:limit]
        cursor = f"{items[-1].class_name}/{items[-1].id}" if more and items else ""
        return Response(200, _JSON, envelope.success_with_info(items, ListInfo(len(items), cursor)))

    async def _others(self, request: Request) -> list[tuple[list[Item], bool]]:
        """The same page of the other processes."""
        assert self._shards is not None
        try:
            answers = await self._shards.ask_others(request)
            pages = [_read_page(answer) for answer in answers]
        except (OSError, msgspec.DecodeError) as error:
            raise http_errors.WasReset(reason=f"Another objects process did not answer: {error}") from None
        return [(page.result, bool(page.result_info.cursor)) for page in pages]

    async def _back_up(self, request: Request) -> Response:
        """Of every process, one after the other: each is busy with its own."""
        folders = []
        if self._shards is not None:
            try:
                answers = await self._shards.ask_others(request)
                folders = [folder for answer in answers for folder in _read_folders(answer).result]
            except (OSError, msgspec.DecodeError) as error:
                raise http_errors.WasReset(reason=f"Another process did not answer: {error}") from None
        try:
            folders.append(await self._operator.back_up())
        except (ObjectError, LogError, OSError, apsw.Error) as error:
            raise http_errors.WasReset(reason=f"The objects cannot be copied: {error}") from error
        return Response(200, _JSON, envelope.success(folders))

    # of an object

    async def _info(self, request: Request, entry: CatalogueEntry, query: Query) -> Any:
        return await self._operator.info(entry)

    async def _delete(self, request: Request, entry: CatalogueEntry, query: Query) -> Any:
        await self._operator.delete(entry.ref)
        return {"id": entry.ref.id}

    async def _sql(self, request: Request, entry: CatalogueEntry, query: Query, *, write: bool) -> Any:
        asked = await routes.read_body(request, routes.SqlQuery)
        return await self._operator.sql(entry.ref, asked.query, asked.bindings, write=write)

    async def _export(self, request: Request, entry: CatalogueEntry, query: Query) -> Response:
        path = await self._operator.copy(entry.ref)
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        os.unlink(path)  # whatever becomes of the answer, nothing stays
        return Response(200, [(b"content-type", b"application/vnd.sqlite3")], _read(file))

    async def _verify(self, request: Request, entry: CatalogueEntry, query: Query) -> Any:
        return await self._operator.verify(entry)


class _Page(msgspec.Struct):
    result: list[Item]
    result_info: ListInfo


class _Folders(msgspec.Struct):
    result: list[str]


_read_page = msgspec.json.Decoder(_Page).decode
_read_folders = msgspec.json.Decoder(_Folders).decode


async def _read(file: int) -> AsyncIterator[bytes]:
    try:
        while chunk := os.read(file, CHUNK_BYTES):
            yield chunk
    finally:
        os.close(file)
