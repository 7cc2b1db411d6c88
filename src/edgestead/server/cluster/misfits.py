"""How often a node's copy did not fit the control log, from one life of the process to the next.

Owns  the count, in a file of the data folder, and how long the next life waits before it loads a copy.
Not   finding that a copy does not fit (`sqlite.logged`); loading one (`sqlite.replica`).

A copy that differs is loaded again at once. Where the new one does not fit either, an entry fits no copy:
each try would read a whole base, for ever, so tries become rarer. A
base of the leader, behind the entry, ends it.
"""

from contextlib import suppress
from pathlib import Path
from typing import Final

NAME: Final = "control.misfits"
FREE: Final = 1  # tries that wait for nothing
SECONDS_MAX: Final = 60.0  # of a pause: who has mended the log need not start the node again


class Misfits:
    def __init__(self, folder: Path) -> None:
        self._path = folder / NAME

    @property
    def count(self) -> int:
        """Since this node followed the log last."""
        try:
            return int(self._path.read_text("ascii"))
        except (OSError, ValueError):
            return 0

    @property
    def pause_seconds(self) -> float:
        """Before the next copy is loaded."""
        return min(SECONDS_MAX, 2.0 ** min(self.count, 16)) if self.count > FREE else 0.0

    def happened(self) -> None:
        with suppress(OSError):  # on a full disk it is tried again sooner
            self._path.write_text(str(self.count + 1), "ascii")

    def follows(self) -> None:
        """The copy has all that the leader had."""
        self._path.unlink(missing_ok=True)
