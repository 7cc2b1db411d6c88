"""The admin socket: what a command on the same machine asks of the running server.

Owns  the protocol: one JSON line asked, one answered, over a Unix socket that only its owner can open.
Not   secrets: they stay in the credentials file, which both sides can read.
"""

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

import msgspec

from edgestead.server.errors import StartError

LINE_BYTES_MAX = 4096  # a question is a word
REPLY_BYTES_MAX = 4 << 20  # an answer a sentence, or some thousand rows of health
REPLY_SECONDS_MAX = 30.0  # renewing waits for every process
_ASK_SECONDS_MAX = 5.0  # from connection to whole question: the caller is a program of ours

_log = logging.getLogger("edgestead.server")

Handler = Callable[[], Awaitable[object]]


class Question(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    command: str


class Reply(msgspec.Struct, frozen=True):
    """`error` is empty when it was done; `result` is what the handler gave, as JSON."""

    error: str = ""
    result: msgspec.Raw = msgspec.Raw(b"null")


async def serve_admin(listener: socket.socket, handlers: Mapping[str, Handler]) -> asyncio.Server:
    """Answer questions until the returned server is closed. A handler's exception is its reply."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_ASK_SECONDS_MAX):
                line = await reader.readline()
            writer.write(msgspec.json.encode(await _carry_out(line, handlers)) + b"\n")
            await writer.drain()
        except (TimeoutError, ValueError, OSError):
            pass  # no question, one too long, or nobody left to answer
        finally:
            writer.close()

    return await asyncio.start_unix_server(answer, sock=listener, limit=LINE_BYTES_MAX)


async def _carry_out(line: bytes, handlers: Mapping[str, Handler]) -> Reply:
    try:
        question = msgspec.json.decode(line, type=Question)
    except msgspec.DecodeError:
        return Reply("not a question")
    handler = handlers.get(question.command)
    if handler is None:
        return Reply(f"unknown command {question.command!r}")
    try:
        result = await handler()
    except StartError as refusal:
        _log.error("admin command %s failed: %s", question.command, refusal)
        return Reply(str(refusal))
    except Exception as error:
        _log.exception("admin command %s failed", question.command)
        return Reply(str(error) or type(error).__name__)
    return Reply(result=msgspec.Raw(msgspec.json.encode(result)))


def ask(path: Path, command: str, seconds: float = REPLY_SECONDS_MAX) -> bytes:
    """Have the running server do `command`; returns its result as JSON. Blocks for at most `seconds`.

    Raises StartError with the server's words; ConnectionError or FileNotFoundError when there is no server.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(seconds)
        connection.connect(str(path))
        try:
            connection.sendall(msgspec.json.encode(Question(command)) + b"\n")
            with connection.makefile("rb") as stream:
                line = stream.readline(REPLY_BYTES_MAX)
        except TimeoutError:
            raise StartError(f"the server did not answer within {seconds:g} s") from None
    if not line:
        raise StartError("the server ended before it answered; try again")
    reply = msgspec.json.decode(line, type=Reply)
    if reply.error:
        raise StartError(reply.error)
    return bytes(reply.result)


def is_served(path: Path) -> bool:
    """Whether a server listens there."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        try:
            connection.connect(str(path))
        except OSError:
            return False
    return True
