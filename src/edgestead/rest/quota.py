"""How many requests each user may make in five minutes.

Owns  the counts of the window, the block that follows too many, the headers that say so; adding up what
      several processes have counted.
Not   connections (`http1.connections`); strangers, whom no route serves; when processes tell one another.

Contract "Headers" and "Generic failures": a user's requests are counted over all credentials; one too many
blocks all of them for the next five minutes. Counts live in memory: a restart forgets them.

In a cluster the leader adds up. Another node tells what it has let through since it told last (`untold`), the
leader counts that as its own (`add`), and answers with the windows as they are then, from which the other
goes on (`learn`). So they differ by what came to other nodes since, and a request is never counted twice:
what becomes of a message that is lost is not told again. Times travel as what is left of them.
"""

from collections.abc import Mapping
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


class Told(NamedTuple):
    """Of one user. `requests` are new; `block_us` is what is left of the block, 0 without one."""

    requests: int
    block_us: int


class Sum(NamedTuple):
    """A user's window as the leader has it, which ends so much later."""

    ends_in_us: int
    left: int
    is_block: bool


class Quota:
    """Used by one event loop. There are as many windows as users and accounts, which are few."""

    def __init__(self, requests_max: int, ledger: Ledger | None = None) -> None:
        self._requests_max = requests_max
        self._ledger = ledger or Ledger()
        self._windows: dict[str, _Window] = {}
        self._untold: dict[str, int] | None = None  # by user, where somebody adds up

    def take(self, actor_id: str, now_us: int) -> Headers:
        """Count one request; the headers for its answer. Raises RateLimited, with those headers."""
        window = self._window(actor_id, now_us)
        if window.left == 0 and not window.is_block:
            window = _Window(now_us + _WINDOW_US, 0, is_block=True)
            if self._untold is not None:
                self._untold.setdefault(actor_id, 0)
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
        if self._untold is not None:
            self._untold[actor_id] = self._untold.get(actor_id, 0) + 1
        return self._headers(window)

    # Several processes.

    def untold(self, now_us: int) -> dict[str, Told]:
        """What this process has let through since it was asked last; from the first time on it is kept."""
        counts, self._untold = self._untold or {}, {}
        return {actor_id: Told(count, self._block_us(actor_id, now_us)) for actor_id, count in counts.items()}

    def forget_untold(self) -> None:
        """This process adds up."""
        self._untold = {}

    def add(self, told: Mapping[str, Told], now_us: int) -> dict[str, Sum]:
        """Count what another process has let through; the windows of those users."""
        sums = {}
        for actor_id, (count, block_us) in told.items():
            window = self._window(actor_id, now_us)
            if block_us and not window.is_block:
                window = _Window(now_us + min(block_us, _WINDOW_US), 0, is_block=True)
            window = self._windows[actor_id] = window._replace(left=max(0, window.left - count))
            sums[actor_id] = Sum(window.ends_us - now_us, window.left, window.is_block)
        return sums

    def learn(self, sums: Mapping[str, Sum], now_us: int) -> None:
        """Go on from what the process says that adds up, less what came here since."""
        for actor_id, (ends_in_us, left, is_block) in sums.items():
            since = (self._untold or {}).get(actor_id, 0)
            if not self._block_us(actor_id, now_us):  # or a request too many came here meanwhile
                self._windows[actor_id] = _Window(now_us + ends_in_us, max(0, left - since), is_block)

    def _window(self, actor_id: str, now_us: int) -> _Window:
        window = self._windows.get(actor_id)
        if window is None or window.ends_us <= now_us:
            return _Window(now_us + _WINDOW_US, self._requests_max)
        return window

    def _block_us(self, actor_id: str, now_us: int) -> int:
        window = self._windows.get(actor_id)
        return max(0, window.ends_us - now_us) if window is not None and window.is_block else 0

    def _headers(self, window: _Window) -> Headers:
        reset = formatdate(-(-window.ends_us // _SECOND_US), usegmt=True)
        return (
            (b"x-ratelimit-limit", b"%d" % self._requests_max),
            (b"x-ratelimit-remaining", b"%d" % window.left),
            (b"x-ratelimit-reset", reset.encode("ascii")),
        )
