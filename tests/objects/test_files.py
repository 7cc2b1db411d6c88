"""Real files under the object log: what comes in parts is whole, what is opened is closed."""

import errno
import os
from pathlib import Path

import pytest

from edgestead.sqlite.objectlog.files import LocalFiles
from tests.descriptors import left_open, open_now


@pytest.fixture
def files() -> LocalFiles:
    return LocalFiles()


@pytest.mark.parametrize("at_once", [1, 3, 100])
def test_what_the_kernel_takes_and_gives_in_parts_is_whole(
    files: LocalFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    pread, pwrite = os.pread, os.pwrite
    monkeypatch.setattr(os, "pread", lambda fd, length, offset: pread(fd, min(length, at_once), offset))
    monkeypatch.setattr(os, "pwrite", lambda fd, data, offset: pwrite(fd, data[:at_once], offset))
    file = files.open(str(tmp_path / "a"), create=True)

    file.write(b"0123456789", 2)

    assert file.read(4, 3) == b"1234"
    assert file.read(100, 0) == b"\0\x000123456789"
    assert file.read(4, 10) == b"89"
    assert file.read(4, 12) == b""
    assert file.size() == 12
    file.truncate(5)
    assert (tmp_path / "a").read_bytes() == b"\0\x00012"
    file.close()


def test_a_file_is_made_only_when_that_is_asked_for(files: LocalFiles, tmp_path: Path) -> None:
    path = str(tmp_path / "a")
    with pytest.raises(FileNotFoundError):
        files.open(path)
    assert not files.exists(path)

    files.open(path, create=True).close()

    assert files.exists(path)
    assert os.stat(path).st_mode & 0o777 == 0o600
    files.remove(path)
    files.remove(path)
    assert not files.exists(path)


def test_folders_are_private_and_their_names_in_order(files: LocalFiles, tmp_path: Path) -> None:
    folder = str(tmp_path / "a/b")
    assert files.names(folder) == []

    files.make_folder(folder)
    files.make_folder(folder)
    for name in "cab":
        files.open(f"{folder}/{name}", create=True).close()

    assert os.stat(folder).st_mode & 0o777 == 0o700
    assert files.names(folder) == ["a", "b", "c"]
    assert files.identity(folder) != files.identity(str(tmp_path))


def test_nothing_stays_open(files: LocalFiles, tmp_path: Path) -> None:
    before = open_now()
    file = files.open(str(tmp_path / "a"), create=True)
    file.sync()
    held = files.lock(str(tmp_path / "lock"))
    with pytest.raises(BlockingIOError):
        files.lock(str(tmp_path / "lock"))
    files.sync_folder(str(tmp_path))
    files.sync_tree(str(tmp_path))
    for one in (file, held, file):
        one.close()

    assert not left_open(before)
    files.lock(str(tmp_path / "lock")).close()


def test_a_tree_that_cannot_be_synced_is_told(
    files: LocalFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = open_now()
    monkeypatch.setattr(files._libc, "syncfs", lambda fd: -1)

    with pytest.raises(OSError, match=str(tmp_path)):
        files.sync_tree(str(tmp_path))

    assert not left_open(before)


def test_what_was_written_is_synced(
    files: LocalFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    for name in ("fsync", "fdatasync"):
        monkeypatch.setattr(os, name, lambda fd: synced.append(os.readlink(f"/proc/self/fd/{fd}")))
    file = files.open(str(tmp_path / "a"), create=True)

    file.sync()
    files.sync_folder(str(tmp_path))

    assert synced == [str(tmp_path / "a"), str(tmp_path)]
    file.close()


def test_a_write_that_fails_is_told(
    files: LocalFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    file = files.open(str(tmp_path / "a"), create=True)
    monkeypatch.setattr(os, "pwrite", refuse)

    with pytest.raises(OSError, match="No space"):
        file.write(b"x", 0)
    file.close()
