"""Calls of objects that go on through crashes."""

import asyncio
import json
from typing import Any

from edgestead.testing.server import EdgeServer
from tests.objects.hosts import Client

AGAIN_SECONDS = 0.02  # while nobody listens
PATIENCE_SECONDS = 300  # for an answer or the connection's end, and for a call that is repeated


class Cut(Exception):
    """The call was cut off: it has happened, or it has not."""


class Line:
    """One caller's connection, made anew when it breaks."""

    def __init__(self, address: str, token: str = "") -> None:
        self._host, _, port = address.rpartition(":")
        self._port, self._token = int(port), token
        self._client: Client | None = None

    async def call(self, path: str, *arguments: Any, **named: Any) -> Any:
        """The result of a method. Raises Cut, also when the object was reset."""
        body = json.dumps({"args": arguments, "kwargs": named}).encode()
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                status, answer = await self._ask(path, body)
        except TimeoutError:
            raise AssertionError(f"{path}: neither an answer nor an end in {PATIENCE_SECONDS} s") from None
        except (OSError, asyncio.IncompleteReadError) as error:
            self.close()
            await asyncio.sleep(AGAIN_SECONDS)
            raise Cut from error
        if status == 503:
            await asyncio.sleep(AGAIN_SECONDS)
            raise Cut
        assert status == 200, answer
        return answer["result"]

    async def _ask(self, path: str, body: bytes) -> tuple[int, Any]:
        if self._client is None:
            self._client = Client(*await asyncio.open_connection(self._host, self._port))
        headers = {"authorization": f"Bearer {self._token}"}
        return await self._client.ask("POST", f"/objects/{path}", body, **headers)

    async def insist(self, path: str, *arguments: Any, **named: Any) -> Any:
        """The same for calls that may be repeated: until there is an answer. Raises TimeoutError."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while True:
                try:
                    return await self.call(path, *arguments, **named)
                except Cut:
                    continue

    def close(self) -> None:
        if self._client is not None:
            self._client.writer.close()
        self._client = None


def new_line(server: EdgeServer) -> Line:
    """To the objects of a server, with its token."""
    return Line(server.ready["objects"], server.ready["api_token"])
