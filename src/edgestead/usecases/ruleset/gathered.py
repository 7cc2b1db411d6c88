"""All that is wrong with one body, gathered so that one answer names it.

Owns  how refusals are gathered, their order, how many of them are answered.
Not   what is wrong.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from edgestead.model.refusals import EdgeError
from edgestead.model.refusals.ruleset import RulesetRefused
from edgestead.usecases.limits import REFUSALS_ANSWERED_MAX


class Refusals:
    """The refusals of one body, up to `REFUSALS_ANSWERED_MAX`: who checks a file wants to see them all."""

    def __init__(self, found: Iterable[EdgeError] = ()) -> None:
        self._found = list(found)

    @contextmanager
    def gathered(self) -> Iterator[None]:
        """What is refused inside is noted, with what it brings along, and execution continues after the
        block.

        Raises RulesetRefused with all of them where the answer is full: nothing further is looked for.
        """
        try:
            yield
        except RulesetRefused as refusal:
            self._found += (refusal, *refusal.also)
            if len(self._found) < REFUSALS_ANSWERED_MAX:
                return
        else:
            return
        self.raise_any()

    def raise_any(self) -> None:
        """Raises the first of them in the order of the rules, with the others as its `also`."""
        if self._found:
            first, *others = sorted(self._found, key=_place)[:REFUSALS_ANSWERED_MAX]
            first.also = tuple(others)
            raise first

    def all(self) -> tuple[EdgeError, ...]:
        return tuple(self._found)


def _place(refusal: EdgeError) -> list[tuple[int, str]]:
    """The pointer's tokens, items of lists by number: `/rules/10` stands behind `/rules/9`."""
    tokens = (refusal.pointer or "").split("/")
    return [(int(token), "") if token.isdecimal() else (-1, token) for token in tokens]
