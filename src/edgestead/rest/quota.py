"""How many requests each user may make in five minutes.

Owns  the counts of the window, the block that follows too many, the headers that say so.
Not   connections (`http1.connections`); strangers, whom no route serves.

Contract "Headers" and "Generic failures": a user's requests are counted over all credentials; one too many
blocks all of them for the next five minutes. Counts live in memory: a restart forgets them.
"""

from email.utils import formatdate
from typing import NamedTuple

from edgestead.model.budgets.ledger import Ledger
from edgestead.model.budgets.table import CREDENTIALS_QUOTA
from edgestead.model.refusals.request import RateLimited

_SECOND_US = 1_000_000
_WINDOW_US = CREDENTIALS_QUOTA.seconds * _SECOND_US

Headers = tuple[tuple[bytes, bytes], ...]


class _Window(NamedTuple):
    ends_us: int
    left: int
    is_block: bool = False


class Quota:
    """Used by one event loop. There are as many windows as users and accounts, which are few."""

    def __init__(self, requests_max: int, ledger: Ledger | None = None) -> None:
        self._requests_max = requests_max
        self._ledger = ledger or Ledger()
        self._windows: dict[str, _Window] = {}

    def take(self, actor_id: str, now_us: int) -> Headers:
        """Count one request; the headers for its answer. Raises RateLimited, with those headers."""
        window = self._windows.get(actor_id)
        if window is None or window.ends_us <= now_us:
            window = _Window(now_us + _WINDOW_US, self._requests_max)
        if window.left == 0 and not window.is_block:
            window = _Window(now_us + _WINDOW_US, 0, is_block=True)
        if window.is_block:
            self._windows[actor_id] = window
            self._ledger.refuse(CREDENTIALS_QUOTA, actor_id, self._requests_max)
            seconds = -(-(window.ends_us - now_us) // _SECOND_US)
            raise RateLimited(
                limit=self._requests_max,
                seconds=seconds,
                headers=(*self._headers(window), (b"retry-after", b"%d" % seconds)),
            )
        window = self._windows[actor_id] = window._replace(left=window.left - 1)
        return self._headers(window)

    def _headers(self, window: _Window) -> Headers:
        reset = formatdate(-(-window.ends_us // _SECOND_US), usegmt=True)
        return (
            (b"x-ratelimit-limit", b"%d" % self._requests_max),
            (b"x-ratelimit-remaining", b"%d" % window.left),
            (b"x-ratelimit-reset", reset.encode("ascii")),
        )
