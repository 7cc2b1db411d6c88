"""What the machine has no more of: a disk that never answers, memory, descriptors."""

import os
import resource
import signal
import socket
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

from edgestead.model.counters import PAGE_BYTES
from edgestead.server import process
from edgestead.server.messages import Start
from edgestead.server.objects.main import OOM_SCORE
from edgestead.server.supervisor.child import Child

SPARE_DESCRIPTORS = 8
WAIT_SECONDS = 300


def test_who_waits_for_a_disk_that_never_answers_is_not_ended(monkeypatch):
    """Nothing could be: the kernel ends it when the disk answers. Other processes serve on."""
    page, sent = os.memfd_create("page"), []
    os.ftruncate(page, PAGE_BYTES)
    child = Child("control", "timeit", lambda *_: (Start(name="control"), []), page, lambda: 0.0, 5)
    monkeypatch.setattr(child, "send", sent.append)
    monkeypatch.setattr("edgestead.server.supervisor.child.work_of", lambda pid: None)
    monkeypatch.setattr(process, "waits_of", lambda pid: (0.0, True))
    child.still_seconds_max = 0.3
    read, write = os.pipe2(os.O_NONBLOCK)
    child.status_fd = read
    process.Status(write).beat()
    child.read_status()

    assert not any(child.end_if_silent(0.5) for _ in range(1_000))
    assert not sent
    monkeypatch.setattr(process, "waits_of", lambda pid: (0.0, False))
    assert any(child.end_if_silent(0.5) for _ in range(1_000))
    assert sent == [signal.SIGABRT]


CLASSES = """
from edgestead import StatefulObject

class Kept(StatefulObject):
    async def put(self, value):
        self.ctx.storage.put("value", value)
"""


def test_when_memory_is_out_objects_are_ended_first(new_server, tmp_path):
    (tmp_path / "kept.py").write_text(CLASSES)
    server = new_server("--objects", str(tmp_path / "kept.py")).start()

    def scores(*, of_objects):
        return [
            int(Path(f"/proc/{pid}/oom_score_adj").read_text())
            for name, pid in server.children().items()
            if name.startswith("objects") is of_objects
        ]

    # spare processes have only begun when the server is up
    server.wait_until(lambda: {*scores(of_objects=True)} == {OOM_SCORE}, WAIT_SECONDS)
    assert max(scores(of_objects=False)) < OOM_SCORE


def test_without_descriptors_who_is_connected_is_served_and_others_when_there_are_some_again(new_server):
    server = new_server().start()
    control = server.children()["control"]
    base = urlsplit(server.ready["api_base"])
    bearer = f"Authorization: Bearer {server.ready['api_token']}"
    request = f"GET {base.path}/zones HTTP/1.1\r\nHost: a\r\n{bearer}\r\n\r\n"

    with socket.create_connection((base.hostname, base.port), timeout=WAIT_SECONDS) as early:
        assert answered(early, request)
        used = len(os.listdir(f"/proc/{control}/fd"))
        _, hard = resource.prlimit(control, resource.RLIMIT_NOFILE)
        resource.prlimit(control, resource.RLIMIT_NOFILE, (used + SPARE_DESCRIPTORS, hard))
        crowd = [socket.create_connection((base.hostname, base.port), WAIT_SECONDS) for _ in range(40)]
        served = [answered(one, request) for one in crowd]
        assert answered(early, request)
        for one in crowd:
            one.close()
    assert True in served
    assert False in served

    def is_served_again():
        with suppress(OSError):  # the crowd's connections are closed one after the other
            return server.call("GET", "/zones").status == 200

    server.wait_until(is_served_again, WAIT_SECONDS)
    assert server.children()["control"] == control


def answered(connection, request):
    try:
        connection.sendall(request.encode())
        return read_status(connection) == b"200"
    except ConnectionError:
        return False


def read_status(connection):
    with connection.makefile("rb") as stream:
        status = stream.readline()
        if not status:
            return b""  # closed
        length = next(
            int(line.partition(b":")[2])
            for line in iter(stream.readline, b"\r\n")
            if line.lower().startswith(b"content-length")
        )
        stream.read(length)
    return status.split()[1]
