"""What one control process does for all: in a cluster the one that leads, otherwise the only one.

Owns  beginning it and ending it, as often as the office comes and goes.
Not   doing it.
"""

from collections.abc import Awaitable, Callable
from typing import Protocol


class Task(Protocol):
    """It runs in the background between the two."""

    def open(self) -> None: ...

    def close(self) -> None: ...


class LeaderDuties:
    """`settle` makes the database say what this program needs; then each of `make` begins, made anew each
    time.
    """

    def __init__(self, settle: Callable[[], Awaitable[None]], make: Callable[[], list[Task]]) -> None:
        self._settle, self._make = settle, make
        self._running: list[Task] = []

    async def open(self) -> None:
        """Raises Unavailable: it can be tried again."""
        await self._settle()
        self.begin()

    def begin(self) -> None:
        self.close()
        for task in self._make():
            task.open()
            self._running.append(task)

    def close(self) -> None:
        running, self._running = self._running, []
        for task in running:
            task.close()
