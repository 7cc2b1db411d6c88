"""Pages of lists that were answered before, kept as long as what they were read from stays the same.

Owns  the bound on memory, and which page goes first.
Asks  nobody.
Tells the handlers of lists.
Not   whether a page still holds: its key carries the version that it was read from, which every reader
      takes from the database first.
"""

from collections import OrderedDict
from collections.abc import Hashable

PAGES_BYTES_MAX = 8 << 20  # of all kept pages
PAGE_BYTES_MAX = 256 << 10  # a larger one is not kept
_OVERHEAD_BYTES = 512  # of a key and its place, roughly


class PageCache:
    """Least recently used goes first. One thread reads and writes it."""

    __slots__ = ("_bytes", "_pages")

    def __init__(self) -> None:
        self._pages: OrderedDict[Hashable, bytes] = OrderedDict()
        self._bytes = 0

    def get(self, key: Hashable) -> bytes | None:
        found = self._pages.get(key)
        if found is not None:
            self._pages.move_to_end(key)
        return found

    def put(self, key: Hashable, page: bytes) -> bytes:
        """Keep the page, unless it is larger than PAGE_BYTES_MAX; returns it."""
        if len(page) <= PAGE_BYTES_MAX:
            self._forget(self._pages.pop(key, None))
            self._pages[key] = page
            self._bytes += len(page) + _OVERHEAD_BYTES
            while self._bytes > PAGES_BYTES_MAX:
                self._forget(self._pages.popitem(last=False)[1])
        return page

    def _forget(self, gone: bytes | None) -> None:
        if gone is not None:
            self._bytes -= len(gone) + _OVERHEAD_BYTES
