"""The log in files: whole lines, put aside when they are long enough, and none lost."""

import json
import os
import signal

import pytest

from edgestead.server import log_file
from edgestead.server.log_file import LINE_BYTES_MAX, Lines


def lines_of(*paths):
    return b"".join(path.read_bytes() for path in paths).decode().splitlines()


def test_lines_stay_whole_and_in_order_over_files(tmp_path):
    path = tmp_path / "log"
    lines = Lines(path, 1_000, 50)
    sent = [f"line {number} {'x' * 90}" for number in range(100)]
    octets = "".join(f"{line}\n" for line in sent).encode()
    for start in range(0, len(octets), 33):
        lines.take(octets[start : start + 33])
    lines.close()

    files = sorted(tmp_path.iterdir(), key=lambda one: -int(one.suffix[1:] or 0))
    assert len(files) > 5
    assert all(one.stat().st_size <= 1_000 for one in files)
    assert lines_of(*files) == sent


def test_only_so_many_old_files_are_kept(tmp_path):
    lines = Lines(tmp_path / "log", 100, 2)
    lines.take(b"".join(b"%090d\n" % number for number in range(20)))
    lines.close()

    assert sorted(one.name for one in tmp_path.iterdir()) == ["log", "log.1", "log.2"]


@pytest.mark.parametrize("octets", [b"\xff\xfe not text\n", b"cut off", b"x" * (LINE_BYTES_MAX + 5), b"\n\n"])
def test_whatever_comes_is_written(tmp_path, octets):
    lines = Lines(tmp_path / "log", 1 << 30, 1)
    lines.take(octets)
    lines.close()

    written = (tmp_path / "log").read_bytes()
    assert written.replace(b"\n", b"") == octets.replace(b"\n", b"")
    assert written.endswith(b"\n")


def test_a_server_logs_into_the_file_and_not_to_stderr(new_server, tmp_path):
    file = tmp_path / "edge.log"
    config = tmp_path / "edge.toml"
    config.write_text(f'log-file = "{file}"\nlog-file-bytes = 65536\nlog-files = 3\n')
    server = new_server("--config", str(config)).start()
    server.call("GET", "/zones")
    server.wait_until(lambda: "/client/v4/zones" in file.read_text(), 300)

    assert os.stat(file).st_mode & 0o777 == 0o600
    pid = server.children()["log"]
    os.kill(pid, signal.SIGKILL)
    server.call("GET", "/accounts")
    server.wait_for_life("log", pid)
    server.wait_until(lambda: "/client/v4/accounts" in file.read_text(), 300)

    assert server.stop() == 0
    assert '"event"' not in server.log
    assert all(json.loads(line) for line in lines_of(file))


def test_the_level_decides_what_is_logged(new_server, tmp_path):
    config = tmp_path / "edge.toml"
    config.write_text('log-level = "warning"\n')
    server = new_server("--config", str(config)).start()
    server.call("GET", "/zones")
    pid = server.children()["dns-0"]
    os.kill(pid, signal.SIGKILL)
    server.wait_for_life("dns-0", pid)
    server.wait_for_log("starts again")

    assert server.stop() == 0
    assert '"request"' not in server.log


def test_a_file_that_cannot_be_written_is_told_in_one_line(new_server, tmp_path):
    config = tmp_path / "edge.toml"
    config.write_text(f'log-file = "{tmp_path}/missing/edge.log"\n')
    server = new_server("--config", str(config))
    server.launch()

    assert server.wait() == 1
    assert "edge.log cannot be written: No such file or directory" in server.log


def test_a_flood_of_lines_takes_one_turn_at_a_time(tmp_path, monkeypatch):
    flood = iter(lambda: b"x" * 99 + b"\n", None)  # without an end
    monkeypatch.setattr(log_file.os, "read", lambda descriptor, count: next(flood))
    lines = log_file.Lines(tmp_path / "log", 1 << 20, 1)

    log_file._read(0, lines)

    lines.close()
    assert (tmp_path / "log").stat().st_size == 100 * log_file.READS_PER_TURN
