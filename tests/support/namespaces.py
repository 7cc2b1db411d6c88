"""Network namespaces: machines with a network of their own between them, whose links and routes can break.

Owns  a hub and its spokes, each in a namespace; running servers, and this thread for a moment, in one.
Not   what runs there.

    hub 10.99.0.1 (on its loopback) ── veth 10.99.N.1 ⇄ 10.99.N.2 ── spoke N
"""

import ctypes
import os
import subprocess
from contextlib import contextmanager, suppress

HUB = "10.99.0.1"
CLONE_NEWNET = 0x40000000
_libc = ctypes.CDLL(None, use_errno=True)


class Star:
    """Raises OSError, CalledProcessError: namespaces cannot be made here."""

    def __init__(self, *spokes: str) -> None:
        self._prefix = f"es{os.getpid()}"
        self._numbers = {name: number for number, name in enumerate(spokes, 1)}
        self._made: list[str] = []
        try:
            self._make()
        except BaseException:
            self.close()
            raise

    def _make(self) -> None:
        for name in ("hub", *self._numbers):
            run("netns", "add", self.space(name))
            self._made.append(name)
            self.ip(name, "link", "set", "lo", "up")
        self.ip("hub", "addr", "add", f"{HUB}/32", "dev", "lo")
        for name, number in self._numbers.items():
            peer = ("peer", "name", "up0", "netns", self.space(name))
            self.ip("hub", "link", "add", f"to{number}", "type", "veth", *peer)
            self.ip("hub", "addr", "add", f"10.99.{number}.1/24", "dev", f"to{number}")
            self.ip(name, "addr", "add", f"10.99.{number}.2/24", "dev", "up0")
            self.ip("hub", "link", "set", f"to{number}", "up")
            self._up(name)

    def _up(self, name: str) -> None:
        self.ip(name, "link", "set", "up0", "up")
        self.ip(name, "route", "replace", f"{HUB}/32", "via", f"10.99.{self._numbers[name]}.1")

    def join(self, one: str, other: str) -> None:
        """Two spokes reach one another, by way of the hub."""
        forward = ("sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward")
        subprocess.run([*self.prefix("hub"), *forward], check=True)
        for name, to in ((one, other), (other, one)):
            with suppress(subprocess.CalledProcessError):
                self.ip("hub", "rule", "del", *self._way(name, to))
            self.ip(name, "route", "replace", self.address(to), "via", f"10.99.{self._numbers[name]}.1")

    def part(self, one: str, other: str) -> None:
        """What one sends to the other is lost at the hub, until they are joined again."""
        self.ip("hub", "rule", "add", *self._way(one, other), "blackhole")

    def _way(self, one: str, other: str) -> tuple[str, ...]:
        return ("from", self.address(one), "to", self.address(other))

    def address(self, name: str) -> str:
        """Of a spoke, for all others."""
        return f"10.99.{self._numbers[name]}.2"

    def space(self, name: str) -> str:
        return f"{self._prefix}{name}"

    def ip(self, name: str, *arguments: str) -> None:
        run("-n", self.space(name), *arguments)

    def prefix(self, name: str) -> tuple[str, ...]:
        """Before a command: it runs there."""
        return ("ip", "netns", "exec", self.space(name))

    @contextmanager
    def inside(self, name: str):
        """Sockets that this thread makes are there."""
        with (
            open("/proc/thread-self/ns/net", "rb") as ours,
            open(f"/run/netns/{self.space(name)}", "rb") as theirs,
        ):
            _enter(theirs.fileno())
            try:
                yield
            finally:
                _enter(ours.fileno())

    def cut(self, name: str, how: str) -> None:
        """ "link": it goes down; "there": what the hub sends is lost; "back": what the spoke sends."""
        number = self._numbers[name]
        if how == "link":
            self.ip(name, "link", "set", "up0", "down")
        elif how == "there":
            self.ip("hub", "route", "add", "blackhole", f"10.99.{number}.2/32")
        else:
            self.ip(name, "route", "replace", "blackhole", f"{HUB}/32")

    def heal(self, name: str) -> None:
        with suppress(subprocess.CalledProcessError):
            self.ip("hub", "route", "del", "blackhole", f"10.99.{self._numbers[name]}.2/32")
        with suppress(subprocess.CalledProcessError):
            self.ip(name, "route", "del", "blackhole", f"{HUB}/32")
        self._up(name)

    def close(self) -> None:
        for name in self._made:
            with suppress(subprocess.CalledProcessError):
                run("netns", "del", self.space(name))
        self._made.clear()


def run(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


def _enter(fd: int) -> None:
    if _libc.setns(fd, CLONE_NEWNET) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
