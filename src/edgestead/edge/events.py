"""Writing security events down, in an edge process.

Owns  what of a request an event holds; the process's files, their rotation; samples that are dropped.
Not   deciding anything; reading events.

An edge process has no data folder. It gets a descriptor of the one folder that events are in, and opens
nothing else. Deciding never waits for the disk: a thread writes, and when it falls behind, or when there are
more events than anybody reads, events are dropped and counted. The counters count them all the same.
"""

import os
import threading
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from edgestead.edge import masking
from edgestead.edge.exchanges.exchange import Exchange
from edgestead.model import events
from edgestead.model.events import Contribution, Decision, Event

EVENTS_PER_SECOND_MAX = 500  # written by one process; nobody reads more
REDIRECTS_PER_SECOND_MAX = 50  # of them redirects: no flood of those may drive the others out of the files
PENDING_OCTETS_MAX = 2 << 20  # waiting to be written
FILE_OCTETS_MAX = 16 << 20  # of one file; each process keeps eight
FILES_MAX = 8  # of one process: with FILE_OCTETS_MAX the most that it keeps
CONTRIBUTIONS_MAX = 50  # of one event: more rules than any request of good will meets
GATHER_SECONDS = 0.05  # events of this time are written together

_US = 1_000_000
_TAIL_OCTETS = 1 << 20  # of a file: more than its longest line
_AGENT_OCTETS_MAX = 512
_HOST_OCTETS_MAX = 255
_METHOD_OCTETS_MAX = 32
_REASON_OCTETS_MAX = 512
_DESCRIPTION_CHARACTERS_MAX = 256


class Counts(Protocol):
    """The process's counters."""

    def event(self, action: str) -> None: ...

    def dropped(self) -> None: ...


class NoCounts:
    def event(self, action: str) -> None:
        pass

    def dropped(self) -> None:
        pass


class EventFiles:
    """The files of one process: lines in, rotation. For one thread. Raises OSError."""

    def __init__(
        self, folder_fd: int, worker: int, *, octets_max: int = FILE_OCTETS_MAX, files_max: int = FILES_MAX
    ) -> None:
        self._folder_fd = folder_fd
        self._prefix = events.file_prefix(worker)
        self._octets_max = octets_max
        self._files_max = files_max
        self._fd = -1
        self._octets = 0

    def write(self, lines: Sequence[bytes], first_id: str) -> None:
        """Append lines, of which the first is the event `first_id`."""
        content = b"\n".join((*lines, b""))
        try:
            if self._fd < 0:
                self._go_on(first_id)
            elif self._octets >= self._octets_max:
                self.close()
                self._open(f"{self._prefix}{first_id}{events.SUFFIX}")
            view = memoryview(content)
            while view:
                view = view[os.write(self._fd, view) :]
        except OSError:
            self.close()  # the disk may have taken a part of a line: going on ends it
            raise
        self._octets += len(content)

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _go_on(self, first_id: str) -> None:
        """With the newest file of an earlier life, unless it is full."""
        names = self._names()
        if names:
            self._open(names[-1])
            if 0 < self._octets < self._octets_max:
                if os.pread(self._fd, 1, self._octets - 1) != b"\n":  # torn when that life ended
                    self._octets += os.write(self._fd, b"\n")
                return
            self.close()
        self._open(f"{self._prefix}{first_id}{events.SUFFIX}")

    def _open(self, name: str) -> None:
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
        self._fd = os.open(name, flags, 0o600, dir_fd=self._folder_fd)
        self._octets = os.fstat(self._fd).st_size
        others = [one for one in self._names() if one != name]  # never the open one, whatever the clock says
        for old in others[: max(0, len(others) + 1 - self._files_max)]:
            os.unlink(old, dir_fd=self._folder_fd)

    def last_us(self) -> int:
        """The time of the newest event of an earlier life, 0 without one."""
        try:
            names = self._names()
            ids = [names[-1].removeprefix(self._prefix).removesuffix(events.SUFFIX), self._last_id(names[-1])]
        except (OSError, IndexError):
            return 0
        return max(events.time_us_of(id_) for id_ in ids)

    def _last_id(self, name: str) -> str:
        """Of the last line that begins in the file's end, which may be torn."""
        descriptor = os.open(name, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW, dir_fd=self._folder_fd)
        try:
            start = max(0, os.fstat(descriptor).st_size - _TAIL_OCTETS)
            lines = os.pread(descriptor, _TAIL_OCTETS, start).split(b"\n")
        finally:
            os.close(descriptor)
        ids = [events.id_of_line(line) for line in reversed(lines)]
        return next(filter(None, ids), "")

    def _names(self) -> list[str]:
        return sorted(name for name in os.listdir(self._folder_fd) if name.startswith(self._prefix))


class EventLog:
    """A worker's events: an `Observer`. Everything but the writing happens on the caller's thread."""

    def __init__(
        self,
        files: EventFiles,
        *,
        worker: int = 0,
        counts: Counts | None = None,
        failed: Callable[[str], None] = lambda words: None,
        now_us: Callable[[], int] = lambda: time.time_ns() // 1_000,
        per_second_max: int = EVENTS_PER_SECOND_MAX,
    ) -> None:
        """`failed` is told why lines could not be written: on the writing thread, once for each cause."""
        self.zone_id_of: Callable[[bytes], str | None] = lambda host: None  # who knows hosts is made later
        self._files = files
        self._worker = worker
        self._counts = counts or NoCounts()
        self._failed = failed
        self._now_us = now_us
        self._per_second_max = per_second_max
        self._count = 0
        earlier_us = files.last_us()
        self._last_us = earlier_us + 1 if earlier_us else 0  # the count begins anew
        self._second = 0
        self._in_second = 0
        self._redirects = 0  # of them
        self._dropped = 0  # since the last event that was kept
        self._pending: list[tuple[str, bytes]] = []
        self._pending_octets = 0
        self._unwritten = 0  # counted by the caller's thread: a counter has one writer
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._write_all, name="events", daemon=True)
        self._thread.start()

    def decided(self, exchange: Exchange, decision: Decision) -> None:
        """A phase's decision about a request."""
        subject = _Subject(
            exchange.client,
            exchange.ray,
            exchange.host,
            exchange.raw_target,
            zone_id=exchange.zone.id,
            method=exchange.method,
            scheme=exchange.scheme,
            user_agent=exchange.header(b"user-agent") or b"",
        )
        self._note(subject, decision)

    def refused(
        self, client: str, ray: bytes, status: int, reason: str, method: bytes, host: bytes, target: bytes
    ) -> None:
        """A request that could not be read, or that names nothing that is proxied here."""
        zone_id = self.zone_id_of(_name_of(host))
        subject = _Subject(client, ray, host, target, zone_id=zone_id, method=method)
        self._note(subject, Decision("http", "refuse", status, reason=reason))

    def failed(self, exchange: Exchange, status: int, reason: str) -> None:
        """The origin did not answer."""
        self.decided(exchange, Decision("origin", "fail", status, reason=reason))

    def close(self) -> None:
        """Write what waits, and end."""
        self._ending.set()
        self._wake.set()
        self._thread.join()
        self._count_unwritten()
        self._files.close()

    def _note(self, subject: "_Subject", decision: Decision) -> None:
        self._counts.event(decision.action)
        if self._unwritten:
            self._count_unwritten()
        now_us = self._admitted(decision.action)
        if now_us is None:
            return
        self._count += 1
        event = _event(subject, decision, events.event_id(now_us, self._worker, self._count), self._dropped)
        self._dropped = 0
        line = events.encode(event)
        with self._lock:
            self._pending.append((event.id, line))
            self._pending_octets += len(line) + 1
        self._wake.set()

    def _count_unwritten(self) -> None:
        with self._lock:
            unwritten, self._unwritten = self._unwritten, 0
        self._dropped += unwritten
        for _ in range(unwritten):
            self._counts.dropped()

    def _admitted(self, action: str) -> int | None:
        """The time of an event that is kept; None for one that is dropped."""
        clock_us = self._now_us()
        now_us = max(self._last_us, clock_us)  # ids never go back, even when the clock does
        second = clock_us // _US  # which goes on meanwhile
        if second != self._second:
            self._second, self._in_second, self._redirects = second, 0, 0
        self._redirects += action == "redirect"
        too_many = action == "redirect" and self._redirects > REDIRECTS_PER_SECOND_MAX
        self._in_second += not too_many
        if too_many or self._in_second > self._per_second_max or self._pending_octets > PENDING_OCTETS_MAX:
            self._dropped += 1
            self._counts.dropped()
            return None
        self._last_us = now_us
        return now_us

    def _write_all(self) -> None:
        cause = ""
        while True:
            self._wake.wait()
            self._ending.wait(GATHER_SECONDS)
            self._wake.clear()
            with self._lock:
                pending, self._pending = self._pending, []
            if pending:
                new_cause = self._write(pending)
                if new_cause and new_cause != cause:
                    self._failed(new_cause)
                cause = new_cause
            elif self._ending.is_set():
                return
            if self._ending.is_set():
                self._wake.set()

    def _write(self, pending: list[tuple[str, bytes]]) -> str:
        """Why it did not work, or nothing. What could not be written is lost and counted."""
        try:
            self._files.write([line for _, line in pending], pending[0][0])
        except OSError as error:
            with self._lock:
                self._unwritten += len(pending)
            return str(error.strerror)
        finally:
            with self._lock:
                self._pending_octets -= sum(len(line) + 1 for _, line in pending)
        return ""


def _name_of(host: bytes) -> bytes:
    """The name in a Host header that nobody has checked."""
    return host[:_HOST_OCTETS_MAX].partition(b":")[0].rstrip(b".").lower()


class _Subject(NamedTuple):
    """What an event says of a request: strangers' bytes, as long as they like."""

    client: str
    ray: bytes
    host: bytes
    target: bytes
    zone_id: str | None = None
    method: bytes = b""
    scheme: bytes = b""
    user_agent: bytes = b""


def _event(subject: _Subject, decision: Decision, id_: str, dropped: int) -> Event:
    path, _, query = subject.target.partition(b"?")
    return Event(
        id=id_,
        occurred_on=events.time_of(id_),
        zone_id=subject.zone_id,
        ray_id=masking.shown(subject.ray, _HOST_OCTETS_MAX),
        phase=decision.phase,
        action=decision.action,
        status=decision.status,
        ruleset_id=decision.ruleset_id,
        rule_id=decision.rule_id,
        description=decision.description[:_DESCRIPTION_CHARACTERS_MAX],
        reason=_reason(decision.reason),
        client=subject.client,
        method=masking.shown(subject.method, _METHOD_OCTETS_MAX),
        scheme=masking.shown(subject.scheme, _METHOD_OCTETS_MAX),
        host=masking.shown(subject.host, _HOST_OCTETS_MAX),
        path=_text(path),
        query=_query(query),
        user_agent=_text(subject.user_agent, _AGENT_OCTETS_MAX),
        score=decision.score,
        threshold=decision.threshold,
        contributions=tuple(map(_contribution, decision.contributions[:CONTRIBUTIONS_MAX])),
        dropped=dropped,
        inspected=decision.inspected,
    )


def _text(octets: bytes, octets_max: int = masking.TEXT_OCTETS_MAX) -> str:
    return _bounded(octets, octets_max, masking.hidden)


def _query(octets: bytes) -> str:
    return _bounded(octets, masking.TEXT_OCTETS_MAX, masking.hidden_query)


def _bounded(octets: bytes, octets_max: int, hide: Callable[[bytes], bytes]) -> str:
    """Cut, then hide: no walk over more than is shown, and a secret that was cut is hidden as well."""
    shown = masking.shown(hide(octets[:octets_max]), 2 * octets_max)
    return shown + masking.CUT if len(octets) > octets_max else shown


def _reason(words: str) -> str:
    return _text(words.encode("utf-8", "surrogateescape"), _REASON_OCTETS_MAX)


def _contribution(given: Contribution) -> Contribution:
    variable = given.variable.encode("utf-8", "surrogateescape")
    matched = given.matched.encode("utf-8", "surrogateescape")
    return Contribution(
        rule_id=given.rule_id,
        description=given.description[:_DESCRIPTION_CHARACTERS_MAX],
        score=given.score,
        variable=masking.shown(variable, masking.MATCHED_OCTETS_MAX),
        matched=_bounded(
            matched, masking.MATCHED_OCTETS_MAX, lambda octets: masking.hidden_match(variable, octets)
        ),
    )
