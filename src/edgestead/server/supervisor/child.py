"""One child of the supervisor, over all its lives.

Owns  starting the process, its status pipe, its pidfd, and how long to wait before its next life.
Not   when to start or to stop: the supervisor.
"""

import math
import os
import signal
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from pathlib import Path
from typing import Any, Protocol, TypeVar

import msgspec

from edgestead.config import Config
from edgestead.feed.stillness import Stillness, work_of
from edgestead.model.counters import Page, slot
from edgestead.model.overdue import counted, is_over
from edgestead.model.seldom import Seldom
from edgestead.server import process
from edgestead.server.messages import Start
from edgestead.server.supervisor.control_life import ControlLife

BACKOFF_FIRST_SECONDS = 0.05
BACKOFF_MAX_SECONDS = 1.0  # while a DNS process waits, its share of the queries has no answer
STABLE_SECONDS = 10.0  # a life this long forgives the ends before it, and is followed by the next one at once
_STATUS_BYTES_MAX = 1 << 16  # what a pipe holds: one read takes all of it
_LINE_BYTES_MAX = 4096
_THREAD_DIGITS_MAX = 10  # of its number
_BEGIN = (sys.executable, "-P", "-m", "edgestead.server.entrance")
_MORE = b"more"  # with the descriptors of a place that do not go with its message

ENDS_MAX = 3  # of a process, whose times are remembered
UNSTABLE_SECONDS = 120.0
"""A process that ended so often within this time restarts again and again: readiness says so. Three lives of
15 s, each ended by a watchdog, take a minute."""

FAULTS = frozenset(
    signal.Signals[f"SIG{name}"] for name in ("SEGV", "BUS", "ABRT", "ILL", "FPE", "SYS", "TRAP")
)

START_STILL_SECONDS = 2.0
"""What one that only works at its start may do nothing at all there: more than later, as a start makes calls
of the system that nobody has counted."""

IDLE_AFTER_SECONDS = 0.2
"""Without a sign of life from a process that runs no code of users: from then on stillness counts."""
STAGE_WORD_BYTES = 8
_STAGE_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_NOCTTY
"""Whatever users' code may have written to the pipe, or put there: the supervisor never waits for it."""

ENDS_OF_SILENCE = (signal.SIGABRT, signal.SIGKILL)
"""What a silent process is sent, a beat apart. On the first one it says where it stands (`faulthandler`), if
it runs at all, and ends by a fault of its own. One that was stopped from outside ends by the second."""

_UNSTABLE = slot("edge_process_unstable_seconds")
_STARTS = slot("edge_process_starts_total")
_SILENCES = slot("edge_process_silences_total")
_STOPS = slot("edge_process_stops_total")


Message = TypeVar("Message", bound=Start)
_TEXTS = (Path, IPv4Address, IPv4Network, IPv6Address, IPv6Network)  # of settings, and text in messages


class MakeStart(Protocol):
    """Builds the message for a new life, and names the descriptors that the child inherits."""

    def __call__(self, child: "Child", status_fd: int) -> tuple[Start, Iterable[int]]: ...


class Child:
    """`name` is unique; `module` has the `main` that is run. `pid` and `pidfd` are -1 between lives.

    `silence_seconds_max` is how long it may give no sign of life, once it gave one.
    `environment` None means the supervisor's own. `held_fd` is inherited for nothing but being held.
    `ended_itself`: the last life, by an exit or a fault, and not by a signal that others send.

    With `make_place` a process gets a second message. Until then it is like any other of its module: so a new
    life takes the process of one of `spares`, children that give their processes away, if one is there.
    """

    def __init__(
        self,
        name: str,
        module: str,
        make_start: MakeStart,
        counters_fd: int,
        now: Callable[[], float],
        silence_seconds_max: float,
        environment: Mapping[str, str] | None = None,
        held_fd: int | None = None,
        make_place: MakeStart | None = None,
        spares: "Sequence[Child]" = (),
    ) -> None:
        self.name = name
        self.counters_fd = counters_fd
        self.silence_seconds_max = silence_seconds_max
        self.still_seconds_max = math.inf  # the same for one that does nothing at all meanwhile
        self.idle_still_seconds_max = math.inf  # and that shows that it runs no code of users
        self.first_life_after_seconds = 0.0  # of a spare one, once the server is up
        self.works_at_its_start = False  # until its first sign it computes, or waits for a disk
        self.keeps_others_waiting = False  # whether its silence is also counted by the time that passes
        self._module = module
        self._make_start, self._make_place = make_start, make_place
        self.spares = spares
        self._now = now
        self._environment = environment
        self._held = () if held_fd is None else (held_fd,)
        self._counters: Page = process.page(counters_fd)
        self.life: ControlLife | None = None  # where others read that this child lives
        self._ends: deque[int] = deque(maxlen=ENDS_MAX)  # since the epoch, in seconds
        self._backoff_seconds = BACKOFF_FIRST_SECONDS
        self._started_at = 0.0
        self._popen: subprocess.Popen[bytes] | None = None
        self._messages: socket.socket | None = None  # to a process that waits for its place
        self._unread = b""
        self.pidfd = -1
        self.status_fd = -1
        self.lives = 0
        self.ended_itself = False
        self.is_ready = False
        self.is_hung_up = False
        self.reason = ""
        self.doing, self.steps = "", 0  # what it does before it is ready, and how often it said so
        self._stops = Seldom(now=now)  # who stops one process a thousand times a second fills no log
        self._silent_seconds: float | None = None  # None until the first sign of this life
        self._passed_seconds = 0.0  # since its last sign, with what it waited for
        self._silence_allowed, self._waited_seconds = silence_seconds_max, 0.0
        self._stillness, self._is_starting = Stillness(), False
        self._signs_from, self._sign_ran_ns = 0, 0  # the thread that gives the signs, how long it had run
        self._stage_path: str | None = None  # the file that shows whether it runs code of users
        self.stood_still = False  # why it is being ended
        self._ends_of_silence = iter(ENDS_OF_SILENCE)

    @property
    def pid(self) -> int:
        return self._popen.pid if self._popen else -1

    @property
    def is_alive(self) -> bool:
        return self._popen is not None

    @property
    def spare(self) -> "Child | None":
        """Whose process the next life takes: of one that has loaded everything, if there is any."""
        alive = [one for one in self.spares if one.is_alive]
        return max(alive, key=lambda one: one.is_ready, default=None)

    def message(self, kind: type[Message], status_fd: int, config: Config, **own: Any) -> Message:
        """Its start message. Fields that `own` does not give are the settings of the same name."""
        own |= {
            "name": self.name,
            "supervisor_pid": os.getpid(),
            "status_fd": status_fd,
            "counters_fd": self.counters_fd,
            "log_level": config.log_level,
            "log_form": config.log_form or "json",
        }
        names = (name for name in kind.__struct_fields__ if name not in own and hasattr(config, name))
        return kind(**own, **{name: _plain(getattr(config, name)) for name in names})

    def start(self) -> None:
        """Begin a life. Raises OSError when the system has no room for it, and what `make_start` raises.

        Then nothing has begun.
        """
        assert not self.is_alive
        if self.life is not None:
            self.life.begins()
        try:
            self._begin()
        except BaseException:
            if self.life is not None:
                self.life.ends()
            raise

    def _begin(self) -> None:
        try:
            self._get_process()
        except BaseException:  # there is no place to be given
            if self._popen is not None:
                self._give_up()
            raise
        self._started_at = self._now()
        self._counters.add(_STARTS)
        self.lives += 1
        self._unread, self.is_ready, self.is_hung_up, self.reason = b"", False, False, ""
        self.doing, self.steps, self._silent_seconds, self._passed_seconds = "", 0, None, 0.0
        self._silence_allowed, self._waited_seconds = self.silence_seconds_max, 0.0
        self._is_starting = self.works_at_its_start
        if self._is_starting:
            self._silent_seconds, self._silence_allowed = 0.0, math.inf
        self._stage_path, self.stood_still = None, False
        self._ends_of_silence = iter(ENDS_OF_SILENCE)

    def _get_process(self) -> None:
        if (spare := self.spare) is None or not self._take(spare):
            self._spawn()
            if self._make_place is not None:
                self._give_place(self._make_place)

    def _give_up(self) -> None:
        self.send(signal.SIGKILL)
        self._popen.wait()  # type: ignore[union-attr]
        self._close()

    def _spawn(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            status_read, status_write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError:
            ours.close()
            theirs.close()
            raise
        popen: subprocess.Popen[bytes] | None = None
        try:
            start, descriptors = self._make_start(self, status_write)
            ours.send(_encoded(start))
            popen = subprocess.Popen(
                [*_BEGIN, self._module, str(theirs.fileno()), self.name],
                stdin=subprocess.DEVNULL,
                env=self._environment,
                pass_fds=(theirs.fileno(), status_write, self.counters_fd, *self._held, *descriptors),
                process_group=0,  # Ctrl-C in a terminal is for the supervisor alone
            )
            self.pidfd = os.pidfd_open(popen.pid)
        except BaseException:
            ours.close()
            os.close(status_read)
            if popen is not None:  # nobody could watch it
                popen.kill()
                popen.wait()
            raise
        finally:
            os.close(status_write)
            theirs.close()
        self._popen, self.status_fd, self._messages = popen, status_read, ours

    def _give_place(self, make_place: MakeStart) -> bool:
        """Send the second message. False when the process is gone already."""
        start, descriptors = make_place(self, self.status_fd)
        numbers = [self.counters_fd, *descriptors]
        message = msgspec.msgpack.encode([numbers, msgspec.Raw(_encoded(start))])
        assert self._messages is not None
        try:
            for first in range(0, len(numbers), process.DESCRIPTORS_MAX):
                some = numbers[first : first + process.DESCRIPTORS_MAX]
                socket.send_fds(self._messages, [message if first == 0 else _MORE], some)
        except OSError:
            return False
        return True

    def _take(self, spare: "Child") -> bool:
        """Have the process of the spare child as this one's. False when it had just ended."""
        taken = spare._popen, spare.pidfd, spare.status_fd, spare._messages
        spare._popen, spare.pidfd, spare.status_fd, spare._messages = None, -1, -1, None
        self._popen, self.pidfd, self.status_fd, self._messages = taken
        assert self._make_place is not None
        if self._give_place(self._make_place):
            return True
        self._give_up()
        return False

    def _close(self) -> None:
        """Give back what a process had that is gone."""
        os.close(self.pidfd)
        os.close(self.status_fd)
        if self._messages is not None:
            self._messages.close()
        self._popen, self.pidfd, self.status_fd, self._messages = None, -1, -1, None

    def read_status(self) -> list[bytes]:
        """The lines that came since the last call. Notes readiness and the reason of a failure itself.

        Users' code has the pipe, too: a line may be anything.
        """
        try:
            read = os.read(self.status_fd, _STATUS_BYTES_MAX)
        except BlockingIOError:
            return []
        self.is_hung_up = not read
        *lines, rest = (self._unread + read).split(b"\n")
        self._unread = rest[-_LINE_BYTES_MAX:]
        for line in lines:
            if line == process.READY or (line == process.WAITING and self._make_place is None):
                self.is_ready = True
            elif line.startswith(process.BEAT):
                if self._is_starting:
                    self._is_starting, self._silence_allowed = False, self.silence_seconds_max
                self._silent_seconds = self._passed_seconds = 0.0
                thread = line.removeprefix(process.BEAT).strip()
                is_number = thread.isdigit() and len(thread) <= _THREAD_DIGITS_MAX
                self._signs_from = int(thread) if is_number else 0
            elif line.startswith(process.STAGE):
                self._stage_path = os.fsdecode(line.removeprefix(process.STAGE))
            elif line.startswith(process.DOING):
                self.doing = _words(line, process.DOING)
                self.steps += 1
            elif line.startswith(process.FAILED):
                self.reason = _words(line, process.FAILED)
        return lines

    def end_if_silent(self, seconds: float, elapsed_seconds: float | None = None) -> str:
        """Count a look of a watcher who looks so often. Why the process is ended; empty if it is not.

        `elapsed_seconds` have gone by since the last look, if that is not as usual.
        What it waited for a processor or waits for a disk is not its silence; for one that may keep others
        waiting as long as it likes that has an end (`model.overdue`), unless who gives the signs would.
        """
        if self._silent_seconds is None:
            return ""
        waited_seconds, on_disk = process.waits_of(self.pid)
        waited, self._waited_seconds = waited_seconds - self._waited_seconds, waited_seconds
        elapsed = seconds if elapsed_seconds is None else elapsed_seconds
        has_no_turn = self._has_no_turn() or on_disk
        own, passed = (0.0, 0.0) if has_no_turn else counted(seconds, elapsed, waited)
        self._silent_seconds, self._passed_seconds = self._silent_seconds + own, self._passed_seconds + passed
        still_seconds, others_wait = self._still_seconds(seconds), self.keeps_others_waiting
        if not still_seconds and not is_over(
            self._silent_seconds, self._passed_seconds, self._silence_allowed, somebody_waits=others_wait
        ):
            return ""
        self._silence_allowed += process.BEAT_SECONDS
        end = next(self._ends_of_silence, None)
        if end is not None:
            self.send(end)
        if end is not ENDS_OF_SILENCE[0]:
            return ""
        self._counters.add(_SILENCES)
        self.stood_still = still_seconds > 0
        if self.stood_still:
            return f"stood still for {still_seconds:g} s"
        return f"gave no sign of life for {self.silence_seconds_max:g} s"

    def _has_no_turn(self) -> bool:
        """Whether the thread that gives the signs may run, and has not since the last look.

        Who waits for the interpreter's lock tries for it hundreds of times a second, and so runs.
        """
        before = self._sign_ran_ns
        self._sign_ran_ns, may_run = process.run_of(self.pid, self._signs_from)
        return may_run and self._sign_ran_ns == before

    def _still_seconds(self, seconds: float) -> float:
        """For how long it has stood still, if that is too long; else 0.

        Counted from the second sign on that did not come of who gives them as often as control; from the
        first one on where no code of users can be what it waits in; in a start that only works at once.
        """
        after, allowed = process.STILL_AFTER_SECONDS, self.still_seconds_max
        silent = self._silent_seconds or 0.0
        if self._is_starting:
            after, allowed = 0.0, max(START_STILL_SECONDS, self.still_seconds_max)
        elif self.idle_still_seconds_max < math.inf and silent >= IDLE_AFTER_SECONDS and self._is_idle():
            after, allowed = IDLE_AFTER_SECONDS, self.idle_still_seconds_max
        if allowed == math.inf or silent < after:
            self._stillness.over()
            return 0.0
        still_ms = self._stillness.look(work_of(self.pid), 1000 * seconds)
        return allowed if still_ms >= 1000 * allowed else 0.0

    def goes_on_standing(self, seconds: float) -> bool:
        """Whether one that was told to end has not run since: it will not say where it stands."""
        return self._stillness.look(work_of(self.pid), 1000 * seconds) > 0

    def _is_idle(self) -> bool:
        """Whether it runs no code of users, as far as it has said where to look."""
        if self._stage_path is None:
            return False
        try:
            stage = os.open(self._stage_path, _STAGE_FLAGS)
        except (OSError, ValueError):
            return False
        try:
            return os.read(stage, STAGE_WORD_BYTES) == bytes(STAGE_WORD_BYTES)
        except OSError:
            return False
        finally:
            os.close(stage)

    def continue_if_stopped(self) -> int:
        """SIGCONT for a process that somebody has stopped. How often that was needed, when a line is due."""
        try:
            if self._popen is None or os.waitid(os.P_PIDFD, self.pidfd, os.WSTOPPED | os.WNOHANG) is None:
                return 0
        except ChildProcessError:  # it has ended, and waits to be buried
            return 0
        self.send(signal.SIGCONT)
        self._counters.add(_STOPS)
        return self._stops.happened()

    def send(self, number: signal.Signals) -> None:
        if self._popen is not None:
            signal.pidfd_send_signal(self.pidfd, number)

    @property
    def can_be_buried(self) -> bool:
        """Whether `bury` returns at once: what a debugger still looks at cannot be reaped by anybody else."""
        return os.waitid(os.P_PIDFD, self.pidfd, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def bury(self) -> str:
        """Reap a process that has ended; returns the words for how it ended.

        `read_status` first: what it still said is lost with the pipe.
        """
        assert self._popen is not None
        with suppress(
            ProcessLookupError
        ):  # what it forked ends with it; its number is nobody else's until `wait`
            os.killpg(self._popen.pid, signal.SIGKILL)
        code = self._popen.wait()
        if self.life is not None:
            self.life.ends()
        self.ended_itself = code > 0 or -code in FAULTS
        self._ends.append(int(time.time()))
        if len(self._ends) == ENDS_MAX:
            self._counters.set(_UNSTABLE, self._ends[0])
        self._close()
        self.is_ready = False
        if self.reason:
            return self.reason
        return f"ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit status {code}"

    def next_delay_seconds(self) -> float:
        """How long to wait before the next life: not at all after a long one, twice as long after each
        short one, up to a limit.
        """
        if self._now() - self._started_at >= STABLE_SECONDS:
            self._started_at = self._now()  # once: a life that cannot begin is no long one
            self._backoff_seconds = BACKOFF_FIRST_SECONDS
            return 0.0
        delay = self._backoff_seconds
        self._backoff_seconds = min(2 * delay, BACKOFF_MAX_SECONDS)
        return delay


def _words(line: bytes, kind: bytes) -> str:
    return line.removeprefix(kind)[: process.REASON_OCTETS_MAX].decode("utf-8", "replace")


def _plain(value: Any) -> Any:
    """A setting as a message carries it."""
    if type(value) is tuple:
        return tuple(map(_plain, value))
    return str(value) if isinstance(value, _TEXTS) else value


def _encoded(start: Start) -> bytes:
    message = msgspec.msgpack.encode(start)
    assert len(message) <= process.START_BYTES_MAX
    return message
