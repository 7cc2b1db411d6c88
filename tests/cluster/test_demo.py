"""`edgecli cluster demo`: any of its processes may be killed, and nothing that was acknowledged is lost."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import pytest
from click.testing import CliRunner

from edgestead.cli.cluster import demo, demo_place
from edgestead.cli.main import cli
from edgestead.server.verifying import verify
from edgestead.testing.server import is_running, wait_until
from tests.cluster.examples_load import OBJECTS, SECONDS_MAX, Load
from tests.cluster.test_objects_nodes import cluster_command

LONG_SECONDS = 600
BETWEEN = 3  # writes that are acknowledged between two kills


@pytest.fixture
def temporary(tmp_path_factory, postgres_binaries, monkeypatch):
    """Short: sockets lie below it. The database's user has to reach it."""
    made = Path(tempfile.mkdtemp(prefix="cd-"))
    made.chmod(0o711)
    monkeypatch.setenv("TMPDIR", str(made))
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(demo, "SETTLE_SECONDS_MAX", SECONDS_MAX)
    monkeypatch.setattr(demo_place, "START_SECONDS_MAX", SECONDS_MAX)
    yield made
    made.rmdir()  # nothing is left in it


def children_of(pid):
    with suppress(OSError):
        return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []


def processes(node):
    """Those of a node, by their names; the supervisor is `serve`."""
    named = {"serve": node.pid}
    for pid in children_of(node.pid):
        with suppress(OSError):
            words = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
            place = Path(f"/proc/{pid}/comm").read_text().strip()  # of one that was a spare process
            named_modules = [word for word in words if word.startswith("edgestead.")]
            module = named_modules[-1] if named_modules else str(pid)  # the first one is the entrance
            named[place if place == "control" or place.startswith("objects-") else module] = pid
    for spare in ("edgestead.server.objects.main", "edgestead.server.control.waiting"):
        named.pop(spare, None)  # which is another one each time
    return named


def chosen(place, everything):
    """What is killed, and where to find it: all, or of each kind what the tour has not killed."""
    leader = place.wait_for_leader()
    names = [node.name for node in place.nodes]
    follower = next(name for name in names if name != leader)
    for name in names if everything else [leader, follower]:
        for kind in processes(place.node(name)):
            if everything or (kind != "serve" and (name == leader) == ("control" in kind)):
                yield f"{kind} of {name}", lambda name=name, kind=kind: processes(place.node(name)).get(kind)
    if everything:
        yield "the primary", lambda: place.primary.pid
        yield "the standby", lambda: place.standby.pid


def survives(place, everything):
    _, answer = demo.ask(place.nodes[0], "GET", f"/zones?name={demo.ZONE}")
    with demo.Writes(place, answer["result"][0]["id"], "k") as writes:
        for what, find in chosen(place, everything):
            writes.wait_for(BETWEEN)
            pid = find()
            assert pid, what
            os.kill(pid, signal.SIGKILL)
            writes.wait_for(BETWEEN)
            place.wait_settled()
    place.wait_settled()
    return demo._looked_at(place, writes.acked)


def is_cut_off(place, shown):
    """The leader's node, as the tour says how; who asks it then waits until it goes on.

    It stands still until another one leads, which a busy machine may have no time for in what the tour says.
    """
    (line,) = re.findall(r"pkill -STOP .*", shown)
    _, answer = demo.ask(place.nodes[0], "GET", f"/zones?name={demo.ZONE}")
    with demo.Writes(place, answer["result"][0]["id"], "s") as writes:
        writes.wait_for(BETWEEN)
        leader = place.node(place.wait_for_leader())
        stop, _, go_on = line.replace("PID", str(leader.pid)).split("; ")
        subprocess.run(stop, shell=True, check=True)
        try:
            wait_until(lambda: place.leader() not in ("", leader.name), SECONDS_MAX)
        finally:
            subprocess.run(go_on, shell=True, check=True)
        place.wait_settled()
        writes.wait_for(BETWEEN)
    return demo._looked_at(place, writes.acked)


@pytest.mark.timeout(1_800)
def test_the_demo_shows_take_overs_and_survives_more_of_them(temporary, capsys):
    """So do the examples of stateful objects, under load meanwhile."""
    with demo_place.opened(lambda words: None, OBJECTS) as place:
        with Load(place, "tour") as load:
            demo._show(place)
            shown = capsys.readouterr().out
            survived = survives(place, everything=False)
            load.wait_for(10)
        assert min(load.check()) > 5
        assert len(re.findall(r"said 192\.0\.2\.1 to dig", shown)) == 3
        assert len(re.findall(r"Writes went on", shown)) == 3
        assert "DNS of all 3 nodes has every one" in shown

        assert "every node reads every one" in shown
        assert "has every one" in survived
        assert "has every one" in is_cut_off(place, shown)
        operators_see_it_and_change_it(place, temporary / "out")
        pids = [pid for _, pid in place.pids()]
        pids += [pid for node in place.nodes for pid in children_of(node.pid)]

    assert pids
    assert not any(is_running(pid) for pid in pids)


def operators_see_it_and_change_it(place, target):
    run = Cluster(place.nodes[0].folder)

    # A node that renews late between two looks, on a busy machine, is shown as silent.
    wait_until(lambda: run.says('"troubles":[]', "status", "--json"), SECONDS_MAX)
    facts = json.loads(run.said)
    states = {one["name"]: one["state"] for one in facts["nodes"]}
    assert sorted(states.values()) == ["follows", "follows", "leads"]
    follower = next(name for name, state in states.items() if state == "follows")
    assert run("move-leader", follower) == f"{follower} leads.\n"
    assert run("move-leader", follower) == f"{follower} leads already.\n"
    drained = json.loads(run("drain", follower, "--json"))
    assert drained["leader"] not in ("", follower)
    assert place.leader() == drained["leader"]
    wait_until(lambda: run.says("Nothing is in the way", "upgrade-check"), SECONDS_MAX)
    assert json.loads(run("export", str(target), "--json"))["objects"] > len(demo.BOOKS)
    assert list(verify(target, lambda folder: [])) == []
    shutil.rmtree(target)


class Cluster:
    """Runs commands on the folder of a node."""

    def __init__(self, folder):
        self._folder, self.said = folder, ""

    def says(self, text, *words):
        """Whether a command ends well, and says that, blanks apart."""
        done = CliRunner().invoke(cli, ["cluster", *words, "--cluster", str(self._folder)])
        self.said = done.stdout
        return done.exit_code == 0 and "".join(text.split()) in "".join(self.said.split())

    def __call__(self, *words):
        done = cluster_command(*words, "--cluster", str(self._folder))
        assert done.exit_code == 0, done.output
        return done.stdout


@pytest.mark.long
def test_the_examples_keep_what_they_promise_while_nodes_are_killed_in_turn(temporary):
    with demo_place.opened(lambda words: None, OBJECTS) as place:
        with Load(place, "turn") as load:
            ends_s, killed = time.monotonic() + LONG_SECONDS, 0
            while time.monotonic() < ends_s:
                load.wait_for(20)
                os.kill(place.nodes[killed % len(place.nodes)].pid, signal.SIGKILL)
                killed += 1
                load.wait_for(20)
                place.wait_settled()
        acknowledged = load.check()
    sys.stdout.write(f"\n{killed} nodes killed; bookings, games and jobs acknowledged: {acknowledged}\n")
    assert min(acknowledged) > 50


@pytest.mark.long
def test_each_process_may_be_killed_and_stopped(temporary, capsys):
    with demo_place.opened(lambda words: None) as place:
        demo._show(place)
        for _ in range(3):
            assert "has every one" in survives(place, everything=True)
            leader = place.node(place.wait_for_leader())
            os.kill(processes(leader)["control"], signal.SIGSTOP)
            time.sleep(4)
            place.wait_settled()
