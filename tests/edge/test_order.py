"""Requests that come behind one another, at the speed of who is slowest: without sockets."""

import re

import pytest

from edgestead.http1 import limits as http1
from tests.edge.bench import GET, HEAD_200, POST, Bench

ANSWER = HEAD_200 + b"body"
MANY = 3_000
CHUNKS = b"POST / HTTP/1.1\r\nHost: www.example.com\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.fixture
def bench():
    return Bench()


def asked(bench):
    """How many requests the origin got."""
    return bench.server.written.count(b"cdn-loop")


def statuses(bench):
    return [int(status) for status in re.findall(rb"HTTP/1.1 (\d+) ", bench.client.written)]


def test_a_request_waits_until_answers_before_it_are_taken(bench):
    bench.connection.data_received(GET * 2)
    bench.connection.pause_writing()
    bench.origin.data_received(ANSWER)
    assert asked(bench) == 1
    bench.connection.resume_writing()
    assert asked(bench) == 2
    bench.origin.data_received(ANSWER)
    assert statuses(bench) == [200, 200]


def test_a_request_that_comes_while_answers_are_not_taken_waits_too(bench):
    bench.connection.data_received(GET)
    bench.origin.data_received(ANSWER)
    bench.connection.pause_writing()
    bench.connection.data_received(GET)
    assert asked(bench) == 1
    bench.connection.resume_writing()
    assert asked(bench) == 2


def test_an_origin_that_is_found_meanwhile_waits_with_its_answer(bench, monkeypatch):
    def take(target):
        bench.connection.pause_writing()
        return bench.origin

    monkeypatch.setattr(bench.edge.pool, "take", take)
    bench.connection.data_received(GET)
    assert bench.server.is_paused
    bench.connection.resume_writing()
    assert not bench.server.is_paused


def test_of_many_requests_at_once_few_are_read_and_all_are_answered_in_order(bench):
    requests = b"".join(b"GET /%d HTTP/1.1\r\nHost: www.example.com\r\n\r\n" % n for n in range(MANY))
    bench.connection.data_received(requests)
    shortest = len(b"GET / HTTP/1.1\r\nHost: www.example.com\r\n\r\n")
    assert bench.client.is_paused
    for number in range(MANY):
        waiting = len(bench.connection._connection._waiting)
        assert waiting <= http1.REQUESTS_WAITING_MAX + http1.PIECE_BYTES / shortest + 1
        assert bench.server.written.startswith(b"GET /%d HTTP" % number)
        bench.server.written = b""
        bench.origin.data_received(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
    assert statuses(bench) == [200] * MANY
    assert not bench.client.is_paused


def test_a_body_in_large_pieces_is_not_cut_into_small_ones(bench):
    size = 10 * http1.PIECE_BYTES
    bench.connection.data_received(POST.replace(b"5", b"%d" % size))
    writes = []
    bench.server.write = writes.append
    bench.connection.data_received(b"x" * size)
    assert [len(one) for one in writes] == [size]


def test_what_is_here_of_a_request_is_one_write(bench):
    writes = []
    bench.server.write = writes.append
    size = 10 * http1.PIECE_BYTES
    bench.connection.data_received(POST.replace(b"5", b"%d" % size) + b"x" * size)
    assert [one.count(b"x" * size) for one in writes] == [1]


def test_a_waiting_request_whose_body_cannot_be_read_never_begins(bench):
    bench.connection.data_received(GET + CHUNKS + b"5\r\nhel")
    bench.connection.data_received(b"lo\r\nZZ\r\n")
    bench.origin.data_received(ANSWER)
    assert statuses(bench) == [200, 400]
    assert asked(bench) == 1


def test_an_origin_that_answers_before_it_has_read_does_not_stop_the_next_request(bench):
    bench.connection.data_received(POST + b"hello")
    bench.origin.pause_writing()
    assert bench.client.is_paused
    bench.origin.data_received(ANSWER)
    assert not bench.client.is_paused
    assert bench.server.state == "aborted", "who has not read one request is not asked the next one"


@pytest.mark.parametrize("status", [103, 204])
def test_what_has_no_body_says_no_length(bench, status):
    bench.connection.data_received(GET)
    bench.origin.data_received(b"HTTP/1.1 %d Hm\r\ncontent-length: 5\r\nx-a: 1\r\n\r\n" % status)
    assert bench.client.status == status
    assert b"x-a: 1" in bench.client.written
    assert b"content-length" not in bench.client.written


def test_the_refusal_of_a_head_request_has_no_body(bench):
    bench.connection.data_received(b"HEAD / HTTP/1.1\r\nHost: other.example\r\n\r\n")
    assert bench.client.status == 530
    assert bench.client.written.endswith(b"\r\n\r\n")
