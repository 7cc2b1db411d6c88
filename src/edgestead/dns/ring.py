"""Datagrams in batches: one system call receives up to 64, one sends their answers from the same memory.

Owns  the buffers, the kernel's structures for them, the meaning of failed calls.
Not   DNS.

Each datagram has a slot in an anonymous mmap, because slicing an mmap returns bytes directly. The sender's
address stays where the kernel wrote it and is used for the answer, so no address becomes an object; nor does
the ID, since the answer is written after it. On a socket bound to the wildcard address the local address of
each datagram (IP_PKTINFO) stays there, too: answers are sent from the address that was queried.
"""

import ctypes
import errno
import mmap
import os
import socket
from typing import Any, Final

BATCH: Final = 64
SLOT_OCTETS: Final = 4096
"""The longest datagram read whole; a longer query is cut by the kernel and then is FORMERR."""

_MSG_WAITFORONE: Final = 0x10000  # linux/socket.h
_MSG_DONTWAIT: Final = socket.MSG_DONTWAIT
_IP_PKTINFO: Final = 8  # linux/in.h
_ADDRESS_OCTETS: Final = 28  # sockaddr_in6, the longer one
_IPV4_ADDRESS_OCTETS: Final = 16
_IPV4_CONTROL_OCTETS: Final = 32  # CMSG_SPACE(in_pktinfo)
_IPV6_CONTROL_OCTETS: Final = 40  # CMSG_SPACE(in6_pktinfo)
_CONTROL_SLOT_OCTETS: Final = 64
_MAPPED: Final = bytes(10) + b"\xff\xff"
_MAPPED_OCTETS: Final = len(_MAPPED)
_PASSING: Final = frozenset({errno.EAGAIN, errno.EINTR, errno.ENOBUFS, errno.ENOMEM})
_ARGUMENTS: Final = (ctypes.c_int, ctypes.c_void_p, ctypes.c_uint, ctypes.c_int, ctypes.c_void_p)


class _Iovec(ctypes.Structure):
    _fields_ = (("base", ctypes.c_void_p), ("len", ctypes.c_size_t))


class _Msghdr(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_void_p),
        ("namelen", ctypes.c_uint),
        ("iov", ctypes.c_void_p),
        ("iovlen", ctypes.c_size_t),
        ("control", ctypes.c_void_p),
        ("controllen", ctypes.c_size_t),
        ("flags", ctypes.c_int),
    )


class _Mmsghdr(ctypes.Structure):
    """recvmmsg(2); the layout of glibc and, on 64 bits, little-endian, of musl."""

    _fields_ = (("head", _Msghdr), ("len", ctypes.c_uint))


_IOVEC_OCTETS: Final = ctypes.sizeof(_Iovec)
_HEADER_OCTETS: Final = ctypes.sizeof(_Mmsghdr)
_LIBC: Final = ctypes.CDLL(None, use_errno=True)
AVAILABLE: Final = hasattr(_LIBC, "recvmmsg") and hasattr(_LIBC, "sendmmsg")


class Ring:
    """The slots of one socket. Slot i begins at `buffer[i * SLOT_OCTETS]`.

    `received[i]` is the length of datagram i; `sizes[i]` the length to send from the same place;
    `client(i)` the address it came from, 4 or 16 octets.
    """

    def __init__(self, sock: socket.socket) -> None:
        self.use(sock)
        self.buffer = mmap.mmap(-1, BATCH * SLOT_OCTETS)
        self._addresses = mmap.mmap(-1, BATCH * _ADDRESS_OCTETS)
        self._is_ipv4 = sock.family == socket.AF_INET
        self.client = self._client_4 if sock.family == socket.AF_INET else self._client_6
        self._controls = ctypes.create_string_buffer(BATCH * _CONTROL_SLOT_OCTETS)
        control_octets = want_local_address(sock)
        self._in_iovecs, self._in = self._structures(_ADDRESS_OCTETS, control_octets)
        out_address_octets = _IPV4_ADDRESS_OCTETS if sock.family == socket.AF_INET else _ADDRESS_OCTETS
        self._out_iovecs, self._out = self._structures(out_address_octets, control_octets)
        # Views with one item per slot: they read the kernel's numbers without a ctypes object each.
        lengths = memoryview(self._in).cast("B").cast("I")
        self.received = lengths[_Mmsghdr.len.offset // lengths.itemsize :: _HEADER_OCTETS // lengths.itemsize]
        self.sizes = memoryview(self._out_iovecs).cast("B").cast("L")[1::2]
        self._receive = _function("recvmmsg", 5)
        self._send = _function("sendmmsg", 4)
        self._in_at = ctypes.c_void_p(ctypes.addressof(self._in))
        self._out_at = ctypes.addressof(self._out)

    def use(self, sock: socket.socket) -> None:
        """Receive and send on this socket from now on: the first one, or one that is bound like it."""
        self._fd = sock.fileno()

    def _structures(self, address_octets: int, control_octets: int) -> tuple[Any, Any]:
        data = ctypes.addressof(ctypes.c_char.from_buffer(self.buffer))
        addresses = ctypes.addressof(ctypes.c_char.from_buffer(self._addresses))
        controls = ctypes.addressof(self._controls)
        iovecs, headers = (_Iovec * BATCH)(), (_Mmsghdr * BATCH)()
        for i in range(BATCH):
            iovecs[i] = _Iovec(data + i * SLOT_OCTETS, SLOT_OCTETS)
            headers[i].head = _Msghdr(
                name=addresses + i * _ADDRESS_OCTETS,
                namelen=address_octets,
                iov=ctypes.addressof(iovecs) + i * _IOVEC_OCTETS,
                iovlen=1,
                control=controls + i * _CONTROL_SLOT_OCTETS if control_octets else None,
                controllen=control_octets,
            )
        return iovecs, headers

    def _client_4(self, i: int) -> bytes:
        """The address that datagram i came from."""
        at = i * _ADDRESS_OCTETS + 4
        return self._addresses[at : at + 4]

    def _client_6(self, i: int) -> bytes:
        at = i * _ADDRESS_OCTETS + 8
        return plain_address(self._addresses[at : at + 16])

    def sender(self, i: int) -> tuple[str, int]:
        """Address and port that datagram i came from."""
        at = i * _ADDRESS_OCTETS
        port = int.from_bytes(self._addresses[at + 2 : at + 4], "big")
        if self._is_ipv4:
            return socket.inet_ntop(socket.AF_INET, self._addresses[at + 4 : at + 8]), port
        return socket.inet_ntop(socket.AF_INET6, self._addresses[at + 8 : at + 24]), port

    def receive(self, *, wait: bool) -> int:
        """How many datagrams were received; 0 after the socket's timeout or a signal.

        With `wait` it waits for the first one. Raises OSError for a permanent error.
        """
        n: int = self._receive(self._fd, self._in_at, BATCH, _MSG_WAITFORONE if wait else _MSG_DONTWAIT, None)
        if n >= 0:
            return n
        if (number := ctypes.get_errno()) in _PASSING:
            return 0
        raise OSError(number, os.strerror(number))

    def send(self, first: int, end: int) -> int:
        """Send the answers of slots `first` to `end`; returns how many could not be.

        The kernel stops at the first that it refuses (no route, a sender's port 0): that one is skipped.
        """
        unsent = 0
        while first < end:
            at = ctypes.c_void_p(self._out_at + first * _HEADER_OCTETS)
            sent = self._send(self._fd, at, end - first, 0)
            if sent > 0:
                first += sent
            elif ctypes.get_errno() != errno.EINTR:
                first += 1
                unsent += 1
        return unsent


def plain_address(octets: bytes) -> bytes:
    """An IPv4 address that came through an IPv6 socket is an IPv4 address (RFC 4291 §2.5.5.2)."""
    return octets[_MAPPED_OCTETS:] if octets.startswith(_MAPPED) else octets


def octets_of(host: str) -> bytes:
    """An address as text, with or without a zone, as 4 or 16 octets; b"" for none."""
    if not host:
        return b""
    host = host.partition("%")[0]
    return plain_address(socket.inet_pton(socket.AF_INET6 if ":" in host else socket.AF_INET, host))


def _function(name: str, parameters: int) -> Any:
    function = _LIBC[name]  # a separate instance: argument types are set on it
    function.argtypes = _ARGUMENTS[:parameters]
    return function


def want_local_address(sock: socket.socket) -> int:
    """Request each datagram's local address if the socket is bound to all; returns the space it needs.

    A datagram received before is answered from the address that the route prefers.
    """
    host = sock.getsockname()[0]
    if sock.family == socket.AF_INET6 and host == "::":
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVPKTINFO, 1)
        return _IPV6_CONTROL_OCTETS
    if sock.family == socket.AF_INET and host == "0.0.0.0":
        sock.setsockopt(socket.IPPROTO_IP, _IP_PKTINFO, 1)
        return _IPV4_CONTROL_OCTETS
    return 0
