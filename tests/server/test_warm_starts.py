"""DNS processes start from what the last ones left, and never answer anything older than the API has said."""

import os
import shutil
import signal
import sqlite3

import pytest

from edgestead.testing.server import wait_until

WAIT_SECONDS = 300
NAME = "www.example.com"


@pytest.fixture
def server(new_server, patience):
    """A server that has been stopped once, with a zone: the files are there."""
    made = new_server(*patience).start()
    made.zone_id = made.make_zone("example.com")
    made.record_id = made.make_record(made.zone_id, "A", NAME, "192.0.2.1").result["id"]
    assert made.stop() == 0
    return made


def file_of(server, name="served"):
    return server.data_dir / "dns" / name


def logged(server, before, *texts):
    """Wait until each of the processes that answer DNS has logged one of the texts since `before`."""
    wait_until(lambda: sum(map(server.log[len(before) :].count, texts)) == 2, WAIT_SECONDS)


def kill(server, name):
    before = server.children()[name]
    os.kill(before, signal.SIGKILL)
    server.wait_for_life(name, before)


def change(server, address):
    server.call("PATCH", f"/zones/{server.zone_id}/dns_records/{server.record_id}", {"content": address})


def digs(server):
    return server.dig(NAME), server.dig(NAME, tcp=True)


def test_a_stopped_server_starts_warm_and_answers_what_it_did(server):
    before = server.log
    server.start()

    assert digs(server) == (["192.0.2.1"], ["192.0.2.1"])
    logged(server, before, "warm start: 1 zones", "no warm start")
    assert "no warm start" not in server.log[len(before) :]


def test_a_killed_process_starts_warm_and_has_what_changed_since_the_file(server):
    server.start()
    for number in range(2, 5):
        change(server, f"192.0.2.{number}")
        for name in ("dns-0", "dns-tcp"):
            before = server.log
            kill(server, name)
            assert digs(server) == ([f"192.0.2.{number}"],) * 2
            server.wait_for_log("warm start: 1 zones", after=len(before))


def test_a_deleted_zone_does_not_come_back_with_the_file(server):
    server.start()
    server.call("DELETE", f"/zones/{server.zone_id}")

    kill(server, "dns-0")

    assert server.dig(NAME) == ["REFUSED"]


def test_a_file_older_than_the_feeds_tail_is_passed_over(server):
    kept = file_of(server).read_bytes()
    server.start()
    change(server, "192.0.2.2")
    server.stop()
    forget_changes(server)
    file_of(server).write_bytes(kept)

    server.start()

    assert digs(server) == (["192.0.2.2"], ["192.0.2.2"])


def forget_changes(server):
    """As if the tail were so short that only the newest change is kept."""
    with sqlite3.connect(server.data_dir / "control.db") as db:
        db.execute("delete from outbox where sequence < (select max(sequence) from outbox)")
    db.close()


def test_a_database_put_back_from_a_copy_is_what_counts(server):
    """The copy's next changes get the numbers that the file's had: only the history tells them apart."""
    copy = server.data_dir.with_name("copy")
    shutil.copytree(server.data_dir, copy)
    server.start()
    change(server, "192.0.2.2")
    change(server, "192.0.2.3")
    server.stop()
    newer = file_of(server).read_bytes()
    shutil.rmtree(server.data_dir)
    shutil.move(copy, server.data_dir)
    server.start()
    change(server, "192.0.2.4")
    change(server, "192.0.2.5")
    file_of(server).write_bytes(newer)

    kill(server, "dns-0")
    kill(server, "dns-tcp")

    assert digs(server) == (["192.0.2.5"], ["192.0.2.5"])


DAMAGE = {  # and how often the log says so: a file that is not there is that of a first start
    "gone": (lambda path: path.unlink(), 0),
    "changed": (lambda path: path.write_bytes(path.read_bytes()[:-1] + b"?"), 2),
}


@pytest.mark.parametrize(("damage", "lines"), DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_file_costs_time_and_nothing_else(server, damage, lines):
    damage(file_of(server))
    before = server.log

    server.start()

    assert digs(server) == (["192.0.2.1"], ["192.0.2.1"])
    wait_until(lambda: file_of(server).exists(), WAIT_SECONDS)
    assert server.stop() == 0
    assert server.log[len(before) :].count("no warm start") == lines
    before = server.log
    server.start()
    logged(server, before, "warm start: 1 zones", "no warm start")
    assert "no warm start" not in server.log[len(before) :]
