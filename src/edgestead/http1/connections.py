"""What a server's clients hold: connections, and memory.

Owns  the draws on the budgets of HTTP, by address and in all; their refusals.
Not   the numbers (`model.budgets.table`); what a connection counts as held (`connection`).
"""

from edgestead.http1.head import Refused
from edgestead.model.budgets import table
from edgestead.model.budgets.ledger import UNLIMITED, Holding, Ledger, Levels, Refusal
from edgestead.model.budgets.networks import network_of
from edgestead.model.budgets.table import Budget

LEAST_BYTES = 16 * 1024
"""Drawn for each connection at once: what it takes by itself, and most requests. They draw nothing more."""


class Connections:
    """Used by one event loop."""

    __slots__ = ("_by_address", "_ledger", "memory")

    def __init__(
        self,
        total_max: int | None = None,
        per_address_max: int | None = None,
        ledger: Ledger | None = None,
        *,
        each: Budget = table.HTTP_CONNECTIONS_ADDRESS,
        total: Budget = table.HTTP_CONNECTIONS,
    ) -> None:
        self._ledger = ledger or Ledger()
        self._by_address = Levels(
            self._ledger,
            each,
            total,
            limit=per_address_max,
            total_limit=total_max,
        )
        self.memory = Levels(self._ledger, table.HTTP_BYTES_ADDRESS, table.HTTP_BYTES)

    def enter(self, address: str, *, trusted: bool = False) -> "Account | Refused":
        """Take one more connection, or say why not. A trusted proxy, which has many clients, has no limit."""
        network = network_of(address)
        refusal = self._by_address.draw(network, 1, UNLIMITED if trusted else 0)
        return Account(self, network, trusted) if refusal is None else refused(refusal)

    def leave(self, account: "Account") -> None:
        """A connection that was taken has ended."""
        account.close()
        self._by_address.release(account.network, 1)

    def full(self, address: str) -> None:
        """So many wait for their refusal that this one gets none."""
        self._ledger.refuse(table.HTTP_REFUSALS, network_of(address))


class Account(Holding):
    """What one connection draws on."""

    __slots__ = ("network",)

    def __init__(self, connections: Connections, network: str, trusted: bool) -> None:
        super().__init__(connections.memory, network, LEAST_BYTES, is_limited=not trusted)
        self.network = network


def refused(refusal: Refusal) -> Refused:
    """A draw that was refused and counted, as what is said to the client."""
    return Refused(refusal.budget.status, f"there would be {refusal.reason}")
