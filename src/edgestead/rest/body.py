"""The request's body: bytes within limits, whole or as they arrive, then the value that the route takes.

Owns  reading, limits of size and time, JSON decoding.
Not   what the fields mean.
"""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from edgestead.http1 import messages
from edgestead.http1.messages import Body, BodyBroken
from edgestead.model.kv import BULK_BYTES_MAX
from edgestead.model.names import shown
from edgestead.model.refusals import EdgeError
from edgestead.model.refusals.request import (
    BodyTooLarge,
    BodyTooSlow,
    InvalidBody,
    ServerEnds,
    WrongContentType,
)
from edgestead.rest.limits import (
    BODY_SECONDS_MAX,
    JSON_DEPTH_MAX,
    JSON_VALUES_MAX,
    TWINS_BODY_BYTES_MAX,
    UPLOAD_IDLE_SECONDS_MAX,
    UPLOAD_SECONDS_MAX,
)

_LENGTH_DIGITS_MAX = 12
_AS_BRACKETS = bytes.maketrans(b"{}", b"[]")
_NO_BRACKETS = bytes(octet for octet in range(256) if octet not in b"[]{}")
_BACKSLASHES = re.compile(rb"\\*")  # an escape is not cut in two
SLICE_BYTES = 65_536
_DECODERS: dict[Any, msgspec.json.Decoder[Any]] = {}


class Disconnected(Exception):
    """The client has gone; nobody waits for an answer."""


def check_content_type(headers: Mapping[bytes, bytes]) -> None:
    """Raises WrongContentType: another type than JSON. A missing header passes."""
    content_type = headers.get(b"content-type")
    if content_type and content_type.partition(b";")[0].strip().lower() != b"application/json":
        raise WrongContentType


def announced_length(headers: Mapping[bytes, bytes]) -> int:
    """What a request says of its body; 0 where it says nothing, or more than any route takes."""
    announced = headers.get(b"content-length", b"0")
    length = int(announced) if announced.isdigit() and len(announced) <= _LENGTH_DIGITS_MAX else 0
    return length if length <= BULK_BYTES_MAX else 0


def here(incoming: Body, headers: Mapping[bytes, bytes], bytes_max: int) -> bytes | None:
    """All of the body where all of it is here, as it nearly always is. Raises BodyTooLarge."""
    announced = headers.get(b"content-length", b"0")
    if len(announced) > _LENGTH_DIGITS_MAX or int(announced) > bytes_max:
        raise BodyTooLarge(limit=bytes_max)
    return incoming.taken_whole(bytes_max)


async def read(incoming: Body, bytes_max: int) -> bytes:
    """The same, when it comes. Raises BodyTooLarge, BodyTooSlow, Disconnected, ServerEnds."""
    try:
        async with _arriving(BODY_SECONDS_MAX):
            return await incoming.read(bytes_max)
    except messages.BodyTooLarge:
        raise BodyTooLarge(limit=bytes_max) from None


@asynccontextmanager
async def _arriving(seconds_max: float) -> AsyncIterator[None]:
    """What may happen while a client sends. Raises BodyTooSlow, Disconnected, ServerEnds."""
    try:
        async with asyncio.timeout(seconds_max):
            yield
    except TimeoutError:
        raise BodyTooSlow(seconds=round(seconds_max)) from None
    except asyncio.CancelledError:  # only the end of the server cancels a request
        raise ServerEnds from None
    except BodyBroken:
        raise Disconnected from None


class Upload:
    """A body for routes that do not keep all of it in memory. Read it once.

    `length` is what the head announces, None when it does not. `still_permitted` is asked when all of
    it is there.
    """

    def __init__(
        self, incoming: Body, headers: Mapping[bytes, bytes], still_permitted: Callable[[], None]
    ) -> None:
        self._incoming = incoming
        self._still_permitted = still_permitted
        self.content_type = headers.get(b"content-type", b"").decode("latin-1")
        announced = headers.get(b"content-length")
        if announced is None:
            self.length = None if b"transfer-encoding" in headers else 0
        else:
            self.length = int(announced) if len(announced) <= _LENGTH_DIGITS_MAX else 10**_LENGTH_DIGITS_MAX

    async def chunks(self, bytes_max: int) -> AsyncIterator[bytes]:
        """The body in the portions that arrive, each at most 256 KiB or so.

        Raises BodyTooLarge, BodyTooSlow, Disconnected, ServerEnds, what `still_permitted` raises.
        """
        if self.length is not None and self.length > bytes_max:
            raise BodyTooLarge(limit=bytes_max)
        length, deadline = 0, asyncio.get_running_loop().time() + UPLOAD_SECONDS_MAX
        while portion := await self._next(deadline):
            length += len(portion)
            if length > bytes_max:
                raise BodyTooLarge(limit=bytes_max)
            yield portion
        self._still_permitted()

    async def _next(self, deadline: float) -> bytes:
        async with _arriving(UPLOAD_IDLE_SECONDS_MAX):
            portion = await self._incoming.portion()
        if portion and asyncio.get_running_loop().time() > deadline:
            raise BodyTooSlow(seconds=round(UPLOAD_SECONDS_MAX))
        return portion

    async def whole(self, bytes_max: int) -> bytes:
        self._incoming.keep()
        return b"".join([chunk async for chunk in self.chunks(bytes_max)])


def decode(body: bytes, shape: Any, not_json: type[InvalidBody] = InvalidBody) -> Any:
    """Read JSON as `shape`. Numbers and truth values may be text, as several clients send them.

    `bytes` is a route that reads its body itself: it gets what was sent.

    Raises InvalidBody, with a pointer to the member that is wrong; `not_json`.
    """
    if shape is bytes:
        return body
    decoder = _DECODERS.get(shape)
    if decoder is None:
        decoder = _DECODERS[shape] = msgspec.json.Decoder(shape, strict=False)
    if body.count(b"[") + body.count(b"{") > JSON_DEPTH_MAX and _is_too_deep(body):
        raise InvalidBody(reason=f"it is nested deeper than {JSON_DEPTH_MAX} levels.")
    refuse_many(body, InvalidBody)
    try:
        value = decoder.decode(body)
        if len(body) <= TWINS_BODY_BYTES_MAX:
            refuse_twins(body, InvalidBody)
        return value
    except msgspec.ValidationError as error:
        reason, _, path = str(error).partition(" - at `$")
        raise InvalidBody(reason=reason + ".", pointer=_pointer(path.rstrip("`"))) from None
    except (msgspec.DecodeError, ValueError) as error:
        raise not_json(reason=f"it is not JSON: {error}.") from None


def refuse_many(body: bytes, refusal: type[EdgeError]) -> None:
    """Raises `refusal`, a class with a `reason`: more values than a body may have. Each takes memory."""
    if len(body) > JSON_VALUES_MAX and has_more_values(body, JSON_VALUES_MAX):
        raise refusal(reason=f"it has more than {JSON_VALUES_MAX} values.")


def refuse_twins(body: bytes, refusal: type[EdgeError]) -> None:
    """Raises `refusal`, a class with a `reason`: an object names a member twice; ValueError: what a shape
    passes over is no JSON.

    What it means is anybody's guess (RFC 8259 §4): a proxy or a log that takes the first one would see
    another request than we do. One walk over a body that is not too deep, and no number is made of its
    digits: 5 µs for a record, 2 ms at the limit, which would be 100 ms for the longest body.
    """

    def look(pairs: list[tuple[str, Any]]) -> None:
        if len(pairs) > 1 and (twin := _twin(pairs)) is not None:
            raise refusal(reason=f"an object has the member {shown(twin)} twice.")

    json.loads(body.decode(), object_pairs_hook=look, parse_int=_pass, parse_float=_pass, strict=False)


def _pass(number: str) -> None:
    return None


def _twin(pairs: list[tuple[str, Any]]) -> str | None:
    """The first name that comes again, if any does."""
    if len({name for name, _ in pairs}) == len(pairs):
        return None
    seen: set[str] = set()
    for name, _ in pairs:
        if name in seen:
            return name
        seen.add(name)
    return None


def _is_too_deep(body: bytes) -> bool:
    """Whether brackets outside of strings nest deeper than JSON_DEPTH_MAX.

    Each round takes away the innermost level; what is left after that many rounds is too deep, or so many
    brackets that nothing closes (of fewer the decoder says it better). A loop over the octets took 100 ms
    for 1 MiB, this takes 3.
    """
    levels = b"".join(part.translate(_AS_BRACKETS, _NO_BRACKETS) for part in _outside(body))
    for _ in range(JSON_DEPTH_MAX):
        levels = levels.replace(b"[]", b"")
    return b"[]" in levels or b"[" * (JSON_DEPTH_MAX + 1) in levels


def has_more_values(body: bytes, values_max: int) -> bool:
    """Whether JSON of unknown shape has more values than that, each of which takes memory and time to read.

    Commas and brackets are counted: in all, and outside of strings where these are too many.
    """
    if _separators(body) <= values_max:
        return False
    count = 0
    for part in _outside(body):
        count += _separators(part)
        if count > values_max:
            return True
    return False


def _outside(body: bytes) -> Iterator[bytes]:
    """What is outside of strings. In slices, as each piece between two quotes takes memory, too."""
    at, outside = 0, True
    while at < len(body):
        run = _BACKSLASHES.match(body, at + SLICE_BYTES - 1)
        end = at + SLICE_BYTES if run is None else run.end() + 1
        pieces = body[at:end].replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')
        yield b"".join(pieces[not outside :: 2])
        outside ^= len(pieces) % 2 == 0
        at = end


def _separators(text: bytes) -> int:
    return text.count(b",") + text.count(b"[") + text.count(b"{")


def _pointer(path: str) -> str:
    """msgspec's path, `.data.port` or `[...].name`, as a JSON pointer as far as it is exact."""
    exact = path.partition("[...]")[0]
    return exact.replace("[", "/").replace("]", "").replace(".", "/")
