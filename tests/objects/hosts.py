"""A real objects host on real files and a real socket, in this process."""

import asyncio
import json
import socket
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from edgestead.http1.connection import SECONDS, State
from edgestead.http1.messages import Request
from edgestead.model.refusals import EdgeError
from edgestead.objects.runtime.admission import Authorise
from edgestead.objects.runtime.classes import StatefulObject, describe
from edgestead.objects.runtime.loader import load
from edgestead.server.objects.host import Host

SEGMENT_BYTES = 1 << 20
FIRST_SECONDS = 300.0


class Client:
    """One HTTP/1.1 connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def send(self, raw: bytes) -> None:
        self.writer.write(raw)
        await self.writer.drain()

    async def answer(self) -> tuple[int, dict[str, str], bytes]:
        """Status, headers and body of the next answer."""
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = dict(line.lower().split(": ", 1) for line in head[1:] if line)
        if headers.get("transfer-encoding") == "chunked":
            body = b""
            while size := int((await self.reader.readuntil(b"\r\n")), 16):
                body += await self.reader.readexactly(size)
                await self.reader.readline()
            await self.reader.readline()
        else:
            body = await self.reader.readexactly(int(headers.get("content-length", 0)))
        return int(head[0].split(" ")[1]), headers, body

    async def ask(self, method: str, path: str, body: bytes = b"", **headers: str) -> tuple[int, Any]:
        """Status, and the body as JSON where it is JSON."""
        lines = [f"{method} {path} HTTP/1.1", "host: test", f"content-length: {len(body)}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        await self.send("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
        status, found, raw = await self.answer()
        return status, json.loads(raw) if found.get("content-type") == "application/json" else raw

    async def call(self, path: str, *arguments: Any, **named: Any) -> Any:
        """The result of a call that succeeds."""
        body = json.dumps({"args": arguments, "kwargs": named}).encode()
        status, answer = await self.ask("POST", f"/objects/{path}", body)
        assert status == 200, answer
        return answer["result"]


@contextmanager
def patient() -> Iterator[None]:
    """Clients that are connected may say nothing for long: a script uses one after the other."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setitem(SECONDS, State.HEAD, FIRST_SECONDS)
        yield


def allow(request: Request, permission: str) -> EdgeError | None:
    return None


def serve(
    folder: Path,
    script: Callable[[Client, Host], Coroutine[Any, Any, Any]],
    *classes: type[StatefulObject],
    sources: tuple[str, ...] = (),
    authorise: Authorise = allow,
) -> Any:
    """Run a script against a host that serves these classes, and end the host."""

    async def main() -> Any:
        loaded = {kind.__name__: describe(kind) for kind in classes} | load(sources)
        host = Host(str(folder), loaded, segment_bytes=SEGMENT_BYTES)
        bound = socket.create_server(("127.0.0.1", 0))
        port = bound.getsockname()[1]
        await host.open([bound], authorise)
        client = Client(*await asyncio.open_connection("127.0.0.1", port))
        try:
            async with asyncio.timeout(120):
                return await script(client, host)
        finally:
            client.writer.close()
            await host.close()

    with patient():
        return asyncio.run(main())
