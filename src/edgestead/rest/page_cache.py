"""Answers that were given before, kept as long as what they were read from stays the same.

Owns  the bound on memory, which page goes first, when a page still holds.
Not   who may see a page: permissions are decided before it is asked for. What a key says.

A page holds while the store's `groups` is what it was before the page was read: nothing at all was written.
After that it holds again when the version of what it shows turns out to be the same.
"""

from collections import OrderedDict
from collections.abc import Hashable

PAGES_BYTES_MAX = 8 << 20  # of all kept pages
PAGE_BYTES_MAX = 256 << 10  # a larger one is not kept
_OVERHEAD_BYTES = 1_024  # of a key and its place, roughly


class _Kept:
    __slots__ = ("groups", "page", "version")

    def __init__(self, groups: int, version: int, page: bytes) -> None:
        self.groups = groups
        self.version = version
        self.page = page


class PageCache:
    """Least recently used goes first. One thread reads and writes it."""

    __slots__ = ("_bytes", "_pages")

    def __init__(self) -> None:
        self._pages: OrderedDict[Hashable, _Kept] = OrderedDict()
        self._bytes = 0

    def get(self, key: Hashable, groups: int) -> bytes | None:
        """The page, if nothing was written since it was read."""
        found = self._pages.get(key)
        if found is None or found.groups != groups:
            return None
        self._pages.move_to_end(key)
        return found.page

    def renewed(self, key: Hashable, groups: int, version: int) -> bytes | None:
        """The page, if what it shows has still this version. `groups` was taken before that was read."""
        found = self._pages.get(key)
        if found is None or found.version != version:
            return None
        found.groups = groups
        self._pages.move_to_end(key)
        return found.page

    def put(self, key: Hashable, groups: int, version: int, page: bytes) -> bytes:
        """Keep the page, unless it is larger than PAGE_BYTES_MAX or its key is None; returns it.

        `groups` was taken before the page was read.
        """
        if key is not None and len(page) <= PAGE_BYTES_MAX:
            self._forget(self._pages.pop(key, None))
            self._pages[key] = _Kept(groups, version, page)
            self._bytes += len(page) + _OVERHEAD_BYTES
            while self._bytes > PAGES_BYTES_MAX:
                self._forget(self._pages.popitem(last=False)[1])
        return page

    def _forget(self, gone: _Kept | None) -> None:
        if gone is not None:
            self._bytes -= len(gone.page) + _OVERHEAD_BYTES
