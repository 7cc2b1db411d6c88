"""Nobody holds more of the API than their share: connections, heads, bodies, slowness, requests."""

import contextlib
import gc
import json
import socket

import pytest

from edgestead.http1 import limits
from edgestead.http1.connection import SECONDS, State
from edgestead.http1.connections import Account, Connections
from edgestead.http1.limits import HEAD_BYTES_MAX
from edgestead.model.budgets.networks import network_of
from edgestead.model.budgets.table import CREDENTIALS_QUOTA
from edgestead.model.refusals.request import RateLimited
from edgestead.rest import body
from edgestead.rest.exchange import Exchange
from edgestead.rest.limits import BODY_BYTES_MAX, JSON_DEPTH_MAX
from edgestead.rest.quota import Quota
from edgestead.testing.server import wait_until
from tests.rest.test_framing import GET, POST, Server, read_all, read_answer, read_head
from tests.support.api import BEARER, KEY_PAIR, LocalApi

SECOND_US = 1_000_000
QUOTA_SECONDS = CREDENTIALS_QUOTA.seconds
LETS_GO_SECONDS_MAX = 120


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    made = Server(tmp_path_factory.mktemp("bounds"))
    yield made
    made.close()


@pytest.fixture
def narrow(tmp_path):
    """Three connections in all, two from one address."""
    made = Server(tmp_path, connections=Connections(3, 2))
    yield made
    made.close()


def codes(content):
    envelope = json.loads(content)
    assert (envelope["success"], envelope["result"]) == (False, None)
    return [error["code"] for error in envelope["errors"]]


def logged(server, event):
    return [line for line in map(json.loads, server.api.lines) if line["event"] == event]


# connections


def opened(server, source):
    """A connection that the server has taken: it has answered on it."""
    connection = server.connect(source)
    connection.sendall(GET + b"\r\n")
    assert read_answer(connection)[0] == 200
    return connection


def is_taken(server, source):
    with server.connect(source) as connection:
        connection.sendall(GET + b"\r\n")
        return read_answer(connection)[0] == 200


def test_one_address_has_its_share_of_connections(narrow):
    with opened(narrow, "127.0.0.1"), opened(narrow, "127.0.0.1") as second:
        with narrow.connect("127.0.0.1") as third:
            third.sendall(GET + b"\r\n")
            status, headers, content = read_answer(third)
            assert third.recv(1) == b""
        assert (status, codes(content)) == (429, [10429])
        assert (headers["retry-after"], headers["connection"]) == ("1", "close")
        assert logged(narrow, "refused")[0]["error"] == 10429

        with opened(narrow, "127.0.0.2"):
            second.close()
            wait_until(lambda: is_taken(narrow, "127.0.0.1"), 180)


def test_all_together_have_their_share_too(narrow):
    with opened(narrow, "127.0.0.1"), opened(narrow, "127.0.0.1"), opened(narrow, "127.0.0.2"):
        with narrow.connect("127.0.0.3") as fourth:
            fourth.sendall(GET + b"\r\n")
            status, headers, content = read_answer(fourth)

        assert (status, codes(content), headers["retry-after"]) == (503, [1505], "1")
    wait_until(lambda: is_taken(narrow, "127.0.0.3"), 180)


def test_those_that_only_wait_for_their_refusal_are_few(narrow, monkeypatch):
    monkeypatch.setattr(limits, "CONNECTIONS_REFUSED_MAX", 1)
    with opened(narrow, "127.0.0.1"), opened(narrow, "127.0.0.1"):
        with narrow.connect("127.0.0.1") as waiting:
            waiting.sendall(b"GET")
            wait_until(lambda: narrow.http1._refused == 1, 180)
            with narrow.connect("127.0.0.1") as too_many:
                assert read_all(too_many) == b""
            waiting.sendall(GET[3:] + b"\r\n")
            assert read_answer(waiting)[0] == 429


SAME = [
    ("192.0.2.1", "::ffff:192.0.2.1"),
    ("2001:db8::1", "2001:db8::ffff:0:0:1"),
    ("fe80::1%eth0", "fe80::2"),
]
DIFFERENT = [("192.0.2.1", "192.0.2.2"), ("2001:db8::1", "2001:db8:0:1::1"), ("", "192.0.2.1")]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_what_one_customer_has_counts_as_one_address(one, other):
    assert network_of(one) == network_of(other)


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_other_addresses_have_counts_of_their_own(one, other):
    assert network_of(one) != network_of(other)


def test_connections_that_left_do_not_count():
    connections = Connections(2, 1)

    first = connections.enter("a")
    assert connections.enter("a").args[0] == 429
    assert isinstance(connections.enter("b"), Account)
    assert connections.enter("c").args[0] == 503
    connections.leave(first)
    assert isinstance(connections.enter("c"), Account)


# heads

FILLING = b"X-Filling: " + b"x" * HEAD_BYTES_MAX + b"\r\n"
MANY = b"".join(b"X-%d: %s\r\n" % (number, b"x" * 1_000) for number in range(100))
TOO_LARGE = {
    "whole, one header": GET + FILLING + b"\r\n",
    "whole, many headers": GET + MANY + b"\r\n",
    "without its end": GET + FILLING,
    "the request line": b"GET /" + b"x" * HEAD_BYTES_MAX + b" HTTP/1.1\r\n",
}


@pytest.mark.parametrize("octets", TOO_LARGE.values(), ids=TOO_LARGE)
def test_a_head_that_is_too_large_is_refused_however_it_arrives(server, octets):
    said = server.exchange(octets)

    assert b"larger than %d bytes" % HEAD_BYTES_MAX in said
    assert said.startswith(b"HTTP/1.1 431")


def test_a_head_that_is_too_large_behind_another_request_is_not_served(server):
    said = server.exchange(GET + b"\r\n" + GET + MANY + b"\r\n")

    assert said.count(b"HTTP/1.1 200") == 1
    assert said.count(b"\r\ncf-ray: ") <= 2


def test_a_head_below_the_limit_is_taken_whole_and_in_pieces(server):
    head = GET + b"X-Filling: " + b"x" * (HEAD_BYTES_MAX - 1_000) + b"\r\n\r\n"
    with server.connect() as connection:
        connection.sendall(head)
        assert read_answer(connection)[0] == 200
        for start in range(0, len(head), 5_000):
            connection.sendall(head[start : start + 5_000])
        assert read_answer(connection)[0] == 200


# bodies


def test_a_body_that_does_not_come_is_refused_and_its_connection_closed(server, monkeypatch):
    monkeypatch.setattr(body, "BODY_SECONDS_MAX", 0.05)

    said = server.exchange(POST + b"Content-Length: 10\r\n\r\n{")

    status, headers = read_head(said)
    assert (status, codes(said.partition(b"\r\n\r\n")[2])) == (400, [1408])
    assert headers["connection"] == "close"


STRANGER = POST.replace(b"Bearer ", b"Bearer x") + b"Content-Length: 10\r\n\r\n{"


def test_the_rest_of_a_body_that_is_answered_already_may_not_come_for_ever(server, monkeypatch):
    monkeypatch.setitem(SECONDS, State.DRAINING, 0.05)
    with server.connect() as connection:
        connection.sendall(STRANGER)
        assert read_answer(connection)[0] == 403
        with contextlib.suppress(OSError):  # it may be closed by now
            connection.sendall(b" ")  # a byte in time keeps no connection
        assert read_all(connection) == b""


def test_the_rest_of_a_body_that_does_come_leaves_the_connection(server):
    with server.connect() as connection:
        connection.sendall(STRANGER)
        assert read_answer(connection)[0] == 403
        connection.sendall(b"         " + GET + b"\r\n")
        assert read_answer(connection)[0] == 200


BODIES = {
    "too large": (b"x" * (BODY_BYTES_MAX + 1), 413, 1413),
    "too deep": (b"[" * (JSON_DEPTH_MAX + 1) + b"]" * (JSON_DEPTH_MAX + 1), 400, 9207),
    "deep beyond all": (b"[" * BODY_BYTES_MAX, 400, 9207),
}


@pytest.mark.parametrize("name", BODIES)
def test_a_body_beyond_its_bounds_is_refused(server, name):
    content, status, code = BODIES[name]
    with server.connect() as connection:
        connection.sendall(POST + b"Content-Length: %d\r\n\r\n" % len(content))
        if status != 413:  # this one is refused by its head
            connection.sendall(content)
        said = read_answer(connection)

    assert (said[0], codes(said[2])) == (status, [code])


# slow readers


def test_a_client_that_does_not_read_is_left(server, monkeypatch):
    monkeypatch.setattr(limits, "STALL_SECONDS_MAX", 0.05)
    page = b"GET /docs HTTP/1.1\r\nHost: a\r\n\r\n"
    with server.connect() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.setblocking(False)
        sending = bytearray()
        wait_until(lambda: _left_reader(server) or _asked_once_more(connection, page, sending), 180)


def _asked_once_more(connection, octets, sending):
    """As far as there is room; the rest goes first next time. False, as waiting goes on."""
    sending += octets if not sending else b""
    with contextlib.suppress(BlockingIOError, ConnectionError):
        del sending[: connection.send(sending)]
    return False


def _left_reader(server):
    return "its client does not read its answers" in [line["reason"] for line in logged(server, "refused")]


# what the log says


def test_a_refusal_is_logged_with_its_reason_and_the_id_that_was_answered(server):
    said = server.exchange(b"nonsense\r\n\r\n")

    line = logged(server, "refused")[-1]
    assert line["request_id"].lower() == read_head(said)[1]["cf-ray"]
    assert (line["client"], line["reason"], line["error"]) == (
        "127.0.0.1",
        "This is not an HTTP/1.1 request that can be served: it cannot be parsed.",
        1400,
    )


# quota


def test_a_user_has_so_many_requests_over_all_credentials(tmp_path):
    api = LocalApi(tmp_path, quota=Quota(3))
    try:
        first = api.get("/user")
        second = api.get("/user", auth=KEY_PAIR)
        unknown, refused = api.get("/no/such/route"), api.get("/zones/" + "0" * 32)
        fourth = api.get("/user")
        live = api.get("/health/live", base="")
    finally:
        api.close()

    assert (first.headers["x-ratelimit-limit"], first.headers["x-ratelimit-remaining"]) == ("3", "2")
    assert first.headers["x-ratelimit-reset"] == "Fri, 02 Jan 2026 03:09:06 GMT"
    assert second.headers["x-ratelimit-remaining"] == "1"
    assert "x-ratelimit-limit" not in unknown.headers  # nobody was asked who they are
    assert (refused.status, refused.headers["x-ratelimit-remaining"]) == (404, "0")
    assert (fourth.status, fourth.codes) == (429, [971])
    assert fourth.headers["retry-after"] == str(QUOTA_SECONDS)
    assert fourth.headers["x-ratelimit-remaining"] == "0"
    assert live.status == 200
    assert "x-ratelimit-limit" not in live.headers


def test_without_a_quota_nothing_is_said_of_one(tmp_path):
    api = LocalApi(tmp_path)
    try:
        assert "x-ratelimit-limit" not in api.get("/user").headers
    finally:
        api.close()


def remaining(quota, actor, now_s):
    """What is left after this request; the seconds to wait, negative, when it is refused."""
    try:
        headers = dict(quota.take(actor, now_s * SECOND_US))
    except RateLimited as refusal:
        return -refusal.facts["seconds"]
    return int(headers[b"x-ratelimit-remaining"])


def test_a_window_begins_with_its_first_request_and_ends_after_five_minutes():
    quota = Quota(2)

    assert [remaining(quota, "a", at) for at in (1_000, 1_299, 1_300, 1_301)] == [1, 0, 1, 0]


def test_one_request_too_many_blocks_for_five_minutes_which_more_do_not_prolong():
    quota = Quota(1)

    found = [remaining(quota, "a", at) for at in (1_000, 1_200, 1_201, 1_499, 1_500)]

    assert found == [0, -300, -299, -1, 0]


def test_users_have_quotas_of_their_own():
    quota = Quota(1)

    assert [remaining(quota, actor, 1_000) for actor in ("a", "b", "a", "b")] == [0, 0, -300, -300]


# name: (method, path, body, credentials, status)
REFUSED = {
    "no route": ("GET", "/nothing", None, BEARER, 404),
    "another method": ("DELETE", "/zones", None, BEARER, 405),
    "unknown credentials": ("GET", "/zones", None, {"authorization": "Bearer x"}, 400),
    "no JSON": ("POST", "/zones", b"{", BEARER, 400),
    "no zone": ("GET", f"/zones/{'a' * 32}", None, BEARER, 404),
    "no zone for a write": ("PATCH", f"/zones/{'a' * 32}", {"paused": True}, BEARER, 404),
    "no name of a zone": ("POST", "/zones", {"name": "-"}, BEARER, 400),
    "a fault": ("GET", "/user", None, BEARER, 500),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_refused_request_holds_nothing_once_it_is_answered(api, monkeypatch, name):
    """Neither its body nor the file of one: a collection that finds cycles may be minutes away."""

    def fail(*_):
        raise RuntimeError("the disk is upside down")

    monkeypatch.setattr("edgestead.usecases.account.accounts.user", fail)
    method, path, sent, credentials, status = REFUSED[name]
    gc.collect()
    gc.disable()
    try:
        answer = api.call(method, path, sent, auth=credentials)
        # A thread that wrote lets go of it some time after the answer; a cycle does not without a collection.
        wait_until(
            lambda: not any(isinstance(one, Exchange) for one in gc.get_objects()), LETS_GO_SECONDS_MAX
        )
    finally:
        gc.enable()

    assert answer.status == status
