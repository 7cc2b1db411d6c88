"""The data folder belongs to one server, which leaves nothing behind."""

import os
import socket
import stat

import pytest

from edgestead.server.errors import StartError
from edgestead.server.folder import DataFolder, State, read_state, remove_runtime_dir


def state(runtime_dir):
    return State(
        pid=1, runtime_dir=str(runtime_dir), api_base="a", dns="b", http=None, https=None, objects=None
    )


def test_a_new_folder_is_made_and_is_private(tmp_path):
    folder = DataFolder(tmp_path / "a" / "b")

    assert stat.S_IMODE((tmp_path / "a" / "b").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "a" / "b" / "lock").stat().st_mode) == 0o600
    folder.close()


def test_a_folder_in_use_names_its_holder(tmp_path):
    holder = DataFolder(tmp_path)

    with pytest.raises(StartError, match=rf"in use by process {os.getpid()} \(") as refusal:
        DataFolder(tmp_path)

    assert "\n" not in str(refusal.value)
    holder.close()


def test_a_folder_given_back_can_be_had_again(tmp_path):
    DataFolder(tmp_path).close()

    DataFolder(tmp_path).close()

    assert (tmp_path / "lock").read_bytes() == b""


def test_whoever_inherits_the_lock_keeps_the_folder_taken(tmp_path):
    holder = DataFolder(tmp_path)
    inherited = os.dup(holder.lock_fd)
    os.close(holder.lock_fd)

    with pytest.raises(StartError, match="in use"):
        DataFolder(tmp_path)

    os.close(inherited)
    DataFolder(tmp_path).close()


def test_a_file_in_the_folders_place_is_refused(tmp_path):
    (tmp_path / "data").write_text("")

    with pytest.raises(StartError, match="cannot be used: File exists"):
        DataFolder(tmp_path / "data")


@pytest.mark.parametrize("was_ready", [True, False])
def test_the_sockets_of_a_killed_server_are_removed_by_the_next(tmp_path, monkeypatch, was_ready):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    folder = DataFolder(tmp_path / "data")
    left = folder.make_runtime_dir()
    with socket.socket(socket.AF_UNIX) as one:
        monkeypatch.chdir(left)  # the folders of tests may be too long a path
        one.bind("feed.sock")
    if was_ready:
        folder.write_state(state(left))
    os.close(folder.lock_fd)  # as a kill does: nothing else is cleaned up

    successor = DataFolder(tmp_path / "data")
    made = successor.make_runtime_dir()

    assert not left.exists()
    assert stat.S_IMODE(made.stat().st_mode) == 0o700
    successor.close()
    assert read_state(tmp_path / "data") is None


def test_a_temporary_folder_that_is_full_or_gone_is_one_line(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", "")
    monkeypatch.setattr("tempfile.tempdir", "/nonexistent")
    folder = DataFolder(tmp_path / "data")

    with pytest.raises(StartError, match="/nonexistent cannot hold the server's sockets: No such file"):
        folder.make_runtime_dir()

    folder.close()


@pytest.mark.parametrize("name", ["edgestead-with-more", "home"])
def test_a_folder_that_is_not_only_ours_is_left_alone(tmp_path, name):
    folder = tmp_path / name
    folder.mkdir()
    (folder / "letters").touch()

    remove_runtime_dir(folder)

    assert (folder / "letters").exists()


@pytest.mark.parametrize("content", [b"", b"{", b'{"pid": "x"}', b"[]"])
def test_a_broken_state_file_reads_as_none(tmp_path, content):
    (tmp_path / "server.json").write_bytes(content)

    assert read_state(tmp_path) is None
