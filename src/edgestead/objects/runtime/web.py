"""HTTP as a user's class sees it: the request given to `fetch`, the response that it returns.

Owns  `Request` and `Response` of user code.
Not   calls of methods.
"""

import json
from collections.abc import AsyncIterable, Iterable, Mapping
from typing import Any
from urllib.parse import parse_qsl

from edgestead.http1 import messages
from edgestead.objects.runtime.admission import CREDENTIAL_HEADERS

BODY_BYTES_MAX = 32 * 1024 * 1024  # of a request that is read whole
_NOT_GIVEN = CREDENTIAL_HEADERS | {b"connection", b"keep-alive", b"transfer-encoding"}
"""Whoever may call one object must not give it a token that may do more; the others are a connection's."""
_REFUSED = frozenset({b"content-length", b"transfer-encoding", b"connection"})
_NO_BODY = frozenset({204, 205, 304})


class Request:
    """One HTTP request. `path` begins behind `/fetch` and is still percent-encoded.

    `headers` has lower-case names; of a name that occurs more than once the values are joined by ", ".
    The caller's credentials for this platform are not among them, nor what is about its connection.
    """

    def __init__(self, received: messages.Request, path: str, query: str) -> None:
        self.method = received.method
        self.path = path
        self.query_string = query
        self.client = received.client
        self.headers: dict[str, str] = {}
        for name, value in received.headers:
            if name in _NOT_GIVEN:
                continue
            key, text = name.decode("latin-1"), value.decode("latin-1")
            self.headers[key] = f"{self.headers[key]}, {text}" if key in self.headers else text
        self._body = received.body

    @property
    def query(self) -> dict[str, str]:
        """The query's parameters; of a name that occurs more than once the last one."""
        return dict(parse_qsl(self.query_string, keep_blank_values=True))

    async def body(self) -> bytes:
        """The whole body, once. Raises BodyTooLarge above 32 MiB, BodyBroken when the client went away."""
        return await self._body.read(BODY_BYTES_MAX)

    async def text(self) -> str:
        """The whole body as UTF-8. Raises UnicodeDecodeError too."""
        return (await self.body()).decode()

    async def json(self) -> Any:
        """The whole body as JSON. Raises ValueError too."""
        return json.loads(await self.body())

    def stream(self) -> AsyncIterable[bytes]:
        """The body as it arrives."""
        return self._body


Headers = Mapping[str, str] | Iterable[tuple[str, str]]
"""As a mapping, or as pairs where a name occurs more than once (`Set-Cookie`)."""


class Response:
    """An answer: bytes, text, or an async iterable of bytes that is sent as it comes.

    Raises TypeError, ValueError for a status or header that HTTP cannot carry, and for a body with a status
    that has none (204, 205, 304).
    """

    def __init__(
        self,
        body: bytes | str | AsyncIterable[bytes] = b"",
        status: int = 200,
        headers: Headers | None = None,
    ) -> None:
        if not 200 <= status <= 599:
            raise ValueError(f"status must be 200 to 599, not {status}")
        self.status = status
        self.body = body.encode() if isinstance(body, str) else body
        if not isinstance(self.body, bytes | AsyncIterable):
            raise TypeError(f"a body is bytes, str or an async iterable, not {type(body).__name__}")
        if self.body and status in _NO_BODY:
            raise ValueError(f"an answer of status {status} has no body")
        self.headers = _sent(headers)
        if isinstance(body, str) and status not in _NO_BODY:
            self._set_type(b"text/plain; charset=utf-8")

    @classmethod
    def json(cls, value: Any, status: int = 200, headers: Headers | None = None) -> "Response":
        """A JSON answer. Raises TypeError, ValueError for a value that JSON cannot hold."""
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        made = cls(text.encode(), status, headers)
        made._set_type(b"application/json")
        return made

    def _set_type(self, usual: bytes) -> None:
        """Say what the body is, unless the headers do."""
        if not any(name == b"content-type" for name, _ in self.headers):
            self.headers.append((b"content-type", usual))


def _sent(headers: Headers | None) -> list[tuple[bytes, bytes]]:
    pairs = headers.items() if isinstance(headers, Mapping) else headers or ()
    return [header(name, value) for name, value in pairs]


def header(name: str, value: str) -> tuple[bytes, bytes]:
    """A header as it is sent. Raises ValueError for what HTTP cannot carry, or the platform sets itself."""
    raw_name, raw_value = name.lower().encode("latin-1"), str(value).encode("latin-1")
    if not raw_name or not all(33 <= byte < 127 and byte not in b'()<>@,;:\\"/[]?={}' for byte in raw_name):
        raise ValueError(f"{name!r} is no header name")
    if any(byte < 32 and byte != 9 for byte in raw_value):
        raise ValueError(f"the value of header {name!r} holds a control character")
    if raw_name in _REFUSED:
        raise ValueError(f"header {name!r} is the server's to set")
    return raw_name, raw_value
