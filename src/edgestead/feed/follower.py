"""A consumer's end of the change feed, without its socket.

Owns  what is applied, whether the process may serve, and the messages to control.
Not   sockets, threads, loops; what a document means.

Without control the process keeps serving what it has, and resumes from there later.
"""

import logging
import os
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple, Protocol

from edgestead.feed import snapshot
from edgestead.feed.lease import Grant, Lease
from edgestead.feed.protocol import (
    Ack,
    Beat,
    Beaten,
    Changes,
    Frames,
    Loading,
    ProtocolError,
    Register,
    Resumed,
    Serve,
    Snapshot,
    decode,
    frame,
)
from edgestead.store.changes import Change

SLICE_ROWS_MAX = 128  # changes per call of a consumer: about 1 ms, then other tasks run
LOADING_SECONDS = 1.0  # between two messages that a consumer is still loading
RECONNECT_MS = 50  # between attempts to reach control

log = logging.getLogger(__name__)


class Consumer(Protocol):
    """What a process does with the feed. An exception from it is a bug, and ends the follower."""

    def begin(self) -> None:
        """A snapshot begins: build the new state separately, keep serving the old one."""
        ...

    def load(self, changes: Sequence[Change]) -> None:
        """Documents of the snapshot, ordered by scope, kind and key."""
        ...

    def swap(self) -> None:
        """The snapshot is complete: serve it instead of the old state."""
        ...

    def apply(self, changes: Sequence[Change]) -> None:
        """Later changes, in order; visible in every answer from the moment this returns."""
        ...


class Position(NamedTuple):
    """A feed and a sequence: everything up to it is applied."""

    feed_id: str
    sequence: int


class Follower:
    """Feed it what arrives; run `work` until it ends; send what `outgoing` holds after each of its steps."""

    def __init__(
        self,
        consumer: Consumer,
        *,
        group: str,
        name: str,
        kinds: Sequence[str] = (),
        position: Position | None = None,
        lease: Lease | None = None,
        goes_on: Callable[[], bool] = lambda: True,
        loading: Callable[[int], None] = lambda count: None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """`position` is the consumer's position at the start, None when it has no state.

        `lease` is kept up to date where the group has one. `goes_on` returns whether the serving part of this
        process made progress since the last call; control ends a process in which it is False for long.
        `loading` is called every LOADING_SECONDS with the number of loaded documents of a snapshot.
        """
        self._consumer = consumer
        self._lease = lease or Lease()
        self._goes_on = goes_on
        self._show_loading = loading
        self._now = now
        self._group = group
        self._name = name
        self._kinds = tuple(kinds)
        self._feed_id, self.applied = position or Position("", -1)
        self._bodies: deque[bytes] = deque()
        self._descriptors: deque[int] = deque()
        self._frames = Frames()
        self._restarting = False
        self.may_serve = False
        self.outgoing = bytearray()

    @property
    def position(self) -> Position:
        """The consumer's position after the last complete message; its sequence is -1 when it has no
        state.
        """
        return Position(self._feed_id, self.applied)

    def connected(self) -> None:
        """A new connection: drop the old one's incomplete message, and register."""
        self.disconnected()
        self._frames = Frames()
        self._restarting = False
        self.outgoing.clear()
        self._register(self.applied)

    def disconnected(self) -> None:
        self._bodies.clear()
        while self._descriptors:
            os.close(self._descriptors.popleft())

    def received(self, data: bytes, descriptors: Sequence[int]) -> None:
        """Accept received data. Raises ProtocolError for a frame that is too large."""
        self._descriptors += descriptors
        self._bodies += self._frames.feed(data)

    def work(self) -> Iterator[None]:
        """Apply what was received, one slice per step. After a ProtocolError the connection must be
        closed.
        """
        while self._bodies:
            message = decode(self._bodies.popleft())
            if isinstance(message, Snapshot):
                yield from self._load(message)
            elif self._restarting:
                continue  # sent before control processed our message
            elif isinstance(message, Changes):
                yield from self._apply(message)
            elif isinstance(message, Serve):
                self._serve(message)
            elif isinstance(message, Resumed):
                self._feed_id = message.feed_id
            elif isinstance(message, Beat):
                self._beat(message)
            else:
                raise ProtocolError("control sends no such message")
            yield

    def _load(self, message: Snapshot) -> Iterator[None]:
        if not self._descriptors:
            raise ProtocolError("a snapshot came without its descriptor")
        self._restarting = False
        self._consumer.begin()
        loaded, told_at = 0, self._now()
        for changes in snapshot.read(self._descriptors.popleft()):
            for part in _slices(changes):
                self._consumer.load(part)
                loaded += len(part)
                if self._now() - told_at >= LOADING_SECONDS:
                    told_at = self._now()
                    self.outgoing += frame(Loading())
                    self._show_loading(loaded)
                yield
        self._consumer.swap()
        self._feed_id = message.feed_id
        self._ack(message.sequence)

    def _apply(self, message: Changes) -> Iterator[None]:
        if not self._follows(message):
            log.error("the feed has a gap after %d; starting from a snapshot", self.applied)
            self._restarting = True
            self._register(-1)
            return
        for part in _slices(message.changes):
            self._consumer.apply(part)
            yield
        self._ack(message.upto)

    def _follows(self, message: Changes) -> bool:
        """Dense: it begins where the last one ended, and a consumer of every kind gets every sequence."""
        sequences = [change.sequence for change in message.changes]
        if message.after != self.applied or message.upto < message.after:
            return False
        if not self._kinds:
            return sequences == list(range(message.after + 1, message.upto + 1))
        inside = [message.after, *sequences, message.upto + 1]
        return all(one < next_ for one, next_ in pairwise(inside))

    def _serve(self, message: Serve) -> None:
        if self.applied < message.head:
            raise ProtocolError(f"control lets us serve at {message.head}, we are at {self.applied}")
        self.may_serve = True

    def _beat(self, message: Beat) -> None:
        self._lease.grant = Grant(message.until_us, max(message.upto, self.applied))
        if self._goes_on():
            self.outgoing += frame(Beaten())

    def _register(self, after: int) -> None:
        hello = Register(self._group, self._name, self._kinds, self._feed_id, after, self.may_serve)
        self.outgoing += frame(hello)

    def _ack(self, sequence: int) -> None:
        self.applied = sequence
        self._lease.applied(sequence)
        self.outgoing += frame(Ack(sequence))


def _slices(changes: Sequence[Change]) -> Iterator[Sequence[Change]]:
    for start in range(0, len(changes), SLICE_ROWS_MAX):
        yield changes[start : start + SLICE_ROWS_MAX]
