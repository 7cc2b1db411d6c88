"""One health: the same rows for balancers, operators, Prometheus and the service manager."""

import json
import os
from datetime import UTC, datetime, timedelta

import apsw
import pytest
from click.testing import CliRunner

from edgestead.cli.main import cli
from edgestead.cli.server.authority import Authority
from edgestead.health.facts import Certificate
from edgestead.server.health import backup_note
from edgestead.server.health.asking import lost_writes, rows_without_control
from edgestead.server.health.certificates import CertificateDates
from edgestead.server.health.clock import MEMORY_SECONDS, ClockWatch, newest_file_us
from edgestead.server.places import private_place
from edgestead.server.supervisor import last_words
from edgestead.server.supervisor.last_words import LastWords
from edgestead.server.supervisor.main import Supervisor
from edgestead.server.supervisor.notify import Notify
from edgestead.sqlite.witness import Noted, Witness
from tests.support.health import rows as health_rows

SECOND_US = 1_000_000


def issue(folder, name, ends):
    made = ends - timedelta(days=90)
    issued = Authority.new(made).issue([name], made, timedelta(days=90))
    path = folder / f"{name}.pem"
    path.write_bytes(issued.pem)
    return path


def edgecli(server, *words):
    return CliRunner().invoke(cli, [*words, "--data-dir", str(server.data_dir)])


def test_an_expired_certificate_is_the_same_row_everywhere_and_takes_no_site_away(new_server, tmp_path):
    issue(tmp_path, "www.example.com", datetime.now(UTC) - timedelta(days=1))
    server = new_server("--https", "{}:{}".format(*private_place()), "--tls-dir", str(tmp_path)).start()

    def row():
        return next((one for one in health_rows(server) if one["subject"] == "www.example.com"), None)

    server.wait_until(lambda: row() is not None, 300)
    shown = row()
    assert (shown["check"], shown["state"]) == ("certificates", "fail")

    status = edgecli(server, "status", "--json")
    assert status.exit_code == 1
    assert shown in json.loads(status.output)
    doctor = json.loads(edgecli(server, "doctor", "--json").output)
    assert (shown["message"], shown["next_step"]) in [(one["words"], one["more"]) for one in doctor]
    page = server.call("GET", "//metrics").body
    assert 'edge_health{process="control",check="certificates"} 2\n' in page
    assert 'edge_health{process="control",check="disk"} 2\n' not in page
    assert "certificates/www.example.com" in edgecli(server, "status").output


def test_a_failed_backup_is_a_row_until_one_succeeds(new_server, tmp_path, monkeypatch):
    server = new_server().start()
    taken = tmp_path / "taken"
    taken.mkdir()

    def words():
        return next((one["message"] for one in health_rows(server) if one["check"] == "backups"), "")

    assert edgecli(server, "backup", str(taken)).exit_code == 1
    server.wait_until(lambda: f"the last backup failed: {taken}: {taken} exists already" in words(), 300)

    assert edgecli(server, "backup", str(tmp_path / "made")).exit_code == 0
    server.wait_until(lambda: words() == "the last backup did not fail", 300)


def test_without_a_server_lost_writes_are_still_told(new_server):
    server = new_server().start()
    server.make_zone("example.com")
    server.stop()
    witness = Witness(server.data_dir / "control.db")
    witness.note(Noted(10_000, 10_000))
    witness.close()

    assert "10000 were acknowledged" in lost_writes(server.data_dir)
    assert "10000 were acknowledged" in edgecli(server, "doctor").output
    found = rows_without_control(server.data_dir, {"control": "control.db cannot be opened"})
    assert [row.check for row in found] == ["control", "lost-writes"]


# The parts.


def test_a_folder_without_databases_lacks_nothing(tmp_path):
    assert lost_writes(tmp_path) == ""
    apsw.Connection(str(tmp_path / "kv.db")).close()
    assert lost_writes(tmp_path) == ""


def test_dates_of_certificates_are_read_again_when_a_file_changes(tmp_path):
    ends = datetime(2026, 3, 1, tzinfo=UTC)
    path = issue(tmp_path, "www.example.com", ends)
    (tmp_path / "half.example.com.crt").write_text("its key is still to come")
    (tmp_path / "bad.example.com.pem").write_text("hello")
    dates = CertificateDates(tmp_path)

    dates.look()
    bad = Certificate("bad.example.com", str(tmp_path / "bad.example.com.pem"), None)
    known = Certificate("www.example.com", str(path), int(ends.timestamp()) * SECOND_US)
    assert dates.found == (bad, known)

    issue(tmp_path, "www.example.com", ends + timedelta(days=60))
    dates.look()
    assert dates.found[1].ends_us == int((ends + timedelta(days=60)).timestamp()) * SECOND_US
    assert dates.fault == ""


def test_an_entry_that_cannot_be_read_is_shown_and_the_others_have_their_dates(tmp_path):
    ends = datetime(2026, 3, 1, tzinfo=UTC)
    path = issue(tmp_path, "www.example.com", ends)
    os.symlink("x" * 300, tmp_path / "bad")
    dates = CertificateDates(tmp_path)

    dates.look()
    bad = Certificate("bad", str(tmp_path / "bad"), None)
    assert dates.found == (bad, Certificate("www.example.com", str(path), int(ends.timestamp()) * SECOND_US))


def test_a_folder_of_certificates_that_is_empty_or_missing_is_a_fault(tmp_path):
    for folder, words in ((tmp_path, "holds no certificate"), (tmp_path / "none", "cannot be read")):
        dates = CertificateDates(folder)
        dates.look()
        assert words in dates.fault
        assert dates.found == ()


def test_a_clock_that_is_set_back_is_remembered_for_an_hour():
    wall_us, steady = [1_000 * SECOND_US], [0.0]
    watch = ClockWatch(0, now_us=lambda: wall_us[0], steady=lambda: steady[0])

    def after(seconds, wall):
        steady[0] += seconds
        wall_us[0] += wall * SECOND_US
        watch.look()
        return round(watch.back_seconds)

    assert after(10, 10) == 0
    assert after(10, 300) == 0, "forward is no harm here"
    assert after(60, 60) == 0, "a machine that slept"
    assert after(1, -299) == 300
    assert after(MEMORY_SECONDS - 2, MEMORY_SECONDS - 2) == 300
    assert after(5, 5) == 0


def test_a_clock_behind_the_files_is_noticed_until_it_has_passed_them(tmp_path):
    assert newest_file_us(tmp_path) == newest_file_us(tmp_path / "none") == 0
    (tmp_path / "old").touch()
    (tmp_path / "new").touch()
    os.utime(tmp_path / "old", (100, 100))
    os.utime(tmp_path / "new", (5_000, 5_000))
    wall_us = [1_000 * SECOND_US]

    watch = ClockWatch(newest_file_us(tmp_path), now_us=lambda: wall_us[0], steady=lambda: 0.0)
    assert watch.behind_seconds == 4_000
    wall_us[0] = 6_000 * SECOND_US
    assert watch.behind_seconds == 0


def test_a_backups_note_keeps_the_last_good_one(tmp_path):
    assert backup_note.read(tmp_path) == backup_note.BackupNote()
    backup_note.note(tmp_path, tmp_path / "a", 5)
    backup_note.note(tmp_path, tmp_path / "b", 9, "no\nspace")

    noted = backup_note.read(tmp_path)
    assert (noted.tried_us, noted.made_us, noted.path, noted.error) == (9, 5, f"{tmp_path}/a", "no space")

    (tmp_path / backup_note.FILE_NAME).write_text("{")
    assert backup_note.read(tmp_path) == backup_note.BackupNote()


@pytest.fixture
def words_fd():
    made = os.memfd_create("words")
    os.ftruncate(made, last_words.PAGE_BYTES)
    yield made
    os.close(made)


def test_last_words_reach_other_processes(words_fd):
    writer, reader = LastWords(words_fd), LastWords(words_fd)
    assert reader.read() == {}

    writer.note("control", "control.db cannot be opened")
    assert reader.read() == {"control": "control.db cannot be opened"}

    os.pwrite(words_fd, b"torn", 0)
    assert reader.read() == {"control": "control.db cannot be opened"}, "a write under way"
    for number in range(100):
        writer.note(f"objects-{number}", "x" * 500)
    assert "objects-99" in reader.read()
    assert "control" not in reader.read(), "the oldest go"


class Sayings(Notify):
    """What a service manager is sent."""

    def __init__(self):
        super().__init__({"NOTIFY_SOCKET": "nowhere", "WATCHDOG_USEC": "2000000"})
        self.said = []

    def _tell(self, state):
        self.said.append(state)


class FakeChild:
    def __init__(self, name, is_alive):
        self.name, self.is_alive = name, is_alive


class FakeEstate:
    children = (FakeChild("dns-0", True), FakeChild("edge-0", False))


def test_the_ping_is_withheld_while_a_process_neither_runs_nor_waits_for_a_start(monkeypatch):
    monkeypatch.setattr("edgestead.server.supervisor.loop.Loop.on_signals", lambda *_: None)
    notify = Sayings()
    supervisor = Supervisor(FakeEstate(), drain_seconds=1, announce=lambda _: None, notify=notify)

    supervisor._waiting.add("edge-0")
    supervisor._say_alive()
    assert notify.said == ["WATCHDOG=1"]

    supervisor._waiting.clear()
    supervisor._say_alive()
    assert notify.said[1:] == ["STATUS=edge-0 neither runs nor waits for a start"]
