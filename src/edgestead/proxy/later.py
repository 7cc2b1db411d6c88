"""An outcome that takes more than a moment: work in slices, between which the loop serves others.

Owns  `Later`, how long a slice is.
Asks  nobody.
Tells rules, phases and the pipeline how to go on behind it; whoever serves the request when it is done.
Not   what is worked on.
"""

from collections.abc import Callable, Generator
from time import perf_counter
from typing import Any

SLICE_SECONDS = 0.002  # what one request may keep the loop from all others


class Later:
    """Steps that end with an outcome, and what then follows from it."""

    __slots__ = ("_follows", "_steps")

    def __init__(self, steps: Generator[None, None, Any]) -> None:
        self._steps = steps
        self._follows: list[Callable[[Any], Any]] = []

    def then(self, follow: Callable[[Any], Any]) -> "Later":
        """What makes the next outcome of this one; may be another `Later`."""
        self._follows.append(follow)
        return self

    def go_on(self) -> Any:
        """Work for a slice. The outcome, or a `Later` to go on with at another time."""
        end = perf_counter() + SLICE_SECONDS
        try:
            while True:
                next(self._steps)
                if perf_counter() >= end:
                    return self
        except StopIteration as stop:
            outcome = stop.value
        for number, follow in enumerate(self._follows, 1):
            outcome = follow(outcome)
            if outcome.__class__ is Later:
                outcome._follows += self._follows[number:]
                return outcome
        return outcome


def finish(outcome: Any) -> Any:
    """The outcome itself, where nobody else waits."""
    while outcome.__class__ is Later:
        outcome = outcome.go_on()
    return outcome
