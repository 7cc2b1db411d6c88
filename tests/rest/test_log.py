"""Lines reach their reader in order, and a reader that is stuck stops nobody."""

import json
import os
import threading
from types import SimpleNamespace

from edgestead.rest import log
from edgestead.rest.log import BatchedLog
from edgestead.rest.request_line import RequestLine
from edgestead.server.log_outlet import LogOutlet


def line(number):
    return RequestLine("request", number, f"{number:016x}-EDG", "GET", "/", 200, 0, 0)


def read_all(descriptor):
    with open(descriptor, "rb") as reader:
        return [json.loads(one) for one in reader.read().splitlines()]


def test_lines_are_written_in_order_and_all_of_them_at_the_end():
    reader, writer = os.pipe()
    batched = BatchedLog(LogOutlet(writer).write)
    for number in range(300):
        batched(line(number))
    batched.close()
    batched.close()
    os.close(writer)

    assert [one["time_us"] for one in read_all(reader)] == list(range(300))


def test_what_does_not_fit_is_dropped_and_counted(monkeypatch):
    monkeypatch.setattr(log, "LOG_LINES_WAITING_MAX", 10)
    all_are_there = threading.Event()
    monkeypatch.setattr(log, "time", SimpleNamespace(sleep=lambda _: all_are_there.wait(60)))
    reader, writer = os.pipe()
    batched = BatchedLog(LogOutlet(writer).write)
    for number in range(25):
        batched(line(number))
    all_are_there.set()
    batched.close()
    os.close(writer)

    lines = read_all(reader)
    assert len(lines) == 11
    assert lines[-1] == {"event": "log_lines_dropped", "count": 15}


def test_without_a_reader_lines_go_nowhere_and_nothing_fails():
    reader, writer = os.pipe()
    os.close(reader)
    batched = BatchedLog(LogOutlet(writer).write)
    batched(line(1))
    batched.close()
    batched(line(2))
    os.close(writer)


def test_a_reader_that_is_stuck_does_not_hold_up_the_end(monkeypatch):
    monkeypatch.setattr(log, "_CLOSE_SECONDS_MAX", 0.05)
    reader, writer = os.pipe()
    batched = BatchedLog(LogOutlet(writer).write)
    for number in range(3_000):
        batched(line(number))

    batched.close()  # returns although nobody reads

    os.close(reader)  # lets the thread go
    batched._thread.join()
    os.close(writer)


def test_a_line_says_only_what_there_is():
    assert b"token" not in log.FORMS["json"](line(1))
    assert b"fault" not in log.FORMS["json"](line(1))
