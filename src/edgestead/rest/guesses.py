"""Credentials that nobody has: how many a network sends, and from when on it is asked to wait.

Owns  the counts of a minute by network, the refusal of what comes on top, its line in the log.
Not   good credentials: they are looked up first, so nobody else behind an address is kept out.

Forty random characters cannot be guessed, with a limit or without; it is there so that guessing is seen, and
that a program with a lost token slows down. Each process counts for itself, and a restart forgets.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass

from edgestead.http1.connections import network_of
from edgestead.model.refusals import EdgeError
from edgestead.model.refusals.access import NoCredentials, TooManyGuesses
from edgestead.rest.limits import GUESS_NETWORKS_MAX, GUESS_SECONDS

_SECOND_US = 1_000_000
_WINDOW_US = GUESS_SECONDS * _SECOND_US
_log = logging.getLogger("edgestead.server")


@dataclass(slots=True)
class _Window:
    begun_us: int
    count: int = 0


class Guesses:
    """Used by one event loop. `guesses_max` in a window, 0: as many as come. `counted` hears of each."""

    def __init__(self, guesses_max: int = 0, counted: Callable[[], None] = lambda: None) -> None:
        self._guesses_max = guesses_max
        self._counted = counted
        self._windows: dict[object, _Window] = {}  # the one that began first comes first

    def refusal(self, refused: EdgeError, client: str, now_us: int) -> EdgeError:
        """What is answered to credentials that are `refused`. Who sent none has not guessed."""
        if isinstance(refused, NoCredentials):
            return refused
        self._counted()
        if not self._guesses_max:
            return refused
        window = self._window(network_of(client), now_us)
        window.count += 1
        if window.count <= self._guesses_max:
            return refused
        if window.count == self._guesses_max + 1:
            _log.warning(
                "%d credentials from the network of %s were refused within a minute: more are answered 429",
                self._guesses_max,
                client,
            )
        seconds = -(-(window.begun_us + _WINDOW_US - now_us) // _SECOND_US)
        return TooManyGuesses(limit=self._guesses_max, seconds=seconds)

    def _window(self, network: object, now_us: int) -> _Window:
        window = self._windows.get(network)
        if window is not None and 0 <= now_us - window.begun_us < _WINDOW_US:
            return window
        self._windows.pop(network, None)
        if len(self._windows) >= GUESS_NETWORKS_MAX:
            del self._windows[next(iter(self._windows))]
        made = self._windows[network] = _Window(now_us)
        return made
