"""Kept pages stay within their bound, and the one that was not asked for goes first."""

import pytest

from edgestead.services import page_cache
from edgestead.services.page_cache import PageCache


@pytest.fixture
def cache(monkeypatch):
    monkeypatch.setattr(page_cache, "PAGES_BYTES_MAX", 3 * (100 + page_cache._OVERHEAD_BYTES))
    monkeypatch.setattr(page_cache, "PAGE_BYTES_MAX", 100)
    return PageCache()


def test_a_kept_page_is_found_again_and_another_key_is_not(cache):
    cache.put("a", "page", 10)

    assert cache.get("a") == "page"
    assert cache.get("b") is None


def test_the_least_recently_used_page_goes_first(cache):
    for key in "abc":
        cache.put(key, key, 100)
    cache.get("a")

    cache.put("d", "d", 100)

    assert [cache.get(key) for key in "abcd"] == ["a", None, "c", "d"]


def test_a_large_page_is_not_kept(cache):
    cache.put("a", "page", 101)

    assert cache.get("a") is None


def test_the_same_key_again_counts_once(cache):
    for _ in range(10):
        cache.put("a", "page", 100)
    cache.put("b", "page", 100)
    cache.put("c", "page", 100)

    assert [cache.get(key) for key in "abc"] == ["page"] * 3
