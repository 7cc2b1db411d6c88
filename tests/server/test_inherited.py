"""Sockets that were bound for the server before it began, as systemd does."""

import os
import socket
import sys
from contextlib import ExitStack

import pytest

from edgestead.config import Address
from edgestead.server.errors import StartError
from edgestead.server.places import private_place
from edgestead.server.supervisor import inherited
from edgestead.server.supervisor.listeners import Listeners
from tests.descriptors import left_open, open_now

TCP, UDP = socket.SOCK_STREAM, socket.SOCK_DGRAM
ANY = Address("127.0.0.1", 0)
NOBODY = (  # environments that hand nothing over to this process
    {},
    {"LISTEN_FDS": "2"},
    {"LISTEN_FDS": "2", "LISTEN_PID": "1"},
    {"LISTEN_FDS": "two", "LISTEN_PID": str(os.getpid())},
    {"LISTEN_FDS": "0", "LISTEN_PID": str(os.getpid())},
    {"LISTEN_FDS": "-1", "LISTEN_PID": str(os.getpid())},
    {"LISTEN_FDS": "²", "LISTEN_PID": str(os.getpid())},
)


@pytest.fixture
def runtime_dir(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path.relative_to(tmp_path)


@pytest.fixture
def bound():
    """Bind both kinds to one port."""
    with ExitStack() as opened:

        def bind():
            while True:
                tcp, udp = (opened.enter_context(socket.socket(socket.AF_INET, kind)) for kind in (TCP, UDP))
                tcp.bind(ANY)
                try:
                    udp.bind(tcp.getsockname())
                except OSError:
                    continue
                tcp.listen()
                return tcp.dup(), udp.dup(), Address(*tcp.getsockname())

        yield bind


@pytest.mark.parametrize("environment", NOBODY)
def test_what_was_handed_to_others_is_left_alone(environment):
    assert inherited.adopt(dict(environment)) == []


def test_no_child_hears_of_it():
    environment = {"LISTEN_FDS": "0", "LISTEN_PID": str(os.getpid()), "LISTEN_FDNAMES": "dns", "HOME": "/"}

    inherited.adopt(environment)

    assert environment == {"HOME": "/"}


def test_a_socket_is_used_where_the_server_would_bind(bound, runtime_dir):
    tcp, udp, dns = bound()
    other, unused, _ = bound()

    listeners = Listeners(ANY, dns, 1, runtime_dir, http=ANY, handed=[other, unused, udp, tcp])

    assert (listeners.dns_tcp, listeners.dns_udp) == (tcp, [udp])
    assert other.fileno() == unused.fileno() == -1, "nobody serves it, so nobody may wait there"
    listeners.close()


def test_one_transport_of_dns_is_not_enough(bound, runtime_dir):
    tcp, udp, dns = bound()
    udp.close()
    before = open_now()

    with pytest.raises(StartError, match="none for UDP"):
        Listeners(ANY, dns, 1, runtime_dir, http=ANY, handed=[tcp])

    assert tcp.fileno() == -1, "the one that was handed over"
    assert not left_open(before)


def test_the_server_serves_on_them(new_server, tmp_path, monkeypatch):
    """Started as systemd starts it: descriptors from 3 on, and their number for its process alone."""
    host, port = private_place()
    activate = tmp_path / "activate"
    activate.write_text(_ACTIVATE.format(python=sys.executable, place=(host, port)))
    activate.chmod(0o755)
    server = new_server("--dns", f"{host}:{port}")
    with monkeypatch.context() as patched:
        patched.setattr(sys, "executable", str(activate))
        server.start()

    server.make_record(server.make_zone("example.com"), "A", "www", "192.0.2.1")

    assert server.dig("www.example.com") == ["192.0.2.1"]
    assert server.dig("www.example.com", tcp=True) == ["192.0.2.1"]
    assert server.stop() == 0


_ACTIVATE = """#!{python}
import os, socket, sys
for fd, kind in ((3, socket.SOCK_STREAM), (4, socket.SOCK_DGRAM)):
    bound = socket.socket(socket.AF_INET, kind)
    bound.bind({place})
    if kind == socket.SOCK_STREAM:
        bound.listen()
    bound.setblocking(False)
    if bound.fileno() == fd:
        os.set_inheritable(bound.detach(), True)
    else:
        os.dup2(bound.detach(), fd)
os.environ |= {{"LISTEN_FDS": "2", "LISTEN_PID": str(os.getpid())}}
os.execv({python!r}, [{python!r}, *sys.argv[1:]])
"""
