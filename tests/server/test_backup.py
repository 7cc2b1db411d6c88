"""Backups: made while a server is written to, brought back into another folder, and examined."""

import fcntl
import hashlib
import http.client
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing

import pytest

from edgestead.server import backup
from edgestead.server.folder import DataFolder
from edgestead.testing.server import EdgeServer, environment
from tests.support.forgetful import ForgetfulFolder

MIB = 1 << 20
LARGE = "v" * 600_000  # more than a row holds: it is a file
DAMAGES = {  # what somebody does to a backup, and where `verify` sees it
    "a byte of a database": ("control.db", lambda path: _flip(path, path.stat().st_size // 2)),
    "a file of values is cut": ("kv-blobs", lambda path: os.truncate(next(path.iterdir()), 1_000)),
    "a file of values is missing": ("kv-blobs", lambda path: next(path.iterdir()).unlink()),
    "the credentials are missing": ("credentials.json", lambda path: path.unlink()),
    "the keys of clearances are missing": ("challenge-keys.json", lambda path: path.unlink()),
}


def _flip(path, at):
    with path.open("r+b") as file:
        file.seek(at)
        octet = file.read(1)[0]
        file.seek(at)
        file.write(bytes([octet ^ 0xFF]))


def edgecli(*arguments):
    return subprocess.run(
        [sys.executable, "-P", "-m", "edgestead", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=300,
        env=environment(),
    )


def done(*arguments):
    finished = edgecli(*arguments)
    assert finished.returncode == 0, finished.stdout + finished.stderr
    return finished.stdout


def fill(server):
    """A zone and values, small and large."""
    zone = server.make_zone("example.com")
    server.make_record(zone, "A", "www", "192.0.2.1")
    kv = f"/accounts/{server.ready['account_id']}/storage/kv/namespaces"
    server.space = f"{kv}/{server.call('POST', kv, {'title': 'texts'}).result['id']}"
    values = [{"key": "small", "value": "s"}, {"key": "large", "value": LARGE}]
    assert server.call("PUT", f"{server.space}/bulk", values).status == 200
    return server


@pytest.fixture
def filled(edge_server):
    return fill(edge_server)


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    """A server with something in it for all tests that only read it."""
    server = EdgeServer(tmp_path_factory.mktemp("running") / "data").start()
    yield fill(server)
    server.close()


def serial(server, zone="example.com"):
    return int(server.dig(zone, "SOA")[0].split()[2])


def visit(server, host, path):
    """The status that the edge answers."""
    connection = http.client.HTTPConnection(server.ready["http"], timeout=300)
    connection.request("GET", path, headers={"Host": host})
    with closing(connection):
        return connection.getresponse().status


def events_of(server, zone):
    return server.call("GET", f"/zones/{zone}/security/events").result


def test_a_backup_of_a_running_server_is_a_server_again(filled, new_server, tmp_path):
    before = serial(filled)
    said = done("backup", tmp_path / "backup", "--data-dir", filled.data_dir)
    assert f", {backup.bytes_taken(tmp_path / 'backup')} bytes on the disk." in said
    assert "is whole" in done("verify", tmp_path / "backup")
    filled.stop()

    again = new_server(name="again")
    done("restore", tmp_path / "backup", "--data-dir", again.data_dir)
    again.start()

    assert again.ready["api_token"] == filled.ready["api_token"]
    assert again.dig("www.example.com") == ["192.0.2.1"]
    assert again.call("GET", f"{filled.space}/values/small").body == "s"
    assert again.call("GET", f"{filled.space}/values/large").body == LARGE
    again.wait_until(lambda: serial(again) > before, 300)
    again.make_record(again.call("GET", "/zones").result[0]["id"], "A", "new", "192.0.2.2")
    assert again.dig("new.example.com") == ["192.0.2.2"]
    assert "is whole" in done("verify", "--data-dir", again.data_dir)


def test_what_a_folder_takes_is_counted_without_its_holes(tmp_path):
    (tmp_path / "full").write_bytes(os.urandom(MIB))
    (tmp_path / "hole").touch()
    os.truncate(tmp_path / "hole", 64 * MIB)

    assert MIB <= backup.bytes_taken(tmp_path) < 2 * MIB


def test_events_and_clearances_survive_a_loss(edge_server, new_server, tmp_path):
    zone = edge_server.make_zone("example.com")
    rule = {"action": "block", "expression": 'http.request.uri.path eq "/no"'}
    phase = f"/zones/{zone}/rulesets/phases/http_request_firewall_custom/entrypoint"
    assert edge_server.call("PUT", phase, {"rules": [rule]}).status == 200
    edge_server.make_record(zone, "A", "www", "127.0.0.1", proxied=True)
    assert visit(edge_server, "www.example.com", "/no") == 403
    edge_server.wait_until(lambda: events_of(edge_server, zone), 300)
    event = events_of(edge_server, zone)

    done("backup", tmp_path / "backup", "--data-dir", edge_server.data_dir)
    edge_server.stop()
    again = new_server(name="again")
    done("restore", tmp_path / "backup", "--data-dir", again.data_dir)
    again.start()

    assert events_of(again, zone) == event
    assert visit(again, "www.example.com", "/no") == 403
    again.wait_until(lambda: len(events_of(again, zone)) == 2, 300)
    keys = [(server.data_dir / "challenge-keys.json").read_bytes() for server in (edge_server, again)]
    assert keys[0] == keys[1]


def test_everything_acknowledged_before_is_in_a_backup_made_under_load(filled, new_server, tmp_path):
    acknowledged, stop = [], threading.Event()
    zone = filled.call("GET", "/zones").result[0]["id"]

    def write():
        while not stop.is_set():
            name = f"n{len(acknowledged)}"
            if filled.make_record(zone, "A", name, "192.0.2.7").status == 200:
                acknowledged.append(name)
                filled.call("PUT", f"{filled.space}/bulk", [{"key": "large", "value": LARGE + name}])

    writer = threading.Thread(target=write)
    writer.start()
    try:
        filled.wait_until(lambda: len(acknowledged) >= 5 or not writer.is_alive(), 300)
        before = list(acknowledged)
        done("backup", tmp_path / "backup", "--data-dir", filled.data_dir)
    finally:
        stop.set()
        writer.join()

    assert "is whole" in done("verify", tmp_path / "backup")
    again = new_server(name="again")
    done("restore", tmp_path / "backup", "--data-dir", again.data_dir)
    again.start()
    assert [name for name in before if again.dig(f"{name}.example.com") != ["192.0.2.7"]] == []


@pytest.mark.parametrize("damage", DAMAGES)
def test_what_is_not_whole_is_told_and_not_brought_back(running, tmp_path, damage):
    backup, (name, harm) = tmp_path / "backup", DAMAGES[damage]
    done("backup", backup, "--data-dir", running.data_dir)
    harm(backup / name)

    found = edgecli("verify", backup, "--json")
    assert found.returncode == 1
    assert any(name in fault["words"] for fault in json.loads(found.stdout))
    refused = edgecli("restore", backup, "--data-dir", tmp_path / "again")
    assert refused.returncode == 1
    started = edgecli("serve", "--data-dir", tmp_path / "again")
    assert (started.returncode, "cut short" in started.stderr) == (1, True)


def test_counts_that_no_schema_holds_are_examined(filled):
    filled.stop()
    with sqlite3.connect(filled.data_dir / "control.db") as db:
        db.execute("update zones set record_count = 7")
        db.execute("delete from feed_state where kind = 'zone'")
    db.close()

    told = edgecli("verify", "--data-dir", filled.data_dir)

    assert told.returncode == 1
    assert "zone example.com has 1 records and counts 7" in told.stdout
    assert "zone example.com is not in the change feed" in told.stdout


def test_nothing_is_overwritten(running, tmp_path):
    backup = tmp_path / "backup"
    done("backup", backup, "--data-dir", running.data_dir)

    again = edgecli("backup", backup, "--data-dir", running.data_dir)
    over = edgecli("restore", backup, "--data-dir", running.data_dir)
    nothing = edgecli("backup", tmp_path / "other", "--data-dir", tmp_path / "empty")

    assert [one.returncode for one in (again, over, nothing)] == [1, 1, 1]
    assert "exists already" in again.stderr
    assert "holds data already" in over.stderr
    assert "no data folder" in nothing.stderr
    assert running.dig("www.example.com") == ["192.0.2.1"]


def test_a_restore_that_is_killed_is_run_again(filled, new_server, tmp_path):
    backup, again = tmp_path / "backup", new_server(name="again")
    done("backup", backup, "--data-dir", filled.data_dir)
    filled.stop()
    again.data_dir.mkdir()
    (again.data_dir / "restoring").touch()
    shutil.copy(backup / "kv.db", again.data_dir / "kv.db")  # all that it came to

    assert edgecli("serve", "--data-dir", again.data_dir).returncode == 1
    done("restore", backup, "--data-dir", again.data_dir)

    again.start()
    assert again.dig("www.example.com") == ["192.0.2.1"]


def test_a_restore_never_takes_what_another_one_has_just_brought_back(running, tmp_path, monkeypatch):
    """The other one is not over when this one looks, and is when this one has the folder."""
    done("backup", tmp_path / "copy", "--data-dir", running.data_dir)
    folder = tmp_path / "restored"
    folder.mkdir()
    (folder / backup.RESTORING).touch()

    class AfterTheOther(DataFolder):
        def __init__(self, path):
            (path / "control.db").write_bytes(b"brought back")
            (path / backup.RESTORING).unlink()
            super().__init__(path)

    monkeypatch.setattr(backup, "DataFolder", AfterTheOther)
    with pytest.raises(backup.BackupError, match="holds data already"):
        backup.restore(tmp_path / "copy", folder, lambda _: None, lambda _: None)

    assert (folder / "control.db").read_bytes() == b"brought back"
    DataFolder(folder).close()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make files for others")
def test_what_was_restored_outlives_a_power_cut(running, tmp_path):
    done("backup", tmp_path / "copy", "--data-dir", running.data_dir)
    folder = tmp_path / "restored"
    folder.mkdir()
    disk = ForgetfulFolder(folder)

    with disk.watching():
        manifest = backup.restore(tmp_path / "copy", folder, lambda _: None, lambda _: None)
        disk.leave(tmp_path / "after")

    assert not (tmp_path / "after" / backup.RESTORING).exists()
    assert len(manifest.files) >= 4
    for kept in manifest.files:
        content = (tmp_path / "after" / kept.path).read_bytes()
        assert hashlib.sha256(content).hexdigest() == kept.sha256, kept.path


def test_nobody_else_may_read_any_file_or_folder_of_a_backup(running, tmp_path):
    before = os.umask(0o022)
    try:
        done("backup", tmp_path / "copy", "--data-dir", running.data_dir)
        done("restore", tmp_path / "copy", "--data-dir", tmp_path / "restored")
    finally:
        os.umask(before)

    for folder in (tmp_path / "copy", tmp_path / "restored"):
        found = [folder, *folder.rglob("*")]
        assert len(found) > 5
        open_to_others = [str(path) for path in found if path.stat().st_mode & 0o077]
        assert open_to_others == []


def test_what_root_brings_back_belongs_to_the_user_of_the_service(running, tmp_path):
    backup, again = tmp_path / "backup", tmp_path / "again"
    done("backup", backup, "--data-dir", running.data_dir)
    again.mkdir()
    os.chown(again, 65_534, 65_534)

    done("restore", backup, "--data-dir", again)

    assert {path.stat().st_uid for path in (again, *again.rglob("*"))} == {65_534}


def test_a_backup_that_is_interrupted_leaves_nothing(running, tmp_path):
    command = [sys.executable, "-P", "-m", "edgestead", "backup", str(tmp_path / "backup")]
    copying = subprocess.Popen([*command, "--data-dir", str(running.data_dir)], env=environment())
    copying.send_signal(signal.SIGINT)
    copying.wait(300)

    assert copying.returncode == 0 or list(tmp_path.glob("*backup*")) == []


def test_two_backups_to_one_place_do_not_disturb_each_other(running, tmp_path):
    """The second one is refused, and the first one is whole."""
    target, refused = tmp_path / "backup", []

    def meanwhile(_part):
        with pytest.raises(backup.BackupError, match="is being made into a backup") as error:
            backup.backup(running.data_dir, target, lambda _: None, lambda _: None)
        refused.append(error)

    backup.backup(running.data_dir, target, lambda _: None, meanwhile)

    assert len(refused) == 1
    assert "is whole" in done("verify", target)
    assert not list(tmp_path.glob(".*"))


def test_a_backup_never_takes_away_one_that_has_begun_while_it_looked(tmp_path, monkeypatch):
    """Both found what a killed one had left; the other one has removed it, and made its own in its place."""
    left = tmp_path / ".backup.part"
    left.mkdir()

    def after_the_other(*_):
        left.rmdir()
        left.mkdir()
        (left / "control.db").write_bytes(b"of the other one")

    monkeypatch.setattr(fcntl, "flock", after_the_other)
    with pytest.raises(backup.BackupError, match="is being made into"), backup.begun(tmp_path / "backup"):
        pass

    assert (left / "control.db").read_bytes() == b"of the other one"


def test_a_backup_takes_the_place_of_one_that_was_killed(running, tmp_path):
    left = tmp_path / ".backup.part"
    left.mkdir()
    (left / "control.db").write_bytes(b"half")

    done("backup", tmp_path / "backup", "--data-dir", running.data_dir)

    assert "is whole" in done("verify", tmp_path / "backup")
    assert not left.exists()


def test_a_manifest_leads_nowhere_else(running, tmp_path):
    backup = tmp_path / "backup"
    done("backup", backup, "--data-dir", running.data_dir)
    manifest = json.loads((backup / "manifest.json").read_text())
    manifest["files"][0]["path"] = "../../outside"
    (backup / "manifest.json").write_text(json.dumps(manifest))

    refused = edgecli("restore", backup, "--data-dir", tmp_path / "again")

    assert refused.returncode == 1
    assert "outside" in refused.stderr
