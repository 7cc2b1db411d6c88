"""The schema of the control data, step by step.

Owns  the order of the tables' migrations.
Asks  each table for its own script.
Tells the server, which opens the store with them.
Not   running them (`store`).

A script that was released never changes; a change is a new step at the end.
"""

from collections.abc import Iterator
from types import ModuleType

from edgestead.store.migrations import Migration
from edgestead.tables import accounts, records, tokens, zones

MIGRATIONS: tuple[Migration, ...] = (
    Migration(1, "accounts, users and memberships", accounts.CREATE),
    Migration(2, "tokens", tokens.CREATE),
    Migration(3, "zones", zones.CREATE),
    Migration(4, "records", records.CREATE),
)


def statements() -> Iterator[str]:
    """Every SQL statement that the tables can run."""
    for module in (accounts, tokens):
        yield from _constants(module)
    yield from zones.statements()
    yield from records.statements()


def _constants(module: ModuleType) -> Iterator[str]:
    for name, value in vars(module).items():
        if name.isupper() and isinstance(value, str) and name not in ("CREATE", "COLUMNS"):
            yield value
