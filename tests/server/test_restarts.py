"""Any process may die at any time: the others go on, and a new one takes its place."""

import os
import signal
import time

import pytest

from edgestead.testing.server import START_SECONDS_MAX, is_running
from tests.server.test_promise import without_control


@pytest.fixture
def server(new_server, patience):
    """A server with one record, www.example.com."""
    made = new_server(*patience).start()
    made.zone_id = made.make_zone("example.com")
    made.make_record(made.zone_id, "A", "www", "192.0.2.1")
    return made


def answers(server):
    """Everything answers again."""
    assert server.call("GET", f"/zones/{server.zone_id}/dns_records").result[0]["name"] == "www.example.com"
    assert server.dig("www.example.com") == ["192.0.2.1"]
    assert server.dig("www.example.com", tcp=True) == ["192.0.2.1"]


@pytest.mark.parametrize("name", ["control", "dns-0", "dns-tcp"])
def test_a_killed_process_lives_again_and_answers(server, name):
    pid = server.children()[name]

    os.kill(pid, signal.SIGKILL)
    server.wait_for_life(name, pid)

    answers(server)
    server.wait_for_log(f"{name} (pid {pid}) ended by SIGKILL")


def test_control_that_ends_twice_goes_on_in_a_spare_process_each_time(new_server, tmp_path):
    (tmp_path / "edge.toml").write_text("control-spare = 2\n")
    server = new_server("--config", str(tmp_path / "edge.toml")).start()
    spares = ("control-spare", "control-spare-1")
    server.wait_until(lambda: server.children().keys() >= set(spares), START_SECONDS_MAX)
    children = server.children()
    first, second, third = (children[name] for name in ("control", *spares))

    os.kill(first, signal.SIGKILL)
    took = server.wait_for_life("control", first)
    os.kill(took, signal.SIGKILL)

    assert {took, server.wait_for_life("control", took)} == {second, third}
    server.wait_until(lambda: server.call("GET", "/zones").status == 200, START_SECONDS_MAX)


def test_a_client_waits_through_a_restart_of_control(server):
    os.kill(server.children()["control"], signal.SIGKILL)

    answers(server)


def test_dns_answers_while_control_is_away(server):
    pid = server.children()["control"]
    os.kill(pid, signal.SIGKILL)

    while server.children().get("control", pid) == pid:
        assert server.dig("www.example.com") == ["192.0.2.1"]

    answers(server)


def test_writes_go_on_after_control_is_back_and_dns_was_never_restarted(server):
    before = server.children()
    os.kill(before["control"], signal.SIGKILL)

    server.make_record(server.zone_id, "A", "after", "192.0.2.2")

    assert server.dig("after.example.com") == ["192.0.2.2"]
    assert server.dig("after.example.com", tcp=True) == ["192.0.2.2"]
    assert without_control(server.children()) == without_control(before)


def test_a_consumer_that_dies_while_control_is_away_does_not_hold_writes_up(server):
    before = server.children()
    for name in ("control", "dns-0"):
        os.kill(before[name], signal.SIGKILL)

    server.make_record(server.zone_id, "A", "after", "192.0.2.2")

    server.wait_for_life("dns-0", before["dns-0"])
    assert server.dig("after.example.com") == ["192.0.2.2"]


def test_all_children_at_once_come_back(server):
    before = server.children()
    for pid in before.values():
        os.kill(pid, signal.SIGKILL)
    for name, pid in before.items():
        server.wait_for_life(name, pid)

    answers(server)


def test_counters_count_on_over_a_restart(server):
    pid = server.children()["dns-0"]
    os.kill(pid, signal.SIGKILL)
    server.wait_for_life("dns-0", pid)
    server.dig("www.example.com")

    metrics = server.call("GET", "//metrics").body

    assert 'edge_process_starts_total{process="dns-0"} 2' in metrics
    assert 'edge_process_starts_total{process="control"} 1' in metrics


def test_a_process_that_keeps_dying_is_restarted_ever_more_slowly(server):
    def pauses():
        lines = [line for line in server.log.splitlines() if "dns-tcp starts again in" in line]
        return [line.partition("again in ")[2].split()[0] for line in lines]

    while pauses()[-1:] != ["0.20"]:  # a life that a busy machine made long begins the count again
        pid, ends = server.wait_for_life("dns-tcp"), len(pauses())
        os.kill(pid, signal.SIGKILL)
        server.wait_until(lambda before=ends: len(pauses()) > before, START_SECONDS_MAX)
        server.wait_for_life("dns-tcp", pid)

    assert pauses()[-3:] == ["0.05", "0.10", "0.20"]


def test_a_damaged_credentials_file_keeps_control_away_but_not_dns(server):
    file = server.data_dir / "credentials.json"
    kept, pid = file.read_bytes(), server.children()["control"]
    file.write_text("damaged")
    os.kill(pid, signal.SIGKILL)
    server.wait_for_log("is not a credentials file")

    assert server.dig("www.example.com") == ["192.0.2.1"]

    file.write_bytes(kept)
    server.wait_for_life("control", pid)
    answers(server)


def test_an_orphan_never_outlives_its_supervisor_even_before_it_was_ready(new_server):
    server = new_server()
    server.launch()
    while not server.children():
        time.sleep(0.001)
    children = server.children()

    server.kill()

    assert not any(map(is_running, children.values()))
