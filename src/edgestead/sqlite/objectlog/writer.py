"""Group commit: everything appended while one group is being synced goes into the next one.

Owns  the waiting group, the group in flight, sequence numbers.
Not   what the entries mean.

Only one group is in flight at a time, so recovery can distinguish a torn tail from damage. A group is refused
when the disk is full, and then nothing of it remains. After any other failure of a write, and every failure
of a sync, it is unknown what is on disk: `fatal` ends the process, and recovery finds out.
"""

from collections.abc import Callable
from typing import Any, Literal

from edgestead.model.refusals import NO_SPACE_ERRNOS
from edgestead.sqlite.objectlog.directory import Known
from edgestead.sqlite.objectlog.format import (
    BLOCK_BYTES,
    KIND_TIME,
    RECORD_HEADER_BYTES,
    pack_entry,
    pack_record,
)
from edgestead.sqlite.objectlog.segments import Segment
from edgestead.store.objectlog import UNCHANGED, LogBroken, LogError, NoSpace
from edgestead.store.runner import Runner, TimedRunner

Done = Callable[[LogError | None], None]
Failed = Callable[[BaseException], None]
_MILLISECOND_US = 1_000


class LocalGroup:
    """The commits that become durable together."""

    __slots__ = ("bytes_total", "callbacks", "count", "error", "members", "parts", "state", "time_us")

    def __init__(self) -> None:
        self.state: Literal["waiting", "durable", "refused"] = "waiting"
        self.error: LogError | None = None
        self.parts: list[bytes] = []
        self.bytes_total = 0
        self.count = 0
        self.time_us = 0  # of its first entry
        self.callbacks: list[Done] = []
        self.members: list[Known] = []

    def add(self, *parts: bytes) -> None:
        """One entry: its header, and its body if it has one."""
        self.parts += parts
        self.bytes_total += sum(map(len, parts))
        self.count += 1

    def on_done(self, callback: Done) -> None:
        if self.state == "waiting":
            self.callbacks.append(callback)
        else:
            callback(self.error)

    def decide(self, error: LogError | None) -> None:
        """It is durable, or refused; `tell` follows."""
        self.state = "durable" if error is None else "refused"
        self.error = error
        if error is not None:
            for known in self.members:
                known.stale = True  # their heads and databases may be ahead of the log
        self.parts, self.members = [], []

    def tell(self) -> None:
        callbacks, self.callbacks = self.callbacks, []
        for callback in callbacks:
            callback(self.error)


class GroupWriter:
    """Writes groups into the active segment, in order."""

    def __init__(
        self,
        runner: Runner,
        now_us: Callable[[], int],
        next_segment: Callable[[int], Segment | None],
        look_for_space: Callable[[], None],
        synced: Callable[[int, int], None],
        fatal: Failed,
        sequence: int,
        time_us: int,
        clock: Callable[[], float] | None = None,
    ) -> None:
        """`sequence` and `time_us` are those of the last record.

        `next_segment(length)` seals the active segment and returns one with that much space; None when it is
        not ready yet (it calls `flush` when it is); it raises NoSpace. `look_for_space` is called when a
        write found the disk full. `synced(generation, offset)` is called on the thread that synced a group,
        before the group is acknowledged. Without a `clock`, in seconds, `syncs_quickly` stays false.
        """
        self.waiting = LocalGroup()
        self.in_flight: LocalGroup | None = None
        self.segment: Segment | None = None
        self.broken: LogBroken | None = None
        self.groups = 0  # written and synced since the start
        self.records = 0  # in them
        self._choosing = False  # a spare that is ready immediately calls `flush` from within
        self._runner = runner
        self._inline = TimedRunner(clock)
        self._now_us = now_us
        self._next_segment = next_segment
        self._look_for_space, self._synced = look_for_space, synced
        self._fatal = fatal
        self._sequence = sequence
        self._time_us = time_us

    def begin_entry(self) -> LocalGroup:
        """The waiting group, for an entry of now.

        A group that waits for the one in flight collects entries of several milliseconds, and a search by
        time has to find what was appended by then, not what was written by then.
        """
        group, before_us = self.waiting, self._time_us
        self._time_us = max(before_us, self._now_us())
        if not group.count:
            group.time_us = self._time_us
        elif self._time_us // _MILLISECOND_US != before_us // _MILLISECOND_US:
            group.add(pack_entry(0, self._time_us, KIND_TIME, UNCHANGED, 0))
        return group

    def flush(self, *, inline: bool = False) -> None:
        """Write the waiting group, unless one is in flight (it follows then by itself)."""
        group = self.waiting
        if self.in_flight is not None or not group.count or self._choosing or self.broken is not None:
            return
        segment = self._choose(RECORD_HEADER_BYTES + group.bytes_total)
        if segment is None:
            return
        self.in_flight, self.waiting = group, LocalGroup()
        runner: Runner = self._inline if inline or self._inline.is_due() else self._runner
        runner.run(self._job(group, segment, self._sequence + 1, group.time_us), self._done)

    @property
    def syncs_quickly(self) -> bool:
        """Whether `inline` is quicker even when there is something else to do."""
        return self._inline.is_quick

    def when_decided(self, then: Done) -> None:
        """Call back when everything that was appended is durable or refused; at once when all of it is."""
        group = self.waiting if self.waiting.count else self.in_flight
        if group is None:
            then(None)
        else:
            group.on_done(then)
            self.flush()

    def _choose(self, length: int) -> Segment | None:
        if self.segment is not None and self.segment.fits(length):
            return self.segment
        self._choosing = True
        try:
            self._mark_unused()
            segment = self._next_segment(length)
        except NoSpace as error:
            self._refuse(error)
            return None
        except OSError as error:
            self.fail(error)
            return None
        finally:
            self._choosing = False
        if segment is not None:
            self.segment = segment
        return segment

    def _mark_unused(self) -> None:
        """A segment that is sealed before anything was written to it gets an empty record.

        A segment without any record, followed by later ones, would look as if it had lost them. Raises
        NoSpace, OSError.
        """
        segment = self.segment
        if segment is not None and segment.offset == BLOCK_BYTES:
            job = self._job(LocalGroup(), segment, self._sequence + 1, self._time_us)
            segment.offset += job()
            self._sequence += 1

    @property
    def idle(self) -> bool:
        """Nothing is in flight or waiting."""
        return self.in_flight is None and not self.waiting.count

    def _job(self, group: LocalGroup, segment: Segment, sequence: int, time_us: int) -> Callable[[], int]:
        def write() -> int:
            record = pack_record(segment.seed, sequence, time_us, group.count, b"".join(group.parts))
            try:
                segment.file.write(record, segment.offset)
            except OSError as error:
                if error.errno in NO_SPACE_ERRNOS:
                    raise NoSpace("no space left for the object log") from error
                raise
            segment.file.sync()
            self._synced(segment.generation, segment.offset + len(record))
            return len(record)

        return write

    def _done(self, length: Any, error: Exception | None) -> None:
        group, self.in_flight = self.in_flight, None
        assert group is not None
        if error is None:
            assert self.segment is not None
            self.segment.offset += length
            self._sequence += 1
            self.groups += 1
            self.records += group.count
            self._decide(None, group)
            self.flush(inline=self.syncs_quickly)
        elif isinstance(error, NoSpace):
            # its objects may have appended more meanwhile: positions would have a gap
            self._refuse(error, group)
            self._look_for_space()
        else:
            self.fail(error, group)

    def fail(self, error: BaseException, *groups: LocalGroup) -> None:
        """What is on disk is unknown: nothing is written any more, and whoever waits is told."""
        self.broken = LogBroken(f"object log: {error}")
        self._refuse(self.broken, *groups)
        self._fatal(error)

    def _refuse(self, error: LogError, *groups: LocalGroup) -> None:
        """These, and the one that waits. Who hears of it may flush, so that one is taken away first."""
        waiting, self.waiting = self.waiting, LocalGroup()
        self._decide(error, *groups, waiting)

    def _decide(self, error: LogError | None, *groups: LocalGroup) -> None:
        for group in groups:
            group.decide(error)
        for group in groups:
            try:
                group.tell()
            except Exception as raised:  # an error in a callback: others of the group were not called
                self._fatal(raised)
