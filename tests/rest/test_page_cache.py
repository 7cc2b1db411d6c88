"""Kept pages stay within their bound, and the one that was not asked for goes first."""

import pytest

from edgestead.rest import page_cache
from edgestead.rest.page_cache import PageCache

PAGE = b"x" * 100


@pytest.fixture
def cache(monkeypatch):
    """Room for three pages."""
    monkeypatch.setattr(page_cache, "PAGES_BYTES_MAX", 3 * (100 + page_cache._OVERHEAD_BYTES))
    monkeypatch.setattr(page_cache, "PAGE_BYTES_MAX", 100)
    return PageCache()


def test_a_kept_page_is_found_again_and_another_key_is_not(cache):
    assert cache.put("a", 1, 1, b"page") == b"page"

    assert cache.get("a", 1) == b"page"
    assert cache.get("b", 1) is None


def test_the_least_recently_used_page_goes_first(cache):
    for key in "abc":
        cache.put(key, 1, 1, PAGE)
    cache.get("a", 1)

    cache.put("d", 1, 1, PAGE)

    assert [cache.get(key, 1) for key in "abcd"] == [PAGE, None, PAGE, PAGE]


def test_a_large_page_is_handed_back_and_not_kept(cache):
    assert cache.put("a", 1, 1, PAGE + b"x") == PAGE + b"x"
    assert cache.get("a", 1) is None


def test_the_same_key_again_counts_once(cache):
    for _ in range(10):
        cache.put("a", 1, 1, PAGE)
    cache.put("b", 1, 1, PAGE)
    cache.put("c", 1, 1, PAGE)

    assert [cache.get(key, 1) for key in "abc"] == [PAGE] * 3


def test_a_page_holds_until_something_is_written(cache):
    cache.put("a", 1, 7, PAGE)

    assert cache.get("a", 1) == PAGE
    assert cache.get("a", 2) is None


def test_a_page_whose_version_stayed_holds_again(cache):
    cache.put("a", 1, 7, PAGE)

    assert cache.renewed("a", 2, 8) is None
    assert cache.get("a", 1) == PAGE
    assert cache.renewed("a", 2, 7) == PAGE
    assert (cache.get("a", 1), cache.get("a", 2)) == (None, PAGE)
    assert cache.renewed("b", 2, 7) is None


def test_a_page_without_a_key_is_not_kept(cache):
    assert cache.put(None, 1, 7, PAGE) == PAGE
    assert cache.get(None, 1) is None
