"""The wire between control and the processes that serve: messages and frames.

Owns  the messages, their bytes, their limits.
Not   sockets; the handling of messages.

A frame is four bytes of length, big-endian, and one msgpack message. A `Snapshot` travels with an open
descriptor (SCM_RIGHTS) of a file that holds frames of changes. The way of a consumer:

    consumer                          control
    Register  ─────────────────────▶
              ◀───────────────────── Snapshot + descriptor   (or Resumed, when it goes on from what it has)
    Loading   ─────────────────────▶                       (again and again while that takes its time)
    Ack       ─────────────────────▶
              ◀───────────────────── Changes
    Ack       ─────────────────────▶
              ◀───────────────────── Serve                   (once; not when it serves already)
              ◀───────────────────── Beat                    (again and again while it serves)
    Beaten    ─────────────────────▶

A node, over TLS, says Hello first, gets a snapshot as `SnapshotPart`s, no Beat, and asks for leases:

    Renew     ─────────────────────▶                       (again and again)
              ◀───────────────────── Granted                 (while it serves and keeps up)
"""

from collections.abc import Iterable, Iterator, Sequence
from struct import Struct as Layout

import msgspec

from edgestead.store.changes import Change, change_bytes

FRAME_BYTES_MAX = 8 << 20  # one change, with its documents
BATCH_BYTES_MAX = 256 << 10  # of changes in one frame, but always one change
NAME_CHARS_MAX = 64  # of a group, a consumer or a kind
KINDS_MAX = 64  # of documents that one consumer wants
PART_BYTES_MAX = 256 << 10  # of a snapshot in one frame

_LENGTH = Layout(">I")


class ProtocolError(Exception):
    """The peer violated this protocol; the connection is unusable."""


class Register(msgspec.Struct, frozen=True, array_like=True, tag=1):
    """First message of a consumer; repeated on the same connection it asks for a snapshot.

    `after` is the last sequence applied, -1 when there is none; `feed_id` names its feed. `kinds` empty
    means all. `serving`: answers may leave this process, so writes have to wait for it. A node that has the
    first `offset` octets of a `snapshot` may get the rest of that one.
    """

    group: str
    name: str
    kinds: tuple[str, ...]
    feed_id: str
    after: int
    serving: bool
    snapshot: str = ""
    offset: int = 0


class Snapshot(msgspec.Struct, frozen=True, array_like=True, tag=2):
    """Forget everything and load what the descriptor holds: the state at `sequence`.

    For a node it has a `name`, and what follows begins at `offset`: not 0 only where that was asked for.
    """

    feed_id: str
    sequence: int
    name: str = ""
    offset: int = 0


class Changes(msgspec.Struct, frozen=True, array_like=True, tag=3):
    """The changes after `after` up to `upto` that the consumer wants, in order; may be empty."""

    after: int
    upto: int
    changes: tuple[Change, ...]


class Ack(msgspec.Struct, frozen=True, array_like=True, tag=4):
    """Everything up to `sequence` is applied and visible in every later answer."""

    sequence: int


class Serve(msgspec.Struct, frozen=True, array_like=True, tag=5):
    """Writes now wait for this consumer: it may serve once it has applied `head`."""

    head: int


class Resumed(msgspec.Struct, frozen=True, array_like=True, tag=6):
    """What the consumer has applied is part of the feed that is now called `feed_id`."""

    feed_id: str


class Beat(msgspec.Struct, frozen=True, array_like=True, tag=7):
    """A heartbeat, with the right to admit callers until `until_us` (`feed.lease`), 0 for none.

    It is ordered after everything sent before: the right is valid only once all that is applied. Then the
    consumer has everything up to `upto`: what it was not sent of that it does not want.
    """

    until_us: int
    upto: int = -1


class Beaten(msgspec.Struct, frozen=True, array_like=True, tag=8):
    """The answer to a Beat: the serving part of this process makes progress, too."""


class Loading(msgspec.Struct, frozen=True, array_like=True, tag=9):
    """More of the snapshot is loaded than at the last Loading."""


class Hello(msgspec.Struct, frozen=True, array_like=True, tag=10):
    """First message of a node, before its Register: the program's release, and where the node is.

    `began_us` is when the relay began, by its clock, and `number` counts its connections: what an older one
    said may arrive behind what a newer one says.
    """

    release: str
    region: str
    began_us: int
    number: int


class SnapshotPart(msgspec.Struct, frozen=True, array_like=True, tag=11):
    """The next octets of the last Snapshot's frames, for a node, which can be handed no descriptor."""

    octets: bytes
    is_last: bool


class Renew(msgspec.Struct, frozen=True, array_like=True, tag=12):
    """A node asks for its lease. It counts from before it sent this."""

    number: int


class Granted(msgspec.Struct, frozen=True, array_like=True, tag=13):
    """The answer to the Renew of that number: writes wait for this node for `lease_ms` from now on.

    It is ordered after everything sent before. 0: nothing is granted, and the lease that it has ends.
    """

    number: int
    lease_ms: int


class Elsewhere(msgspec.Struct, frozen=True, array_like=True, tag=14):
    """Nobody is served here now; HOST:PORT is, as far as is known, or nobody (empty)."""

    address: str


class Secret(msgspec.Struct, frozen=True, array_like=True, tag=15):
    """The next octets of what a node may keep in memory, and nowhere else; the last of a name replaces it."""

    name: str
    octets: bytes
    is_last: bool


Message = (
    Register
    | Snapshot
    | Changes
    | Ack
    | Serve
    | Resumed
    | Beat
    | Beaten
    | Loading
    | Hello
    | SnapshotPart
    | Renew
    | Granted
    | Elsewhere
    | Secret
)

_encode = msgspec.msgpack.Encoder().encode
_decode_message = msgspec.msgpack.Decoder(Message).decode
_encode_changes = msgspec.msgpack.Encoder().encode
_decode_changes = msgspec.msgpack.Decoder(list[Change]).decode


def frame(message: Message) -> bytes:
    return _framed(_encode(message))


def frame_changes(changes: Sequence[Change]) -> bytes:
    """A frame of a snapshot's file."""
    return _framed(_encode_changes(changes))


def _framed(body: bytes) -> bytes:
    if len(body) > FRAME_BYTES_MAX:
        raise ProtocolError(f"a frame of {len(body)} bytes is larger than {FRAME_BYTES_MAX}")
    return _LENGTH.pack(len(body)) + body


def batches(changes: Iterable[Change]) -> Iterator[list[Change]]:
    """Cut changes so that each batch fits into a frame."""
    batch: list[Change] = []
    size = 0
    for change in changes:
        size += change_bytes(change)
        if batch and size > BATCH_BYTES_MAX:
            yield batch
            batch, size = [], change_bytes(change)
        batch.append(change)
    if batch:
        yield batch


class Frames:
    """Cuts a stream of bytes into frames' bodies, however the bytes arrive."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The bodies that `data` completes. Raises ProtocolError for a frame over FRAME_BYTES_MAX."""
        buffer = self._buffer
        buffer += data
        start = 0
        try:
            while len(buffer) - start >= _LENGTH.size:
                (length,) = _LENGTH.unpack_from(buffer, start)
                if length > FRAME_BYTES_MAX:
                    raise ProtocolError(f"a frame of {length} bytes is larger than {FRAME_BYTES_MAX}")
                end = start + _LENGTH.size + length
                if len(buffer) < end:
                    return
                body = bytes(buffer[start + _LENGTH.size : end])
                start = end
                yield body
        finally:
            del buffer[:start]

    @property
    def empty(self) -> bool:
        """Whether no incomplete frame is left."""
        return not self._buffer


def decode(body: bytes) -> Message:
    """Raises ProtocolError."""
    try:
        message: Message = _decode_message(body)
    except msgspec.DecodeError as error:
        raise ProtocolError(f"not a message: {error}") from error
    if isinstance(message, Register):
        _check(message)
    return message


def decode_changes(body: bytes) -> list[Change]:
    """Raises ProtocolError."""
    try:
        return _decode_changes(body)
    except msgspec.DecodeError as error:
        raise ProtocolError(f"not changes: {error}") from error


def _check(hello: Register) -> None:
    names = (hello.group, hello.name, *hello.kinds)
    if len(hello.snapshot) > NAME_CHARS_MAX or hello.offset < 0:
        raise ProtocolError("a part of a snapshot has a short name, and a beginning")
    if len(hello.kinds) > KINDS_MAX or not all(0 < len(name) <= NAME_CHARS_MAX for name in names):
        raise ProtocolError("a consumer, its group and its kinds need short names")
    if hello.after < -1:
        raise ProtocolError("a sequence is not negative")
