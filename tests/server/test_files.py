"""A small file is the old or the new one."""

import os
import stat

import pytest

from edgestead.server import files
from tests.support.forgetful import ForgetfulFolder

NOBODY = 65_534
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can make files for others")


def test_a_replaced_file_is_private_and_leaves_no_part(tmp_path):
    path = tmp_path / "x"
    path.write_text("old")
    path.chmod(0o644)

    files.replace_private(path, b"new")

    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert os.listdir(tmp_path) == ["x"]


def test_a_write_that_fails_leaves_the_old_file_and_no_part(tmp_path, monkeypatch):
    path = tmp_path / "x"
    path.write_text("old")

    def full(_fd):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)

    with pytest.raises(OSError, match="No space"):
        files.replace_private(path, b"new")

    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["x"]


def test_a_disk_that_takes_less_than_it_was_given_is_asked_again(tmp_path, monkeypatch):
    real = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: real(fd, bytes(data)[:3]))

    files.replace_private(tmp_path / "x", b"all of it")

    assert (tmp_path / "x").read_bytes() == b"all of it"


def test_a_replaced_file_outlives_a_power_cut(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "x").write_bytes(b"old")
    disk = ForgetfulFolder(folder)

    with disk.watching():
        files.replace_private(folder / "x", b"new")
        disk.leave(tmp_path / "after")

    assert (tmp_path / "after" / "x").read_bytes() == b"new"


def test_a_missing_file_reads_as_none_and_a_huge_one_is_refused(tmp_path):
    path = tmp_path / "x"

    assert files.read_private(path) is None

    path.write_bytes(b"x" * (files.PRIVATE_FILE_BYTES_MAX + 1))
    with pytest.raises(ValueError, match="larger than"):
        files.read_private(path)


@needs_root
def test_what_root_makes_in_the_folder_of_another_user_is_that_users(tmp_path):
    os.chown(tmp_path, NOBODY, NOBODY)

    files.replace_private(tmp_path / "replaced", b"new")
    os.close(files.open_private(tmp_path / "opened"))

    assert {path.stat().st_uid for path in tmp_path.iterdir()} == {NOBODY}


@needs_root
@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_a_link_gives_nobody_the_file_of_another(tmp_path, link):
    secret, folder = tmp_path / "secret", tmp_path / "folder"
    secret.touch(mode=0o600)
    folder.mkdir()
    os.chown(folder, NOBODY, NOBODY)
    link(secret, folder / "lock")

    try:
        os.close(files.open_private(folder / "lock"))
    except OSError:
        assert link is os.symlink

    assert secret.stat().st_uid == 0
