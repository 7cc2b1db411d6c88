"""Answers of origins, compressed on their way to their clients.

Owns  which answers may be: type, size, what the client accepts, what gives secrets away; the codings; how
      many are compressed at a time.
Not   rules (`phases.compression_rules`); what is said when (`http.answer_side`).

An answer is compressed as it comes. Where its origin states no length, what came is on its way before the
next read: a stream of events waits for nothing. What a coder holds of it is bounded by its window.

Never: what is packed already, parts of a content (206), what says `no-transform` or has a digest, small
content. `careful` leaves answers alone from which a foreign page could learn a secret by their length
(BREACH): those to requests with a cookie or credentials that another site's page may have caused.
"""

import zlib
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple, Protocol

import brotli
import zstandard

from edgestead.edge.exchanges.exchange import Exchange, values_of
from edgestead.http1.head import Headers
from edgestead.model.budgets.networks import network_of

try:
    from zlib_ng.zlib_ng import compressobj
except ImportError:  # no wheel for this machine: the same format and levels, at twice the cost
    from zlib import compressobj  # type: ignore[assignment]

SMALL_OCTETS_MAX = 255  # of a content that states its length: what is saved is less than what it costs
PACKED_MAX = 128  # answers at a time in a process: a coder takes up to a megabyte
PACKED_PER_CLIENT_MAX = 16  # of one address, or /64 of IPv6: further ones are sent as they are
GZIP_LEVEL, BROTLI_QUALITY, ZSTD_LEVEL = (
    5,
    4,
    3,
)  # 60 to 300 MB/s: what is left to win costs several times that
BROTLI_WINDOW_BITS = ZSTD_WINDOW_BITS = 17  # 128 KiB: of pages it is all, of larger ones it bounds memory
ACCEPTED_OCTETS_MAX = 512  # of an Accept-Encoding that is looked at
_ACCEPTED_KEPT_MAX = 256  # spellings that are remembered: browsers have a handful

TYPES = frozenset(
    b"text/html text/css text/plain text/xml text/javascript text/markdown text/csv text/calendar"
    b" text/vtt text/event-stream text/x-component text/x-javascript application/javascript"
    b" application/x-javascript application/json application/ld+json application/manifest+json"
    b" application/geo+json application/graphql application/problem+json application/vnd.api+json"
    b" application/x-ndjson application/xml application/rss+xml application/atom+xml"
    b" application/xhtml+xml application/problem+xml application/wasm application/rtf"
    b" application/vnd.ms-fontobject application/x-web-app-manifest+json image/svg+xml image/bmp image/x-icon"
    b" image/vnd.microsoft.icon font/ttf font/otf font/eot font/opentype font/sfnt".split()
)
"""What compresses well. `application/grpc` is not of them: a stream of it has a coding of its own."""

_GONE = frozenset({b"content-length", b"content-encoding", b"accept-ranges", b"content-md5"})
_DIGESTS = (b"digest", b"content-digest", b"repr-digest")
_OWN_PAGES = (b"same-origin", b"none")  # Sec-Fetch-Site: nobody else's page has caused the request


class Coder(Protocol):
    """Compresses one content. Each may return nothing, and keep what it was given."""

    def pack(self, piece: bytes) -> bytes: ...

    def flush(self) -> bytes:
        """All that was given, so that it can be read."""
        ...

    def finish(self) -> bytes: ...


class _Gzip:
    __slots__ = ("_coder", "pack")

    def __init__(self) -> None:
        self._coder = compressobj(GZIP_LEVEL, zlib.DEFLATED, 16 + zlib.MAX_WBITS)
        self.pack = self._coder.compress

    def flush(self) -> bytes:
        return self._coder.flush(zlib.Z_SYNC_FLUSH)

    def finish(self) -> bytes:
        return self._coder.flush()


class _Brotli:
    __slots__ = ("finish", "flush", "pack")

    def __init__(self) -> None:
        coder = brotli.Compressor(quality=BROTLI_QUALITY, lgwin=BROTLI_WINDOW_BITS)
        self.pack, self.flush, self.finish = coder.process, coder.flush, coder.finish


class _Zstd:
    __slots__ = ("_coder", "pack")

    def __init__(self) -> None:
        self._coder = _zstd().compressobj()
        self.pack = self._coder.compress

    def flush(self) -> bytes:
        return self._coder.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)

    def finish(self) -> bytes:
        return self._coder.flush()


def _zstd() -> zstandard.ZstdCompressor:
    terms = zstandard.ZstdCompressionParameters.from_level(ZSTD_LEVEL, window_log=ZSTD_WINDOW_BITS)
    return zstandard.ZstdCompressor(compression_params=terms)


class Coding(NamedTuple):
    """A row: `token` is its name in HTTP."""

    token: bytes
    make: Callable[[], Coder]


CODINGS: dict[str, Coding] = {
    "zstd": Coding(b"zstd", _Zstd),
    "brotli": Coding(b"br", _Brotli),
    "gzip": Coding(b"gzip", _Gzip),
}
"""By the names of rules; in the order of what is chosen where a client likes them alike."""

AUTO: tuple[str, ...] = ("auto",)
CHOICE = "compression"  # of a request's rules, in what it keeps: names in order


class Packed(NamedTuple):
    """An answer that is compressed: its headers, and what does so; `coder` None where it has no content."""

    headers: Headers
    coder: Coder | None


class Packers:
    """Those of a process."""

    __slots__ = ("_by_network", "_count")

    def __init__(self) -> None:
        self._by_network: dict[str, int] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def begin(
        self,
        exchange: Exchange,
        mode: str,
        status: int,
        headers: Headers,
        length: int | None,
        *,
        bodyless: bool,
    ) -> Packed | None:
        """The answer as it is sent compressed, or None. `mode` is the zone's setting."""
        accepted = exchange.by_name.get(b"accept-encoding")
        if accepted is None or not is_packable(status, headers, length):
            return None
        if mode == "careful" and gives_away(exchange):
            return None
        names = AUTO if exchange.keep is None else exchange.keep.get(CHOICE, AUTO)
        name = chosen(names, accepted)
        if name is None:
            return None
        coding = CODINGS[name]
        if bodyless:
            return Packed(_packed(headers, coding.token), None)
        network = network_of(exchange.client)
        held = self._by_network.get(network, 0)
        if self._count >= PACKED_MAX or held >= PACKED_PER_CLIENT_MAX:
            return None
        self._by_network[network] = held + 1
        self._count += 1
        return Packed(_packed(headers, coding.token), coding.make())

    def end(self, client: str) -> None:
        """One that was begun has ended."""
        self._count -= 1
        network = network_of(client)
        left = self._by_network[network] - 1
        if left:
            self._by_network[network] = left
        else:
            del self._by_network[network]


def is_packable(status: int, headers: Headers, length: int | None) -> bool:
    """Whether an answer may be compressed at all, whoever asked for it."""
    if status in (101, 204, 206, 304) or (length is not None and length <= SMALL_OCTETS_MAX):
        return False
    found = dict(headers)
    media_type = found.get(b"content-type", b"").partition(b";")[0].strip().lower()
    if media_type not in TYPES or b"content-range" in found:
        return False
    codings = values_of(headers, b"content-encoding")
    if any(one.strip().lower() not in (b"identity", b"") for one in codings):
        return False
    if any(b"no-transform" in one.lower() for one in values_of(headers, b"cache-control")):
        return False
    return not any(name in found for name in _DIGESTS)


def gives_away(exchange: Exchange) -> bool:
    """Whether a page of somebody else may have asked, for an answer that has a secret."""
    by_name = exchange.by_name
    if b"cookie" not in by_name and b"authorization" not in by_name:
        return False
    return by_name.get(b"sec-fetch-site", b"").lower() not in _OWN_PAGES


def chosen(names: Sequence[str], accepted: bytes) -> str | None:
    """The first of the names that the client accepts. `none` ends the search; `auto`, `default` mean any."""
    liked = _liked(accepted[:ACCEPTED_OCTETS_MAX])
    for name in names:
        if name == "none":
            return None
        if name in ("auto", "default"):
            best = max(CODINGS, key=lambda one: liked.get(one, 0.0))
            if liked.get(best, 0.0) > 0.0:
                return best
        elif liked.get(name, 0.0) > 0.0:
            return name
    return None


@lru_cache(_ACCEPTED_KEPT_MAX)
def _liked(accepted: bytes) -> dict[str, float]:
    """How much a client likes each (RFC 9110 §12.5.3). What cannot be read is not accepted."""
    said: dict[bytes, float] = {}
    for entry in accepted.lower().split(b","):
        token, *parameters = (part.strip() for part in entry.split(b";"))
        weight = 1.0
        for parameter in parameters:
            name, _, value = parameter.partition(b"=")
            weight = _weight(value.strip()) if name.strip() == b"q" else 0.0
        said[b"gzip" if token == b"x-gzip" else token] = weight
    return {name: said.get(coding.token, said.get(b"*", 0.0)) for name, coding in CODINGS.items()}


def _weight(value: bytes) -> float:
    """Between 0 and 1, or 0 for what is no weight."""
    whole, _, rest = value.partition(b".")
    if whole not in (b"0", b"1") or len(rest) > 3 or (rest and not rest.isdigit()):
        return 0.0
    return min(float(value), 1.0)


def _packed(headers: Headers, token: bytes) -> Headers:
    """What holds of the compressed content. A strong ETag is of the other one (RFC 9110 §8.8.3)."""
    said = []
    varies = False
    for name, value in headers:
        if name == b"etag" and value[:2] != b"W/":
            value = b"W/" + value
        elif name == b"vary":
            varies = varies or any(
                one.strip().lower() in (b"*", b"accept-encoding") for one in value.split(b",")
            )
        if name not in _GONE:
            said.append((name, value))
    said.append((b"content-encoding", token))
    if not varies:
        said.append((b"vary", b"Accept-Encoding"))
    return said
