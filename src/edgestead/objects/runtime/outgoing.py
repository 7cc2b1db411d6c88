"""`ctx.fetch`: HTTP requests that an object makes.

Owns  URLs, redirects, the answer as user code sees it, limits.
Not   the bytes on the wire; cookies, caches, proxies.
"""

import asyncio
import json
import ssl
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Mapping
from functools import cache
from typing import Any, Literal
from urllib.parse import SplitResult, quote, urljoin, urlsplit

from edgestead.http1.client import Answer, Tcp, exchange
from edgestead.http1.head import Headers
from edgestead.objects.errors import FetchError
from edgestead.objects.runtime.web import BODY_BYTES_MAX, header

REDIRECTS_MAX = 20  # as browsers follow (Fetch standard)
HEAD_SECONDS_MAX = 60.0  # from the request to the head of its answer
PORTION_SECONDS_MAX = 60.0  # from the head, or a portion of the body, to the next: as origins of a zone have
BODY_SECONDS_MAX = 300.0  # of a body that is read whole; `stream` may go on for as long as portions come
URL_CHARACTERS_MAX = 8_192  # servers refuse longer ones
_PORTS = {"http": 80, "https": 443}
_KEPT = "/%:=&?~+!$,;'@()*[]-._"  # what a target may hold beside letters and digits
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_METHODS_MAX = 20
_OF_ONE_SITE = frozenset({b"authorization", b"cookie", b"host"})

Redirect = Literal["follow", "manual"]
Confirmed = Callable[[], Awaitable[None]]


class FetchResponse:
    """The answer. `headers` has lower-case names; the body can be read once. `url` is where it came from."""

    def __init__(self, answer: Answer, url: str) -> None:
        self.status, self.url = answer.status, url
        self.headers: dict[str, str] = {}
        for name, value in answer.headers:
            key, text = name.decode("latin-1"), value.decode("latin-1")
            self.headers[key] = f"{self.headers[key]}, {text}" if key in self.headers else text
        self._body = answer.body

    @property
    def ok(self) -> bool:
        """Whether the status is 200 to 299."""
        return 200 <= self.status <= 299

    def stream(self) -> AsyncIterable[bytes]:
        """The body as it arrives. Raises FetchError after 60 s without a portion, BodyBroken when cut off."""
        return self._portions()

    async def _portions(self) -> AsyncIterator[bytes]:
        portions = aiter(self._body)
        while True:
            try:
                async with asyncio.timeout(PORTION_SECONDS_MAX):
                    portion = await anext(portions, None)
            except TimeoutError:
                raise FetchError(f"nothing more of the body within {PORTION_SECONDS_MAX:g} s") from None
            if portion is None:
                return
            yield portion

    async def body(self) -> bytes:
        """The whole body. Raises FetchError above 32 MiB, after 300 s, and what `stream` raises."""
        parts, length = [], 0
        try:
            async with asyncio.timeout(BODY_SECONDS_MAX):
                async for portion in self._portions():
                    length += len(portion)
                    if length > BODY_BYTES_MAX:
                        raise FetchError(f"the body is larger than {BODY_BYTES_MAX} bytes")
                    parts.append(portion)
        except TimeoutError:
            raise FetchError(f"the body was not complete within {BODY_SECONDS_MAX:g} s") from None
        return b"".join(parts)

    async def text(self) -> str:
        """The whole body as UTF-8. Raises UnicodeDecodeError too."""
        return (await self.body()).decode()

    async def json(self) -> Any:
        """The whole body as JSON. Raises ValueError too."""
        return json.loads(await self.body())


async def fetch(
    confirmed: Confirmed,
    url: str,
    *,
    method: str = "GET",
    headers: Mapping[str, str] | None = None,
    body: bytes | str | None = None,
    redirect: Redirect = "follow",
) -> FetchResponse:
    """Make a request, when every write of the object so far is durable.

    Raises TypeError, ValueError for what is no request, FetchError when no answer came.
    """
    method = _method(method)
    if redirect not in ("follow", "manual"):
        raise TypeError(f'redirect is "follow" or "manual", not {redirect!r}')
    if not isinstance(body, bytes | str | None):
        raise TypeError(f"a body is bytes or str, not {type(body).__name__}")
    content = body.encode() if isinstance(body, str) else body or b""
    sent = [header(name, value) for name, value in (headers or {}).items()]
    await confirmed()
    for _ in range(REDIRECTS_MAX + 1):
        site = _split(url)
        answer = await _ask(site, method, sent, content)
        target = next((value for name, value in answer.headers if name == b"location"), None)
        if redirect == "manual" or answer.status not in _REDIRECTS or target is None:
            return FetchResponse(answer, url)
        url = urljoin(url, target.decode("latin-1"))
        if answer.status == 303 or (answer.status in (301, 302) and method == "POST"):
            method, content = ("HEAD" if method == "HEAD" else "GET"), b""
        if _origin(_split(url)) != _origin(site):
            sent = [pair for pair in sent if pair[0] not in _OF_ONE_SITE]
    raise FetchError(f"more than {REDIRECTS_MAX} redirects")


async def _ask(site: SplitResult, method: str, headers: Headers, content: bytes) -> Answer:
    host, port = _origin(site)[1:]
    target = quote(site.path or "/", safe=_KEPT) + (f"?{quote(site.query, safe=_KEPT)}" if site.query else "")
    names = {name for name, _ in headers}
    usual = [(b"host", site.netloc.encode("idna")), (b"accept", b"*/*"), (b"user-agent", b"edgestead")]
    whole = [pair for pair in usual if pair[0] not in names] + headers
    to = Tcp(host, port, _tls() if site.scheme == "https" else None)
    try:
        return await exchange(to, method, target.encode(), whole, content, head_seconds_max=HEAD_SECONDS_MAX)
    except OSError as error:
        raise FetchError(f"{site.scheme}://{site.netloc}: {error}") from None


def _method(method: object) -> str:
    if (
        not isinstance(method, str)
        or not method.isascii()
        or not method.isalpha()
        or len(method) > _METHODS_MAX
    ):
        raise ValueError(f"{method!r} is no method")
    return method.upper()


def _split(url: object) -> SplitResult:
    if not isinstance(url, str):
        raise TypeError(f"a URL is str, not {type(url).__name__}")
    site = urlsplit(url)
    if len(url) > URL_CHARACTERS_MAX or site.scheme not in _PORTS or not site.hostname or "@" in site.netloc:
        raise ValueError(f"{url[:200]!r} is no URL that can be fetched: http or https, a host, no user")
    _origin(site)
    return site


def _origin(site: SplitResult) -> tuple[str, str, int]:
    """Raises ValueError for a port or host that cannot be."""
    assert site.hostname is not None
    host = site.hostname.encode("idna").decode() if not site.hostname.isascii() else site.hostname
    return site.scheme, host, site.port or _PORTS[site.scheme]


@cache
def _tls() -> ssl.SSLContext:
    return ssl.create_default_context()
