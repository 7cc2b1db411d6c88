"""Files that commands read: up to a limit, and never more than it into memory."""

import io
from pathlib import Path

import pytest

from edgestead.cli.failure import Failed
from edgestead.cli.files import read_opened, read_path


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
