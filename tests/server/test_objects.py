"""Stateful objects in a real server: its processes, its tokens, its ends."""

import os
import signal
from pathlib import Path

import pytest

from edgestead.testing.server import START_SECONDS_MAX, EdgeServer

EXAMPLES = Path(__file__).parents[2] / "examples"

COUNTER = """
import os, time
from edgestead import StatefulObject

class Counter(StatefulObject):
    async def add(self, by=1):
        n = await self.ctx.storage.get("n", default=0) + by
        await self.ctx.storage.put("n", n)
        return n

    async def environment(self):
        return dict(os.environ)

    async def pid(self):
        return os.getpid()

    async def spin(self):
        while True:
            pass

    async def hold_the_interpreter(self):
        import ctypes
        ctypes.PyDLL(None).sleep(600)
"""


OTHER = """
import os
from edgestead import StatefulObject

class Other(StatefulObject):
    async def exit(self):
        os._exit(1)
"""


def written_in(folder):
    source = folder / "counter.py"
    source.write_text(COUNTER)
    return str(source)


@pytest.fixture
def counter(tmp_path):
    return written_in(tmp_path)


@pytest.fixture
def server(new_server, counter):
    """A server with one objects process that runs `Counter`."""
    return new_server("--objects", counter, "--objects-workers", "1").start()


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    """The same for all tests that only call it, each an object of its own."""
    folder = tmp_path_factory.mktemp("running")
    server = EdgeServer(folder / "data", "--objects", written_in(folder), "--objects-workers", "1")
    yield server.start()
    server.close()


def make_token(server, *groups):
    """A token of the user with these permission groups on every account: (id, secret)."""
    known = {g["name"]: g["id"] for g in server.call("GET", "/user/tokens/permission_groups").result}
    policy = {
        "effect": "allow",
        "permission_groups": [{"id": known[name]} for name in groups],
        "resources": {"com.cloudflare.api.account.*": "*"},
    }
    made = server.call("POST", "/user/tokens", {"name": "t", "policies": [policy]}).result
    return made["id"], made["value"]


def test_an_object_is_called_where_the_ready_file_says(running):
    assert running.call_object("Counter/a/add").result == 1
    assert running.call_object("Counter/a/add", by=5).result == 6
    assert running.call_object("Counter/b/add").result == 1


def test_without_objects_there_is_no_process_and_no_address(edge_server):
    assert edge_server.ready["objects"] is None
    assert not [name for name in edge_server.children() if name.startswith("objects")]


@pytest.mark.parametrize("end", ["kill the process", "kill the server", "stop the server"])
def test_what_was_answered_is_there_after_every_end(server, end):
    assert [server.call_object("Counter/a/add").result for _ in range(20)][-1] == 20

    if end == "kill the process":
        pid = server.children()["objects-0"]
        os.kill(pid, signal.SIGKILL)
        server.wait_for_life("objects-0", pid)
    else:
        assert server.kill() is None if end == "kill the server" else server.stop() == 0
        server.start()

    assert server.call_object("Counter/a/add").result == 21


def test_the_same_address_is_taken_after_a_restart(server):
    before = server.ready["objects"]
    server.stop()

    assert server.start().ready["objects"] == before


def test_a_stranger_is_refused_like_by_the_api(running):
    for token, status in (("x" * 40, 403), ("short", 400)):
        answer = running.call_object("Counter/strange/add", token=token)
        assert answer.status == status, answer
        assert answer.body["success"] is False
    assert running.call_object("Counter/strange/add").result == 1


def test_many_unknown_credentials_are_answered_429_and_good_ones_are_taken(server):
    """At the API and at the objects' address alike, each for itself."""

    def statuses(token, times):
        return [
            [server.call("GET", "/user", token=token).status for _ in range(times)],
            [server.call_object("Counter/a/add", token=token).status for _ in range(times)],
        ]

    assert statuses("x" * 40, 61) == [[403] * 60 + [429]] * 2
    assert statuses(server.ready["api_token"], 1) == [[200]] * 2
    assert 'edge_api_refused_credentials_total{process="control"} 61' in metrics(server)
    assert 'edge_objects_refused_credentials_total{process="objects-0"} 61' in metrics(server)
    server.wait_until(lambda: server.log.count("budget address_guesses is spent") == 2, 300)
    assert "x" * 40 not in server.log


def test_a_token_needs_the_permission_to_invoke(running):
    _, invoke = make_token(running, "Objects Invoke")
    _, other = make_token(running, "Objects Write", "Workers KV Storage Write")

    assert running.call_object("Counter/invoked/add", token=invoke).result == 1
    assert running.call_object("Counter/invoked/add", token=other).status == 403


def test_a_call_is_a_use_of_its_token(running):
    id_, invoke = make_token(running, "Objects Invoke")
    unused, _ = make_token(running, "Objects Invoke")

    def uses():
        return {t["id"]: t.get("last_used_on") for t in running.call("GET", "/user/tokens").result}

    assert uses()[id_] is None
    running.call_object("Counter/used/add", token=invoke)
    running.wait_until(lambda: uses()[id_] is not None, 300)
    assert uses()[unused] is None


def test_a_token_is_dead_the_moment_its_deletion_is_answered(running):
    for _ in range(10):
        id_, secret = make_token(running, "Objects Invoke")
        assert running.call_object("Counter/dead/add", token=secret).status == 200
        assert running.call("DELETE", f"/user/tokens/{id_}").status == 200
        assert running.call_object("Counter/dead/add", token=secret).status == 403


def test_a_token_changed_while_control_was_away_or_objects_were_is_known(server):
    id_, secret = make_token(server, "Objects Invoke")
    pids = server.children()
    for name in ("control", "objects-0"):
        os.kill(pids[name], signal.SIGKILL)
        server.wait_for_life(name, pids[name])
        assert server.call_object("Counter/a/add", token=secret).status == 200

    server.call("DELETE", f"/user/tokens/{id_}")

    assert server.call_object("Counter/a/add", token=secret).status == 403


def test_user_code_sees_nothing_of_the_operators_environment(new_server, counter, monkeypatch):
    monkeypatch.setenv("CLOUDFLARE_API_TOKEN", "secret")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("OBJECTS_COLOUR", "blue")

    seen = new_server("--objects", counter).start().call_object("Counter/a/environment").result

    assert seen["OBJECTS_COLOUR"] == "blue"
    assert "secret" not in seen.values()


@pytest.mark.parametrize("method", ["spin", "hold_the_interpreter"])
def test_a_class_that_blocks_its_process_is_named_and_the_process_replaced(
    new_server, counter, tmp_path, method
):
    file = tmp_path / "edge.toml"
    file.write_text("objects-blocked-seconds = 1\n")
    server = new_server("--objects", counter, "--objects-workers", "1", "--config", str(file)).start()
    server.call_object("Counter/a/add")
    pid = server.children()["objects-0"]

    with pytest.raises(ConnectionError):
        server.call_object(f"Counter/a/{method}")
    server.wait_for_life("objects-0", pid)
    server.wait_until(lambda: is_answered(server, "Counter/a/pid"), START_SECONDS_MAX)

    assert server.call_object("Counter/a/add").result == 2
    server.wait_for_log(counter)
    if method == "spin":
        server.wait_for_log("class Counter (object 'a'), in spin at")


def test_a_class_that_is_kept_apart_blocks_no_other(new_server, counter, tmp_path):
    (tmp_path / "other.py").write_text(OTHER)
    (tmp_path / "edge.toml").write_text('objects-workers = 1\nobjects-apart = ["Other"]\n')
    config = ("--config", str(tmp_path / "edge.toml"))
    server = new_server("--objects", counter, "--objects", str(tmp_path / "other.py"), *config).start()
    counting, apart = server.children()["objects-0"], server.children()["objects-1"]
    assert server.call_object("Counter/a/pid").result == counting

    assert not is_answered(server, "Other/a/exit")
    server.wait_for_life("objects-1", apart)

    assert server.call_object("Counter/a/pid").result == counting
    server.stop()
    server.flags = ("--objects", counter, *config)
    server.launch()
    assert server.wait() == 1
    assert "objects-apart: no class Other was loaded" in server.log


BAD_SOURCES = [
    ("x = 1", "no class derives from StatefulObject"),
    ("1 / 0", "ZeroDivisionError"),
    (None, "No such file"),
]


@pytest.mark.parametrize(("text", "words"), BAD_SOURCES)
def test_a_source_that_cannot_be_loaded_stops_the_start_with_words(new_server, tmp_path, text, words):
    source = tmp_path / "bad.py"
    if text is not None:
        source.write_text(text)
    server = new_server("--objects", str(source))

    server.launch()

    assert server.wait() == 1
    assert words in server.log
    assert "bad.py" in server.log


def test_several_processes_share_the_objects_and_one_ends_alone(new_server, counter):
    server = new_server("--objects", counter, "--objects-workers", "2").start()
    names = [f"n{number}" for number in range(12)]
    pids = {server.call_object(f"Counter/{name}/pid").result for name in names}
    assert pids == {server.children()[f"objects-{worker}"] for worker in range(2)}
    for name in names:
        server.call_object(f"Counter/{name}/add")

    pid = server.children()["objects-1"]
    os.kill(pid, signal.SIGKILL)
    server.wait_for_life("objects-1", pid)
    for name in names:
        server.wait_until(lambda of=name: is_answered(server, f"Counter/{of}/pid"), START_SECONDS_MAX)

    assert [server.call_object(f"Counter/{name}/add").result for name in names] == [2] * len(names)
    server.stop()
    server.flags = ("--objects", counter, "--objects-workers", "3")
    server.start()
    assert [server.call_object(f"Counter/{name}/add").result for name in names] == [3] * len(names)


def test_the_spare_process_takes_the_place_of_one_that_ends(server):
    server.call_object("Counter/a/add")
    for calls in (2, 3):
        server.wait_until(lambda: "objects-spare" in server.children(), 300)
        spare, pid = server.children()["objects-spare"], server.children()["objects-0"]
        os.kill(pid, signal.SIGKILL)

        assert server.wait_for_life("objects-0", pid) == spare
        server.wait_until(lambda: is_answered(server, "Counter/a/pid"), 300)
        assert server.call_object("Counter/a/pid").result == spare
        assert server.call_object("Counter/a/add").result == calls


def test_two_that_end_at_once_have_a_spare_process_each(new_server, counter):
    server = new_server("--objects", counter, "--objects-workers", "2").start()
    server.wait_until(lambda: {"objects-spare", "objects-spare-1"} <= server.children().keys(), 300)
    children = server.children()
    spares = {children[name] for name in ("objects-spare", "objects-spare-1")}
    for name in ("objects-0", "objects-1"):
        os.kill(children[name], signal.SIGKILL)

    assert {server.wait_for_life(name, children[name]) for name in ("objects-0", "objects-1")} == spares


def test_a_spare_process_that_ends_is_replaced_and_missed_by_nobody(server):
    server.wait_until(lambda: "objects-spare" in server.children(), 300)
    spare = server.children()["objects-spare"]
    os.kill(spare, signal.SIGKILL)
    os.kill(server.children()["objects-0"], signal.SIGKILL)
    server.wait_until(lambda: is_answered(server, "Counter/a/pid"), 300)
    server.wait_until(lambda: server.children().get("objects-spare", spare) != spare, 300)


def test_without_a_spare_process_a_new_one_is_started(new_server, counter, tmp_path):
    (tmp_path / "edge.toml").write_text("objects-spare = false\nobjects-workers = 1\n")
    server = new_server("--objects", counter, "--config", str(tmp_path / "edge.toml")).start()
    pid = server.children()["objects-0"]
    os.kill(pid, signal.SIGKILL)
    server.wait_for_life("objects-0", pid)
    server.wait_until(lambda: is_answered(server, "Counter/a/pid"), 300)
    assert "objects-spare" not in server.children()


def is_answered(server, path):
    try:
        return server.call_object(path).status == 200
    except OSError:
        return False


def test_readiness_and_metrics_tell_of_objects(new_server, counter, freeze, tmp_path):
    (tmp_path / "edge.toml").write_text("objects-blocked-seconds = 60\nobjects-workers = 1\n")
    server = new_server("--objects", counter, "--config", str(tmp_path / "edge.toml")).start()
    server.call_object("Counter/a/add")
    server.call_object("Counter/a/missing")
    told = [
        'edge_objects_live{process="objects-0"} 1',
        'edge_objects_requests_total{process="objects-0",status="2xx"} 1',
        'edge_objects_requests_total{process="objects-0",status="4xx"} 1',
    ]
    server.wait_until(lambda: all(line in metrics(server) for line in told), 300)
    assert server.call("GET", "//health/ready").status == 200

    hung = freeze(server.children()["objects-0"])
    server.wait_until(lambda: server.call("GET", "//health/ready").status == 503, 300)
    hung.thaw()
    server.wait_until(lambda: server.call("GET", "//health/ready").status == 200, 300)


def metrics(server):
    return server.call("GET", "//metrics").body
