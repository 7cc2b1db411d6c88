"""`edgecli demo`, `top` and `logs` on a server that runs, and what a killed demo leaves."""

import fcntl
import json
import re
import signal
import subprocess
import sys
import tempfile
import time

import pytest

from edgestead.cli import demo_folder
from edgestead.cli.server import demo_place
from edgestead.cli.server.top import Process, Sample, between, counts_of
from edgestead.testing.server import environment, is_running, wait_until

SECONDS_MAX = 300
COMMAND = (sys.executable, "-P", "-m", "edgestead")


def start(temporary, *words):
    return subprocess.Popen(
        [*COMMAND, *words],
        env=environment() | {"TMPDIR": str(temporary), "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def shown_by(demo):
    """What it says until it waits."""
    lines = []
    for line in demo.stdout:
        lines.append(line)
        if line.startswith("Ctrl-C"):
            break
    return "".join(lines)


def server_of(folder):
    return json.loads((folder / "data" / "server.json").read_bytes())["pid"]


@pytest.fixture
def temporary(tmp_path_factory):
    """Short: sockets lie below it."""
    return tmp_path_factory.mktemp("d")


def test_a_demo_shows_what_there_is_and_leaves_nothing(temporary):
    demo = start(temporary, "demo")
    try:
        shown = shown_by(demo)
        (folder,) = temporary.glob("edgestead-demo-*")
        pid = server_of(folder)
        data_dir = str(folder / "data")
        assert re.search(r"edge: 200\.", shown)
        assert re.search(r"gets 403, and hello gets 200\.", shown)
        assert "was signed: 1 line" in shown
        assert re.search(r"http://127\.0\.0\.1:\d+/ui/enter\?code=\S{20,}", shown)

        top = subprocess.run(
            [*COMMAND, "top", "--once", "--json", "--seconds", "0.2", "--data-dir", data_dir],
            env=environment(),
            capture_output=True,
            text=True,
            timeout=SECONDS_MAX,
            check=True,
        )
        found = json.loads(top.stdout)
        assert found["objects"]["in memory"] == 1
        assert {"supervisor", "control", "edge-0"} <= {one["name"] for one in found["processes"]}
        assert all(one["memory_bytes"] > 1 << 20 for one in found["processes"])
    finally:
        demo.send_signal(signal.SIGINT)
        rest = demo.communicate(timeout=SECONDS_MAX)[0]
    assert demo.returncode == 0, rest
    assert list(temporary.glob("edgestead-demo-*")) == []
    assert not is_running(pid)


def test_a_killed_demo_takes_its_server_along_and_the_next_one_cleans_up(temporary, monkeypatch):
    demo = start(temporary, "demo")
    wait_until(lambda: list(temporary.glob("edgestead-demo-*/data/server.json")), SECONDS_MAX)
    (left,) = temporary.glob("edgestead-demo-*")
    pid = server_of(left)
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    demo_folder.sweep(demo_place.PREFIX)
    assert left.exists()  # it is somebody's
    demo.kill()
    demo.communicate(timeout=SECONDS_MAX)
    wait_until(lambda: not is_running(pid), SECONDS_MAX)
    (strange := temporary / "edgestead-demo-without-lock").mkdir()
    demo_folder.sweep(demo_place.PREFIX)

    assert list(temporary.glob("edgestead-demo-*")) == [strange]


def test_a_folder_that_another_start_sweeps_before_it_is_held_is_made_again(temporary, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    lock, swept = fcntl.flock, []

    def flock(fd, how):
        if not swept:
            swept.extend(temporary.iterdir())
            demo_folder.sweep("edgestead-demo-")
        lock(fd, how)

    monkeypatch.setattr(demo_folder.fcntl, "flock", flock)
    with demo_folder.held("edgestead-demo-") as folder:
        demo_folder.sweep("edgestead-demo-")
        assert [folder] == list(temporary.iterdir()) != swept
        assert not swept[0].exists()

    assert list(temporary.iterdir()) == []


def line(**members):
    return json.dumps({"time_us": 1_700_000_000_000_000, "event": "message", **members}) + "\n"


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "edge.log"
    path.write_text(
        line(process="control", level="info", message="began")
        + line(process="edge-0", level="warning", message="the zone a.example has a rule too slow")
        + line(process="dns-0", level="error", message="b.example \x1b[2J cannot be read")
        + "not JSON\n"
    )
    return path


@pytest.mark.parametrize(
    ("filters", "messages"),
    [
        ((), ["began", "slow", "read", "not JSON"]),
        (("--part", "edge"), ["slow"]),
        (("--level", "warning"), ["slow", "read"]),
        (("--zone", "a.example"), ["slow"]),
        (("-n", "2"), ["read", "not JSON"]),
        (("-n", "0"), []),
        (("--part", "dns", "--level", "warning"), ["read"]),
    ],
)
def test_lines_of_the_log_are_chosen(edgecli_alone, log, filters, messages):
    done = edgecli_alone("logs", "--file", str(log), *filters)
    assert all(message in one for message, one in zip(messages, done.out.splitlines(), strict=True))
    assert "\x1b[2J" not in done.out
    as_json = edgecli_alone("logs", "--file", str(log), "--json", *filters)
    shown = [json.loads(one)["message"] for one in as_json.out.splitlines()]
    assert all(words in one for words, one in zip(messages, shown, strict=True))


def test_a_log_is_followed_into_the_file_that_takes_its_place(log, tmp_path):
    followed = start(tmp_path, "logs", "--file", str(log), "-f", "-n", "1", "--json")
    try:
        assert json.loads(followed.stdout.readline())["message"] == "not JSON"  # it has read what there is
        with log.open("a") as file:
            file.write(line(message="first")[:20])
            file.flush()
            time.sleep(0.5)  # half a line is not shown
            file.write(line(message="first")[20:])
        assert json.loads(followed.stdout.readline())["message"] == "first"
        log.rename(log.with_name("edge.log.1"))
        log.write_text(line(message="second"))
        assert json.loads(followed.stdout.readline())["message"] == "second"
    finally:
        followed.send_signal(signal.SIGINT)
        followed.communicate(timeout=SECONDS_MAX)
    assert followed.returncode == 0


@pytest.mark.parametrize("follow", [(), ("-f",)])
@pytest.mark.parametrize("journal", [None, "exit 0", "echo 'No journal files were found.' >&2; exit 1"])
def test_without_a_log_it_says_where_one_would_be(edgecli_alone, monkeypatch, tmp_path, journal, follow):
    if journal is not None:
        _command(tmp_path / "journalctl", journal)
    monkeypatch.setenv("PATH", str(tmp_path))
    done = edgecli_alone("logs", *follow)

    assert (done.code, done.out) == (1, "")
    assert "log-file" in done.err


def test_a_journal_of_the_unit_is_the_log(edgecli_alone, monkeypatch, tmp_path):
    _command(tmp_path / "journalctl", "echo began")
    monkeypatch.setenv("PATH", str(tmp_path))

    assert edgecli_alone("logs").out == "began\n"


def _command(path, words):
    path.write_text(f"#!/bin/sh\n{words}\n")
    path.chmod(0o755)


def test_counts_are_rates_and_a_new_process_counts_from_zero():
    text = 'edge_http_requests_total{{process="edge-0",status="2xx"}} {}\nedge_objects_live 3\n# HELP x y\n'
    before = Sample(10.0, counts_of(text.format(100)), (Process(7, "edge-0", 1.0, 5),))
    after = Sample(
        12.0, counts_of(text.format(150)), (Process(7, "edge-0", 1.5, 6), Process(8, "new", 9.0, 1))
    )

    found = between(before, after)
    assert found["edge"]["answers"] == {"2xx": 25.0}
    assert found["edge"]["requests"] == 25.0
    assert found["objects"]["in memory"] == 3
    assert [one["cpu_percent"] for one in found["processes"]] == [25.0, 0.0]
    assert between(after, before)["edge"]["requests"] == 0.0
