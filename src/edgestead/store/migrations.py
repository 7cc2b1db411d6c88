"""Migrations by number: what they are, and what may be applied to a database.

Owns  `Migration`, its checksum, and the refusals.
Not   running SQL, backups.

A part ("store", "tables") numbers its migrations 1, 2, 3 … A script that was released never changes: its
checksum is stored in the database, and a database with other scripts than this program's is refused.
"""

from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256

import msgspec


class SchemaError(Exception):
    """The schemas of database and program conflict. Nothing was changed; the message says what to do."""


class SchemaTooNew(SchemaError):
    """The database was already upgraded by a newer program."""


class SchemaChanged(SchemaError):
    """An applied script differs from this program's."""


class MigrationFailed(SchemaError):
    """A script failed and was rolled back; the ones before it stay applied."""


class Migration(msgspec.Struct, frozen=True):
    """One step of a part's schema: portable SQL statements, each ended by a semicolon.

    In a migration `integer` means 64 bits and `blob` any bytes (more rules: design note 2).
    """

    number: int
    name: str
    sql: str

    @property
    def checksum(self) -> str:
        return sha256(self.sql.encode()).hexdigest()


Parts = Mapping[str, Sequence[Migration]]
Applied = Mapping[tuple[str, int], str]  # (part, number) → checksum

Doing = Callable[[str], None]
"""Called with what is done, again and again while there is progress (an upgrade, a recovery)."""


def quiet(words: str) -> None:
    """The `Doing` of callers who do not want to know."""


def pending(parts: Parts, applied: Applied) -> list[tuple[str, Migration]]:
    """What is left to run, part by part in the order of `parts`.

    Raises SchemaTooNew, SchemaChanged; ValueError when a part's numbers are not 1, 2, 3 …
    """
    for part, number in applied:
        known = len(parts.get(part, ()))
        if number > known:
            raise SchemaTooNew(
                f"the database has schema {part}/{number}, this program knows {part}/{known}: "
                "start the newer program, or put back the backup that was made before its upgrade"
            )
    return [(part, step) for part, steps in parts.items() for step in _pending_of(part, steps, applied)]


def _pending_of(part: str, steps: Sequence[Migration], applied: Applied) -> list[Migration]:
    if [step.number for step in steps] != list(range(1, len(steps) + 1)):
        raise ValueError(f"the migrations of {part!r} must be numbered 1, 2, 3 …")
    for step in steps:
        if applied.get((part, step.number), step.checksum) != step.checksum:
            raise SchemaChanged(
                f"migration {part}/{step.number} ({step.name}) was changed after it had been applied: "
                "start the program that applied it"
            )
    return [step for step in steps if (part, step.number) not in applied]
