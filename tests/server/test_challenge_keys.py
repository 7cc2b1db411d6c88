"""The keys of clearances in the data folder."""

import json
import stat

import pytest

from edgestead.server import challenge_keys
from edgestead.server.challenge_keys import FILE_NAME, KEPT_SECONDS, KEY_SECONDS, load_or_make
from edgestead.server.errors import StartError

NOW = 1_700_000_000


def test_the_first_start_makes_a_key_that_stays(tmp_path):
    kept = load_or_make(tmp_path, NOW)
    (key,) = kept.keys

    assert (len(key.id), len(key.secret)) == (8, 32)
    assert kept.due_s == NOW + KEY_SECONDS
    assert load_or_make(tmp_path, NOW + KEY_SECONDS - 1) == kept
    assert stat.S_IMODE((tmp_path / FILE_NAME).stat().st_mode) == 0o600


def test_a_key_that_is_due_gets_a_successor_and_verifies_on(tmp_path):
    (old,) = load_or_make(tmp_path, NOW).keys
    new, kept = load_or_make(tmp_path, NOW + KEY_SECONDS).keys

    assert kept == old
    assert new.id != old.id
    assert new.secret != old.secret


def test_a_key_whose_last_clearance_is_over_is_forgotten(tmp_path):
    (old,) = load_or_make(tmp_path, NOW).keys
    load_or_make(tmp_path, NOW + KEY_SECONDS)
    assert old in load_or_make(tmp_path, NOW + KEPT_SECONDS - 1).keys
    assert old not in load_or_make(tmp_path, NOW + KEPT_SECONDS).keys
    assert len(json.loads((tmp_path / FILE_NAME).read_text())) == 3


DAMAGED = [
    b"",
    b"{}",
    b"[{}]",
    b'[{"id":"a","secret":"zz","made_s":1}]',
    b'[{"id":"a","secret":"00","made_s":1}]',
]


@pytest.mark.parametrize("content", DAMAGED)
def test_a_damaged_file_is_not_replaced_and_not_quoted(tmp_path, content):
    (tmp_path / FILE_NAME).write_bytes(content)
    with pytest.raises(StartError, match="holds no keys") as refused:
        load_or_make(tmp_path, NOW)
    assert (tmp_path / FILE_NAME).read_bytes() == content
    assert "zz" not in str(refused.value)


def test_a_folder_that_takes_no_file_is_a_clear_error(tmp_path):
    with pytest.raises(StartError, match="cannot be written"):
        load_or_make(tmp_path / "none", NOW)


def test_a_stored_key_never_shows_its_secret(tmp_path):
    load_or_make(tmp_path, NOW)
    (stored,) = challenge_keys._read(tmp_path / FILE_NAME)
    assert stored.secret not in repr(stored)
