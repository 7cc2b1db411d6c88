"""The first and the last things that every child does.

Owns  reading the start message, tying the child's life to its parent's, reporting back, the collector's rest;
      what the kernel knows of a process.
Not   what the child is for.
"""

import ctypes
import faulthandler
import gc
import mmap
import os
import select
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from edgestead.model.counters import PAGE_BYTES, Page
from edgestead.server import log
from edgestead.server.messages import Start

START_BYTES_MAX = 1 << 16  # fits in a socket's buffer: the supervisor never waits for a child to read
DESCRIPTORS_MAX = 250  # that come with one message: Linux takes 253 (SCM_MAX_FD)
READY = b"ready"
WAITING = b"waiting"
CREDENTIALS = b"credentials"
APART = b"apart"
FAILED = b"failed "
BEAT = b"beat"
STAGE = b"stage "
DOING = b"doing "
DOING_SECONDS = 1.0  # between two lines about steps of one kind
BEAT_SECONDS = 1.0  # between two signs of life to the supervisor, at most
CONTROL_BEAT_SECONDS = 0.1  # control's: it is missed soonest. One takes 70 µs of two processes
STILL_AFTER_SECONDS = 2 * CONTROL_BEAT_SECONDS  # without a sign of life: from then on stillness counts
LOST = b"lost "
HEALTH = b"health "
REASON_OCTETS_MAX = 500  # fits in one line to the supervisor
_GC_OBJECTS_YOUNG = 20_000  # allocations between collections; Python's own 700 cost a tenth of a small GET

_PR_SET_PDEATHSIG = 1  # <linux/prctl.h>

StartT = TypeVar("StartT", bound=Start)


def boot_ms() -> float:
    """A clock that goes on while the machine sleeps: leases end meanwhile."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) * 1000


class Status:
    """The child's end of the status pipe: one line per event, shorter than PIPE_BUF and so never torn."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._next_doing = 0.0

    def ready(self) -> None:
        """This process answers, with everything applied that it had to apply first."""
        self._tell(READY)

    def waiting(self) -> None:
        """This process has begun, and waits to be given a place."""
        self._tell(WAITING)

    def credentials_changed(self) -> None:
        """`credentials.json` was renewed, or the keys of clearances are others: copies of them are stale."""
        self._tell(CREDENTIALS)

    def class_went_apart(self) -> None:
        """The process of such classes has to run from now on."""
        self._tell(APART)

    def beat(self) -> None:
        """This process goes on. Whoever has said so once says it every BEAT_SECONDS, or is ended.

        A supervisor that does not read for hours misses some.
        """
        with suppress(BlockingIOError):
            self._tell(b"%b %d" % (BEAT, threading.get_native_id()))

    def stage(self, path: str) -> None:
        """The file whose first word is 0 while no code of users runs here (`objects.runtime.stage`)."""
        self._tell(STAGE + os.fsencode(path))

    def doing(self, words: str) -> None:
        """What takes its time before this process is ready, should anybody ask.

        The supervisor gives it time again for each such line, so it has to be progress.
        """
        with suppress(BlockingIOError):
            self._tell(DOING + words.encode("utf-8", "replace").replace(b"\n", b" ")[:REASON_OCTETS_MAX])

    def going_on(self, words: str) -> None:
        """The same from what calls at each of very many steps: one line in DOING_SECONDS, at most."""
        if (now := time.monotonic()) >= self._next_doing:
            self._next_doing = now + DOING_SECONDS
            self.doing(words)

    def loading(self, count: int) -> None:
        self.doing(f"{count:,} documents are loaded")

    def failed(self, reason: str) -> None:
        """Why this process is about to end, for the operator: one line, no secrets."""
        self._tell(FAILED + _one_line(reason))

    def lost(self, reason: str) -> None:
        """Why the whole server has to end: what it serves from is no longer there."""
        self._tell(LOST + _one_line(reason))

    def health(self, line: str) -> None:
        """What is not well, for the service manager's status; empty when everything is."""
        with suppress(BlockingIOError):
            self._tell(HEALTH + _one_line(line))

    def _tell(self, line: bytes) -> None:
        os.write(self._fd, line + b"\n")


def _one_line(reason: str) -> bytes:
    return " ".join(reason.split()).encode("utf-8", "replace")[:REASON_OCTETS_MAX]


def begin(kind: type[StartT]) -> StartT:
    """Read this child's start message and make sure that it dies with its parent."""
    start, messages = begin_waiting(kind)
    messages.close()
    return start


def begin_waiting(kind: type[StartT]) -> tuple[StartT, socket.socket]:
    """The same, and where a second message will come: which place this child takes."""
    die_with_parent()
    messages = socket.socket(fileno=int(sys.argv[1]))
    start = msgspec.msgpack.decode(messages.recv(START_BYTES_MAX), type=kind)
    if os.getppid() != start.supervisor_pid:
        raise SystemExit(1)  # the parent died before the line above had effect
    # The supervisor gets the terminal's signals and decides; it ends its children with SIGTERM.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)  # `stty tostop`: stopped at each line of the log otherwise
    faulthandler.enable()  # what a fault, or the supervisor's SIGABRT, ends says where it stood
    log.configure(start.name, start.log_level, start.log_form)
    return start, messages


def has_place(messages: socket.socket) -> bool:
    """Whether a place was given already, so that somebody waits for it to be taken."""
    return bool(select.select((messages,), (), (), 0)[0])


def take_place(kind: type[StartT], waiting: Start, messages: socket.socket) -> StartT:
    """Wait for a place. Its message names descriptors as the supervisor does; they come with it, and in more
    messages if they are many.

    Whoever looks for the process finds it by its new name in `comm`: its arguments stay what they were.
    """
    message, descriptors = _received(messages)
    numbers, content = msgspec.msgpack.decode(message, type=tuple[list[int], msgspec.Raw])
    while len(descriptors) < len(numbers):
        descriptors += _received(messages)[1]
    messages.close()
    start = msgspec.msgpack.decode(content, type=kind)
    own = dict(zip(numbers, descriptors, strict=True)) | {start.status_fd: waiting.status_fd}
    log.rename(start.name)
    Path("/proc/self/comm").write_text(start.name)
    return start.with_descriptors(own)


def _received(messages: socket.socket) -> tuple[bytes, list[int]]:
    message, descriptors, _, _ = socket.recv_fds(messages, START_BYTES_MAX, DESCRIPTORS_MAX)
    if not message:
        raise SystemExit(0)  # the server ends
    return message, descriptors


def page(fd: int) -> Page:
    """Map a counter page that the supervisor shared."""
    return Page(mmap.mmap(fd, PAGE_BYTES))


def rest_collector() -> None:
    """What lives now lives on: no collection looks at it again. A request leaves no cycles behind."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_GC_OBJECTS_YOUNG)


def waits_of(pid: int) -> tuple[float, bool]:
    """How many seconds a process's first thread has waited for a processor; whether it waits for a disk.

    Where the kernel does not say so: none, and no.
    """
    try:
        waited_ns = int(_read(f"/proc/{pid}/schedstat").split()[1])  # run, waited, turns
        state = _read(f"/proc/{pid}/stat").rpartition(b")")[2].split(maxsplit=1)[0]
    except (OSError, IndexError, ValueError):
        return 0.0, False
    return waited_ns / 1e9, state == b"D"


def run_of(pid: int, thread: int) -> tuple[int, bool]:
    """How many nanoseconds a thread of a process has run; whether it may run now.

    Where the kernel does not say so: none, and no.
    """
    try:
        ran_ns = int(_read(f"/proc/{pid}/task/{thread}/schedstat").split()[0])
        state = _read(f"/proc/{pid}/task/{thread}/stat").rpartition(b")")[2].split(maxsplit=1)[0]
    except (OSError, IndexError, ValueError):
        return 0, False
    return ran_ns, state == b"R"


def _read(path: str) -> bytes:
    """A small file of the kernel. `Path.read_text` takes three times as long, and this is asked often."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(descriptor, mmap.PAGESIZE)
    finally:
        os.close(descriptor)


def looks_for_work(loop: Any) -> Callable[[], bool]:
    """Tells, from any thread, whether a socket of the loop is ready: somebody waits for it to turn.

    The descriptor by which libuv asks the kernel for its events can itself be asked whether there are any.
    """
    ready = select.poll()
    ready.register(loop._get_backend_id(), select.POLLIN)
    return lambda: bool(ready.poll(0))


class Memory:
    """That of this process. Its file stays open: code of users may have taken all other descriptors."""

    def __init__(self) -> None:
        self._statm = os.open("/proc/self/statm", os.O_RDONLY | os.O_CLOEXEC)

    def resident_bytes(self) -> int:
        return int(os.pread(self._statm, mmap.PAGESIZE, 0).split()[1]) * mmap.PAGESIZE


def die_with_parent() -> None:
    """SIGKILL when the parent's thread ends: without a supervisor nobody would ever stop this process."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG)")
