"""When commits happen: once per turn of the loop, for every object that changed in it.

Owns  the list of changed objects, the end of the turn, the decision to sync inline.
Asks  each engine to commit, the log to flush.
Tells nobody: whoever waits, waits for a group.
Not   what a commit holds (`engine`).

All writes of one turn share one commit per object and one group for the whole process, and everything that
arrives while that group is being synced shares the next.
"""

from collections.abc import Callable
from typing import Any, Protocol

from edgestead.store.objectlog import ObjectLog


class Committing(Protocol):
    def commit(self) -> object: ...


class Turns:
    """Collects changed engines and commits them when the loop has run everything that was ready.

    `call_soon` is the loop's. `alone()` tells whether nothing else is going on: then a sync on this thread is
    quicker than handing it to another one and being woken again.
    """

    def __init__(
        self,
        log: ObjectLog,
        call_soon: Callable[[Callable[[], None]], Any],
        alone: Callable[[], bool] = lambda: False,
    ) -> None:
        self._log = log
        self._call_soon = call_soon
        self._alone = alone
        self._changed: list[Committing] = []
        self._scheduled = False

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
        """Commit everything that changed, as one group."""
        changed, self._changed = self._changed, []
        for engine in changed:
            engine.commit()
        self._scheduled = False
        self._log.flush(inline=len(changed) == 1 and self._alone())
        if self._changed:  # a commit's consequence changed something
            self.appended()
