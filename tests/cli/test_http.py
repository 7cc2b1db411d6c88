"""The command line's connection to the API over time."""

import select
import socket
import threading
from contextlib import suppress
from http.client import HTTPConnection, HTTPResponse

import pytest

from edgestead.cli import http
from edgestead.cli.failure import Failed
from edgestead.cli.http import ELSEWHERE, PERHAPS, Api, Refused
from edgestead.cli.source import Source, find_source
from edgestead.server.places import private_place
from edgestead.testing.server import wait_until

RESTART_SECONDS = 20
ALIVE = {socket.TCP_KEEPIDLE: 10, socket.TCP_KEEPINTVL: 5, socket.TCP_KEEPCNT: 3}
UNREADY = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n"
ANSWER = b'HTTP/1.1 200 OK\r\nContent-Length: 28\r\n\r\n{"success":true,"result":""}'


class OneRequestEach:
    """A server that says nothing of it and closes each connection after its first answer."""

    def __init__(self):
        self.methods = []
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.address = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        self._thread = threading.Thread(target=self._serve, args=(2,))
        self._thread.start()

    def _serve(self, connections):
        for _ in range(connections):
            with self._listening.accept()[0] as one:
                head = b""
                while not head.endswith(b"\r\n\r\n"):
                    head += one.recv(65_536)
                self.methods.append(head.split()[0])
                one.sendall(ANSWER)

    def close(self):
        self._thread.join()
        self._listening.close()


def test_a_connection_that_the_server_gave_up_while_it_was_idle_is_not_used_again():
    server = OneRequestEach()
    api = Api(Source("test", server.address, {}, None))

    api.call("GET", "/one")
    select.select([api._connection.sock], [], [], 60)  # its end has arrived
    api.call("PATCH", "/two", repeat=False)

    server.close()
    assert server.methods == [b"GET", b"PATCH"]
    api.close()


def listening(place=("127.0.0.1", 0)):
    return socket.create_server(place)


def api_of(server, **named):
    host, port = server.getsockname()
    return Api(Source("EDGE_API_BASE", f"http://{host}:{port}", {}, None), **named)


def read_head(connection):
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        head += connection.recv(65_536)


@pytest.mark.parametrize("begun", [b"", ANSWER[:-5]])
def test_a_server_that_is_silent_is_asked_once_and_not_called_unreachable(begun):
    """It may be at what takes long, and would begin that anew."""
    asked = []

    def serve():
        with suppress(OSError):
            while True:
                connection = server.accept()[0]
                read_head(connection)
                asked.append(connection)
                connection.sendall(begun)

    with listening() as server, api_of(server, answer_seconds=0.5, sleep=lambda seconds: None) as api:
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        with pytest.raises(Failed, match=r"did not answer within 0\.5 s. It may still be at it") as failed:
            api.call("POST", "/verify")
        wait_until(lambda: asked, 60)
        server.shutdown(socket.SHUT_RDWR)
        thread.join()

    assert len(asked) == 1
    assert "reached" not in failed.value.message
    asked[0].close()


def test_a_read_for_which_no_command_waits_longer_is_asked_again_after_silence(monkeypatch):
    monkeypatch.setattr(http, "SECONDS_MAX", 0.5)
    pauses = []

    with listening() as server, api_of(server, answer_seconds=0.5, sleep=pauses.append) as api:
        with pytest.raises(Failed, match=r"did not answer within 0\.5 s"):
            api.call("GET", "/zones")
        with pytest.raises(Failed, match=r"did not answer within 0\.5 s"):
            api.call("PUT", "/zones", json_body={})

    assert len(pauses) == http.ATTEMPTS_MAX - 1


@pytest.mark.parametrize("error", [OSError(113, "No route to host"), TimeoutError(110, "timed out")])
def test_a_machine_that_is_gone_is_no_silent_server(monkeypatch, error):
    """As the system says it of a connection whose other end it asks whether it lives."""

    def gone(connection):
        alive = {name: connection.sock.getsockopt(socket.IPPROTO_TCP, name) for name in ALIVE}
        alive[socket.SO_KEEPALIVE] = connection.sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        seen.append(alive)
        raise error

    seen = []
    monkeypatch.setattr(HTTPConnection, "getresponse", gone)

    with listening() as server, api_of(server, answer_seconds=3_600) as api:
        with pytest.raises(Failed, match="cannot be reached") as failed:
            api.call("POST", "/verify", repeat=False)

    assert failed.value.message.endswith(PERHAPS)
    assert seen == [ALIVE | {socket.SO_KEEPALIVE: 1}]


def test_a_machine_that_goes_in_the_midst_of_an_answer_is_no_silent_server(monkeypatch):
    def gone(answer, length):
        raise TimeoutError(110, "Connection timed out")

    def serve():
        with server.accept()[0] as connection:
            read_head(connection)
            connection.sendall(ANSWER)

    monkeypatch.setattr(HTTPResponse, "read", gone)

    with listening() as server, api_of(server) as api:
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        with pytest.raises(Failed, match="cannot be reached: Connection timed out"):
            api.call("GET", "/one")
        thread.join()


def test_what_is_lost_while_a_connection_is_made_was_not_sent(monkeypatch):
    def reset(connection):
        raise ConnectionResetError(104, "Connection reset by peer")

    monkeypatch.setattr(HTTPConnection, "connect", reset)

    with listening() as server, api_of(server) as api, pytest.raises(Failed, match="be reached") as failed:
        api.call("POST", "/zones", json_body={}, repeat=False)

    assert PERHAPS not in failed.value.message


@pytest.mark.parametrize("repeat", [True, False])
def test_a_server_that_starts_again_meanwhile_is_waited_for(repeat):
    threads, pauses = [], []

    def serve(server, *answers):
        with server:
            for answer in answers:
                with server.accept()[0] as connection:
                    read_head(connection)
                    connection.sendall(answer)

    def start(server, *answers):
        threads.append(threading.Thread(target=serve, args=(server, *answers), daemon=True))
        threads[-1].start()

    def sleep(seconds):
        pauses.append(seconds)
        if sum(pauses) > RESTART_SECONDS and len(threads) == 1:
            start(listening(place), *([UNREADY] * repeat), ANSWER)

    place = private_place()  # which nobody takes while nobody listens there
    server = listening(place)
    with api_of(server, sleep=sleep) as api:
        start(server, ANSWER)
        api.call("GET", "/one")
        threads[0].join()
        select.select([api._connection.sock], [], [], 60)  # its end has arrived

        api.call("PATCH", "/two", repeat=repeat)

    threads[1].join()


def refused(api_base, status, *errors, name="EDGE_API_BASE"):
    return Refused("GET /zones", status, list(errors), "text", Source(name, api_base, {}, None)).message


def error(code, message, *chain):
    return {"code": code, "message": message} | ({"error_chain": list(chain)} if chain else {})


def test_an_address_without_the_base_path_is_named_as_the_cause():
    no_route = error(7003, "Could not route to /zones, perhaps your object identifier is invalid?")

    told = refused("http://127.0.0.1:8787", 404, no_route)

    assert "EDGE_API_BASE is http://127.0.0.1:8787: the paths of this API begin at /client/v4." in told
    assert "begin at" not in refused("http://127.0.0.1:8787/client/v4/", 404, no_route)


def test_a_refusal_says_what_led_to_it_and_where_the_credentials_come_from():
    told = refused(
        "http://127.0.0.1:8787/client/v4",
        400,
        error(6003, "Invalid request headers", error(6111, "Invalid format for Authorization header")),
    )

    assert "Invalid request headers [code: 6003]" in told
    assert "because: Invalid format for Authorization header [code: 6111]" in told
    assert "come from EDGE_API_BASE" in told


@pytest.mark.parametrize(
    ("name", "host", "advice"),
    [
        ("EDGE_API_BASE", "127.0.0.1", "`edgecli serve` starts one"),
        (ELSEWHERE, "127.0.0.1", "Is the address right"),
    ],
)
def test_who_cannot_be_reached_is_told_by_what_may_help(name, host, advice):
    with socket.socket() as closed:
        closed.bind((host, 0))
        port = closed.getsockname()[1]  # held, or somebody else may listen there
        api = Api(Source(name, f"http://{host}:{port}/client/v4", {}, None), sleep=lambda seconds: None)

        with pytest.raises(Failed, match=advice):
            api.call("GET", "/zones")


def test_only_what_works_without_a_server_is_offered_without_one(tmp_path):
    environ = {"EDGE_DATA_DIR": str(tmp_path)}

    with pytest.raises(Failed) as plain:
        find_source(environ)
    with pytest.raises(Failed) as local:
        find_source(environ, "--local does without.")

    assert "--local" not in plain.value.message
    assert local.value.message.endswith("--local does without.")


def test_what_a_server_says_cannot_steer_the_terminal():
    told = refused("http://127.0.0.1:8787/client/v4", 400, error(1, "a\x1b[2Jb", error(2, "\x9b31m")))

    assert "a\\x1b[2Jb [code: 1]" in told
    assert "\\x9b31m" in told
    assert "\x1b" not in told
