"""Files that commands read: up to a limit, and never more than it into memory."""

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
