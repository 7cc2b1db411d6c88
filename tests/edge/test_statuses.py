"""Whatever status an origin says: its answer is one answer, or 520, and never the next one's."""

import pytest

from edgestead.edge import limits
from tests.edge.bench import GET, HEAD_200, Bench

POISON = b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\npoison"
BODIES = {
    "no length": (b"", b""),
    "a length of 0": (b"content-length: 0\r\n", b""),
    "a length": (b"content-length: %d\r\n" % len(POISON), POISON),
    "chunks": (b"transfer-encoding: chunked\r\n", b"%x\r\n%b\r\n0\r\n\r\n" % (len(POISON), POISON)),
    "an upgrade": (b"connection: upgrade\r\nupgrade: websocket\r\n", b""),
}
KNOWN = (100, 102, 103)  # to the parser
INTERIM = (*KNOWN, 104, 199)
FINAL = (200, 206, 299, 302, 404, 500, 599, 600, 999)
NO_STATUS = (0, 1, 99)
CASES = [(status, framing) for status in (*NO_STATUS, *INTERIM, 101, *FINAL) for framing in BODIES]


def answered(status, framing, bench=None):
    bench = bench or Bench()
    bench.connection.data_received(GET)
    lines, body = BODIES[framing]
    bench.origin.data_received(b"HTTP/1.1 %03d X\r\n%b\r\n" % (status, lines) + body)
    return bench


def statuses(bench):
    """Of what the client was told."""
    return [int(line[9:12]) for line in bench.client.written.split(b"\r\n") if line.startswith(b"HTTP/1.1 ")]


def is_read(status, framing):
    return status in FINAL or (status in INTERIM and framing in ("no length", "a length of 0", "an upgrade"))


def is_ignored(status, framing):
    return status in KNOWN and framing == "a length"


@pytest.mark.parametrize(
    ("status", "framing"), [case for case in CASES if not is_read(*case) and not is_ignored(*case)]
)
def test_what_is_no_answer_is_520_and_nothing_of_it_reaches_the_client(status, framing):
    bench = answered(status, framing)

    assert statuses(bench) == [520]
    assert b"poison" not in bench.client.written
    assert bench.server.state == "aborted"


@pytest.mark.parametrize(("status", "framing"), [case for case in CASES if is_read(*case) and case[0] < 200])
def test_an_interim_answer_is_passed_on_without_a_body_and_another_one_follows(status, framing):
    bench = answered(status, framing)
    bench.origin.data_received(HEAD_200 + b"last")

    assert statuses(bench) == ([200] if status == 100 else [status, 200])
    assert bench.client.written.endswith(b"\r\n\r\nlast")
    assert bench.client.written.lower().count(b"content-length") == 1


@pytest.mark.parametrize("status", KNOWN)
def test_what_follows_a_head_that_has_no_body_is_the_answer_and_the_only_one(status):
    bench = answered(status, "a length")
    bench.origin.data_received(POISON)

    assert statuses(bench) == ([200] if status == 100 else [status, 200])
    assert bench.client.written.endswith(b"\r\n\r\npoison")
    assert bench.server.state == "aborted"


@pytest.mark.parametrize("status", FINAL)
def test_the_body_of_a_last_answer_stays_its_body(status):
    bench = answered(status, "a length")

    assert statuses(bench)[0] == status
    assert bench.client.written.endswith(b"content-length: 6\r\n\r\npoison")
    assert bench.counted == [status]


def test_interim_answers_have_an_end():
    bench = Bench()
    bench.connection.data_received(GET)
    for _ in range(limits.INTERIM_MAX + 1):
        bench.origin.data_received(b"HTTP/1.1 103 X\r\nlink: </a>\r\n\r\n")

    assert statuses(bench)[-1] == 520


CHUNKS = b"POST / HTTP/1.1\r\nHost: www.example.com\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"


def test_what_is_wrong_with_a_request_is_no_second_answer_to_it():
    bench = Bench()
    bench.connection.data_received(CHUNKS)
    bench.origin.data_received(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\nbegun")
    bench.connection.data_received(b"nonsense\r\n")

    assert statuses(bench) == [200]
    assert bench.client.written.endswith(b"begun")
    assert bench.client.state == bench.server.state == "aborted"


LISTED = [b"content-length", b"close, Content-Length", b"keep-alive\r\nconnection: content-length , x-own"]


@pytest.mark.parametrize("listed", LISTED)
def test_an_origin_that_lists_its_length_in_connection_does_not_take_it_from_the_client(listed):
    bench = Bench()
    bench.connection.data_received(GET)
    bench.origin.data_received(
        b"HTTP/1.1 200 X\r\nconnection: %b\r\nx-own: y\r\ncontent-length: 4\r\n\r\nbody" % listed
    )

    assert b"\r\ncontent-length: 4\r\n" in bench.client.written
    assert (b"x-own" in bench.client.written) == (b"x-own" not in listed)


OTHERS = [b"HTTP/0.9", b"HTTP/2.0", b"HTTP/3.0", b"HTTP/1.2", b"HTTP/1.10", b"RTSP/1.0", b"ICE/1.0", b"ICY"]
OURS = [b"HTTP/1.1", b"HTTP/1.0", b"\r\nHTTP/1.1", b"\r\n\r\nHTTP/1.0"]


def told(bench, line, octets):
    data = line + b" 200 OK\r\ncontent-length: 4\r\n\r\nbody"
    for at in range(0, len(data), octets):
        bench.origin.data_received(data[at : at + octets])


@pytest.mark.parametrize("octets", [1, 2, 5, 1_000])
@pytest.mark.parametrize("line", OTHERS)
def test_another_protocol_or_version_is_no_answer(line, octets):
    bench = Bench()
    bench.connection.data_received(GET)
    told(bench, line, octets)

    assert statuses(bench) == [520]
    assert bench.server.state == "aborted"


@pytest.mark.parametrize("line", [one for one in OTHERS if one.startswith(b"HTTP")])
def test_nor_is_it_behind_an_interim_one(line):
    bench = Bench()
    bench.connection.data_received(GET)
    told(bench, b"HTTP/1.1 100 X\r\n\r\n" + line, 1_000)

    assert statuses(bench) == [520]


@pytest.mark.parametrize("octets", [1, 2, 5, 1_000])
@pytest.mark.parametrize("line", OURS)
def test_both_versions_are_read_however_they_arrive(line, octets):
    bench = Bench()
    for _ in range(2):
        bench.connection.data_received(GET)
        told(bench, line, octets)
        bench.keep_origin()

    assert bench.counted == [200, 200]
    assert bench.client.written.count(b"\r\n\r\nbody") == 2


BEHIND = {
    "nonsense": b"nonsense",
    "the body of a status that has none": b"<html>",
    "an upgrade": b"HTTP/1.1 101 X\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n",
    "too many headers": b"HTTP/1.1 200 X\r\n" + b"a: b\r\n" * (limits.HEADERS_MAX + 1),
    "an answer": POISON,
}


@pytest.mark.parametrize("name", BEHIND)
@pytest.mark.parametrize("head", [b"HTTP/1.1 304 X\r\n\r\n", b"HTTP/1.1 200 X\r\ncontent-length: 0\r\n\r\n"])
def test_an_answer_is_complete_whatever_stands_behind_it(name, head):
    bench = Bench()
    bench.connection.data_received(GET)
    bench.origin.data_received(head + BEHIND[name])

    assert bench.client.state == "open"
    assert BEHIND[name] not in bench.client.written
    assert bench.server.state == "aborted"
