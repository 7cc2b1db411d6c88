"""The data folder belongs to one server, which leaves nothing behind."""

import contextlib
import os
import shutil
import socket
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from edgestead.server import files, runtime
from edgestead.server.errors import StartError
from edgestead.server.folder import DataFolder, State, read_state
from tests.support.forgetful import ForgetfulFolder


def state(runtime_dir):
    return State(
        pid=1, runtime_dir=str(runtime_dir), api_base="a", dns="b", http=None, https=None, objects=None
    )


def test_a_new_folder_is_made_and_is_private(tmp_path):
    folder = DataFolder(tmp_path / "a" / "b")

    assert stat.S_IMODE((tmp_path / "a" / "b").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "a" / "b" / "lock").stat().st_mode) == 0o600
    folder.close()


def test_a_new_folder_outlives_a_power_cut_with_those_above_it(tmp_path):
    top = tmp_path / "top"
    top.mkdir()
    disk = ForgetfulFolder(top)

    with disk.watching():
        folder = DataFolder(top / "some" / "where" / "data")
        files.replace_private(folder.path / "kept", b"acknowledged")
        disk.leave(tmp_path / "after")
    folder.close()

    assert (tmp_path / "after/some/where/data/kept").read_bytes() == b"acknowledged"


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
    for held in (folder.lock_fd, folder.runtime_fd):  # as a kill does: nothing else is cleaned up
        os.close(held)

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

    runtime.remove(folder)

    assert (folder / "letters").exists()


@pytest.mark.parametrize("content", [b"", b"{", b'{"pid": "x"}', b"[]"])
def test_a_broken_state_file_reads_as_none(tmp_path, content):
    (tmp_path / "server.json").write_bytes(content)

    assert read_state(tmp_path) is None


# What killed servers leave.


def killed(folder):
    """Its holder is dead and buried, and an orphan still holds it; gives what ends the orphan."""
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    os.pwrite(folder.lock_fd, f"{gone.pid}\n".encode(), 0)

    def end():
        os.close(folder.lock_fd)
        if folder.runtime_fd is not None:
            os.close(folder.runtime_fd)

    return end


@pytest.mark.parametrize("has_sockets", [False, True])
def test_a_start_waits_for_the_orphans_of_a_killed_server(tmp_path, monkeypatch, has_sockets):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    folder = DataFolder(tmp_path / "data")
    left = folder.make_runtime_dir() if has_sockets else None
    end, looks = killed(folder), []

    def look(seconds):
        looks.append(seconds)
        if len(looks) == 3:
            end()

    monkeypatch.setattr("time.sleep", look)
    successor = DataFolder(tmp_path / "data")
    successor.make_runtime_dir()

    assert len(looks) == 3
    assert left is None or not left.exists()
    successor.close()


def test_orphans_that_stay_are_told_of(tmp_path, monkeypatch):
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    folder = DataFolder(tmp_path)
    end = killed(folder)

    with pytest.raises(StartError, match="is in use by process"):
        DataFolder(tmp_path)

    end()


def test_orphans_that_still_have_the_ports_are_waited_for_and_told_of(tmp_path, monkeypatch):
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    folder = DataFolder(tmp_path / "data")
    left = folder.make_runtime_dir()
    os.close(folder.lock_fd)

    successor = DataFolder(tmp_path / "data")
    with pytest.raises(StartError, match=f"still run, with sockets in {left}"):
        successor.make_runtime_dir()

    successor.close()
    os.close(folder.runtime_fd)


def test_a_copy_of_a_live_folder_is_nobody_elses(tmp_path, monkeypatch, caplog):
    """It said that processes of a killed server still run; commands for it reached the original's server."""
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    original = DataFolder(tmp_path / "data")
    left = original.make_runtime_dir()
    original.write_state(state(left))
    shutil.copytree(tmp_path / "data", tmp_path / "copy")

    assert read_state(tmp_path / "data").runtime_dir == str(left)
    assert read_state(tmp_path / "copy") is None
    copy = DataFolder(tmp_path / "copy")
    made = copy.make_runtime_dir()

    assert "is a copy of one whose server was running" in caplog.text
    assert left.exists()
    assert made != left
    copy.close()
    original.close()


def make_left(base, name, *, listens=None, age_seconds=0):
    """A folder as servers leave it: without sockets, with a dead one, with one that somebody listens on."""
    made = base / f"edgestead-{name}"
    made.mkdir()
    if listens is not None:
        one = socket.socket(socket.AF_UNIX)
        with contextlib.chdir(made):
            one.bind("feed.sock")
        if listens:
            one.listen()
        else:
            one.close()
        yield one
    os.utime(made, (time.time() - age_seconds,) * 2)
    yield made


LEFT = [
    ("a killed server's", {"listens": False}, False),
    ("one that somebody listens in", {"listens": True}, True),
    ("one that was just made", {}, True),
    ("one that nobody ever used", {"age_seconds": 2 * runtime.UNUSED_SECONDS}, False),
]


@pytest.mark.parametrize(("what", "how", "stays"), LEFT, ids=[row[0] for row in LEFT])
def test_servers_that_are_dead_are_swept_up_after(tmp_path, what, how, stays):
    *opened, left = make_left(tmp_path, "1", **how)

    runtime.sweep(tmp_path)

    assert left.exists() is stays
    for one in opened:
        one.close()


def test_a_folder_that_a_process_holds_is_not_swept(tmp_path):
    *_, left = make_left(tmp_path, "1", listens=False)
    held = runtime.hold(left)
    runtime.sweep(tmp_path)
    assert left.exists()

    os.close(held)
    runtime.sweep(tmp_path)

    assert not left.exists()


def test_each_start_sweeps_where_it_makes_its_own(tmp_path, monkeypatch):
    swept = []
    monkeypatch.setattr(runtime, "sweep", swept.append)
    folder = DataFolder(tmp_path)

    assert [folder.make_runtime_dir().parent] == swept
    folder.close()


def test_every_child_holds_the_folder(edge_server):
    left = Path(read_state(edge_server.data_dir).runtime_dir)

    for pid in edge_server.children().values():
        held = {os.path.realpath(fd) for fd in Path(f"/proc/{pid}/fd").iterdir()}
        assert str(left.resolve()) in held
