"""The platforms of one run of pytest: started when first asked for, emptied between tests, ended at last.

Owns  one platform for each date and manner of starting; when one is emptied, renewed and ended.
Not   what a test does with one.
"""

import http.client
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from datetime import date
from pathlib import Path

from edgestead.testing.edge import Edge
from edgestead.testing.emptying import Contents, NotEmptied
from edgestead.testing.server import EdgeServer

PLATFORMS_MAX = 3  # that run at a time: each is half a dozen processes
PATIENCE = "barrier-ms = 30000\nsilence-seconds = 600\n"
Fill = Callable[[Edge], None]


class Platform:
    """One started `server`, and its `edge`. `fill` puts into it what every test is to find."""

    def __init__(self, new_folder: Callable[[], Path], flags: Sequence[str], fill: Fill) -> None:
        self._new_folder = new_folder
        self._flags = flags
        self._fill = fill
        self._is_used = False
        self._start()

    def _start(self) -> None:
        folder = self._new_folder()
        flags = self._flags if "--config" in self._flags else (*_patient(folder), *self._flags)
        self.server = EdgeServer(folder / "data", *flags)
        try:
            self.edge = Edge(self.server.start().ready)
            self._fill(self.edge)
            self._contents = Contents(self.edge)
        except BaseException:
            self.server.close()
            raise

    def for_a_test(self) -> Edge:
        """The platform as it was after `fill`: emptied, or where a test broke it, a new one."""
        if self._is_used:
            try:
                self._contents.restore()
            except (NotEmptied, AssertionError, OSError, http.client.HTTPException):
                self.close()
                self._start()
        self._is_used = True
        return self.edge

    def close(self) -> None:
        with closing(self.server):
            self._contents.close()


def _patient(folder: Path) -> tuple[str, str]:
    """Flags with which no process is ended for being late: a busy machine is not what a test is about."""
    file = folder / "patient.toml"
    file.write_text(PATIENCE)
    return "--config", str(file)


class Platforms:
    """At most PLATFORMS_MAX; the one that was not asked for the longest is ended first."""

    def __init__(self, new_folder: Callable[[], Path]) -> None:
        self._new_folder = new_folder
        self._by_key: OrderedDict[tuple[object, ...], Platform] = OrderedDict()

    def get(self, day: date | None, flags: Sequence[str], fill: Fill) -> Platform:
        """The platform of a date, None being today, that was started and filled like this."""
        flags = [*flags, *(["--as-of", str(day)] if day else [])]
        key = (*flags, fill)
        found = self._by_key.get(key)
        if found is None:
            while len(self._by_key) >= PLATFORMS_MAX:
                self._by_key.popitem(last=False)[1].close()
            found = self._by_key[key] = Platform(self._new_folder, flags, fill)
        self._by_key.move_to_end(key)
        return found

    def close(self) -> None:
        with ExitStack() as all_of_them:  # one that cannot be ended keeps no other from it
            while self._by_key:
                all_of_them.callback(self._by_key.popitem()[1].close)
