"""One group's stream on a machine without control: follows a control node, and feeds the processes here.

Owns  what is acknowledged to control and when, the lease, and whether the processes here may answer.
Not   sockets, files, clocks: `Actions` carries out what is decided, and reports back.

    lease     the node's policy   a process here
    none yet  stop                waits
    none yet  serve               waits; but without any control node for APART_MS it answers from the file
    valid     any                 answers
    over      stop                is killed
    over      serve               answers from what it has, for `stale_ms` at most; then it is killed

A change is acknowledged when every process here that may answer has applied it, so that the promise of
control holds through a node. The lease counts from before it was asked for, by a clock that counts while the
machine sleeps. Writes may be answered without this node once it is over.

A new connection registers with what was applied, so it waits until everything that was stored is applied: a
process that does not get there is killed by the publisher here.
"""

import logging
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, Protocol

import msgspec

from edgestead.feed.follower import LOADING_SECONDS, Position
from edgestead.feed.protocol import (
    Ack,
    Changes,
    Elsewhere,
    Frames,
    Granted,
    Hello,
    Loading,
    Message,
    ProtocolError,
    Register,
    Renew,
    Resumed,
    Secret,
    Serve,
    Snapshot,
    SnapshotPart,
    decode,
    decode_changes,
)
from edgestead.store.changes import Change

RENEW_MS: Final = 1_000.0  # between two Renews, until the first lease says how long one is
RENEWALS_IN_A_LEASE: Final = 4
RENEWALS_MAX: Final = 16  # Renews without an answer that are remembered
GUARD_MS: Final = 200.0  # that the lease ends here before it ends for control: who answers is killed in it
APART_MS: Final = 1_000.0  # a control node is found sooner when there is one

log = logging.getLogger(__name__)


class Moved(Exception):
    """The control node names another one, or nobody (empty)."""


class Actions(Protocol):
    def send(self, message: Message) -> None:
        """To the control node; nothing where there is no connection."""
        ...

    def store(self, changes: Sequence[Change], position: Position) -> None:
        """Keep changes and where they end. Answer with `stored`, in the same order."""
        ...

    def begin(self) -> None:
        """Begin a new file aside. One that was begun before is dropped."""
        ...

    def load(self, changes: Sequence[Change]) -> None: ...

    def swap(self, position: Position) -> None:
        """The new file is whole: put it in place of the old one. Answer with `stored`."""
        ...

    def keep_secret(self, part: Secret) -> None:
        """In memory, and nowhere else."""
        ...

    def open(self) -> None:
        """Let the processes here follow, and answer."""
        ...

    def shut(self) -> None:
        """Kill those that may answer; none follows any more. Answer with `is_shut`."""
        ...


class Relay:
    """`now_ms` is CLOCK_BOOTTIME. `position` is where the file stands, None without one."""

    def __init__(
        self,
        actions: Actions,
        *,
        group: str,
        name: str,
        kinds: Sequence[str],
        position: Position | None,
        stops: bool,
        stale_ms: float,
        now_ms: Callable[[], float],
        cut_off_ms: float = 0.0,
        open_at: int | None = None,
        release: str = "",
        region: str = "",
        began_us: int = 0,
    ) -> None:
        """`stops`: the policy. `stale_ms` is how long it may answer after its last lease, which was over
        `cut_off_ms` ago.

        `open_at`: processes here answer since before this relay began, and they follow it already; the file's
        own sequence is this one. They may not have applied all of it, so no connection is made before they
        have. With the policy `stop` there must be none.
        """
        self._actions = actions
        self._group, self._name, self._kinds = group, name, tuple(kinds)
        self._hello = Hello(release, region, began_us, 0)
        self._stops, self._stale_ms, self._now_ms = stops, stale_ms, now_ms
        self._feed_id, self._told = position or Position("", -1)
        self.applied = self._told
        """The last sequence of control that every process here has applied."""
        self.has_file = position is not None
        self._storing: deque[tuple[int, int]] = deque()  # of control, handed to `store`; and which file
        self._file = 0  # counts the snapshots that were put in place
        self._stored: deque[tuple[int, int]] = deque()  # of control, and of the file
        self._local_applied = -1
        self._is_open = open_at is not None
        if open_at is not None:
            self._stored.append((self._told, open_at))
        self._shutting = False
        self._apart_from_ms = now_ms()
        self._until_ms = 0.0
        self._stale_from_ms = now_ms() - cut_off_ms
        self._serve_at: int | None = None
        self._is_connected = False
        self._renewals: dict[int, float] = {}
        self._number = 0
        self._renewed_ms = -RENEW_MS
        self._every_ms = RENEW_MS
        self._loading: Snapshot | None = None
        self._half: Snapshot | None = None  # that a connection which ended left behind
        self._offset = 0  # of its octets, or of those that load, that were handed to `load`
        self._parts = Frames()
        self._loading_told_ms = 0.0

    @property
    def is_leased(self) -> bool:
        return self._now_ms() < self._until_ms - GUARD_MS

    @property
    def cut_off_ms(self) -> float:
        """For how long it has been without a lease; 0 while it has one."""
        return 0.0 if self.is_leased else self._now_ms() - self._stale_from_ms

    @property
    def is_open(self) -> bool:
        return self._is_open

    @property
    def is_shutting(self) -> bool:
        """The end of those that may have answered is awaited."""
        return self._shutting

    @property
    def is_live(self) -> bool:
        """Writes wait for this node, and what was answered before they did is applied."""
        return self.is_leased and self._serve_at is not None and self.applied >= self._serve_at

    @property
    def may_connect(self) -> bool:
        """Whether what is said to a control node would be true."""
        return not (self._storing or self._stored or self._shutting)

    @property
    def position(self) -> Position:
        return Position(self._feed_id, self.applied)

    # The connection.

    def connected(self) -> None:
        assert self.may_connect
        self._is_connected, self._loading, half = True, None, self._half
        self._renewals.clear()
        self._hello = msgspec.structs.replace(self._hello, number=self._hello.number + 1)
        self._actions.send(self._hello)
        self._actions.send(
            Register(
                *(self._group, self._name, self._kinds, self._feed_id, self._told, self.is_leased),
                *((half.name, self._offset) if half is not None else ()),
            )
        )
        self._renew()

    def disconnected(self) -> None:
        if self._loading is not None:
            self._half = self._loading if self._loading.name else None
        self._is_connected, self._loading = False, None
        self._apart_from_ms = self._now_ms()

    def received(self, body: bytes) -> None:
        """Raises ProtocolError, Moved: the connection has to be closed."""
        message = decode(body)
        if isinstance(message, Granted):
            self._granted(message)
        elif isinstance(message, Snapshot):
            self._begin(message)
        elif isinstance(message, SnapshotPart):
            self._load(message)
        elif isinstance(message, Changes):
            self._changes(message)
        elif isinstance(message, Serve):
            if self._told < message.head:
                raise ProtocolError(f"control lets us serve at {message.head}, we are at {self._told}")
            self._serve_at = message.head
        elif isinstance(message, Resumed):
            self._feed_id = message.feed_id
        elif isinstance(message, Secret):
            self._actions.keep_secret(message)
        elif isinstance(message, Elsewhere):
            raise Moved(message.address)
        else:
            raise ProtocolError("control sends no such message to a node")
        self._settle()

    def _renew(self) -> None:
        self._number += 1
        self._renewed_ms = self._now_ms()
        self._renewals[self._number] = self._renewed_ms
        if len(self._renewals) > RENEWALS_MAX:
            del self._renewals[next(iter(self._renewals))]
        self._actions.send(Renew(self._number))

    def _granted(self, message: Granted) -> None:
        asked_ms = self._renewals.get(message.number)
        if asked_ms is None or message.lease_ms <= 0:
            return
        self._until_ms = max(self._until_ms, asked_ms + message.lease_ms)
        self._every_ms = message.lease_ms / RENEWALS_IN_A_LEASE

    def _begin(self, message: Snapshot) -> None:
        half, self._half, self._loading = self._half, None, None
        if message.offset == 0:
            self._parts, self._offset = Frames(), 0
            self._actions.begin()
        elif half is None or (half.name, half.sequence, self._offset) != (
            *(message.name, message.sequence, message.offset),
        ):
            raise ProtocolError("the rest of a snapshot whose beginning is not here")
        self._loading, self._loading_told_ms = message, self._now_ms()

    def _load(self, part: SnapshotPart) -> None:
        if self._loading is None:
            raise ProtocolError("a part of no snapshot")
        whole, self._loading = self._loading, None  # one that cannot be read is not gone on with
        for body in self._parts.feed(part.octets):
            self._actions.load(decode_changes(body))
        self._loading = whole
        self._offset += len(part.octets)
        now_ms = self._now_ms()
        if now_ms - self._loading_told_ms >= 1000 * LOADING_SECONDS:
            self._loading_told_ms = now_ms
            self._actions.send(Loading())
        if part.is_last:
            if not self._parts.empty:
                self._loading = None
                raise ProtocolError("a snapshot is cut short")
            self._loading = None
            self._feed_id, self._told = whole.feed_id, whole.sequence
            self._file += 1
            self._stored.clear()  # the acknowledgement of the snapshot is one of all before it
            self._local_applied = -1
            self._storing.append((whole.sequence, self._file))
            self._actions.swap(Position(whole.feed_id, whole.sequence))

    def _changes(self, message: Changes) -> None:
        if message.after != self._told or message.upto < message.after:
            self._feed_id = ""  # of no feed: the next connection begins with a snapshot
            raise ProtocolError(f"the feed has a gap after {self._told}")
        self._half = None  # control goes on from the file
        self._told = message.upto
        self._storing.append((message.upto, self._file))
        self._actions.store(message.changes, Position(self._feed_id, message.upto))

    # What was stored and applied here.

    def stored(self, local: int) -> None:
        """The oldest that was handed to `store` or `swap` ends at this sequence of the file."""
        self.has_file = True
        sequence, file = self._storing.popleft()
        if file == self._file:
            self._stored.append((sequence, local))
        self._settle()

    def applied_upto(self, local: int) -> None:
        """Every process here that may answer has applied the file up to this sequence. Not said of a file
        that is being replaced.
        """
        self._local_applied = local
        self._settle()

    def is_shut(self) -> None:
        """No process here answers any more."""
        self._shutting = False
        self._settle()

    # Time.

    def tick(self) -> None:
        """Called again and again, several times in a lease."""
        if self._is_connected and self._now_ms() - self._renewed_ms >= self._every_ms:
            self._renew()
        self._settle()

    def _settle(self) -> None:
        self._acknowledge()
        may = self._may_answer()
        if may and not self._is_open and not self._shutting:
            self._is_open = True
            self._local_applied = -1  # until the publisher says what those have that answer already
            self._actions.open()
        elif self._is_open and not may:
            self._is_open, self._shutting = False, True
            self._actions.shut()

    def _acknowledge(self) -> None:
        """Without processes that may answer, what is stored is applied."""
        acknowledged = -1
        while self._stored and (self._stored[0][1] <= self._local_applied or not self._answers):
            acknowledged, _ = self._stored.popleft()
        if acknowledged >= 0:
            self.applied = acknowledged
            self._actions.send(Ack(acknowledged))

    @property
    def _answers(self) -> bool:
        return self._is_open or self._shutting

    def _may_answer(self) -> bool:
        if not self.has_file:
            return False
        if self.is_leased:
            self._stale_from_ms = self._now_ms()
            return self._is_open or self.is_live
        if self._stops or self._now_ms() - self._stale_from_ms >= self._stale_ms:
            return False
        return self._is_open or (not self._is_connected and self._now_ms() - self._apart_from_ms >= APART_MS)
