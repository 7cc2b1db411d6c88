"""HTTP to and from objects in a test: requests without a socket.

Owns  `Answer`, and giving a request to an object's `fetch`.
Not   bytes on the wire.
"""

import json
from typing import Any

from edgestead.http1 import messages
from edgestead.objects.errors import UnknownMethod
from edgestead.objects.runtime import web
from edgestead.objects.runtime.calls import Reply, error_of
from edgestead.objects.runtime.classes import ClassInfo
from edgestead.objects.runtime.node import Node
from edgestead.store.objectlog import ObjectRef

CLIENT = "127.0.0.1"


class Answer:
    """Status, headers (lower-case names) and the whole body."""

    def __init__(
        self, body: bytes | str = b"", status: int = 200, headers: dict[str, str] | None = None
    ) -> None:
        self.status = status
        self.headers = {name.lower(): value for name, value in (headers or {}).items()}
        self.body = body.encode() if isinstance(body, str) else body

    @property
    def text(self) -> str:
        return self.body.decode()

    def json(self) -> Any:
        """What the body's JSON says. Raises ValueError."""
        return json.loads(self.body)

    def __repr__(self) -> str:
        return f"<answer {self.status}, {len(self.body)} bytes>"


async def ask(
    node: Node,
    ref: ObjectRef,
    info: ClassInfo,
    target: str,
    method: str,
    headers: dict[str, str],
    body: bytes | str,
) -> Answer:
    """Give a request to an object's `fetch`. Raises what its caller would see, UnknownMethod without one."""
    if not info.has_fetch:
        raise UnknownMethod(f"class {info.name} has no method 'fetch'")
    content = messages.Body(lambda: None)
    content.feed(body.encode() if isinstance(body, str) else body)
    content.end()
    path, _, query = target.partition("?")
    sent = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
    received = messages.Request(method, target.encode(), sent, CLIENT, content)
    response = await node.fetch(ref, info, web.Request(received, path, query))
    if isinstance(response, Reply):
        raise error_of(response)
    found = {name.decode("latin-1"): value.decode("latin-1") for name, value in response.headers}
    if isinstance(response.body, bytes):
        return Answer(response.body, response.status, found)
    return Answer(b"".join([chunk async for chunk in response.body]), response.status, found)
