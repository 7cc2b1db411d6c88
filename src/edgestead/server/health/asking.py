"""The health of a data folder's server, as another process asks for it.

Owns  rows from control over the admin socket, and those that are known without it.
Not   making rows of facts (`health.checks`).
"""

import time
from pathlib import Path

import apsw
import msgspec

from edgestead.health import checks
from edgestead.health.facts import Facts
from edgestead.health.rows import Board, Row
from edgestead.server.errors import StartError
from edgestead.server.folder import CONTROL
from edgestead.server.supervisor import admin
from edgestead.sqlite import witness
from edgestead.sqlite.connection import open_reader

ANSWER_SECONDS_MAX = 5.0  # that control has to say how it is: a process that stands still does not
_DATABASES = (CONTROL, "kv.db")


def rows_of_control(socket_path: Path, seconds: float = ANSWER_SECONDS_MAX) -> tuple[Row, ...] | None:
    """What control says; None when it does not answer within the time."""
    try:
        answer = admin.ask(socket_path, "health", seconds)
        return msgspec.json.decode(answer, type=tuple[Row, ...])
    except (StartError, OSError, msgspec.DecodeError):
        return None


def lost_writes(folder: Path) -> str:
    """Which acknowledged writes a folder's databases lack, with the way on; empty when none is missing.

    The databases may be in use: a witness is read before its database, which is never behind it then.
    """
    for name in _DATABASES:
        try:
            noted = witness.read_file(folder / name)
            db = open_reader(folder / name)
        except (OSError, apsw.Error):
            continue  # there is none, or it cannot be read: another row says so
        try:
            witness.check(folder / name, noted, db)
        except witness.WritesLost as lost:
            return str(lost)
        except apsw.Error:
            continue
        finally:
            db.close()
    return ""


def rows_without_control(folder: Path, reasons: dict[str, str]) -> tuple[Row, ...]:
    """What is known while control does not answer; `reasons` is why processes ended last."""
    facts = Facts(control_away=True, reasons=tuple(reasons.items()), writes_lost=lost_writes(folder))
    rows = Board(lambda: time.time_ns() // 1_000).rows(checks.examine(facts))
    return tuple(row for row in rows if row.state != "ok")
