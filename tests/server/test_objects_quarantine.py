"""Objects that end their process again and again, in a real server."""

import json
import os

import pytest

from edgestead.cli.main import cli
from edgestead.objects.runtime.quarantine import CLASS_OBJECTS_MAX

CLASSES = """
import ctypes, os
from edgestead import StatefulObject

class Poison(StatefulObject):
    async def arm(self):
        await self.ctx.storage.set_alarm(0)

    async def alarm(self):
        os._exit(7)

    async def crash(self, really=True):
        if really:
            ctypes.string_at(0)

    async def ok(self):
        return "ok"

class Sound(StatefulObject):
    async def ok(self):
        return "ok"
"""


@pytest.fixture
def server(new_server, tmp_path):
    source = tmp_path / "poison.py"
    source.write_text(CLASSES)
    (tmp_path / "edge.toml").write_text("objects-contain = false\n")  # else the class would move away
    config = ("--config", str(tmp_path / "edge.toml"))
    return new_server("--objects", str(source), "--objects-workers", "1", *config)


def ask(server, method, path):
    return server._ask(server.ready["objects"], method, path, None, None)


def is_answered(server, path):
    try:
        return server.call_object(path)
    except OSError:
        return None


@pytest.fixture
def operator(server, monkeypatch, capsys):
    """Start the server; run `edgecli object …` against it."""
    server.start()
    monkeypatch.setenv("EDGE_OBJECTS_ADDR", server.ready["objects"])
    monkeypatch.setenv("EDGE_TOKEN", server.ready["api_token"])

    def run(*words):
        with pytest.raises(SystemExit) as ended:
            cli(["object", *words])
        shown = capsys.readouterr()
        assert ended.value.code == 0, shown.err
        return shown.out

    return run


def test_a_call_that_ends_its_process_is_refused_when_it_has_done_so_three_times(server, operator):
    for end in range(3):
        pid = server.children()["objects-0"]
        assert is_answered(server, "Poison/new/crash") is None
        server.wait_for_life("objects-0", pid)
        server.wait_until(lambda: is_answered(server, "Poison/sound/ok") is not None, 300)
        forgiven = server.call_object("Poison/new/crash", really=False)
        assert (forgiven.status == 200) is (end < 2), "one that went well makes up for none that did not"

    refused = server.call_object("Poison/new/crash")
    assert (refused.status, refused.body["errors"][0]["code"]) == (503, 10476)
    assert "Poison new is in quarantine" in refused.body["errors"][0]["message"]
    server.wait_until(lambda: server.call("GET", "//health/ready").status == 200, 300)
    assert "objects-0 ends and starts again and again" in str(server.call("GET", "//health/ready").body)
    listed = ask(server, "GET", "/operate/objects").result
    assert [one["name"] for one in listed if one["quarantine"]] == ["new"], "though it never stored anything"
    assert "quarantine" in operator("list", "Poison")
    assert "its crash ran" in json.loads(operator("info", "Poison", "new", "--json"))["quarantine"]
    (held_now,) = json.loads(operator("quarantine", "list", "--json"))
    assert (held_now["class"], held_now["name"]) == ("Poison", "new")
    assert "edgecli object release Poison new" in held_now["reason"]
    assert "Class Poison was not in quarantine" in operator("quarantine", "release", "Poison")
    assert "may run again" in operator("quarantine", "release", "Poison", "new")
    assert server.call_object("Poison/new/ok").result == "ok"


def test_a_class_whose_objects_end_their_processes_is_refused_in_every_process_until_it_is_released(
    server, operator
):
    for number in range(CLASS_OBJECTS_MAX):
        pid = server.children()["objects-0"]
        assert is_answered(server, f"Poison/p{number}/crash") is None
        server.wait_for_life("objects-0", pid)
        server.wait_until(lambda: is_answered(server, "Sound/a/ok") is not None, 300)

    refused = server.call_object("Poison/another/ok")
    assert (refused.status, refused.body["errors"][0]["code"]) == (503, 10476)
    assert "Class Poison is in quarantine: 5 of its objects" in refused.body["errors"][0]["message"]
    assert server.call_object("Sound/a/ok").result == "ok"
    (found,) = ask(server, "GET", "/operate/quarantine").result
    assert (found["class"], found["id"]) == ("Poison", None)
    assert "(all)" in operator("quarantine", "list")
    assert "Class Poison may run again" in operator("quarantine", "release", "Poison")
    assert server.call_object("Poison/another/ok").result == "ok"
    assert ask(server, "GET", "/operate/quarantine").result == []


@pytest.mark.long  # two retries wait for six seconds
def test_an_alarm_that_ends_its_process_takes_nobody_with_it_for_long(server, operator):
    server.call_object("Poison/sound/ok")
    server.call_object("Poison/a/arm")

    server.wait_until(lambda: "1" in held(server), 300)

    refused = server.call_object("Poison/a/ok")
    assert (refused.status, refused.body["errors"][0]["code"]) == (503, 10476)
    assert server.call_object("Poison/sound/ok").result == "ok"
    assert "its alarm ran" in json.loads(operator("info", "Poison", "a", "--json"))["quarantine"]
    operator("alarm", "Poison", "a", "--delete")
    assert "may run again" in operator("release", "Poison", "a")
    assert server.call_object("Poison/a/ok").result == "ok"
    assert "was not in quarantine" in operator("release", "Poison", "a")


def held(server):
    found = [
        line
        for line in server.call("GET", "//metrics").body.splitlines()
        if "edge_objects_quarantined{" in line
    ]
    return found[0].rpartition(" ")[2] if found else ""


def test_without_alarms_none_is_run_and_each_is_kept(server):
    server.flags = (*server.flags, "--no-alarms")
    server.start()
    pid = server.children()["objects-0"]
    server.call_object("Poison/a/arm")

    assert server.call_object("Poison/a/ok").result == "ok"
    assert ask(server, "GET", "/operate/objects/Poison/a/alarm").result["time"] is not None
    os.kill(pid, 0)
    assert server.children()["objects-0"] == pid
