"""Group commit: everything appended while one group is being synced goes into the next one.

Owns  the waiting group, the group in flight, sequence numbers.
Asks  a runner to write and sync, `upkeep` for the next segment.
Tells each group's callbacks whether it is durable.
Not   what the entries mean.

One group is in flight at a time: that is what lets recovery tell a torn tail from damage. A group is
refused when the disk is full, and then nothing of it remains. Any other failure of a write, and every
failure of a sync, leaves unknown what is on disk: `fatal` ends the process, and recovery finds out.
"""

from collections.abc import Callable
from typing import Any, Literal

from edgestead.store.objectlog import LogBroken, LogError, NoSpace
from edgestead.store.sqlite.objectlog.directory import Known
from edgestead.store.sqlite.objectlog.files import NO_SPACE_ERRNOS
from edgestead.store.sqlite.objectlog.format import BLOCK_BYTES, RECORD_HEADER_BYTES, pack_record
from edgestead.store.sqlite.objectlog.runner import Runner, TimedRunner
from edgestead.store.sqlite.objectlog.segments import Segment

Done = Callable[[LogError | None], None]
Failed = Callable[[BaseException], None]


class LocalGroup:
    """The commits that become durable together."""

    __slots__ = ("bytes_total", "callbacks", "count", "error", "members", "parts", "state")

    def __init__(self) -> None:
        self.state: Literal["waiting", "durable", "refused"] = "waiting"
        self.error: LogError | None = None
        self.parts: list[bytes] = []
        self.bytes_total = 0
        self.count = 0
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

    def finish(self, error: LogError | None) -> None:
        self.state = "durable" if error is None else "refused"
        self.error = error
        if error is not None:
            for known in self.members:
                known.stale = True  # its head and its database may be ahead of the log
        self.parts, self.members = [], []
        callbacks, self.callbacks = self.callbacks, []
        for callback in callbacks:
            callback(error)


class GroupWriter:
    """Writes groups into the active segment, in order."""

    def __init__(
        self,
        runner: Runner,
        now_us: Callable[[], int],
        next_segment: Callable[[int], Segment | None],
        look_for_space: Callable[[], None],
        fatal: Failed,
        sequence: int,
        time_us: int,
        clock: Callable[[], float] | None = None,
    ) -> None:
        """`sequence` and `time_us` are those of the last record there is.

        `next_segment(length)` seals the active segment and gives one with that much room; None when it is
        not ready yet (it calls `flush` when it is); it raises NoSpace. `look_for_space` is called when a
        write found the disk full. Without a `clock`, in seconds, `syncs_quickly` stays false.
        """
        self.waiting = LocalGroup()
        self.in_flight: LocalGroup | None = None
        self.segment: Segment | None = None
        self.broken: LogBroken | None = None
        self.groups = 0  # written and synced since the start
        self.records = 0  # in them
        self._choosing = False  # a spare that is ready at once calls `flush` from within
        self._runner = runner
        self._inline = TimedRunner(clock)
        self._now_us = now_us
        self._next_segment = next_segment
        self._look_for_space = look_for_space
        self._fatal = fatal
        self._sequence = sequence
        self._time_us = time_us

    def flush(self, *, inline: bool = False) -> None:
        """Write the waiting group, unless one is in flight (it follows then by itself)."""
        group = self.waiting
        if self.in_flight is not None or not group.count or self._choosing or self.broken is not None:
            return
        segment = self._choose(RECORD_HEADER_BYTES + group.bytes_total)
        if segment is None:
            return
        self.in_flight, self.waiting = group, LocalGroup()
        self._time_us = max(self._time_us, self._now_us())
        runner: Runner = self._inline if inline or self._inline.is_due() else self._runner
        runner.run(self._job(group, segment, self._sequence + 1, self._time_us), self._done)

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
            self._break(error)
            return None
        finally:
            self._choosing = False
        if segment is not None:
            self.segment = segment
        return segment

    def _mark_unused(self) -> None:
        """A segment that is left before anything was written to it gets an empty record.

        Without any it would look, before later ones, as if it had lost them. Raises NoSpace, OSError.
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
            self._tell(group)
            self.flush(inline=self.syncs_quickly)
        elif isinstance(error, NoSpace):
            group.finish(error)
            # its objects may have appended more since: positions would have a gap
            self._refuse(error)
            self._look_for_space()
        else:
            self._break(error, group)

    def _break(self, error: Exception, *groups: LocalGroup) -> None:
        """What is on disk is unknown."""
        self.broken = LogBroken(f"object log: {error}")
        for group in groups:
            group.finish(self.broken)
        self._refuse(self.broken)
        self._fatal(error)

    def _tell(self, group: LocalGroup) -> None:
        try:
            group.finish(None)
        except Exception as error:  # a callback's fault: others of the group were not told
            self._fatal(error)

    def _refuse(self, error: LogError) -> None:
        group, self.waiting = self.waiting, LocalGroup()
        group.finish(error)
