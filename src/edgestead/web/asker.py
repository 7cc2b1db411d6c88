"""The API as a page asks it: a request of the session's credentials, in this process.

Owns  making the request, and reading its answer.
Not   rights, limits, checks and words: they are the API's own, and so the same for a page and a program.
"""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from secrets import token_hex
from typing import Any, TypeVar
from urllib.parse import urlencode

import msgspec

from edgestead.http1.head import by_name
from edgestead.http1.messages import Body, Request, Response
from edgestead.rest.routing import BASE_PATH
from edgestead.web.sessions import Headers

Json = dict[str, Any]
T = TypeVar("T")
Application = Callable[[Request], Response | Coroutine[Any, Any, Response | None]]

PER_PAGE = 50
INTERFACE = "dashboard"  # in the audit log


class _Raw(msgspec.Struct):
    result: msgspec.Raw


class Refused(Exception):
    """The API said no. `errors` are its error objects."""

    def __init__(self, status: int, errors: list[Json]) -> None:
        self.status, self.errors = status, errors
        super().__init__("; ".join(self.messages))

    @property
    def messages(self) -> list[str]:
        return [f"{error.get('message')} [{error.get('code')}]" for error in self.errors]

    @property
    def fields(self) -> dict[str, str]:
        """The message for each member of the body that is at fault."""
        found = {}
        for error in self.errors:
            if name := pointed_at(error):
                found[name] = str(error.get("message"))
        return found


def pointed_at(error: Json) -> str:
    """The member of the body that an error is about, or "". Of a list of rules, the rule's member."""
    parts = (error.get("source") or {}).get("pointer", "").strip("/").split("/")
    if len(parts) > 2 and parts[0] == "rules" and parts[1].isdigit():
        return str(parts[2])
    return str(parts[0])


class Asker:
    """For one request of one session.

    `client` is the browser's address, as the API would see it. `base` is before each path.
    """

    def __init__(
        self, application: Application, headers: Headers, client: str, base: str = BASE_PATH
    ) -> None:
        self._application = application
        self._base = base
        self._headers = headers
        self._client = client

    async def get(self, path: str, query: Mapping[str, object] | None = None) -> Json:
        """The envelope. Raises Refused."""
        return await self._ask("GET", path, query, None)

    async def result(self, path: str, query: Mapping[str, object] | None = None) -> Any:
        return (await self.get(path, query))["result"]

    async def read(self, path: str, type_: type[T], query: Mapping[str, object] | None = None) -> T:
        """The result as a struct, which for many rows is read several times as quickly. Raises Refused."""
        envelope = msgspec.json.decode(await self._answer("GET", path, query, None, ()), type=_Raw)
        return msgspec.json.decode(envelope.result, type=type_)

    async def octets(self, path: str) -> bytes:
        """An answer that is no envelope. Raises Refused."""
        return await self._answer("GET", path, None, None, ())

    async def send(
        self, method: str, path: str, body: object = None, query: Mapping[str, object] | None = None
    ) -> Json:
        """Change something. Raises Refused."""
        return await self._ask(method, path, query, body)

    async def health(self) -> list[Json]:
        """The rows of the server's health, whether it is ready or not."""
        answered = await self._respond("GET", "/health/ready", None, ())
        envelope = msgspec.json.decode(answered.body)  # type: ignore[arg-type]  # never a stream
        rows: list[Json] = (envelope.get("result") or {}).get("checks") or []
        return rows

    async def _ask(self, method: str, path: str, query: Mapping[str, object] | None, body: object) -> Json:
        content = None if body is None else msgspec.json.encode(body)
        headers = () if content is None else ((b"content-type", b"application/json"),)
        envelope: Json = msgspec.json.decode(await self._answer(method, path, query, content, headers))
        return envelope

    async def send_form(
        self, path: str, query: Mapping[str, object], method: str = "POST", **fields: str | bytes
    ) -> Json:
        """Send a form with these fields (RFC 7578). Raises Refused."""
        boundary = token_hex(16)
        content = bytearray()
        for name, value in fields.items():
            octets = value if isinstance(value, bytes) else value.encode("utf-8", "replace")
            head = f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n'
            content += head.encode() + octets + b"\r\n"
        content += f"--{boundary}--\r\n".encode()
        about = ((b"content-type", f"multipart/form-data; boundary={boundary}".encode()),)
        envelope: Json = msgspec.json.decode(await self._answer(method, path, query, bytes(content), about))
        return envelope

    async def _answer(
        self,
        method: str,
        path: str,
        query: Mapping[str, object] | None,
        content: bytes | None,
        about: Headers,
    ) -> bytes:
        kept = {name: value for name, value in (query or {}).items() if value not in (None, "")}
        target = self._base + path + (f"?{urlencode(kept)}" if kept else "")
        answer = await self._respond(method, target, content, about)
        octets = (
            answer.body if isinstance(answer.body, bytes) else b"".join([one async for one in answer.body])
        )
        if not isinstance(answer.body, bytes):
            answer.done(None)
        if answer.status >= 400:
            raise Refused(answer.status, msgspec.json.decode(octets).get("errors") or [])
        return octets

    async def _respond(self, method: str, target: str, content: bytes | None, about: Headers) -> Response:
        length = () if content is None else ((b"content-length", b"%d" % len(content)),)
        headers = [*self._headers, *about, *length]
        body = Body(lambda: None)
        if content:
            body.feed(content)
        body.end()
        request = Request(method, target.encode(), headers, self._client, body, by_name(headers))
        request.interface = INTERFACE
        await asyncio.sleep(
            0
        )  # most answers wait for nothing: others have their turn between two of a page's
        answer = self._application(request)
        if isinstance(answer, Response):
            return answer
        waited = await answer
        assert waited is not None  # nobody goes away in here
        return waited
