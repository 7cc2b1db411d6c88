"""One request and its answer, while the pipeline works on them.

Owns  the fields that the steps hand on to one another.
Not   any step.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from edgestead.http1.messages import Request
from edgestead.model.call import Call
from edgestead.model.refusals import EdgeError
from edgestead.rest import rights
from edgestead.rest.body import Upload
from edgestead.rest.context import AppContext, Write, WriteAs
from edgestead.rest.query import Query
from edgestead.rest.routing import Download, Route
from edgestead.usecases.access.admission import Admission
from edgestead.usecases.access.authorise import Identity


class Exchange:
    """Steps fill it from top to bottom; one object a request, so that a request costs one allocation."""

    __slots__ = (
        "admission",
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
        "is_noted",
        "now_us",
        "parameters",
        "query",
        "query_string",
        "raw_path",
        "request",
        "request_id",
        "result",
        "route",
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
    admission: Admission  # of `identity`
    now_us: int
    call: Call
    query: Query
    body: Any
    result: Any

    def __init__(self, api: AppContext, request: Request) -> None:
        self.started_ns = time.perf_counter_ns()
        self.api = api
        self.request = request
        self.headers = request.found
        self.raw_path, _, self.query_string = request.target.partition(b"?")
        self.status = 200
        self.answer = b""
        self.answer_headers: tuple[tuple[bytes, bytes], ...] = ()
        self.standing_headers: tuple[tuple[bytes, bytes], ...] = ()
        self.content_type = b"application/json"
        self.download: Download | None = None
        self.error: EdgeError | None = None
        self.fault: BaseException | None = None
        self.is_noted = False  # in the audit log

    @property
    def upload(self) -> Upload:
        return Upload(self.request.body, self.headers, self.still_permitted)

    @property
    def write(self) -> Write:
        return partial(rights.write, self)

    @property
    def write_as(self) -> WriteAs:
        return partial(rights.write_as, self)

    @property
    def still_permitted(self) -> Callable[[], None]:
        return partial(rights.look_again, self)

    @property
    def answer_bytes(self) -> int:
        return len(self.answer) if self.download is None else self.download.length

    @property
    def client_address(self) -> str:
        return self.request.client
