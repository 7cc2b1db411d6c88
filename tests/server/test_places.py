"""Servers under test get places that stay theirs."""

import socket

from edgestead.testing.places import private_host, private_place


def test_a_place_is_handed_out_once_and_a_taken_one_is_passed_over():
    host, port = private_place()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as everywhere:
        everywhere.bind(("0.0.0.0", port + 1))
        later = private_place()

    assert host == private_host() == later[0]
    assert later[1] > port + 1
