"""What a service manager hears of this server: ready, ending, alive (sd_notify(3)).

Owns  the datagrams, and how often the watchdog wants to hear.
Not   when: the supervisor.
"""

import os
import socket
from collections.abc import MutableMapping
from contextlib import suppress

_MICROSECONDS = 1_000_000
READY_SECONDS_MAX = 1.0  # for a manager whose queue is full: who misses it ends a server that serves
STATUS_CHARACTERS_MAX = 200  # of one status: a line of `systemctl status`


class Notify:
    """`watchdog_seconds` is how often `alive` has to be said, None when nobody listens for it."""

    def __init__(self, environment: MutableMapping[str, str]) -> None:
        address = environment.pop("NOTIFY_SOCKET", "")
        usec, pid = environment.pop("WATCHDOG_USEC", ""), environment.pop("WATCHDOG_PID", "")
        self._address = "\0" + address[1:] if address.startswith("@") else address
        is_ours = usec.isascii() and usec.isdigit() and int(usec) > 0 and pid in ("", str(os.getpid()))
        # Half of what is allowed, as sd_watchdog_enabled(3) advises.
        self.watchdog_seconds = int(usec) / _MICROSECONDS / 2 if address and is_ours else None

    def status(self, words: str) -> None:
        self._tell(f"STATUS={words[:STATUS_CHARACTERS_MAX]}")

    def ready(self, words: str) -> None:
        self._tell(f"READY=1\nSTATUS={words[:STATUS_CHARACTERS_MAX]}", READY_SECONDS_MAX)

    def ending(self) -> None:
        self._tell("STOPPING=1\nSTATUS=ending: writes under way are finished")

    def alive(self) -> None:
        self._tell("WATCHDOG=1")

    def _tell(self, state: str, seconds_max: float = 0) -> None:
        if not self._address:
            return
        # A manager that does not listen, or not now, is no reason to stop serving.
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as line:
            line.settimeout(seconds_max)
            line.connect(self._address)
            line.send(state.encode())
