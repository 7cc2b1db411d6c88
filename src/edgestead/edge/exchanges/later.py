"""An outcome that takes more than a moment: work in slices, between which the loop serves others.

Owns  `Later`.
Not   what is worked on; when, and for how long (`inspection_turns`).
"""

import math
from collections.abc import Callable, Generator
from time import perf_counter
from typing import Any


class Later:
    """Steps that end with an outcome, and what then follows from it. `used_seconds` is what they took.

    It is made without having been begun: no phase knows who waits already.
    """

    __slots__ = ("_follows", "_steps", "used_seconds")

    def __init__(self, steps: Generator[None, None, Any]) -> None:
        self._steps = steps
        self._follows: list[Callable[[Any], Any]] = []
        self.used_seconds = 0.0

    def then(self, follow: Callable[[Any], Any]) -> "Later":
        """What makes the next outcome of this one; may be another `Later`."""
        self._follows.append(follow)
        return self

    def go_on(self, seconds: float) -> Any:
        """Work for so long, and until the end of the step that was begun. The outcome, or itself."""
        start = perf_counter()
        while True:
            try:
                while True:
                    next(self._steps)
                    if (used := perf_counter() - start) >= seconds:
                        self.used_seconds += used
                        return self
            except StopIteration as stop:
                outcome = stop.value
            outcome = self._followed(outcome)
            if outcome is not self:
                return outcome

    def _followed(self, outcome: Any) -> Any:
        """What follows from it; itself where that is more work."""
        for number, follow in enumerate(self._follows, 1):
            outcome = follow(outcome)
            if outcome.__class__ is Later:
                self._steps, self._follows = outcome._steps, outcome._follows + self._follows[number:]
                return self
        return outcome


def finish(outcome: Any) -> Any:
    """The outcome itself, where nobody else waits."""
    return outcome.go_on(math.inf) if outcome.__class__ is Later else outcome
