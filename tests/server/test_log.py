"""A reader of stderr who stopped reading stops nobody."""

import errno
import json
import logging
import os
import threading

import pytest

from edgestead.rest.log import BatchedLog
from edgestead.rest.request_line import RequestLine
from edgestead.server import log, log_outlet
from edgestead.server.log import WaitingHandler

LINES = 5_000  # of 100 octets: far more than a pipe holds


@pytest.fixture
def pipe():
    """A pipe whose writing threads have ended before its numbers are free for somebody else's files."""
    threads_before = set(threading.enumerate())
    read, write = os.pipe()
    yield read, write
    os.close(read)  # a thread that waits for space in the pipe is refused, and ends
    for thread in set(threading.enumerate()) - threads_before:
        thread.join()
    os.close(write)


def record(text):
    return logging.LogRecord("room", logging.INFO, "file", 1, text, (), None)


def whole(descriptor, lines):
    """So many lines: a thread that is slow writes them one by one, and after the end of its handler."""
    read = b""
    while read.count(b"\n") < lines:
        read += os.read(descriptor, 4096)
    return read


def test_lines_come_out_in_order(pipe):
    read, write = pipe
    handler = WaitingHandler(write)
    for number in range(3):
        handler.emit(record(f"line {number}"))
    handler.close()

    assert whole(read, 3) == b"line 0\nline 1\nline 2\n"


def test_a_full_pipe_keeps_nobody_waiting(pipe):
    handler = WaitingHandler(pipe[1], lines_max=10)

    for _ in range(LINES):
        handler.emit(record("x" * 99))
    handler.close()  # returns, though what waits cannot be written


def test_lines_that_fill_the_queue_at_the_end_come_out_too(pipe, monkeypatch):
    """A thread that is slow, and no reader that is stuck: it has to end by itself, with nothing left."""
    read, write = pipe
    begun, go_on = threading.Event(), threading.Event()

    def slowly(outlet, octets):
        begun.set()
        go_on.wait()
        return os.write(write, octets) > 0

    monkeypatch.setattr(log.LogOutlet, "write", slowly)
    monkeypatch.setattr(log, "END_SECONDS_MAX", 0)
    handler = WaitingHandler(write, lines_max=2)
    handler.emit(record("line 0"))
    begun.wait()
    for number in (1, 2):
        handler.emit(record(f"line {number}"))
    handler.close()
    go_on.set()
    handler._thread.join(300)

    assert not handler._thread.is_alive()
    assert os.read(read, 4096) == b"line 0\nline 1\nline 2\n"


def test_dropped_lines_are_counted_once_somebody_reads_again(pipe):
    read, write = pipe
    handler = WaitingHandler(write, lines_max=10)
    for _ in range(LINES):
        handler.emit(record("x" * 99))

    text = b""
    while b"log_lines_dropped" not in text:
        text += os.read(read, 65_536)
    handler.close()

    counted = next(line for line in text.split(b"\n") if b"log_lines_dropped" in line)
    assert json.loads(counted)["count"] > 0


def test_a_full_pipe_does_not_hold_up_the_end_of_the_request_log(pipe):
    batched = BatchedLog(log_outlet.LogOutlet(pipe[1]).write)
    for _ in range(LINES):
        batched(b"x" * 99)

    batched.close()


def test_a_request_that_is_logged_after_the_last_look_is_written_too(pipe):
    read, write = pipe
    batched = BatchedLog(log_outlet.LogOutlet(write).write)
    look = batched._write

    def the_last_look():
        look()
        if not batched._closed:
            batched("late")
            batched._closed = True

    batched("early")
    batched._write = the_last_look
    batched._thread.join(300)

    assert os.read(read, 4096) == b'"early"\n"late"\n'


class Disk:
    """Stands for `os` where a log is written: a write raises what comes next, if it is an error."""

    def __init__(self, *errors):
        self.errors, self.written = list(errors), b""

    def write(self, descriptor, octets):
        if self.errors and (error := self.errors.pop(0)):
            raise error
        self.written += bytes(octets)
        return len(octets)


FULL = OSError(errno.ENOSPC, "full")


@pytest.fixture
def disk(monkeypatch):
    made = Disk()
    monkeypatch.setattr(log_outlet, "os", made)
    monkeypatch.setattr(log_outlet, "REST_SECONDS", 0)
    return made


def test_a_disk_that_was_full_gets_the_next_lines_and_how_many_are_lost(disk):
    disk.errors = [FULL, FULL]
    handler = WaitingHandler(-1)
    for number in range(4):
        handler.emit(record(f"line {number}"))
    handler.close()
    handler._thread.join(300)

    lines = disk.written.splitlines()
    assert [line for line in lines if line.startswith(b"line")] == [b"line 2", b"line 3"]
    assert [json.loads(line)["count"] for line in lines if b"dropped" in line] == [2]


def test_the_request_log_goes_on_after_a_full_disk(disk):
    disk.errors = [FULL]
    batched = BatchedLog(log_outlet.LogOutlet(-1).write)
    batched(RequestLine("request", 1, "1-EDG", "GET", "/", 200, 0, 0))
    batched.close()
    batched._thread.join(300)

    assert json.loads(disk.written) == {"event": "log_lines_dropped", "count": 1}


@pytest.mark.parametrize("error", [BlockingIOError(errno.EAGAIN, "not now"), None])
def test_who_does_not_read_now_gets_it_later(disk, error):
    disk.errors = [error]

    assert log_outlet.LogOutlet(-1).write(b"line\n")
    assert disk.written == b"line\n"


def test_a_line_that_was_cut_is_a_line_of_its_own(disk, monkeypatch):
    outlet, whole = log_outlet.LogOutlet(-1), disk.write
    monkeypatch.setattr(disk, "write", lambda descriptor, octets: whole(descriptor, octets[:3]))
    disk.errors = [None, FULL]

    assert not outlet.write(b"first line\n")
    assert outlet.write(b"next\n")
    assert disk.written == b"fir\nnext\n"


@pytest.mark.parametrize("number", [errno.EPIPE, errno.EBADF])
def test_without_a_reader_the_log_is_over(disk, number):
    disk.errors = [OSError(number, "over")]

    with pytest.raises(OSError, match="over"):
        log_outlet.LogOutlet(-1).write(b"line\n")
