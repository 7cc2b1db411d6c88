"""Files that commands read: up to a limit, and never more than it into memory."""

import errno
import io
import os
import threading
from pathlib import Path

import pytest

from edgestead.cli.failure import Failed
from edgestead.cli.files import read_opened, read_path, written


def test_a_file_as_long_as_it_may_be_is_read_whole(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"1234")

    assert read_path(tmp_path / "a", 4) == b"1234"


def test_of_a_longer_file_only_one_octet_more_is_read(tmp_path: Path) -> None:
    endless = io.BytesIO(b"1" * 1_000)

    with pytest.raises(Failed, match="the rest is larger than 4 bytes"):
        read_opened(endless, "the rest", 4)
    assert endless.tell() == 5


def test_what_cannot_be_read_is_named_with_the_reason(tmp_path: Path) -> None:
    with pytest.raises(Failed, match="a cannot be read: No such file or directory"):
        read_path(tmp_path / "a", 4)
    with pytest.raises(Failed, match="Is a directory"):
        read_path(tmp_path, 4)


@pytest.mark.parametrize(
    "error", [Failed("cut"), KeyboardInterrupt(), OSError(28, "No space left on device")]
)
def test_what_is_not_written_whole_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, error: BaseException
) -> None:
    zone = tmp_path / "zone"
    zone.write_bytes(b"old")

    def write() -> None:
        with written(zone) as file:
            file.write(b"half")
            raise error

    with pytest.raises(type(error)):
        write()

    assert zone.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [zone]


def test_a_disk_that_is_full_is_told_with_the_file(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="zone") as told, written(tmp_path / "zone"):
        raise OSError(28, "No space left on device")

    assert told.value.filename == str(tmp_path / "zone")


def test_what_is_written_whole_has_the_mode_of_what_it_replaces_and_the_links_to_it(tmp_path: Path) -> None:
    zone, link = tmp_path / "zone", tmp_path / "link"
    zone.write_bytes(b"old")
    zone.chmod(0o640)
    link.symlink_to(zone)

    with written(link) as file:
        file.write(b"new")

    assert (link.is_symlink(), zone.read_bytes(), zone.stat().st_mode & 0o777) == (True, b"new", 0o640)


def test_nobody_else_reads_what_is_being_written(tmp_path: Path) -> None:
    zone = tmp_path / "zone"
    zone.write_bytes(b"old")
    zone.chmod(0o600)

    with written(zone) as file:
        file.write(b"new")
        modes = {one.stat().st_mode & 0o077 for one in tmp_path.iterdir()}

    assert modes == {0}


def test_what_a_command_that_was_killed_left_is_in_nobodys_way(tmp_path: Path) -> None:
    """In a container each command may have the same process id."""
    left = tmp_path / f".zone.{os.getpid()}"
    left.touch()

    with written(tmp_path / "zone") as file:
        file.write(b"new")

    assert sorted(tmp_path.iterdir()) == [left, tmp_path / "zone"]


def test_a_new_file_has_the_mode_that_the_umask_leaves(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        with written(tmp_path / "zone") as file:
            file.write(b"new")
    finally:
        os.umask(before)

    assert (tmp_path / "zone").stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("refused", ["tempfile.mkstemp", "pathlib.Path.replace"])
@pytest.mark.parametrize("number", [errno.EACCES, errno.EPERM, errno.EROFS, errno.EBUSY])
def test_a_file_whose_folder_takes_no_other_one_is_written_in_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: str, number: int
) -> None:
    """One that is mounted by itself, say."""

    def refuse(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    zone = tmp_path / "zone"
    zone.write_bytes(b"old and longer")
    inode = zone.stat().st_ino
    monkeypatch.setattr(refused, refuse)

    with written(zone) as file:
        file.write(b"new")

    assert (zone.read_bytes(), zone.stat().st_ino, list(tmp_path.iterdir())) == (b"new", inode, [zone])


@pytest.mark.parametrize(("may_give", "mode"), [({-1}, 0o640), (set(), 0o600)])
def test_the_callers_group_does_not_get_what_the_files_group_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, may_give: set[int], mode: int
) -> None:
    given = []

    def fchown(descriptor: int, uid: int, gid: int) -> None:
        if uid not in may_give:
            raise PermissionError(errno.EPERM, "Operation not permitted")
        given.append(gid)

    zone = tmp_path / "zone"
    zone.write_bytes(b"old")
    zone.chmod(0o640)
    monkeypatch.setattr(os, "fchown", fchown)

    with written(zone) as file:
        file.write(b"new")

    assert given == [zone.stat().st_gid] * len(may_give)
    assert zone.stat().st_mode & 0o777 == mode


def test_pipes_and_devices_are_written_to_as_they_are(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append((tmp_path / "pipe").read_bytes()), daemon=True)
    reader.start()
    plain = (tmp_path / "plain").open("ab")

    with written(tmp_path / "pipe") as file:
        file.write(b"through")
    with plain, written(Path(f"/proc/self/fd/{plain.fileno()}")) as file:
        file.write(b"into")

    reader.join()
    assert read == [b"through"]
    assert os.stat(plain.name).st_ino == (tmp_path / "plain").stat().st_ino
    assert (tmp_path / "plain").read_bytes() == b"into"
