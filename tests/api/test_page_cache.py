"""Kept pages stay within their bound, and the one that was not asked for goes first."""

import pytest

from edgestead.api import page_cache
from edgestead.api.page_cache import PageCache

PAGE = b"x" * 100


@pytest.fixture
def cache(monkeypatch):
    """Room for three pages."""
    monkeypatch.setattr(page_cache, "PAGES_BYTES_MAX", 3 * (100 + page_cache._OVERHEAD_BYTES))
    monkeypatch.setattr(page_cache, "PAGE_BYTES_MAX", 100)
    return PageCache()


def test_a_kept_page_is_found_again_and_another_key_is_not(cache):
    assert cache.put("a", b"page") == b"page"

    assert cache.get("a") == b"page"
    assert cache.get("b") is None


def test_the_least_recently_used_page_goes_first(cache):
    for key in "abc":
        cache.put(key, PAGE)
    cache.get("a")

    cache.put("d", PAGE)

    assert [cache.get(key) for key in "abcd"] == [PAGE, None, PAGE, PAGE]


def test_a_large_page_is_handed_back_and_not_kept(cache):
    assert cache.put("a", PAGE + b"x") == PAGE + b"x"
    assert cache.get("a") is None


def test_the_same_key_again_counts_once(cache):
    for _ in range(10):
        cache.put("a", PAGE)
    cache.put("b", PAGE)
    cache.put("c", PAGE)

    assert [cache.get(key) for key in "abc"] == [PAGE] * 3
