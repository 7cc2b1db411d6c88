"""A class that ends a process gets one of its own, in a real server."""

import json
import os
import signal
import socket
import sys
from pathlib import Path

import pytest

from edgestead.cli.main import cli

CLASSES = """
import os, time
from edgestead import StatefulObject

class Bad(StatefulObject):
    async def block(self):
        time.sleep(600)

    async def exit(self):
        os._exit(7)

    async def pid(self):
        return os.getpid()

    async def put(self, n):
        await self.ctx.storage.put("n", n)

    async def n(self):
        return await self.ctx.storage.get("n"), os.getpid()

class Good(StatefulObject):
    async def pid(self):
        return os.getpid()
"""


@pytest.fixture
def server(new_server, tmp_path):
    source = tmp_path / "classes.py"
    source.write_text(CLASSES)
    return new_server("--objects", str(source), "--objects-workers", "1").start()


def is_answered(server, path):
    try:
        return server.call_object(path).status == 200
    except OSError:
        return False


def metrics(server):
    return server.call("GET", "//metrics").body


def shared_is_asked(server):
    answer = server.call_object("Bad/new/pid")
    return answer.status == 200 and answer.result == server.children()["objects-0"]


def wait_until_answered(server, *paths):
    server.wait_until(lambda: all(is_answered(server, path) for path in paths), 300)


def test_after_its_first_block_a_class_harms_no_other(server):
    first = server.children()["objects-0"]
    assert not is_answered(server, "Bad/a/block")
    server.wait_for_life("objects-0", first)
    wait_until_answered(server, "Good/a/pid", "Bad/b/pid")
    server.wait_for_log("class Bad gets a process of its own")
    shared, apart = server.children()["objects-0"], server.children()["objects-1"]

    assert server.call_object("Bad/b/put", 5).status == 200
    for deed in ("block", "exit"):
        assert not is_answered(server, f"Bad/{deed}/{deed}")
        apart = server.wait_for_life("objects-1", apart)
        wait_until_answered(server, "Bad/b/pid")

    assert server.call_object("Good/a/pid").result == shared
    server.wait_until(
        lambda: 'edge_objects_cpu_seconds_total{process="objects-1",class="Bad"} ' in metrics(server), 60
    )
    assert server.call_object("Bad/b/n").result == [5, apart]
    assert os.getpriority(os.PRIO_PROCESS, apart) > os.getpriority(os.PRIO_PROCESS, shared)


def waits_for_connections(pid, address):
    """Whether the process's loop hears of connections to the address."""
    wanted = f"socket:[{inode_of_listener(address)}]"
    heard = {
        os.readlink(f"/proc/{pid}/fd/{line.split()[1]}")
        for fd in os.listdir(f"/proc/{pid}/fd")
        for line in Path(f"/proc/{pid}/fdinfo/{fd}").read_text().splitlines()
        if line.startswith("tfd:")  # proc(5): what an epoll descriptor waits for
    }
    return wanted in heard


def inode_of_listener(address):
    host, _, port = address.rpartition(":")
    number = int.from_bytes(socket.inet_aton(host), sys.byteorder)
    rows = [row.split() for row in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    (inode,) = [row[9] for row in rows if row[1] == f"{number:08X}:{int(port):04X}" and row[3] == "0A"]
    return inode


def test_no_client_of_others_is_with_the_process_of_a_class_that_went_apart(server):
    first = server.children()["objects-0"]
    assert not is_answered(server, "Bad/a/exit")
    server.wait_for_life("objects-0", first)
    wait_until_answered(server, "Bad/b/pid", "Good/a/pid")

    heard = {
        name: waits_for_connections(server.children()[name], server.ready["objects"])
        for name in ("objects-0", "objects-1")
    }
    assert heard == {"objects-0": True, "objects-1": False}


def test_operators_see_it_and_let_it_go_back(server, monkeypatch, capsys):
    monkeypatch.setenv("EDGE_OBJECTS_ADDR", server.ready["objects"])
    monkeypatch.setenv("EDGE_TOKEN", server.ready["api_token"])

    def operate(*words):
        with pytest.raises(SystemExit) as ended:
            cli(["object", "apart", *words])
        shown = capsys.readouterr()
        assert ended.value.code == 0, shown.err
        return shown.out

    first = server.children()["objects-0"]
    assert not is_answered(server, "Bad/a/exit")
    server.wait_for_life("objects-0", first)
    wait_until_answered(server, "Bad/b/pid")
    assert json.loads(operate("list", "--json"))[0]["state"] == "apart"
    assert "Bad" in operate("list")
    server.wait_until(lambda: 'edge_objects_classes_apart{process="objects-1"} 1' in metrics(server), 300)
    assert "is not apart" in operate("release", "Good")
    assert "goes back" in operate("release", "Bad")
    server.wait_until(lambda: json.loads(operate("list", "--json")) == [], 300)  # nothing was stored there
    server.wait_until(lambda: shared_is_asked(server), 300)  # refused until its home knows


def test_it_stays_apart_over_a_restart(server):
    first = server.children()["objects-0"]
    assert not is_answered(server, "Bad/a/exit")
    server.wait_for_life("objects-0", first)
    wait_until_answered(server, "Bad/b/pid")
    assert server.call_object("Bad/b/put", 5).status == 200

    server.stop()
    server.start()

    children = server.children()
    assert server.call_object("Bad/b/n").result == [5, children["objects-1"]]
    assert server.call_object("Good/a/pid").result == children["objects-0"]


def test_a_process_that_somebody_kills_moves_nothing(server):
    first = server.children()["objects-0"]
    os.kill(first, signal.SIGKILL)
    server.wait_for_life("objects-0", first)
    wait_until_answered(server, "Bad/a/pid")
    assert server.call_object("Bad/a/pid").result == server.children()["objects-0"]
    assert "objects-1" not in server.children()
