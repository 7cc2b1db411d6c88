"""For how long something has been so that is asked again and again.

Owns  since when each name is among those that are given.
Not   what they are names of.
"""

from collections.abc import Iterable


class Lasting:
    """One that was not there at one look begins anew."""

    def __init__(self) -> None:
        self._since: dict[str, float] = {}

    def seconds(self, names: Iterable[str], now: float) -> tuple[tuple[str, float], ...]:
        self._since = {name: self._since.get(name, now) for name in names}
        return tuple((name, now - since) for name, since in self._since.items())
