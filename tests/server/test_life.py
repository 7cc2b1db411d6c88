"""A server's life from its first word to its last, in real processes."""

import json
import os
import signal
import socket
import stat
import subprocess
import sys

import pytest

from edgestead.server.folder import read_state
from edgestead.testing.server import START_SECONDS_MAX, EdgeServer, environment, is_running, wait_until

READY_KEYS = {
    "api_base",
    "dns",
    "http",
    "https",
    "dot",
    "doh",
    "objects",
    "account_id",
    "email",
    "api_key",
    "api_token",
    "pid",
}


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    """A server for all tests that leave it as it is."""
    server = EdgeServer(tmp_path_factory.mktemp("running") / "data").start()
    yield server
    server.close()


def test_a_record_is_answered_by_dns_when_the_api_has_answered(running):
    zone_id = running.make_zone("example.com")

    running.make_record(zone_id, "A", "www", "192.0.2.1")

    assert running.dig("www.example.com") == ["192.0.2.1"]
    assert running.dig("www.example.com", tcp=True) == ["192.0.2.1"]
    assert running.dig("other.example.com") == ["NXDOMAIN"]
    assert running.dig("www.example.net") == ["REFUSED"]


def test_a_proxied_record_is_answered_with_the_edge_address(new_server):
    server = new_server("--edge-address", "203.0.113.7").start()
    zone_id = server.make_zone("example.com")

    server.make_record(zone_id, "A", "www", "192.0.2.1", proxied=True)

    assert server.dig("www.example.com") == ["203.0.113.7"]


def test_the_ready_file_says_all_and_nothing_else(running):
    file = running.ready_file
    kept = json.loads((running.data_dir / "credentials.json").read_bytes())

    assert running.ready.keys() == READY_KEYS
    assert running.ready["pid"] == running.pid
    assert running.ready["api_base"].endswith("/client/v4")
    assert running.ready["http"].startswith("127.")
    assert [running.ready[part] for part in ("https", "dot", "doh", "objects")] == [None] * 4
    assert running.ready["api_token"] == kept["api_token"]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_sigterm_ends_everything_and_leaves_nothing(edge_server):
    children = edge_server.children()
    runtime_dir = read_state(edge_server.data_dir).runtime_dir

    assert edge_server.stop() == 0

    assert set(children) - {"control-spare"} == {"control", "dns-0", "dns-tcp", "edge-0"}
    assert not any(map(is_running, children.values()))
    assert not edge_server.ready_file.exists()
    assert not os.path.exists(runtime_dir)
    assert sorted(os.listdir(edge_server.data_dir)) == [
        "challenge-keys.json",
        "control.db",
        "control.db.witness",
        "credentials.json",
        "dns",
        "events",
        "kv-blobs",
        "kv.db",
        "kv.db.witness",
        "lock",
        "reserve",
        "samples.json",
        "seal.key",
    ]


def test_sigterm_during_the_start_is_an_ordinary_end(new_server):
    server = new_server()
    server.launch()
    lock = server.data_dir / "lock"
    wait_until(lambda: lock.exists() and lock.read_bytes(), START_SECONDS_MAX)
    runtime_dir = server.data_dir / "runtime"

    assert server.stop() == 0

    assert not runtime_dir.exists()
    assert not server.ready_file.exists()


def test_a_restart_keeps_data_credentials_and_answers(edge_server):
    zone_id = edge_server.make_zone("example.com")
    edge_server.make_record(zone_id, "A", "www", "192.0.2.1")
    before = edge_server.ready
    edge_server.stop()

    edge_server.start()

    assert {**edge_server.ready, "pid": 0} == {**before, "pid": 0}
    assert edge_server.dig("www.example.com") == ["192.0.2.1"]


def test_children_end_with_a_killed_supervisor_and_the_folder_is_free(edge_server):
    children = edge_server.children()

    edge_server.kill()

    assert not any(map(is_running, children.values()))
    edge_server.start()


def test_a_request_under_way_is_answered_before_the_end(edge_server):
    zone_id = edge_server.make_zone("example.com")
    api = edge_server.ready["api_base"].split("/")[2]
    body = json.dumps({"type": "A", "name": "late", "content": "192.0.2.1"}).encode()
    head = (
        f"POST /client/v4/zones/{zone_id}/dns_records HTTP/1.1\r\nHost: {api}\r\n"
        f"Authorization: Bearer {edge_server.ready['api_token']}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\nExpect: 100-continue\r\n\r\n"
    )
    host, _, port = api.rpartition(":")
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(head.encode())
        assert connection.recv(1_024).startswith(b"HTTP/1.1 100 ")  # it is under way, and not only sent
        connection.sendall(body[:5])
        os.kill(edge_server.pid, signal.SIGTERM)
        wait_until(lambda: not edge_server.ready_file.exists(), 300)
        connection.sendall(body[5:])
        answer = connection.makefile("rb").read()

    assert answer.startswith(b"HTTP/1.1 200")
    assert edge_server.wait() == 0
    edge_server.start()
    assert edge_server.dig("late.example.com") == ["192.0.2.1"]


def test_a_child_that_does_not_end_is_killed_after_the_limit(new_server, freeze, tmp_path):
    (tmp_path / "edge.toml").write_text("drain-seconds = 1\nsilence-seconds = 600\n")
    server = new_server("--config", str(tmp_path / "edge.toml")).start()
    freeze(server.children()["dns-tcp"])

    assert server.stop() == 0

    assert "did not end in 1 s" in server.log


def test_a_second_signal_ends_it_at_once(edge_server, freeze):
    children = edge_server.children()
    freeze(children["control"])
    os.kill(edge_server.pid, signal.SIGTERM)
    wait_until(lambda: not edge_server.ready_file.exists(), 300)

    assert edge_server.stop() == 1

    assert not any(map(is_running, children.values()))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_the_terminals_signals_are_a_request_to_end_too(edge_server, number):
    os.kill(edge_server.pid, number)

    assert edge_server.wait() == 0


def test_a_second_server_on_the_folder_names_the_first(running):
    second = launch(running.data_dir)

    assert second.returncode == 1
    assert second.stderr.startswith(
        f"Error: data folder {running.data_dir} is in use by process {running.pid} ("
    )
    assert second.stderr.count("\n") == 1


@pytest.mark.parametrize("key", ["api", "dns"])
def test_a_taken_port_is_one_line_that_names_its_holder(running, tmp_path, key):
    taken = running.ready["api_base"].split("/")[2] if key == "api" else running.ready["dns"]

    second = launch(tmp_path / "second", f"--{key}", taken)

    assert second.returncode == 1
    assert second.stderr.startswith(f"Error: --{key} {taken} (TCP) is taken by process ")
    assert second.stderr.count("\n") == 1


def test_a_database_that_is_none_is_one_line_and_stays_as_it_is(tmp_path):
    data_dir = tmp_path / "data"
    data_dir.mkdir()
    (data_dir / "control.db").write_bytes(b"not a database, but somebody's letters" * 100)

    done = launch(data_dir)

    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith("Error: control could not start: control.db cannot be opened: ")
    assert (data_dir / "control.db").read_bytes().startswith(b"not a database, but somebody's letters")


def test_a_ready_file_of_an_earlier_server_is_removed_before_the_start(tmp_path):
    stale = tmp_path / "ready"
    stale.write_text("{}")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "control.db").write_bytes(b"not a database" * 1000)

    done = launch(tmp_path / "data", "--ready-file", str(stale))

    assert done.returncode == 1
    assert not stale.exists()


def test_a_ready_file_that_cannot_be_written_is_one_line(tmp_path):
    done = launch(tmp_path / "data", "--ready-file", str(tmp_path / "none" / "ready"))

    assert done.returncode == 1
    assert "ready cannot be written: No such file" in done.stderr.splitlines()[-1]


def launch(data_dir, *flags):
    """Run a server that is expected to end by itself."""
    free = [part for key in ("--api", "--dns", "--http") if key not in flags for part in (key, "127.0.0.1:0")]
    return subprocess.run(
        [sys.executable, "-m", "edgestead", "serve", "--data-dir", str(data_dir), *free, *flags],
        capture_output=True,
        text=True,
        timeout=300,
        env=environment(),
    )
