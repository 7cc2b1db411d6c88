"""Links and sessions end by use, by time and by number."""

import pytest

from edgestead.web.sessions import (
    IDLE_SECONDS,
    LINK_SECONDS,
    LINKS_MAX,
    SESSION_SECONDS,
    SESSIONS_MAX,
    Sessions,
)

S = 1_000_000


class Clock:
    def __init__(self):
        self.us = 1_700_000_000 * S

    def __call__(self):
        return self.us


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def held(clock):
    return Sessions(clock)


def test_a_link_begins_one_session(held):
    link = held.make_link(tuple)

    id_ = held.enter(link)

    assert held.find(id_) is not None
    assert held.enter(link) is None


@pytest.mark.parametrize(("seconds", "holds"), [(LINK_SECONDS, True), (LINK_SECONDS + 1, False)])
def test_a_link_is_short(held, clock, seconds, holds):
    link = held.make_link(tuple)
    clock.us += seconds * S

    assert (held.enter(link) is not None) is holds


def test_a_session_ends_when_it_is_idle(held, clock):
    id_ = held.begin(tuple)
    for _ in range(3):
        clock.us += IDLE_SECONDS * S
        assert held.find(id_) is not None
    clock.us += (IDLE_SECONDS + 1) * S

    assert held.find(id_) is None
    assert len(held) == 0


def test_a_session_ends_however_much_it_is_used(held, clock):
    id_ = held.begin(tuple)
    for _ in range(SESSION_SECONDS // IDLE_SECONDS):
        clock.us += IDLE_SECONDS * S
        assert held.find(id_) is not None
    clock.us += S

    assert held.find(id_) is None


def test_the_one_that_was_used_longest_ago_makes_place(held, clock):
    ids = []
    for _ in range(SESSIONS_MAX):
        clock.us += 1
        ids.append(held.begin(tuple))
    held.find(ids[0])
    clock.us += 1
    held.begin(tuple)

    assert held.find(ids[0]) is not None
    assert held.find(ids[1]) is None
    assert len(held) == SESSIONS_MAX


def test_old_links_make_place(held):
    links = [held.make_link(tuple) for _ in range(LINKS_MAX + 1)]

    assert held.enter(links[0]) is None
    assert held.enter(links[-1]) is not None


@pytest.mark.parametrize("secret", ["", "x", "ä\ud800"])
def test_what_is_no_secret_is_nobody(held, secret):
    assert held.find(secret) is None
    assert held.enter(secret) is None
