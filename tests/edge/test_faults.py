"""Origins that do not answer: what their clients see, and who is asked instead."""

import json
import socket
import threading
from contextlib import ExitStack, suppress

import pytest

from edgestead.edge import limits
from tests.edge.origin import HTTP_200, headers_of
from tests.edge.talk import connected, in_one_go, read_answer, say
from tests.support.patience import SETTINGS

UNREADABLE = [
    b"nonsense\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
    b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\nab",
    b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nab",
    b"HTTP/1.1 200 OK\r\nBad Name: 1\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nX: " + b"y" * 70_000 + b"\r\n\r\n",
    b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 200 + b"\r\n",
    b"HTTP/1.1 100 Continue\r\n\r\n" * (limits.INTERIM_MAX + 1) + HTTP_200,
    b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n",
]


@pytest.mark.parametrize("answer", UNREADABLE)
def test_an_answer_that_cannot_be_read_is_a_520(site, answer):
    host, origin = site.origin(answer)
    assert site.get(host).status == 520
    origin.answer = HTTP_200
    assert site.get(host).body == b"ok"


def test_an_origin_that_hangs_up_is_a_520(site):
    host, _ = site.origin(lambda head, body, connection: None)
    assert site.get(host).status == 520


def test_nobody_there_is_a_521(site):
    assert site.get(site.name(site.address())).status == 521


def test_an_origin_that_takes_no_connection_is_a_522(site):
    address = site.address()
    with ExitStack() as held:
        held.enter_context(socket.create_server((address, site.first.port), backlog=0))
        for _ in range(4):  # its queue is full: the kernel answers nobody more
            waiting = held.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex((address, site.first.port))
        assert site.get(site.name(address)).status == 522


def test_an_alias_without_addresses_is_a_530(site):
    answer = site.get(site.name(f"nowhere.{site.zone}", type_="CNAME"))
    assert answer.status == 530


FORBIDDEN = ["169.254.169.254", "224.0.0.1", "0.0.0.0", "255.255.255.255", "ff02::1", "fe80::1"]


@pytest.mark.parametrize("address", FORBIDDEN)
def test_some_addresses_are_never_asked(site, address):
    host = f"f{FORBIDDEN.index(address)}.{site.zone}"
    type_ = "AAAA" if ":" in address else "A"
    if site.server.make_record(site.zone_id, type_, host, address, proxied=True).status != 200:
        return  # refused when it was written: better still
    assert site.get(host).status == 523


def test_a_page_is_html_for_browsers_and_json_for_programs(site):
    host = site.name(site.address())
    page = site.get(host, "/", "Accept: text/html,application/json;q=0.5")
    assert page.headers[b"content-type"].startswith(b"text/html")
    assert page.headers[b"cache-control"] == b"no-store"
    assert page.headers[b"edge-ray"] in page.body
    document = json.loads(site.get(host, "/", "Accept: application/json").body)
    assert document["success"] is False
    assert document["errors"][0]["code"] == 521


def test_a_page_shows_nothing_of_the_address(site):
    address = site.address()
    assert address.encode() not in site.get(site.name(address)).body


def test_a_page_for_head_has_no_body(site):
    host = site.name(site.address())
    with connected(site.http) as connection, connection.makefile("rb") as stream:
        for _ in range(2):
            connection.sendall(b"HEAD / HTTP/1.1\r\nHost: %b\r\n\r\n" % host.encode())
            assert read_answer(stream, method="HEAD").status == 521


def test_addresses_take_turns(site):
    _, one = site.origin()
    _, other = site.origin()
    host = site.name(one.host, other.host)
    for _ in range(4):
        assert site.get(host).status == 200
    assert len(one.requests) == len(other.requests) == 2


def test_an_address_that_does_not_answer_costs_nobody_an_error(site):
    _, alive = site.origin()
    host = site.name(site.address(), alive.host)
    body = b"POST / HTTP/1.1\r\nHost: %b\r\nContent-Length: 2\r\n\r\nhi" % host.encode()
    assert [say(site.http, body).status for _ in range(6)] == [200] * 6
    assert len(alive.requests) == 6


def test_an_alias_to_a_name_of_our_own_is_followed(site):
    proxied, first = site.origin()
    plain = site.name(first.host, proxied=False)
    for target in (proxied, plain):
        before = len(first.requests)
        host = site.name(target, type_="CNAME")
        assert site.get(host).status == 200
        assert headers_of(first.heads[before])[b"host"] == host.encode()


def test_a_request_that_comes_back_is_ended(site):
    _, origin = site.origin()
    host = site.name(origin.host)
    site.get(host)
    token = headers_of(origin.heads[0])[b"cdn-loop"].decode()
    assert token.startswith("edgestead")
    assert site.get(host, "/", f"CDN-Loop: other, {token}").status == 508
    assert site.get(host, "/", "CDN-Loop: other; x=1").status == 200
    assert headers_of(origin.heads[-1])[b"cdn-loop"].decode() == f"other; x=1, {token}"
    assert site.get(host, "/", "CDN-Loop: " + ", ".join("abcdefghijklmnopqr")).status == 508


def test_a_post_is_not_sent_twice(site):
    host, origin = site.origin()
    assert site.get(host).status == 200  # a connection that is kept
    origin.answer = lambda head, body, connection: None
    request = b"POST / HTTP/1.1\r\nHost: %b\r\nContent-Length: 2\r\n\r\nhi" % host.encode()
    assert say(site.http, request).status == 520
    assert len(origin.requests) == 2


def test_a_get_is_sent_again_on_a_new_connection_only(site):
    def scene():
        host, origin = site.origin()
        assert site.get(host).status == 200
        origin.answer = lambda head, body, connection: None
        assert site.get(host).status == 520
        return len(origin.requests)

    assert in_one_go(scene) == 3


def test_a_client_that_leaves_ends_its_request(site):
    gone = threading.Event()

    def waits(head, body, connection):
        connection.settimeout(60)
        with suppress(ConnectionResetError):
            connection.recv(1)
        gone.set()

    host, origin = site.origin(waits)
    with connected(site.http) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: %b\r\n\r\n" % host.encode())
        site.server.wait_until(lambda: origin.requests, 180)
    assert gone.wait(60)


def test_the_setting_says_how_long_an_origin_may_think(site):
    zone_id = site.server.make_zone("slow.example")
    plan = site.server.call("PATCH", f"/zones/{zone_id}", {"plan": {"id": "enterprise"}})
    assert plan.status == 200, plan
    path = f"/zones/{zone_id}/settings/proxy_read_timeout"
    assert site.server.call("PATCH", path, {"value": 1}).status == 200
    done = threading.Event()
    _, origin = site.origin(lambda head, body, connection: done.wait(60) and None)
    site.server.make_record(zone_id, "A", "slow.example", origin.host, proxied=True)
    assert site.get("slow.example").status == 524
    done.set()


def test_a_connection_from_too_many_at_one_address_is_closed(new_server, tmp_path):
    settings = tmp_path / "few.toml"
    settings.write_text(f"{SETTINGS}http-connections-per-address = 2\n")
    server = new_server("--config", str(settings)).start()
    request = b"GET / HTTP/1.1\r\nHost: nobody.example\r\n"
    with connected(server.ready["http"]) as one, connected(server.ready["http"]) as two:
        for connection in (one, two):
            connection.sendall(request)
        with connected(server.ready["http"]) as third:
            try:
                third.sendall(request + b"\r\n")
                assert third.recv(1) == b""
            except ConnectionError:
                pass
        one.sendall(b"\r\n")
        assert one.recv(12) == b"HTTP/1.1 530"
        one.shutdown(socket.SHUT_RDWR)
