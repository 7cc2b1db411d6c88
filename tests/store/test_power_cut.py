"""A power cut forgets each name that nobody made durable; what was acknowledged is found all the same."""

import os
from contextlib import closing

import pytest

from edgestead.sqlite import kv_copies
from edgestead.sqlite.blobs import FileBlobs
from edgestead.sqlite.connection import open_writer, sync_folder
from edgestead.sqlite.copies import copy_database, copy_file
from edgestead.sqlite.kv import BLOBS_NAME, SqliteKvStore
from edgestead.sqlite.migrate import migrate
from edgestead.sqlite.witness import Noted, Witness, read_file
from edgestead.store.kv import Incoming, Pair
from edgestead.store.migrations import Migration
from tests.support.forgetful import ForgetfulFolder

SPACE = "a" * 32
LARGE = b"v" * 300_000  # more than a row holds: it is a file
NOW = 1_800_000_000
NOTES = Migration(1, "notes", "CREATE TABLE notes (id text)")
MORE = Migration(2, "more", "CREATE TABLE more (id text)")


@pytest.fixture
def disk(tmp_path):
    """An empty folder that forgets; what is left of it goes to `after`."""
    folder = tmp_path / "folder"
    folder.mkdir()
    with (made := ForgetfulFolder(folder)).watching():
        made.folder, made.after = folder, tmp_path / "after"
        yield made


def test_the_disk_of_these_tests_forgets(disk):
    (disk.folder / "kept").write_bytes(b"1")
    with (disk.folder / "kept").open("rb") as file:
        os.fsync(file.fileno())
    (disk.folder / "empty").write_bytes(b"content that nobody synced")
    descriptor = os.open(disk.folder, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)
    (disk.folder / "forgotten").write_bytes(b"1")

    disk.leave(disk.after)

    assert {path.name: path.read_bytes() for path in disk.after.iterdir()} == {"kept": b"1", "empty": b""}


def test_a_finished_blob_is_found_again_in_a_folder_that_is_new(disk):
    writer = FileBlobs(disk.folder / "kv-blobs").create()
    writer.write(LARGE)
    writer.finish()

    disk.leave(disk.after)

    assert [path.read_bytes() for path in (disk.after / "kv-blobs").iterdir()] == [LARGE]


def test_a_finished_blob_is_found_again(disk):
    writer = FileBlobs(disk.folder).create()
    writer.write(LARGE)
    blob = writer.finish()

    disk.leave(disk.after)

    with closing(FileBlobs(disk.after).open(blob)) as reader:
        assert b"".join(reader) == LARGE


def test_a_new_database_is_found_again(disk):
    open_writer(disk.folder / "control.db").close()

    disk.leave(disk.after)

    assert (disk.after / "control.db").exists()


def test_a_copied_file_is_found_again_whole(disk, tmp_path):
    (tmp_path / "source").write_bytes(LARGE)
    copy_file(tmp_path / "source", disk.folder / "copy")
    sync_folder(disk.folder)

    disk.leave(disk.after)

    assert (disk.after / "copy").read_bytes() == LARGE


def test_a_copied_database_is_found_again(disk, tmp_path):
    open_writer(tmp_path / "source.db").close()
    copy_database(tmp_path / "source.db", disk.folder / "copy.db", lambda _: None)

    disk.leave(disk.after)

    assert (disk.after / "copy.db").exists()


def test_the_backup_before_an_upgrade_is_found_again_whole(disk):
    path = disk.folder / "control.db"
    with closing(open_writer(path)) as db:
        migrate(db, path, {"tables": [NOTES]})
        backup = migrate(db, path, {"tables": [NOTES, MORE]})
    content = backup.read_bytes()

    disk.leave(disk.after)

    assert (disk.after / backup.name).read_bytes() == content


def test_a_new_key_value_store_has_its_folder_of_files(disk):
    SqliteKvStore(disk.folder).close()

    disk.leave(disk.after)

    assert {"kv.db", BLOBS_NAME} <= {path.name for path in disk.after.iterdir()}


def test_a_witness_knows_what_it_was_told_before_its_last_flush(disk):
    witness = Witness(disk.folder / "control.db")
    witness.note(Noted(7, 70))
    witness.flush()

    disk.leave(disk.after)
    witness.close()

    assert read_file(disk.after / "control.db") == Noted(7, 70)


def test_a_value_that_goes_while_it_is_copied_is_not_in_the_copy(tmp_path):
    (tmp_path / "source").mkdir()
    (tmp_path / "copy").mkdir()
    store = SqliteKvStore(tmp_path / "source")
    for key in ("stays", "goes"):
        incoming = Incoming(store.blobs)
        incoming.write(LARGE + key.encode())
        store.put(SPACE, [Pair(key, incoming.finish())]).result(60)
    waiting = ["goes"]

    def deleted_meanwhile(_copied_bytes):
        """Called first when the database has been copied, and no file yet."""
        while waiting:
            store.delete(SPACE, [waiting.pop()]).result(60)

    kv_copies.copy_store(tmp_path / "source", tmp_path / "copy", deleted_meanwhile)
    store.close()

    assert list(kv_copies.blob_faults(tmp_path / "copy")) == []
    copy = SqliteKvStore(tmp_path / "copy")
    assert [entry.key for entry in copy.page(SPACE, now_s=NOW, limit=9).entries] == ["stays"]
    copy.close()
