"""The request's body: bytes within limits, then the value that the route takes.

Owns  reading, limits, JSON decoding.
Not   what the fields mean.
"""

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import msgspec

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
from edgestead.rest.limits import BODY_SECONDS_MAX, JSON_DEPTH_MAX, TWINS_BODY_BYTES_MAX

_AS_BRACKETS = bytes.maketrans(b"{}", b"[]")
_NO_BRACKETS = bytes(octet for octet in range(256) if octet not in b"[]{}")
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
    length = int(announced) if announced.isdigit() and len(announced) <= 12 else 0
    return length if length <= BULK_BYTES_MAX else 0


def here(incoming: Body, headers: Mapping[bytes, bytes], bytes_max: int) -> bytes | None:
    """All of the body where all of it is here, as it nearly always is. Raises BodyTooLarge."""
    announced = headers.get(b"content-length", b"0")
    if len(announced) > 12 or int(announced) > bytes_max:
        raise BodyTooLarge(limit=bytes_max)
    return incoming.taken_whole(bytes_max)


async def read(incoming: Body, bytes_max: int) -> bytes:
    """The same, when it comes. Raises BodyTooLarge, BodyTooSlow, Disconnected, ServerEnds."""
    portions, length = [], 0
    try:
        async with asyncio.timeout(BODY_SECONDS_MAX):
            while portion := await incoming.portion():
                portions.append(portion)
                length += len(portion)
                if length > bytes_max:
                    raise BodyTooLarge(limit=bytes_max)
    except TimeoutError:
        raise BodyTooSlow(seconds=round(BODY_SECONDS_MAX)) from None
    except asyncio.CancelledError:  # only the end of the server cancels a request
        raise ServerEnds from None
    except BodyBroken:
        raise Disconnected from None
    return b"".join(portions)


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

    Each round takes away the innermost level; what is left after that many rounds is too deep (or not
    balanced, which the decoder says better). A loop over the octets took 100 ms for 1 MiB, this takes 3.
    """
    outside = body.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')[::2]
    levels = b"".join(outside).translate(_AS_BRACKETS, _NO_BRACKETS)
    for _ in range(JSON_DEPTH_MAX):
        levels = levels.replace(b"[]", b"")
    return b"[]" in levels


def _pointer(path: str) -> str:
    """msgspec's path, `.data.port` or `[...].name`, as a JSON pointer as far as it is exact."""
    exact = path.partition("[...]")[0]
    return exact.replace("[", "/").replace("]", "").replace(".", "/")
