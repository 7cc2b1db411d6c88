"""Pages of lists that were read before, kept as long as what they were read from stays the same.

Owns  the bound on memory, and which page goes first.
Asks  nobody.
Tells `services.records`.
Not   whether a page still holds: its key carries the version that it was read from, which every reader
      takes from the database first.
"""

from collections import OrderedDict
from collections.abc import Hashable
from typing import Any

PAGES_BYTES_MAX = 8 << 20  # of all kept pages
PAGE_BYTES_MAX = 256 << 10  # a larger one is not kept
_OVERHEAD_BYTES = 512  # of a key and its place, roughly


class PageCache:
    """Least recently used goes first. One thread reads and writes it."""

    __slots__ = ("_bytes", "_pages")

    def __init__(self) -> None:
        self._pages: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._bytes = 0

    def get(self, key: Hashable) -> Any:
        """The page, or None."""
        found = self._pages.get(key)
        if found is None:
            return None
        self._pages.move_to_end(key)
        return found[0]

    def put(self, key: Hashable, page: Any, size_bytes: int) -> None:
        if size_bytes > PAGE_BYTES_MAX:
            return
        self._forget(self._pages.pop(key, None))
        self._pages[key] = (page, size_bytes)
        self._bytes += size_bytes + _OVERHEAD_BYTES
        while self._bytes > PAGES_BYTES_MAX:
            self._forget(self._pages.popitem(last=False)[1])

    def _forget(self, gone: tuple[Any, int] | None) -> None:
        if gone is not None:
            self._bytes -= gone[1] + _OVERHEAD_BYTES
