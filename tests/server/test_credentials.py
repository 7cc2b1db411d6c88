"""Credentials are made once, renewed whole, and never shown by accident."""

import stat

import pytest

from edgestead.server import credentials
from edgestead.server.errors import StartError
from edgestead.server.folder import DataFolder
from edgestead.server.supervisor import renewal


def test_the_first_start_makes_what_later_starts_read(tmp_path):
    made = credentials.load_or_make(tmp_path)

    assert credentials.load_or_make(tmp_path) == made
    assert (len(made.api_token), len(made.api_key), len(made.account_id)) == (40, 37, 32)
    assert stat.S_IMODE((tmp_path / "credentials.json").stat().st_mode) == 0o600


def test_a_renewal_keeps_the_account_and_changes_both_secrets(tmp_path):
    old = credentials.load_or_make(tmp_path)

    new = credentials.renewed(old, revoke_others=False)

    assert (new.account_id, new.email) == (old.account_id, old.email)
    assert new.api_token != old.api_token
    assert new.api_key != old.api_key


def test_secrets_do_not_show_in_a_traceback(tmp_path):
    made = credentials.load_or_make(tmp_path)

    shown = repr(made) + str(made)

    assert made.api_token not in shown
    assert made.api_key not in shown


@pytest.mark.parametrize("content", [b"", b"{}", b'{"api_token": "hidden-secret"', b'{"api_token": 5}'])
def test_a_broken_file_is_refused_without_quoting_it(tmp_path, content):
    (tmp_path / "credentials.json").write_bytes(content)

    with pytest.raises(StartError, match="not a credentials file") as refusal:
        credentials.load_or_make(tmp_path)

    assert "hidden-secret" not in str(refusal.value)


def test_a_resting_folder_is_renewed_in_its_file(tmp_path):
    old = credentials.load_or_make(tmp_path)

    renewal.renew(tmp_path, "rotate")

    new = credentials.read(tmp_path)
    assert new.api_token != old.api_token
    assert not new.revoke_others


def test_a_reset_is_not_forgotten_by_a_rotation_before_the_next_start(tmp_path):
    credentials.load_or_make(tmp_path)

    renewal.renew(tmp_path, "reset")
    renewal.renew(tmp_path, "rotate")

    assert credentials.read(tmp_path).revoke_others


def test_a_folder_in_use_is_not_renewed_behind_its_servers_back(tmp_path):
    old = credentials.load_or_make(tmp_path)
    server = DataFolder(tmp_path)

    with pytest.raises(StartError, match="in use"):
        renewal.renew(tmp_path, "rotate")

    assert credentials.read(tmp_path) == old
    server.close()


def test_a_folder_that_never_had_a_server_has_nothing_to_renew(tmp_path):
    with pytest.raises(StartError, match="start the server once"):
        renewal.renew(tmp_path / "none", "rotate")

    assert not (tmp_path / "none").exists()
