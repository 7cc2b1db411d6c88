"""The log on a terminal is for people; in a pipe and in a file it is JSON."""

import json
import logging
import os
import pty

import pytest

from edgestead.model import log_text
from edgestead.rest.request_line import FORMS, ConnectionLine, RequestLine
from edgestead.server.log import _JsonFormatter, _TextFormatter, form_of

NOON_US = 1_772_366_400_000_000


def request(path="/client/v4/zones", **more):
    known = {"status": 200, "bytes": 2, "duration_us": 3_140} | more
    return RequestLine("request", NOON_US, "id", "POST", path, **known)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (request(), "api        POST /client/v4/zones 200 3.1 ms"),
        (request(status=400, errors=(1004, 9005)), "POST /client/v4/zones 400 [1004, 9005] 3.1 ms"),
        (request(status=0), "POST /client/v4/zones the client left 3.1 ms"),
        (
            request(status=500, fault="Traceback\n  here\n"),
            "error: POST /client/v4/zones 500 3.1 ms\n    Trace",
        ),
        (
            ConnectionLine("refused", NOON_US, "id", "192.0.2.7", "a head too long"),
            "warning: 192.0.2.7: a head",
        ),
    ],
)
def test_a_request_is_a_line_that_people_read(line, words):
    text = FORMS["text"](line).decode()

    assert words in text
    assert text.endswith("\n")
    assert not text.startswith("{")


def test_what_a_client_sent_cannot_steer_the_terminal():
    text = log_text.line(
        NOON_US, "edge", "info", "GET /\x1b[2J\r\n12:00:00 control hello \x9b31m\u202e"
    ).decode()

    assert text.count("\n") == 1
    assert "\\x1b[2J\\r\\n12:00" in text
    assert "\\x9b31m\\u202e" in text


STEERING = "\x00\x1b[2J\x7f\x85\x9b31m\u200f\u202e\u2066\u2028\ufeff\U000e0001"


@pytest.mark.parametrize("form", FORMS)
def test_no_line_of_a_request_steers_a_terminal(form):
    line = FORMS[form](request(path=f"/{STEERING}/größe/\U0001f600")).decode()

    assert line.removesuffix("\n").isprintable()
    assert "größe/\U0001f600" in line


@pytest.mark.parametrize("formatter", [_JsonFormatter, _TextFormatter])
def test_no_message_steers_a_terminal(formatter):
    record = logging.LogRecord("room", logging.WARNING, "file", 1, f"\u00e9 {STEERING}", (), None)

    line = formatter("edge").format(record)

    assert line.replace("\x1b[33m", "").replace("\x1b[0m", "").isprintable()
    if formatter is _JsonFormatter:
        assert json.loads(line)["message"] == f"\u00e9 {STEERING}"


def test_text_is_for_terminals_alone(tmp_path):
    leader, follower = pty.openpty()
    with os.fdopen(leader, "rb"), os.fdopen(follower, "w") as terminal, (tmp_path / "x").open("w") as file:
        assert form_of(terminal, None) == "text"
        assert form_of(terminal, tmp_path / "log") == "json"
        assert form_of(file, None) == form_of(None, None) == "json"


@pytest.mark.parametrize(
    ("flags", "has", "has_not"),
    [
        (("--log-form", "text"), [b"api        POST /client/v4/zones 200"], [b'{"time_us"', b"warm start"]),
        (("--log-level", "error"), [b"API  http"], [b"/client/v4/zones", b'"level":"info"']),
        (("--quiet",), [], [b"API  http", b"/client/v4/zones", b'"level":"info"']),
    ],
)
def test_the_flags_choose_what_is_printed(new_server, flags, has, has_not):
    server = new_server(*flags).start()
    server.make_zone("example.com")
    assert server.stop() == 0

    printed = server.log.encode()
    assert [one for one in has if one not in printed] == []
    assert [one for one in has_not if one in printed] == []
