"""A small file is the old or the new one."""

import os
import stat

import pytest

from edgestead.server import files


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


def test_a_missing_file_reads_as_none_and_a_huge_one_is_refused(tmp_path):
    path = tmp_path / "x"

    assert files.read_private(path) is None

    path.write_bytes(b"x" * (files.PRIVATE_FILE_BYTES_MAX + 1))
    with pytest.raises(ValueError, match="larger than"):
        files.read_private(path)
