"""A framed stream to another machine, as a protocol of asyncio.

Owns  the frames of one connection, sending a snapshot in parts, and noticing that the other end is silent.
Not   the contents of frames; TLS and who is at the other end (`server.nodes.port`).

Whatever is sent while a snapshot is on its way goes between its parts: a node that loads gets its answers.
"""

import asyncio
import os
from collections.abc import Callable

from edgestead.feed.protocol import PART_BYTES_MAX, Frames, ProtocolError, SnapshotPart, frame

WRITE_BYTES_MAX = 1 << 20  # that wait to be sent; a snapshot goes on when they are fewer


class NodeLink(asyncio.Protocol):
    """`on_end` is called once, unless the owner closes first. `silent_seconds` without an octet ends it."""

    def __init__(
        self,
        on_open: Callable[[], None],
        on_frame: Callable[[bytes], None],
        on_end: Callable[[str], None],
        *,
        silent_seconds: float,
    ) -> None:
        self._on_open, self._on_frame, self._on_end = on_open, on_frame, on_end
        self._silent_seconds = silent_seconds
        self._frames = Frames()
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._heard = False
        self._descriptor, self._place = -1, 0  # of the snapshot on its way
        self._full = False
        self._ended = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]
        transport.set_write_buffer_limits(high=WRITE_BYTES_MAX)  # type: ignore[attr-defined]
        self._listen()
        self._on_open()

    def data_received(self, data: bytes) -> None:
        self._heard = True
        try:
            for body in self._frames.feed(data):
                if self._ended:
                    return
                self._on_frame(body)
        except ProtocolError as error:
            self._end(str(error))

    def pause_writing(self) -> None:
        self._full = True

    def resume_writing(self) -> None:
        self._full = False
        self._send_parts()

    def connection_lost(self, error: Exception | None) -> None:
        self._end(str(error or "end of stream"))

    def send(self, data: bytes, descriptor: int | None = None, place: int = 0) -> None:
        """Queue a frame, and behind it the file of a snapshot from a place on, which is closed once it was
        sent or cannot be sent.
        """
        if self._ended or self._transport is None:
            if descriptor is not None:
                os.close(descriptor)
            return
        self._transport.write(data)
        if descriptor is not None:
            self._forget_snapshot()
            self._descriptor, self._place = descriptor, place
            self._send_parts()

    def take_no_more(self) -> None:
        """Until `take_more`: what arrived is still being worked on, and the other end has to wait."""
        if self._transport is not None and not self._ended:
            self._transport.pause_reading()

    def take_more(self) -> None:
        if self._transport is not None and not self._ended:
            self._transport.resume_reading()

    def close(self) -> None:
        """What was sent before is still written, for as long as the other end takes it."""
        self._stop()
        if self._transport is not None:
            self._transport.close()

    def _send_parts(self) -> None:
        while self._descriptor >= 0 and not self._full and not self._ended:
            octets = os.pread(self._descriptor, PART_BYTES_MAX, self._place)
            self._place += len(octets)
            if is_last := len(octets) < PART_BYTES_MAX:
                self._forget_snapshot()
            assert self._transport is not None
            self._transport.write(frame(SnapshotPart(octets, is_last)))

    def _forget_snapshot(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _listen(self) -> None:
        if self._timer is not None and not self._heard:
            self._end(f"silent for {self._silent_seconds:g} s")
            return
        self._heard = False
        self._timer = asyncio.get_running_loop().call_later(self._silent_seconds, self._listen)

    def _stop(self) -> None:
        self._ended = True
        self._forget_snapshot()
        if self._timer is not None:
            self._timer.cancel()

    def _end(self, reason: str) -> None:
        if self._ended:
            return
        self._stop()
        if self._transport is not None:
            self._transport.abort()
        self._on_end(reason)
