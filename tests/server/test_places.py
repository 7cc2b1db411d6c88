"""Servers that a program starts get places that stay theirs."""

import socket

from edgestead.server.places import CLIENTS_PORT, COMMON_HOST, common_port, private_host, private_place


def test_a_place_is_handed_out_once_and_a_taken_one_is_passed_over():
    host, port = private_place()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as everywhere:
        everywhere.bind(("0.0.0.0", port + 1))
        later = private_place()

    assert host == private_host() == later[0]
    assert later[1] > port + 1


def test_a_common_port_is_none_that_the_kernel_gives_to_clients(monkeypatch):
    taken = common_port()
    drawn = iter([taken, taken, taken + 1, taken + 2, taken + 3])
    monkeypatch.setattr("random.randrange", lambda *_: next(drawn))

    with socket.create_server((COMMON_HOST, taken)):
        assert taken < common_port() < CLIENTS_PORT
