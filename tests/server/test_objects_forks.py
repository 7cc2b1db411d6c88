"""Objects whose code forks, starts programs and uses threads, in a real server."""

import os
import signal

from edgestead.testing.server import wait_until
from tests.server.test_child import is_running

CLASSES = """
import asyncio, multiprocessing, os, subprocess, time
from concurrent import futures
from functools import partial

import elsewhere
from edgestead import StatefulObject

def twice(n):
    return 2 * n

def in_child(connection):
    connection.send(twice(21))

class Forking(StatefulObject):
    async def fork(self):
        await self.ctx.storage.put("n", 1)
        child = os.fork()
        if child:
            return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        try:
            self.ctx.storage.put("n", 2)
        except Exception as error:
            os.write(2, str(error).encode())
        return -1

    async def n(self):
        return await self.ctx.storage.get("n")

    async def others(self):
        ran = subprocess.run(["echo", "ran"], capture_output=True, text=True).stdout.strip()
        ours, theirs = multiprocessing.Pipe()
        process = multiprocessing.get_context("fork").Process(target=in_child, args=(theirs,))
        process.start()
        got = ours.recv()
        process.join()
        return [ran, got, process.exitcode, await asyncio.to_thread(twice, 4)]

    async def executors(self):
        loop = asyncio.get_running_loop()
        results = [await loop.run_in_executor(None, twice, 1)]
        for make in (
            futures.ThreadPoolExecutor,
            partial(futures.ProcessPoolExecutor, mp_context=multiprocessing.get_context("fork")),
            partial(futures.ProcessPoolExecutor, mp_context=multiprocessing.get_context("spawn")),
        ):
            with make(max_workers=1) as executor:
                results.append(await loop.run_in_executor(executor, elsewhere.twice, 21))
        program = await asyncio.create_subprocess_exec("echo", "ran", stdout=asyncio.subprocess.PIPE)
        said, _ = await program.communicate()
        await self.ctx.storage.put("n", 4)
        return [*results, said.decode().strip()]

    async def stray(self):
        child = os.fork()
        if child:
            return child
        while True:
            time.sleep(600)

    async def thread(self):
        try:
            await asyncio.to_thread(self.ctx.storage.put, "n", 3)
        except Exception as error:
            return str(error)
"""


def test_a_forked_child_never_comes_back_and_other_children_work(new_server, tmp_path):
    source = tmp_path / "forking.py"
    source.write_text(CLASSES)
    (tmp_path / "elsewhere.py").write_text("def twice(n):\n    return 2 * n\n")  # importable in any process
    server = new_server("--objects", str(source), "--objects-workers", "1").start()
    pid = server.children()["objects-0"]

    assert server.call_object("Forking/a/fork").result == 70
    assert server.call_object("Forking/a/n").result == 1
    assert server.call_object("Forking/a/others").result == ["ran", 42, 0, 8]
    assert "used by the object's own thread only" in server.call_object("Forking/a/thread").result
    assert server.call_object("Forking/a/n").result == 1
    assert server.call_object("Forking/a/executors").result == [2, 42, 42, 42, "ran"]
    assert server.call_object("Forking/a/n").result == 4
    assert server.children()["objects-0"] == pid
    server.wait_for_log("its storage is the parent's")


def test_what_a_class_forked_ends_with_its_process_and_keeps_no_server_from_starting(new_server, tmp_path):
    source = tmp_path / "forking.py"
    source.write_text(CLASSES)
    (tmp_path / "elsewhere.py").write_text("")
    server = new_server("--objects", str(source), "--objects-workers", "1").start()
    stray = server.call_object("Forking/a/stray").result

    server.kill()  # nobody is left who would end it
    try:
        assert is_running(stray)
        server.start()
    finally:
        os.kill(stray, signal.SIGKILL)
    assert server.call_object("Forking/a/n").result is None

    other = server.call_object("Forking/a/stray").result
    server.stop()
    wait_until(lambda: not is_running(other), 300)
