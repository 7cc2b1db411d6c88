"""The one shape of every REST answer.

Owns  the envelope's bytes, the error object, paging facts.
Asks  `model.errors` for what an error knows.
Tells `api`.
Not   HTTP headers; what a result holds.

Spec "Response envelope"; contract: `result` first, then `success`, `errors`, `messages`, `result_info`.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from edgestead.model.errors import EdgeError

encode = msgspec.json.Encoder().encode

_TAIL = b',"success":true,"errors":[],"messages":[]}'
_TAIL_BEFORE_INFO = b',"success":true,"errors":[],"messages":[],"result_info":'


class Source(msgspec.Struct, frozen=True):
    pointer: str


class Cause(msgspec.Struct, frozen=True, omit_defaults=True):
    """One error object. `source.pointer` is a JSON pointer (RFC 6901) into the request's body."""

    code: int
    message: str
    source: Source | None = None
    error_chain: list["Cause"] = []


class ResultInfo(msgspec.Struct, frozen=True):
    """Paging facts. `count` is of this page, `total_count` of everything that the filter lets through."""

    page: int
    per_page: int
    count: int
    total_count: int
    total_pages: int


class Cursors(msgspec.Struct, frozen=True):
    after: str


class Further(msgspec.Struct, frozen=True):
    """Paging by cursor: there is more, from here. The last page says nothing."""

    cursors: Cursors


def further(after: str) -> Further:
    return Further(Cursors(after))


class Page(msgspec.Struct, frozen=True):
    """One page of a list. Items are JSON texts when they are bytes, values to be encoded otherwise."""

    items: Sequence[Any]
    page: int
    per_page: int
    total_count: int

    @property
    def info(self) -> ResultInfo:
        pages = max(1, -(-self.total_count // self.per_page))
        return ResultInfo(self.page, self.per_page, len(self.items), self.total_count, pages)


class Message(msgspec.Struct, frozen=True):
    """An item of `messages`: words beside a result that is right."""

    code: int
    message: str
    type: None = None


def success(result: Any, messages: Sequence[Message] = ()) -> bytes:
    """The envelope around a result. Bytes are taken as JSON text that is already right."""
    text = result if isinstance(result, bytes) else encode(result)
    if messages:
        return b'{"result":' + text + b',"success":true,"errors":[],"messages":' + encode(messages) + b"}"
    return b'{"result":' + text + _TAIL


def success_page(page: Page) -> bytes:
    return success_list(page.items, page.info)


def success_list(items: Sequence[Any], info: ResultInfo | Further | None = None) -> bytes:
    """The envelope around a list, with what is said of paging if anything is."""
    if items and isinstance(items[0], bytes):
        text = b"[" + b",".join(items) + b"]"
    else:
        text = encode(items)
    if info is None:
        return b'{"result":' + text + _TAIL
    return b'{"result":' + text + _TAIL_BEFORE_INFO + encode(info) + b"}"


def failure(error: EdgeError) -> bytes:
    causes = encode([_cause(one) for one in (error, *error.also)])
    return b'{"result":null,"success":false,"errors":' + causes + b',"messages":[]}'


def _cause(error: EdgeError) -> Cause:
    source = Source(error.pointer) if error.pointer is not None else None
    return Cause(error.code, error.message, source, [_cause(one) for one in error.chain])
