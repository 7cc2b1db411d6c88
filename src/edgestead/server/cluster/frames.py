"""What a leader and a follower say on their link.

Owns  the messages, their frame, their limits.
Not   when they are sent.

    follower  Follow ──────────────▶ leader     number, and where its copy is
              ◀───── Admitted, Elsewhere or Reload
              ◀────────────── Entries           as they are appended
              Applied ─────────────▶            when every process of its node has them
              ◀───────────────── Ping           each PING_SECONDS; answered with Applied
"""

import asyncio
from typing import Final

import msgspec

from edgestead.store.controllog import ENTRY_BYTES_MAX, READ_BYTES_MAX, Entry

LOG_ALPN: Final = "edgestead-log/1"
FRAME_BYTES_MAX: Final = ENTRY_BYTES_MAX + READ_BYTES_MAX  # entries, of which the last may be the largest
PING_SECONDS: Final = 0.5
SILENT_SECONDS_MAX: Final = 2.0  # without a byte: the link is closed, and dialled again
_HEAD_BYTES: Final = 4


class Follow(msgspec.Struct, frozen=True, array_like=True, tag=1):
    """`chain` is that of the copy at its sequence."""

    number: int
    sequence: int
    chain: bytes


class Admitted(msgspec.Struct, frozen=True, array_like=True, tag=2):
    """The leader's writes wait for the follower, which may answer when it has applied `sequence`."""

    leader: int
    sequence: int


class Elsewhere(msgspec.Struct, frozen=True, array_like=True, tag=3):
    """Who is asked does not lead, or no longer waits for this number."""


class Reload(msgspec.Struct, frozen=True, array_like=True, tag=4):
    """The copy is no part of the log."""


class Entries(msgspec.Struct, frozen=True, array_like=True, tag=5):
    entries: tuple[Entry, ...]


class Applied(msgspec.Struct, frozen=True, array_like=True, tag=6):
    """`live` are machines without control that have this too: (group of the feed, node). None: as before."""

    sequence: int
    live: tuple[tuple[str, str], ...] | None = None


class Ping(msgspec.Struct, frozen=True, array_like=True, tag=7):
    pass


Message = Follow | Admitted | Elsewhere | Reload | Entries | Applied | Ping
_encode = msgspec.msgpack.Encoder().encode
_decoder: msgspec.msgpack.Decoder[Message] = msgspec.msgpack.Decoder(Message)


class BadFrame(ConnectionError):
    """The other end does not keep to this protocol."""


def frame(message: Message) -> bytes:
    body = _encode(message)
    return len(body).to_bytes(_HEAD_BYTES) + body


async def read(reader: asyncio.StreamReader) -> Message:
    """The next message. Raises EOFError at the end, BadFrame, TimeoutError."""
    async with asyncio.timeout(SILENT_SECONDS_MAX):
        head = await reader.readexactly(_HEAD_BYTES)
    size = int.from_bytes(head)
    if size > FRAME_BYTES_MAX:
        raise BadFrame(f"a frame of {size} bytes")
    parts, missing = [], size
    while missing:
        async with asyncio.timeout(SILENT_SECONDS_MAX):
            part = await reader.read(min(missing, 1 << 20))
        if not part:
            raise EOFError("the link ended inside of a frame")
        parts.append(part)
        missing -= len(part)
    try:
        return _decoder.decode(b"".join(parts))
    except msgspec.MsgspecError as error:
        raise BadFrame(f"a frame that is no message: {error}") from None
