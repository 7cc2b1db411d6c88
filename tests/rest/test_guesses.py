"""Credentials that nobody has are counted by network; good ones are taken whatever came before."""

import logging

import pytest

from edgestead.model.budgets.table import ADDRESS_GUESSES, TRACKED_MAX
from edgestead.model.refusals.access import NoCredentials, TooManyGuesses, UnknownKeyPair
from edgestead.rest.guesses import Guesses
from edgestead.rest.objects_face import refused
from tests.support.api import BEARER, KEY_PAIR, LocalApi

LIMIT = 3
GUESS_SECONDS = ADDRESS_GUESSES.seconds
NOW_US = 1_700_000_000_000_000
END_US = NOW_US + GUESS_SECONDS * 1_000_000
UNKNOWN = {"authorization": f"Bearer {'x' * 40}"}
WRONG = [
    UNKNOWN,
    {"authorization": "Basic eDp5"},
    {"x-auth-email": KEY_PAIR["x-auth-email"], "x-auth-key": "0" * 37},
    {"x-auth-key": "0" * 37},
]


@pytest.fixture
def limited(tmp_path):
    made = LocalApi(tmp_path, guesses_max=LIMIT)
    yield made
    made.close()


@pytest.mark.parametrize("wrong", WRONG)
def test_more_than_the_limit_are_asked_to_wait_and_good_ones_are_not(limited, wrong):
    before = [limited.get("/zones", auth=wrong).status for _ in range(LIMIT)]
    after = limited.get("/zones", auth=wrong)

    assert 429 not in before
    assert (after.status, after.codes) == (429, [10430])
    assert 1 <= int(after.headers["retry-after"]) <= GUESS_SECONDS
    assert [limited.get("/zones", auth=good).status for good in (BEARER, KEY_PAIR)] == [200, 200]
    assert limited.get("/zones", auth=wrong).status == 429


def test_nothing_sent_and_nothing_permitted_is_no_guess(limited):
    for _ in range(LIMIT + 1):
        assert limited.get("/zones", auth={}).status == 400
        assert limited.get("/zones/" + "0" * 32, auth=BEARER).status in (403, 404)
    assert limited.get("/zones", auth=UNKNOWN).status == 403


def test_a_process_that_was_told_no_limit_has_none(tmp_path):
    api = LocalApi(tmp_path)
    assert {api.get("/zones", auth=UNKNOWN).status for _ in range(100)} == {403}
    api.close()


def sent(guesses, client, now_us, times=1):
    """The seconds to wait after the last of so many, None for the plain refusal."""
    for _ in range(times):
        found = guesses.refusal(UnknownKeyPair(), client, now_us)
    return found.facts["seconds"] if isinstance(found, TooManyGuesses) else None


NETWORKS = [
    ("192.0.2.7", "192.0.2.7", True),
    ("192.0.2.7", "192.0.2.8", False),
    ("2001:db8::1", "2001:db8::ffff:1", True),
    ("2001:db8::1", "2001:db8:0:1::1", False),
]


@pytest.mark.parametrize(("one", "other", "together"), NETWORKS)
def test_one_address_or_network_of_64_bits_counts_together(one, other, together):
    guesses = Guesses(LIMIT)
    sent(guesses, one, NOW_US, LIMIT)
    assert (sent(guesses, other, NOW_US) is not None) is together


def test_a_minute_after_the_first_the_count_begins_anew():
    guesses = Guesses(LIMIT)
    assert sent(guesses, "192.0.2.7", NOW_US, LIMIT) is None
    assert sent(guesses, "192.0.2.7", NOW_US + 1_000_001) == GUESS_SECONDS - 1
    assert sent(guesses, "192.0.2.7", END_US - 1) == 1
    assert sent(guesses, "192.0.2.7", END_US) is None


def test_a_clock_that_is_set_back_keeps_nobody_waiting():
    guesses = Guesses(LIMIT)
    assert sent(guesses, "192.0.2.7", NOW_US, LIMIT + 1)
    assert sent(guesses, "192.0.2.7", NOW_US - 1) is None


def test_the_table_is_bounded_and_gives_up_the_oldest_count():
    guesses = Guesses(LIMIT)
    sent(guesses, "192.0.2.7", NOW_US, LIMIT)
    for number in range(TRACKED_MAX):
        sent(guesses, f"10.{number >> 8}.{number & 255}.1", NOW_US)
    assert len(guesses._windows) == TRACKED_MAX
    assert sent(guesses, "192.0.2.7", NOW_US) is None


def test_the_objects_address_says_when_to_come_again_too():
    answer = refused(TooManyGuesses(limit=LIMIT, seconds=7))
    assert (answer.status, dict(answer.headers)[b"retry-after"]) == (429, b"7")


def test_each_counts_and_a_flood_is_one_line_without_the_credentials(caplog):
    counted = []
    guesses = Guesses(LIMIT, lambda: counted.append(1))
    with caplog.at_level(logging.INFO, "edgestead.server"):
        sent(guesses, "192.0.2.7", NOW_US, LIMIT + 5)
        sent(guesses, "192.0.2.8", NOW_US, LIMIT)
        guesses.refusal(NoCredentials(), "192.0.2.8", NOW_US)
    assert len(counted) == LIMIT + 5 + LIMIT
    (line,) = caplog.messages
    assert "address_guesses" in line
    assert "192.0.2.7" in line
