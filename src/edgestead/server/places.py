"""Addresses for servers that a program starts beside itself, which nobody takes away between two starts.

Owns  a loopback address that belongs to this process, and ports on it; ports of 127.0.0.1.
Not   listening.

The kernel gives clients ports of 127.0.0.1, or of every address, from 32768 on (ip_local_port_range). A
server that restarts on a port from there may find it taken. Here the address is no other process's, and the
ports are below those.
"""

import itertools
import os
import random
import socket

FIRST_PORT = 10_000
CLIENTS_PORT = 32_768
COMMON_HOST = "127.0.0.1"

_ports = itertools.count(FIRST_PORT)


def private_host() -> str:
    """An IPv4 loopback address made from this process's number, of which there are at most 2^22."""
    pid = os.getpid()
    return f"127.{64 + (pid >> 16)}.{pid >> 8 & 255}.{pid & 255}"


def private_place() -> tuple[str, int]:
    """An address and a port on it that are free for UDP and TCP, and were not handed out before."""
    host = private_host()
    while not _is_free((host, port := next(_ports))):
        pass  # somebody listens on every address
    return host, port


def common_port() -> int:
    """A free port of 127.0.0.1, for programs that take no other loopback address. Other processes have that
    address, too, so it is drawn: two that choose at once seldom choose the same.
    """
    while not _is_free((COMMON_HOST, port := random.randrange(FIRST_PORT, CLIENTS_PORT))):
        pass
    return port


def _is_free(place: tuple[str, int]) -> bool:
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp,
        socket.socket(socket.AF_INET, socket.SOCK_STREAM) as tcp,
    ):
        try:
            udp.bind(place)
            tcp.bind(place)
        except OSError:
            return False
    return True
