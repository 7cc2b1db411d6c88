"""One request and its answer, while the pipeline works on them.

Owns  the fields that the steps hand on to one another.
Asks  nobody.
Tells the steps of `api.pipeline` and, by attribute, the arguments of handlers.
Not   any step.
"""

import time
from collections.abc import Mapping, Sequence
from typing import Any

from edgestead.api.asgi import Receive, Scope
from edgestead.api.context import AppContext
from edgestead.api.query import Query
from edgestead.api.routing import Download, Route
from edgestead.api.upload import Upload
from edgestead.model.call import Call
from edgestead.model.errors import EdgeError
from edgestead.services.access import Identity


class Exchange:
    """Steps fill it from top to bottom; one object a request, so that a request costs one allocation."""

    __slots__ = (
        "answer",
        "answer_headers",
        "api",
        "body",
        "call",
        "content_type",
        "download",
        "error",
        "fault",
        "headers",
        "identity",
        "now_us",
        "parameters",
        "query",
        "receive",
        "request_id",
        "result",
        "route",
        "scope",
        "standing_headers",
        "started_ns",
        "status",
    )

    api: AppContext
    headers: Mapping[bytes, bytes]
    request_id: str
    route: Route
    parameters: Sequence[str]
    identity: Identity
    now_us: int
    call: Call
    query: Query
    body: Any
    result: Any

    def __init__(self, api: AppContext, scope: Scope, receive: Receive) -> None:
        self.started_ns = time.perf_counter_ns()
        self.api = api
        self.scope = scope
        self.receive = receive
        self.headers = dict(scope["headers"])
        self.status = 200
        self.answer = b""
        self.answer_headers: tuple[tuple[bytes, bytes], ...] = ()
        self.standing_headers: tuple[tuple[bytes, bytes], ...] = ()
        self.content_type = b"application/json"
        self.download: Download | None = None
        self.error: EdgeError | None = None
        self.fault: BaseException | None = None

    @property
    def upload(self) -> Upload:
        return Upload(self.receive, self.headers)

    @property
    def answer_bytes(self) -> int:
        return len(self.answer) if self.download is None else self.download.length

    @property
    def client_address(self) -> str:
        client = self.scope.get("client")
        return client[0] if client else ""
