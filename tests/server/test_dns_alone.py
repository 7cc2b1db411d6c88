"""Control cannot start: a DNS process that dies answers again, and never with less than was acknowledged."""

import os
import signal

import pytest

from edgestead.dns import warm
from edgestead.dns.warm import Label
from edgestead.server.dns.alone import AWAY_SECONDS, Alone
from edgestead.server.supervisor.control_life import BYTES, ControlLife
from edgestead.sqlite.witness import Noted, Witness, path_of, read_file
from edgestead.testing.server import START_SECONDS_MAX

RUN = "this run"

# the file's label, the newest change, lives of control begun and ended, seconds since the start, may serve
RULES = [
    (Label("f", 7, RUN), 7, (1, 1), AWAY_SECONDS, True),
    (Label("f", 8, RUN), 7, (3, 3), AWAY_SECONDS, True),
    (Label("f", 6, RUN), 7, (1, 1), AWAY_SECONDS, False),
    (Label("f", 7, "another"), 7, (1, 1), AWAY_SECONDS, False),
    (Label("f", 7, ""), 7, (1, 1), AWAY_SECONDS, False),
    (Label("f", 7, RUN), 7, (2, 1), AWAY_SECONDS, False),
    (Label("f", 7, RUN), 7, (1, 1), AWAY_SECONDS - 0.01, False),
    (None, 0, (1, 1), AWAY_SECONDS, False),
    (Label("f", 7, RUN), None, (1, 1), AWAY_SECONDS, False),  # nobody knows the newest
]


@pytest.mark.parametrize(("label", "newest", "lives", "seconds", "may_serve"), RULES)
def test_who_may_answer_alone_is_a_table(tmp_path, label, newest, lives, seconds, may_serve):
    witness = Witness(tmp_path / "control.db")
    if newest is not None:
        witness.note(Noted(0, newest))
    witness.close()
    life_fd = os.memfd_create("life")
    os.ftruncate(life_fd, BYTES)
    life = ControlLife(life_fd, writes=True)
    for _ in range(lives[1]):
        life.begins()
        life.ends()
    for _ in range(lives[0] - lives[1]):
        life.begins()
    witness_fd = os.open(path_of(tmp_path / "control.db"), os.O_RDONLY)
    times = iter((100.0, 100.0 + seconds))

    alone = Alone(label, RUN, life_fd, witness_fd, seconds=lambda: next(times))

    assert alone.may_serve() is may_serve
    os.close(life_fd)
    os.close(witness_fd)


def sequence_of(server):
    folder = os.open(server.data_dir / "dns", os.O_RDONLY)
    try:
        return warm.read(folder, "served", list).label.sequence
    except warm.Refused:
        return None
    finally:
        os.close(folder)


def test_a_killed_process_answers_while_control_cannot_start_and_follows_when_it_can(
    new_server, patience, freeze
):
    server = new_server(*patience).start()
    zone_id = server.make_zone("example.com")
    server.make_record(zone_id, "A", "www", "192.0.2.1")
    database = server.data_dir / "control.db"
    good = path_of(database).read_bytes()
    before = server.children()
    freeze(before["control"])  # it notes nothing over what follows
    noted = read_file(database)
    witness = Witness(database)
    witness.note(Noted(noted.commits + 1_000, noted.sequence))  # a loss: control does not start
    witness.close()

    os.kill(before["control"], signal.SIGKILL)
    server.wait_until(lambda: sequence_of(server) == noted.sequence, START_SECONDS_MAX)
    os.kill(before["dns-0"], signal.SIGKILL)
    server.wait_for_log("answering from the file")
    assert server.dig("www.example.com") == ["192.0.2.1"]
    server.wait_for_log("were acknowledged")

    path_of(database).write_bytes(good)
    server.wait_until(lambda: can_write(server, zone_id), START_SECONDS_MAX)
    assert server.dig("new.example.com") == ["192.0.2.2"]
    assert server.dig("new.example.com", tcp=True) == ["192.0.2.2"]


def can_write(server, zone_id):
    try:
        return server.make_record(zone_id, "A", "new", "192.0.2.2").status == 200
    except OSError:
        return False
