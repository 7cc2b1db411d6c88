"""A failing disk under a real objects process. The class breaks the process's own system calls."""

from contextlib import suppress

import pytest

SOURCE = """
import errno, os
from edgestead import StatefulObject

real_write, disk = os.pwrite, {"is_full": False}

def write(descriptor, *arguments):
    if disk["is_full"]:
        raise OSError(errno.ENOSPC, "the disk is full")
    return real_write(descriptor, *arguments)

os.pwrite = write

class Disk(StatefulObject):
    async def fail_to_sync(self):
        real_sync = os.fdatasync
        def fail(descriptor):  # a look for room that failed first would refuse the write
            if os.readlink(f"/proc/self/fd/{descriptor}").endswith("/room"):
                return real_sync(descriptor)
            raise OSError(errno.EIO, "the disk failed")
        os.fdatasync = fail

    async def fill(self):
        disk["is_full"] = True

    async def empty(self):
        disk["is_full"] = False

class Counter(StatefulObject):
    async def add(self):
        n = await self.ctx.storage.get("n", default=0) + 1
        await self.ctx.storage.put("n", n)
        return n

    async def count(self):
        return await self.ctx.storage.get("n", default=0)
"""


@pytest.fixture
def server(new_server, tmp_path):
    source = tmp_path / "disk.py"
    source.write_text(SOURCE)
    return new_server("--objects", str(source), "--objects-workers", "1").start()


def test_a_failed_sync_ends_the_process_and_loses_nothing_that_was_answered(server):
    assert server.call_object("Counter/a/add").result == 1
    pid = server.children()["objects-0"]
    with suppress(ConnectionError):  # a sync of something else may have ended it before: then another answers
        server.call_object("Disk/a/fail_to_sync")
        server.call_object("Counter/a/add")
    server.wait_for_life("objects-0", pid)

    server.wait_for_log(f"objects-0 (pid {pid}) ended with exit status 70")
    assert server.call_object("Counter/a/count").result in (
        1,
        2,
    )  # the one that was not answered may be there


def test_a_full_disk_refuses_writes_and_is_not_ready_until_there_is_room(server):
    assert server.call_object("Counter/a/add").result == 1
    server.wait_until(lambda: server.call("GET", "//health/ready").status == 200, 300)
    server.call_object("Disk/a/fill")

    refused = server.call_object("Counter/a/add")

    assert refused.status == 503
    assert server.call_object("Counter/a/count").result == 1
    server.wait_until(lambda: "no space is left" in str(server.call("GET", "//health/ready").body), 300)
    assert server.call("GET", "//health/ready").status == 503
    server.call_object("Disk/a/empty")
    server.wait_until(lambda: server.call("GET", "//health/ready").status == 200, 300)
    assert server.call_object("Counter/a/add").result == 2
