"""A token that is gone opens no door of the objects, whatever their processes do; nobody waits for them."""

import contextlib
import os
import re
import signal
import socket
import threading
import time

import pytest

from edgestead.feed.lease import LEASE_MS
from edgestead.model import edge
from edgestead.model.served import KIND_JOURNAL
from edgestead.server.dns import part as dns_part
from edgestead.server.supervisor import renewal
from edgestead.testing.server import START_SECONDS_MAX
from edgestead.usecases.access import identities
from tests.server.test_objects import make_token

ATTEMPTS_MAX = 25
STARTS = 6  # in vain: the pauses before them are longer than a lease
HELD = """
import os, re
from edgestead import StatefulObject

class Held(StatefulObject):
    async def pid(self):
        return os.getpid()

    async def hold(self):
        "C code that keeps the interpreter's lock: no other thread of the process runs meanwhile."
        open(os.environ["OBJECTS_HOLDING"], "w").close()
        re.match(r"(a+)+$", "a" * 40 + "b")
"""


@pytest.fixture
def server(new_server, patience, freeze, tmp_path, monkeypatch):
    source = tmp_path / "held.py"
    source.write_text(HELD)
    monkeypatch.setenv("OBJECTS_HOLDING", str(tmp_path / "holding"))
    made = new_server("--objects", str(source), "--objects-workers", "1", *patience).start()
    made.freeze = freeze
    made.holding = tmp_path / "holding"
    made.zone_id = made.make_zone("example.com")
    return made


def hang(server):
    return server.freeze(server.children()["objects-0"]).thaw


def hold_the_interpreter(server):
    def hold():
        with pytest.raises(ConnectionError):
            server.call_object("Held/a/hold")

    server.holding.unlink(missing_ok=True)
    holder = threading.Thread(target=hold)
    holder.start()
    server.wait_until(server.holding.exists, START_SECONDS_MAX)
    pid = server.children()["objects-0"]

    def end():
        os.kill(pid, signal.SIGKILL)
        holder.join()

    return end


def waits(server):
    """How many writes waited for a second or longer until the processes had applied them."""
    metrics = server.call("GET", "//metrics").body
    upto, count = (
        int(re.search(rf'edge_feed_wait_seconds_{what}{{process="control"{more}}} (\d+)', metrics)[1])
        for what, more in (("bucket", ',le="1"'), ("count", ""))
    )
    return count - upto


def promises(server):
    """How many writes have waited at all until the processes had applied them, or could admit nobody."""
    metrics = server.call("GET", "//metrics").body
    return int(re.search(r'edge_feed_wait_seconds_count\{process="control"\} (\d+)', metrics)[1])


def hang_while_records_are_written(server, hang):
    """Gives what ends the hanging. A busy machine may make a record wait, too, but not time after time."""
    for attempt in range(ATTEMPTS_MAX):
        before, end = waits(server), hang(server)
        for number in range(5):
            assert server.make_record(server.zone_id, "A", f"r{attempt}-{number}", "192.0.2.1").status == 200
        if waits(server) == before:
            return end
        end()
        server.wait_until(lambda: server.call("GET", "//health/ready").status == 200, START_SECONDS_MAX)
    raise AssertionError("records wait for user code")


@pytest.mark.parametrize("hang", [hang, hold_the_interpreter])
def test_a_process_that_hangs_delays_no_write_of_others_and_lets_no_dead_token_in(server, hang):
    id_, secret = make_token(server, "Objects Invoke")
    assert server.call_object("Held/a/pid", token=secret).status == 200

    end = hang_while_records_are_written(server, hang)
    assert server.call("DELETE", f"/user/tokens/{id_}").status == 200  # it may wait until the lease is over

    def is_told():
        ready = server.call("GET", "//health/ready")
        return ready.status == 503 and "0 of 1 objects processes answer" in str(ready.body)

    server.wait_until(is_told, START_SECONDS_MAX)
    end()
    assert server.call_object("Held/a/pid", token=secret).status == 403
    assert server.call_object("Held/a/pid").status == 200


def test_renewed_credentials_are_answered_when_the_old_ones_open_no_door_anywhere(server):
    old = server.ready["api_token"]
    assert server.call_object("Held/a/pid", token=old).status == 200

    before, go_on = promises(server), hang(server)
    renewal.renew(server.data_dir, "rotate")
    assert promises(server) > before
    go_on()

    assert server.call_object("Held/a/pid", token=old).status == 403


def test_no_process_but_those_that_admit_callers_is_sent_whom_to_admit():
    assert not {*edge.KINDS, *dns_part.KINDS, KIND_JOURNAL} & {*identities.KINDS}


@contextlib.contextmanager
def begun_call(server, secret, part):
    """A call without the last octet of its body; gives what sends that and reads the answer."""
    host, _, port = server.ready["objects"].rpartition(":")
    head = (
        f"POST /objects/Held/a/pid HTTP/1.1\r\nHost: objects\r\nAuthorization: Bearer {secret}\r\n"
        f"Connection: close\r\nContent-Length: {len(part) + 1}\r\n\r\n"
    )
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(head.encode() + part)

        def finish(rest):
            connection.sendall(rest)
            return connection.makefile("rb").read()

        yield finish


def test_a_call_whose_body_comes_late_is_let_in_when_it_is_here(server):
    id_, secret = make_token(server, "Objects Invoke")
    with begun_call(server, secret, b'{"args": []') as finish:
        assert server.call("DELETE", f"/user/tokens/{id_}").status == 200

        assert finish(b"}").startswith(b"HTTP/1.1 403 ")


def test_callers_are_let_in_while_control_cannot_start_and_no_dead_token_after_it_did(server):
    id_, secret = make_token(server, "Objects Invoke")
    assert server.call_object("Held/a/pid", token=secret).status == 200
    file, pid = server.data_dir / "credentials.json", server.children()["control"]
    kept = file.read_bytes()
    file.write_text("damaged")
    os.kill(pid, signal.SIGKILL)
    server.wait_until(lambda: server.log.count("control starts again in") >= STARTS, START_SECONDS_MAX)

    assert server.call_object("Held/a/pid", token=secret).status == 200

    file.write_bytes(kept)
    server.wait_for_life("control", pid)
    assert server.call("DELETE", f"/user/tokens/{id_}").status == 200
    assert server.call_object("Held/a/pid", token=secret).status == 403


def test_callers_are_let_in_while_control_hangs_and_no_token_that_was_dead_before(server):
    dead, secret = make_token(server, "Objects Invoke")
    assert server.call_object("Held/a/pid", token=secret).status == 200
    assert server.call("DELETE", f"/user/tokens/{dead}").status == 200
    server.freeze(server.children()["control"])

    over = time.monotonic() + 2 * LEASE_MS / 1000
    statuses = {server.call_object("Held/a/pid").status}
    while time.monotonic() < over:
        statuses.add(server.call_object("Held/a/pid").status)

    assert statuses == {200}
    assert server.call_object("Held/a/pid", token=secret).status == 403


def test_the_next_control_lets_nobody_in_by_what_was_known_before_it(server):
    """Whom a process lets in while control hangs is told anew when there is another one."""
    id_, secret = make_token(server, "Objects Invoke")
    pid = server.children()["control"]
    server.freeze(pid)
    assert server.call_object("Held/a/pid", token=secret).status == 200
    os.kill(pid, signal.SIGKILL)
    server.wait_for_life("control", pid)

    assert server.call("DELETE", f"/user/tokens/{id_}").status == 200

    assert server.call_object("Held/a/pid", token=secret).status == 403
    assert server.call_object("Held/a/pid").status == 200
