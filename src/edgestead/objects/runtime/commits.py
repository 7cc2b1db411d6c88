"""When commits happen: once per turn of the loop, for every object that changed in it.

Owns  the list of changed objects, the end of the turn, the decision to sync inline.
Not   what a commit holds (`engine`).

All writes of one turn share one commit per object and one group for the whole process, and everything that
arrives while that group is being synced shares the next.

Where syncing takes less time than handing it to another thread, the loop does it, and nothing arrives
meanwhile. Then a turn lasts as long as each round of the loop brings more calls, but not long: clients that
were answered together come back one after the other, and would make several groups of what can be one.
"""

import time
from collections.abc import Callable
from typing import Any, Protocol

from edgestead.store.objectlog import Log

ROUNDS_SECONDS_MAX = 0.001  # how long a turn may last because of calls that still come


class Committing(Protocol):
    def commit(self) -> object: ...


class Turns:
    """Collects changed engines and commits them when the loop has run everything that was ready.

    `call_soon` is the loop's. `calls()` is how many calls are going on: with one at most, a sync on this
    thread is quicker than being woken again. `clock` gives seconds.
    """

    def __init__(
        self,
        log: Log,
        call_soon: Callable[[Callable[[], None]], Any],
        calls: Callable[[], int],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._log = log
        self._call_soon = call_soon
        self._calls, self._clock = calls, clock
        self._changed: list[Committing] = []
        self._scheduled = False
        self._seen = 0  # calls that were going on in the last round
        self._until = 0.0

    def changed(self, engine: Committing) -> None:
        """An engine got its first change since its last commit."""
        self._changed.append(engine)
        if not self._scheduled:
            self.appended()

    def appended(self) -> None:
        """Something was appended to the log, and is to be flushed at the end of the turn."""
        if not self._scheduled:
            self._scheduled = True
            self._call_soon(self.end)

    def end(self) -> None:
        """Commit everything that changed, as one group, unless the turn goes on."""
        quick = self._log.is_quick
        if quick and self._goes_on():
            self._call_soon(self.end)
            return
        self._seen = 0
        changed, self._changed = self._changed, []
        left = iter(changed)
        try:
            for engine in left:
                engine.commit()
        finally:
            self._changed = [*left, *self._changed]  # behind one that raised: the others' turn ends, too
            self._scheduled = False
            self._log.flush(here=quick or (len(changed) == 1 and self._calls() <= 1))
            if self._changed:  # a commit's consequence changed something
                self.appended()

    def _goes_on(self) -> bool:
        """Whether this round of the loop brought more calls, beyond a single one."""
        calls, seen = self._calls(), self._seen
        if calls <= max(seen, 1):
            return False
        self._seen = calls
        now = self._clock()
        if not seen:
            self._until = now + ROUNDS_SECONDS_MAX
        return now < self._until
