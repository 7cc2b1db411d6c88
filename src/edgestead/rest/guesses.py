"""Credentials that nobody has: how many an address sends, and from when on it is asked to wait.

Owns  the draw on their budget, the refusal of what comes on top.
Not   good credentials: they are looked up first, so nobody else behind an address is kept out.

Forty random characters cannot be guessed, with a limit or without; it is there so that guessing is seen, and
that a program with a lost token slows down. Each process counts for itself, and a restart forgets.
"""

from collections.abc import Callable

from edgestead.model.budgets.ledger import Ledger, Windows
from edgestead.model.budgets.networks import network_of
from edgestead.model.budgets.table import ADDRESS_GUESSES
from edgestead.model.refusals import EdgeError
from edgestead.model.refusals.access import NoCredentials, TooManyGuesses


class Guesses:
    """Used by one event loop. `guesses_max` in a minute, 0: as many as come. `counted` is called for each."""

    def __init__(
        self,
        guesses_max: int = 0,
        counted: Callable[[], None] = lambda: None,
        ledger: Ledger | None = None,
    ) -> None:
        self._counted = counted
        self._windows = Windows(ledger or Ledger(), ADDRESS_GUESSES, guesses_max)

    def refusal(self, refused: EdgeError, client: str, now_us: int) -> EdgeError:
        """What is answered to credentials that are `refused`. Who sent none has not guessed."""
        if isinstance(refused, NoCredentials):
            return refused
        self._counted()
        network = network_of(client)
        over = self._windows.spend(network, now_us)
        if over is None:
            return refused
        return TooManyGuesses(limit=over.limit, seconds=self._windows.seconds_left(network, now_us))
