"""What a client's connection takes, refuses, holds back and lets go: byte for byte, without sockets."""

import gc
from types import SimpleNamespace

import pytest

from edgestead.edge import limits
from edgestead.edge.http.client import ClientConnection, _expects_continue, _wants_websocket
from edgestead.edge.http.hello import Hello
from edgestead.edge.http.requests import tls_facts
from edgestead.http1 import connection
from edgestead.http1 import limits as http1
from tests.edge.bench import GET, HEAD_200, POST, Bench, Transport

ANSWER = HEAD_200 + b"body"
UPGRADE = GET[:-2] + b"Connection: upgrade\r\nUpgrade: websocket\r\n"
CHUNKED = b"POST / HTTP/1.1\r\nHost: www.example.com\r\nTransfer-Encoding: chunked\r\n\r\n"
SWITCHED = b"HTTP/1.1 101 Hi\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n"


@pytest.fixture
def bench():
    return Bench()


def heads_with(count):
    return GET[:-2] + b"".join(b"a: b\r\n" for _ in range(count - 1)) + b"\r\n"


def head_of(octets):
    """A request whose head has so many octets, all told."""
    return GET[:-2] + b"a: " + b"x" * (octets - len(GET) - 5) + b"\r\n\r\n"


REFUSED = {
    "CONNECT": (b"CONNECT www.example.com:443 HTTP/1.1\r\nHost: www.example.com\r\n\r\n", 501, "no proxy"),
    "TRACE": (GET.replace(b"GET", b"TRACE"), 501, "TRACE is not passed on"),
    "a method of one's own": (GET.replace(b"GET", b"BREW"), 501, "its method is not one"),
    "another version": (GET.replace(b"HTTP/1.1", b"HTTP/0.9"), 505, "only HTTP/1.1 and HTTP/1.0"),
    "another host": (GET.replace(b"www.", b"other."), 530, "not one that is proxied"),
    "too many headers": (heads_with(limits.HEADERS_MAX + 1), 431, f"more than {limits.HEADERS_MAX} headers"),
    "too large a head": (head_of(limits.HEAD_BYTES_MAX * 2), 431, "its head is larger"),
    "a head without end": (GET[:-2] + b"a: " + b"x" * limits.HEAD_BYTES_MAX, 431, "its head is larger"),
    "too many trailers": (
        CHUNKED + b"0\r\n" + b"a: b\r\n" * (limits.HEADERS_MAX + 1) + b"\r\n",
        431,
        f"more than {limits.HEADERS_MAX} trailers",
    ),
    "no HTTP": (b"nonsense\r\n\r\n", 400, "cannot be parsed"),
}


@pytest.mark.parametrize(("said", "status", "reason"), REFUSED.values(), ids=REFUSED)
def test_what_is_not_taken_is_refused_with_its_reason(bench, said, status, reason):
    bench.connection.data_received(said)

    assert bench.client.status == status
    assert reason.encode() in bench.client.written
    assert b"\r\nconnection: close\r\n" in bench.client.written.lower()
    assert bench.counted == [status]


def test_a_refusal_is_told_with_what_could_be_read(bench):
    told = []
    bench.edge.tools.observer.refused = lambda *facts: told.append(facts)

    bench.connection.data_received(b"GET /p HTTP/1.1\r\nX: y\r\nHost: other.example.com\r\n\r\n")

    peer, ray, status, reason, method, host, target = told[0]
    assert (peer, status, method, host, target) == ("192.0.2.9", 530, b"GET", b"other.example.com", b"/p")
    assert len(ray) == 16
    assert reason == "the host is not one that is proxied here"


def test_a_refused_head_gets_no_page(bench):
    bench.connection.data_received(b"HEAD / HTTP/1.1\r\nHost: other.example.com\r\n\r\n")

    assert bench.client.status == 530
    assert bench.client.written.endswith(b"\r\n\r\n")


TAKEN = {
    "as many headers as may be": heads_with(limits.HEADERS_MAX),
    "as large a head as may be": head_of(limits.HEAD_BYTES_MAX),
    "the version before": GET.replace(b"HTTP/1.1", b"HTTP/1.0"),
}


@pytest.mark.parametrize("said", TAKEN.values(), ids=TAKEN)
def test_what_is_just_within_the_limits_is_passed_on(bench, said):
    bench.connection.data_received(said)

    assert bench.server.written.startswith(b"GET / HTTP/1.1\r\n")
    assert bench.client.status is None


def test_as_many_trailers_as_headers_are_dropped_and_the_request_goes_on(bench):
    bench.connection.data_received(CHUNKED + b"0\r\n" + b"secret: b\r\n" * limits.HEADERS_MAX + b"\r\n")
    bench.origin.data_received(ANSWER)

    assert bench.client.status == 200
    assert b"secret" not in bench.server.written


def test_an_octet_at_a_time_is_the_same_request(bench):
    for octet in POST + b"hello":
        bench.connection.data_received(bytes((octet,)))

    assert bench.server.written.startswith(b"POST / HTTP/1.1\r\n")
    assert bench.server.written.endswith(b"hello")


@pytest.mark.parametrize(
    ("asked", "state"),
    [
        (GET, "open"),
        (GET[:-2] + b"Connection: close\r\n\r\n", "closed"),
        (GET.replace(b"/1.1", b"/1.0"), "closed"),
        (GET.replace(b"/1.1", b"/1.0")[:-2] + b"Connection: keep-alive\r\n\r\n", "open"),
    ],
    ids=["1.1", "close", "1.0", "1.0 keep-alive"],
)
def test_a_connection_is_kept_as_its_client_asks(bench, asked, state):
    bench.connection.data_received(asked)
    bench.origin.data_received(ANSWER)

    assert bench.client.status == 200
    assert bench.client.state == state


def test_requests_of_one_read_are_answered_in_order_one_at_a_time(bench):
    bench.connection.data_received(GET + GET.replace(b"GET /", b"GET /second"))
    assert b"/second" not in bench.server.written

    bench.origin.data_received(ANSWER)
    assert bench.client.written.count(b"HTTP/1.1 200") == 1
    assert b"GET /second HTTP/1.1" in bench.server.written

    bench.origin.data_received(ANSWER)
    assert bench.client.written.count(b"HTTP/1.1 200") == 2
    assert bench.client.state == "open"


def test_nothing_is_read_behind_too_many_requests_until_they_are_answered(bench):
    many = http1.REQUESTS_WAITING_MAX + 2
    bench.connection.data_received(GET * many)
    assert bench.client.is_paused

    for _ in range(many):
        bench.origin.data_received(ANSWER)
    assert bench.client.written.count(b"HTTP/1.1 200") == many
    assert not bench.client.is_paused


def test_as_many_requests_as_may_wait_do_not_stop_the_reading(bench):
    bench.connection.data_received(GET * (http1.REQUESTS_WAITING_MAX + 1))

    assert not bench.client.is_paused


def test_a_large_read_of_small_requests_is_held_in_part_and_none_is_lost(bench, monkeypatch):
    monkeypatch.setattr(connection, "PIECE_BYTES", 2 * len(GET) + 1)
    many = 3 * (http1.REQUESTS_WAITING_MAX + 4)
    bench.connection.data_received(GET * many)
    assert len(bench.connection._connection._waiting) < many - 1
    assert bench.client.is_paused

    for _ in range(many):
        bench.origin.data_received(ANSWER)
    assert bench.client.written.count(b"HTTP/1.1 200") == many
    assert not bench.client.is_paused


def test_what_cannot_be_read_behind_a_request_is_refused_after_its_answer(bench):
    bench.connection.data_received(GET)
    bench.connection.data_received(b"nonsense\r\n\r\n")
    bench.connection.data_received(GET)
    assert bench.client.status is None

    bench.origin.data_received(ANSWER)
    assert bench.client.written.count(b"HTTP/1.1 ") == 2
    assert b"HTTP/1.1 400" in bench.client.written
    assert bench.counted == [200, 400]


def test_a_body_that_cannot_be_read_refuses_its_own_request(bench):
    bench.connection.data_received(CHUNKED + b"5\r\nhello\r\n")
    bench.connection.data_received(b"zz\r\n")

    assert bench.client.status == 400
    assert bench.server.state == "aborted"


def test_a_waiting_body_that_cannot_be_read_leaves_the_request_before_it_alone(bench):
    bench.connection.data_received(GET + CHUNKED + b"zz\r\n")
    bench.origin.data_received(ANSWER)

    assert bench.client.written.startswith(b"HTTP/1.1 200")
    assert bench.client.written.count(b"HTTP/1.1 ") == 2
    assert b"HTTP/1.1 400" in bench.client.written


def test_an_origin_that_does_not_keep_up_stops_the_reading(bench):
    bench.connection.data_received(POST.replace(b": 5", b": 10") + b"hello")
    bench.origin.pause_writing()
    assert bench.client.is_paused

    bench.origin.resume_writing()
    assert not bench.client.is_paused


def test_a_stuffed_client_gets_its_next_answer_when_it_has_taken_the_one_before(bench):
    bench.connection.data_received(GET)
    bench.connection.pause_writing()
    bench.origin.data_received(ANSWER)
    bench.connection.data_received(GET)
    assert bench.server.written.count(b"GET / ") == 1

    bench.connection.resume_writing()
    assert bench.server.written.count(b"GET / ") == 2


def test_a_client_that_goes_takes_its_request_with_it(bench):
    bench.connection.data_received(GET)
    bench.connection.connection_lost(None)

    assert bench.server.state == "aborted"
    assert bench.connection not in bench.edge._clients
    bench.connection.write(b"late")
    assert bench.client.written == b""


def test_a_worker_that_ends_closes_who_rests_and_lets_others_finish(bench):
    bench.connection.data_received(GET)
    bench.connection.finish()
    assert bench.client.state == "open"
    bench.origin.data_received(ANSWER)
    assert bench.client.status == 200

    rests = Bench()
    rests.connection.finish()
    assert rests.client.state == "closed"


def test_a_refused_client_may_still_send_as_much_as_is_read_and_no_more(bench):
    bench.connection.data_received(b"nonsense\r\n\r\n")
    bench.connection.data_received(b"x" * http1.LINGER_BYTES_MAX)
    assert bench.client.state == "open"

    bench.connection.data_received(b"x")
    assert bench.client.state == "aborted"


def test_what_is_said_behind_an_upgrade_belongs_to_the_tunnel(bench):
    bench.routes.find(b"www.example.com").takes_websockets = True
    bench.connection.data_received(UPGRADE + b"\r\nearly")
    bench.connection.data_received(b" bird")
    assert b"early" not in bench.server.written

    bench.origin.data_received(SWITCHED)
    assert bench.server.written.endswith(b"early bird")
    bench.connection.data_received(b" sings")
    assert bench.server.written.endswith(b"early bird sings")


def test_what_is_said_behind_a_refused_upgrade_is_the_next_request(bench):
    bench.routes.find(b"www.example.com").takes_websockets = True
    bench.connection.data_received(UPGRADE + b"\r\n" + GET.replace(b"GET /", b"GET /next"))
    bench.origin.data_received(ANSWER)

    assert bench.client.status == 200
    assert b"GET /next HTTP/1.1" in bench.server.written


@pytest.mark.parametrize(
    "framing",
    [b"Content-Length: 5\r\n\r\nhello", b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"],
)
def test_an_upgrade_with_a_body_is_a_request_with_a_body(bench, framing):
    bench.routes.find(b"www.example.com").takes_websockets = True
    asked = UPGRADE.replace(b"GET", b"POST") + framing
    bench.connection.data_received(asked + GET.replace(b"GET /", b"GET /next"))
    assert b"hello" in bench.server.written

    bench.origin.data_received(ANSWER)
    assert bench.client.status == 200
    assert b"GET /next HTTP/1.1" in bench.server.written


def test_without_tunnels_an_upgrade_is_an_ordinary_request(bench):
    bench.connection.data_received(UPGRADE + b"\r\n" + GET.replace(b"GET /", b"GET /next"))
    bench.origin.data_received(ANSWER)

    assert b"GET /next HTTP/1.1" in bench.server.written


def read(**members):
    """A head as `heads.read` gives it, with as much as is asked here."""
    found = {b"upgrade": b"WebSocket", b"expect": b"100-Continue"}
    return SimpleNamespace(**({"connection": {b"upgrade"}, "length": 0, "found": found} | members))


ASKS = (read(), b"GET", "1.1")
NO_WEBSOCKET = {
    "without Connection": (read(connection=set()), b"GET", "1.1"),
    "another method": (read(), b"POST", "1.1"),
    "an old version": (read(), b"GET", "1.0"),
    "with a body": (read(length=5), b"GET", "1.1"),
    "another protocol": (read(found={b"upgrade": b"h2c"}), b"GET", "1.1"),
    "no protocol": (read(found={}), b"GET", "1.1"),
}


@pytest.mark.parametrize("asked", NO_WEBSOCKET.values(), ids=NO_WEBSOCKET)
def test_a_websocket_is_asked_for_in_one_way_only(asked):
    assert _wants_websocket(*ASKS)
    assert not _wants_websocket(*asked)


def test_only_a_client_of_today_is_told_to_continue():
    assert _expects_continue(read(), "1.1")
    assert not _expects_continue(read(), "1.0")
    assert not _expects_continue(read(found={b"expect": b"200-ok"}), "1.1")


class Tls(Transport):
    """The end of a handshake."""

    def __init__(self, version):
        super().__init__()
        self.version = version

    def get_extra_info(self, name, default=None):
        agreed = {"ssl_object": SimpleNamespace(version=lambda: self.version), "cipher": ("AES", 1, 2)}
        return agreed.get(name) or super().get_extra_info(name, default)


HELLO = Hello(server_name=b"www.example.com", message=b"hello")


@pytest.mark.parametrize(
    ("asked", "version", "status"),
    [("1.3", "TLSv1.2", 421), ("1.3", "TLSv1.3", None), ("1.0", "TLSv1.2", None)],
)
def test_a_zone_that_asks_for_tls_1_3_gets_it(bench, asked, version, status):
    bench.routes.find(b"www.example.com").facts.settings["min_tls_version"] = asked
    connection, client = ClientConnection(bench.edge, port=443, hello=HELLO), Tls(version)
    connection.connection_made(client)

    connection.data_received(GET)

    assert client.status == status
    assert (b"asks for TLS 1.3" in client.written) == (status is not None)


def test_facts_of_tls_are_those_that_were_agreed_on():
    facts = tls_facts(Tls("TLSv1.3"), HELLO)

    assert (facts.version, facts.cipher, facts.server_name) == (b"TLSv1.3", b"AES", b"www.example.com")


@pytest.mark.parametrize(("hello", "scheme"), [(None, b"http"), (HELLO, b"https")], ids=["plain", "tls"])
def test_the_origin_hears_how_its_client_came(bench, hello, scheme):
    connection, client = ClientConnection(bench.edge, port=1, hello=hello), Tls("TLSv1.3")
    connection.connection_made(client)

    connection.data_received(GET)

    assert b"\r\nx-forwarded-proto: %b\r\n" % scheme in bench.server.written
    assert b"\r\nx-forwarded-for: 192.0.2.9\r\n" in bench.server.written


@pytest.mark.parametrize("cut", [0, 3, 6, 9, 20], ids=str)
def test_raw_text_in_a_target_is_written_as_it_should_have_been(bench, cut):
    said = GET.replace(b"GET /", "GET /é".encode())
    for part in (said[:cut], said[cut:]):
        if part:
            bench.connection.data_received(part)

    assert bench.server.written.startswith(b"GET /%C3%A9 HTTP/1.1\r\n")


def test_raw_text_in_a_header_stays_as_it_is(bench):
    said = GET[:-2] + "a: é\r\n\r\n".encode()
    bench.connection.data_received(said[:30])
    bench.connection.data_received(said[30:])

    assert "a: é\r\n".encode() in bench.server.written


def test_much_around_small_chunks_is_refused(bench):
    chunk = b"1;" + b"x" * 10_000 + b"\r\na\r\n"
    bench.connection.data_received(CHUNKED)
    for _ in range(100):
        bench.connection.data_received(chunk)
        if bench.client.status is not None:
            break

    assert bench.client.status == 431
    assert b"too much around its chunks" in bench.client.written


def test_a_head_that_came_whole_and_is_too_large_is_refused(bench, monkeypatch):
    monkeypatch.setattr(http1, "PIECE_BYTES", 10 * limits.HEAD_BYTES_MAX)

    bench.connection.data_received(head_of(limits.HEAD_BYTES_MAX + 1_000))

    assert bench.client.status == 431
    assert b"its head is larger" in bench.client.written


STREAMED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n"


@pytest.mark.parametrize(("version", "chunked"), [(b"1.1", True), (b"1.0", False)], ids=["1.1", "1.0"])
def test_only_clients_that_know_chunks_get_them(bench, version, chunked):
    bench.connection.data_received(GET.replace(b"1.1", version))
    bench.origin.data_received(STREAMED)

    assert (b"transfer-encoding: chunked" in bench.client.written) == chunked
    assert b"body" in bench.client.written


def test_a_refusal_speaks_as_its_client_does_and_says_when(bench):
    bench.connection.data_received(b"nonsense\r\n\r\n")

    assert bench.client.written.startswith(b"HTTP/1.1 400 ")


def test_a_large_body_is_no_pile_of_requests(bench, monkeypatch):
    monkeypatch.setattr(connection, "PIECE_BYTES", 100)
    fed = []
    feed = connection.Connection._feed

    def watched(of, data):
        left = feed(of, data)
        fed.append(len(data) - left)
        return left

    monkeypatch.setattr(connection.Connection, "_feed", watched)
    bench.connection.data_received(POST.replace(b": 5", b": 3000"))
    bench.connection.data_received(b"x" * 1_000)
    bench.connection.data_received(b"x" * 2_000 + GET)

    assert fed[:2] == [len(POST) + 3, 1_000]
    assert sum(fed[2:]) == 2_000 + len(GET)
    assert fed[2] <= 100  # what it ends with is behind it in the same read


def test_a_second_head_has_its_own_time(bench):
    bench.connection.data_received(GET)
    bench.origin.data_received(ANSWER)
    bench.wait(http1.IDLE_SECONDS_MAX - 5)
    bench.connection.data_received(GET[:20])
    bench.wait(http1.HEAD_SECONDS_MAX - 3)
    assert bench.client.written.count(b"HTTP/1.1 ") == 1

    bench.wait(6)
    assert b"HTTP/1.1 408" in bench.client.written


def test_a_client_that_is_gone_or_half_closed_is_not_kept_half_open(bench):
    assert not bench.connection.eof_received()


def test_what_is_behind_an_upgrade_in_one_read_stops_the_reading_until_it_is_answered(bench):
    bench.routes.find(b"www.example.com").takes_websockets = True
    bench.connection.data_received(UPGRADE + b"\r\n")
    assert not bench.client.is_paused
    bench.connection.data_received(b"early")
    assert bench.client.is_paused

    bench.origin.data_received(SWITCHED)
    assert not bench.client.is_paused


def test_a_ray_has_sixteen_digits(bench):
    for _ in range(20):
        bench.connection.data_received(GET)
        bench.origin.data_received(ANSWER)

    rays = [line for line in bench.server.written.split(b"\r\n") if line.startswith(b"edge-ray: ")]
    assert {len(ray) for ray in rays} == {len(b"edge-ray: ") + 16}
    assert len(set(rays)) == 20


def test_chunks_that_carry_something_may_have_something_around_them(bench):
    bench.connection.data_received(CHUNKED)
    for _ in range(100):
        bench.connection.data_received(b"400;" + b"x" * 500 + b"\r\n")
        bench.connection.data_received(b"y" * 1_024 + b"\r\n")

    assert bench.client.status is None


def test_an_upgrade_behind_another_request_waits_with_all_that_follows_it(bench):
    bench.routes.find(b"www.example.com").takes_websockets = True
    bench.connection.data_received(GET + UPGRADE + b"\r\nearly")
    assert bench.client.status is None

    bench.origin.data_received(ANSWER)
    bench.origin.data_received(SWITCHED)
    assert bench.server.written.endswith(b"early")


def test_who_has_taken_everything_may_rest_as_long_as_others(bench):
    bench.connection.data_received(GET)
    bench.connection.pause_writing()
    bench.origin.data_received(ANSWER)
    bench.connection.resume_writing()
    bench.wait(http1.IDLE_SECONDS_MAX - 3)
    assert bench.client.state == "open"

    bench.wait(6)
    assert bench.client.state == "closed"


def test_a_client_without_an_address_is_served(bench):
    nameless, client = ClientConnection(bench.edge, port=80), Transport()
    client.get_extra_info = lambda name, default=None: default
    nameless.connection_made(client)
    nameless.data_received(GET)

    assert bench.server.written.startswith(b"GET / HTTP/1.1\r\n")


@pytest.mark.parametrize("said", [b"", GET, CHUNKED + b"5\r\nbe", b"GET / HT", b"nonsense\r\n\r\n"])
def test_a_connection_that_ended_needs_no_collector(bench, said):
    """A collection of what thousands left behind would hold up all others for as long as it takes."""

    def alive():
        return sum(isinstance(one, (ClientConnection, connection.Connection)) for one in gc.get_objects())

    gc.collect()
    gc.disable()
    try:
        before = alive()
        client = ClientConnection(bench.edge, port=80)
        client.connection_made(Transport())
        client.data_received(said)
        bench.origin.data_received(ANSWER if said == GET else b"")
        assert alive() == before + 2
        client.connection_lost(None)
        del client
        assert alive() == before
    finally:
        gc.enable()
