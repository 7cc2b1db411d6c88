"""The admin socket: a question, an answer, nothing else."""

import asyncio
import socket
import threading
from contextlib import contextmanager

import pytest

from edgestead.server.errors import StartError
from edgestead.server.supervisor import admin


@contextmanager
def serving(path, **handlers):
    """A server on a thread of its own."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen()
    started, loop = threading.Event(), asyncio.new_event_loop()
    ended = asyncio.Event()

    async def serve():
        server = await admin.serve_admin(listener, handlers)
        started.set()
        await ended.wait()
        server.close()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    started.wait()
    try:
        yield
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join()
        loop.close()


def raw(path, content):
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(path))
        connection.sendall(content)
        connection.shutdown(socket.SHUT_WR)
        return connection.makefile("rb").read()


async def done():
    TIMES.append(1)


TIMES = []


async def refused():
    raise StartError("the disk is full")


def test_a_command_is_carried_out_before_it_is_answered(tmp_path):
    before = len(TIMES)
    with serving(tmp_path / "s", rotate=done):
        admin.ask(tmp_path / "s", "rotate")

    assert len(TIMES) == before + 1


@pytest.mark.parametrize(
    ("command", "words"), [("rotate", "the disk is full"), ("dance", "unknown command 'dance'")]
)
def test_a_refusal_reaches_the_caller_in_words(tmp_path, command, words):
    with serving(tmp_path / "s", rotate=refused), pytest.raises(StartError, match=words):
        admin.ask(tmp_path / "s", command)


BAD_LINES = [
    (b"rotate\n", b"not a question"),
    (b'{"command": 5}\n', b"not a question"),
    (b'{"command": "rotate", "more": 1}\n', b"not a question"),
    (b"\xff\n", b"not a question"),
    (b"", b"not a question"),
]


@pytest.mark.parametrize(("line", "words"), BAD_LINES)
def test_a_line_that_is_no_question_does_nothing(tmp_path, line, words):
    before = len(TIMES)
    with serving(tmp_path / "s", rotate=done):
        assert words in raw(tmp_path / "s", line)

    assert len(TIMES) == before


def test_a_line_that_is_too_long_is_hung_up_on(tmp_path):
    with serving(tmp_path / "s", rotate=done):
        assert raw(tmp_path / "s", b"x" * 100 + b" " * admin.LINE_BYTES_MAX) == b""


def test_a_dead_server_is_not_served(tmp_path):
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(tmp_path / "s"))
    listener.listen()
    assert admin.is_served(tmp_path / "s")

    listener.close()

    assert not admin.is_served(tmp_path / "s")
    assert not admin.is_served(tmp_path / "none")
    with pytest.raises(ConnectionError):
        admin.ask(tmp_path / "s", "rotate")
