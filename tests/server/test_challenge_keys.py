"""The keys of clearances in the data folder."""

import json
import stat

import msgspec
import pytest

from edgestead.server import credentials
from edgestead.server.edge import challenge_keys
from edgestead.server.edge.challenge_keys import (
    FILE_NAME,
    KEPT_SECONDS,
    KEY_SECONDS,
    SIGNS_ON_SECONDS,
    load_or_make,
)
from edgestead.server.errors import StartError
from edgestead.server.supervisor import renewal

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

    assert kept[:2] == old[:2]
    assert new.id != old.id
    assert new.secret != old.secret


def test_a_key_whose_last_clearance_is_over_is_forgotten(tmp_path):
    (old,) = load_or_make(tmp_path, NOW).keys
    load_or_make(tmp_path, NOW + KEY_SECONDS)
    ids = [key.id for key in load_or_make(tmp_path, NOW + KEY_SECONDS + KEPT_SECONDS - 1).keys]
    assert old.id in ids
    load_or_make(tmp_path, NOW + KEY_SECONDS + KEPT_SECONDS)
    assert [key["id"] for key in json.loads((tmp_path / FILE_NAME).read_text())] == ids[:-1]


def test_a_key_signs_until_soon_after_its_successor_was_made(tmp_path):
    (first,) = load_or_make(tmp_path, NOW).keys
    second, old = load_or_make(tmp_path, NOW + KEY_SECONDS + 500).keys
    assert (first.signs_until_s, second.signs_until_s) == (None, None)
    assert old.signs_until_s == NOW + KEY_SECONDS + 500 + SIGNS_ON_SECONDS


def test_renewed_credentials_make_every_key_void(tmp_path):
    credentials.load_or_make(tmp_path)
    old = load_or_make(tmp_path, NOW).keys + load_or_make(tmp_path, NOW + KEY_SECONDS).keys
    renewal.renew(tmp_path, "rotate")

    (new,) = load_or_make(tmp_path, NOW + KEY_SECONDS).keys

    assert new.id not in {key.id for key in old}
    assert [key["id"] for key in json.loads((tmp_path / FILE_NAME).read_text())] == [new.id]
    assert load_or_make(tmp_path, NOW + KEY_SECONDS).keys == (new,)


def test_keys_from_before_credentials_had_generations_go_on(tmp_path):
    stored = [{"id": "0ddba115", "secret": "5a" * 32, "made_s": NOW}]
    (tmp_path / FILE_NAME).write_text(json.dumps(stored))
    made = credentials.load_or_make(tmp_path)
    credentials.write(tmp_path, msgspec.structs.replace(made, generation=""))
    assert [key.id for key in load_or_make(tmp_path, NOW).keys] == ["0ddba115"]


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
