"""A text in two files that are written in turn: replaced on a full disk, and never read by half."""

import json
import random

import pytest

from edgestead.sqlite.objectlog.files import LocalFiles
from edgestead.store import inturn
from edgestead.testing.disks import SimulatedDisk
from tests.server.small_disk import fill, small_disk, why_not

SECTOR_BYTES = 512
ROUNDS = 200


def newest(files, paths):
    found = [inturn.read(files, path, json.loads) for path in paths]
    return max((one for one in found if one is not None), key=lambda one: one["sequence"], default=None)


def text(sequence, length):
    return json.dumps({"sequence": sequence, "same": "x" * length}).encode()


@pytest.mark.skipif(bool(why_not()), reason=why_not())
def test_a_text_is_replaced_on_a_full_disk(tmp_path):
    with small_disk(tmp_path / "disk", 1) as disk:
        files, paths = LocalFiles(), (f"{disk}/a", f"{disk}/b")
        inturn.take_room(files, paths)
        assert newest(files, paths) is None
        fill(disk)
        for sequence in range(1, 6):
            inturn.write(files, paths, sequence, text(sequence, 5_000))
            assert newest(files, paths)["sequence"] == sequence


def test_of_a_write_that_a_power_cut_ended_the_text_before_is_read():
    """Sectors of the old and of the new text in any mixture: both are JSON of one length."""
    chance = random.Random(7)
    for _ in range(ROUNDS):
        disk, paths = SimulatedDisk(), ("/a", "/b")
        length = chance.choice((10, 2_000, 9_000))
        for sequence in (1, 2, 3):
            inturn.write(disk, paths, sequence, text(sequence, length))
        before = read_all(disk, "/a")
        inturn.write(disk, paths, 4, text(4, length))
        after = read_all(disk, "/a")
        starts = range(0, len(after), SECTOR_BYTES)
        mixed = b"".join(chance.choice((before, after))[at : at + SECTOR_BYTES] for at in starts)
        disk.open("/a").write(mixed, 0)

        assert newest(disk, paths) == json.loads(text(4 if mixed == after else 3, length))


def test_a_file_of_an_older_release_is_its_text():
    disk = SimulatedDisk()
    disk.open("/a", create=True).write(text(5, 10), 0)
    assert inturn.read(disk, "/a", json.loads) == json.loads(text(5, 10))
    inturn.take_room(disk, ("/a", "/b"))
    assert inturn.read(disk, "/a", json.loads) == json.loads(text(5, 10))
    disk.open("/a").write(b"[", 0)
    assert inturn.read(disk, "/a", json.loads) is None
    assert inturn.has_text(disk, "/a")
    assert not inturn.has_text(disk, "/b")


def read_all(disk, path):
    file = disk.open(path)
    return file.read(file.size(), 0)
