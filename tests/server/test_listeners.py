"""Ports are ours alone or not at all."""

import errno
import os
import socket
from contextlib import ExitStack

import pytest

from edgestead.config import Address
from edgestead.server.errors import StartError
from edgestead.server.supervisor.listeners import Listeners, _refusal, bound_address, is_local
from tests.descriptors import left_open, open_now

ANY = Address("127.0.0.1", 0)


def make(api, dns, dns_workers, runtime_dir):
    return Listeners(api, dns, dns_workers, runtime_dir, http=ANY)


@pytest.fixture
def runtime_dir(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path.relative_to(tmp_path)  # short enough for a Unix socket wherever the tests run


@pytest.fixture
def taken():
    """Bind a socket of a kind, sharing its port with everyone who asks to."""
    with ExitStack() as opened:
        yield lambda kind: next(filter(None, (_take(kind, opened) for _ in range(32))))


def _take(kind, opened):
    """Bind a port of a kind. None where its twin of the other kind is a stranger's."""
    made = opened.enter_context(socket.socket(socket.AF_INET, kind))
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    made.bind(("127.0.0.1", 0))
    if kind == socket.SOCK_STREAM:
        made.listen()
        return Address(*made.getsockname())
    # Held without listening: nobody's outgoing connection gets it, and a listener with the option still may.
    twin = opened.enter_context(socket.socket(socket.AF_INET, socket.SOCK_STREAM))
    twin.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        twin.bind(made.getsockname())
    except OSError:
        return None
    return Address(*made.getsockname())


def test_dns_has_one_port_for_both_transports_and_all_workers(runtime_dir):
    listeners = make(ANY, ANY, 3, runtime_dir)

    ports = {opened.getsockname()[1] for opened in [listeners.dns_tcp, *listeners.dns_udp]}

    assert len(listeners.dns_udp) == 3
    assert len(ports) == 1
    listeners.close()


def test_every_worker_gets_a_share_of_the_queries(runtime_dir):
    listeners = make(ANY, ANY, 2, runtime_dir)
    for _ in range(64):  # each from a port of its own; that one worker gets none has odds of 2^-63
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
            client.sendto(b"?", listeners.dns_udp[0].getsockname())

    for worker in listeners.dns_udp:
        worker.settimeout(60)
        assert worker.recv(1) == b"?"
    listeners.close()


@pytest.mark.parametrize("kind", [socket.SOCK_STREAM, socket.SOCK_DGRAM])
def test_a_taken_dns_port_is_refused_by_name_even_when_its_holder_would_share(taken, runtime_dir, kind):
    address = taken(kind)
    transport = "TCP" if kind == socket.SOCK_STREAM else "UDP"

    with pytest.raises(StartError) as refusal:
        make(ANY, address, 1, runtime_dir)

    assert str(refusal.value).startswith(f"--dns {address} ({transport}) is taken by process {os.getpid()} (")


def test_a_taken_api_port_is_refused_by_name(taken, runtime_dir):
    address = taken(socket.SOCK_STREAM)

    with pytest.raises(StartError, match=rf"--api {address} \(TCP\) is taken by process {os.getpid()}"):
        make(address, ANY, 1, runtime_dir)


def test_an_address_that_is_not_this_machines_is_refused(runtime_dir):
    with pytest.raises(StartError, match=r"--api 192\.0\.2\.1:0 \(TCP\) cannot be used: Cannot assign"):
        make(Address("192.0.2.1", 0), ANY, 1, runtime_dir)


def test_a_refusal_leaves_no_socket_open(taken, runtime_dir):
    address = taken(socket.SOCK_DGRAM)
    before = open_now()

    with pytest.raises(StartError):
        make(ANY, address, 2, runtime_dir)

    assert not left_open(before)


def test_a_wildcard_is_told_to_clients_as_loopback(runtime_dir):
    listeners = make(Address("0.0.0.0", 0), Address("::", 0), 1, runtime_dir)

    assert bound_address(listeners.api).host == "127.0.0.1"
    assert str(bound_address(listeners.dns_tcp)).startswith("[::1]:")
    listeners.close()


def test_a_port_that_is_for_root_says_what_helps():
    denied = PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    low = _refusal("dns", Address("127.0.0.1", 53), "udp", denied)
    high = _refusal("dns", Address("127.0.0.1", 5300), "udp", denied)

    assert "--dns 127.0.0.1:53 (UDP): only root may bind a port below 1024" in low
    assert "socket unit" in low
    assert "setcap" in low
    assert high == "--dns 127.0.0.1:5300 (UDP) cannot be used: Permission denied"


@pytest.mark.parametrize(
    ("host", "local"),
    [
        ("127.0.0.1", True),
        ("127.9.0.1", True),
        ("::1", True),
        ("0.0.0.0", False),
        ("::", False),
        ("192.0.2.1", False),
        ("10.0.0.1", False),
        ("fe80::1%lo", False),
    ],
)
def test_only_loopback_is_this_machine_alone(host, local):
    assert is_local(host) is local
