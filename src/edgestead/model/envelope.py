"""The one shape of every REST answer.

Owns  the envelope's bytes, the error object, paging facts.
Not   HTTP headers; what a result holds.

Spec "Response envelope"; contract: `result` first, then `success`, `errors`, `messages`, `result_info`.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from edgestead.model.refusals import EdgeError

encode = msgspec.json.Encoder().encode

REMARK = 10_000  # the code of a message that refuses nothing
_TAIL = b',"success":true,"errors":[],"messages":[]}'
_TAIL_BEFORE_INFO = b'],"success":true,"errors":[],"messages":[],"result_info":'


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


class Listed(NamedTuple):
    """Some items of a list, and the number of items that the filter lets through."""

    items: Sequence[Any]
    total_count: int


class Page(msgspec.Struct, frozen=True):
    """One page of a list. `text` is the inside of the JSON array, and `count` how many items that is."""

    text: bytes
    count: int
    page: int
    per_page: int
    total_count: int

    @property
    def info(self) -> ResultInfo:
        pages = max(1, -(-self.total_count // self.per_page))
        return ResultInfo(self.page, self.per_page, self.count, self.total_count, pages)


def page_of(found: Listed, page: int, per_page: int) -> Page:
    """A page of values that are still to be encoded."""
    return Page(encode(found.items)[1:-1], len(found.items), page, per_page, found.total_count)


class Message(msgspec.Struct, frozen=True):
    """An item of `messages`: words beside a result that is right, or beside a refusal."""

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
    # One join: a long list is copied once, not once for each `+`.
    return b"".join((b'{"result":[', page.text, _TAIL_BEFORE_INFO, encode(page.info), b"}"))


def success_with_info(items: Any, info: Any) -> bytes:
    """A list whose paging facts are not those of a `Page`."""
    return b"".join((b'{"result":', encode(items)[:-1], _TAIL_BEFORE_INFO, encode(info), b"}"))


def failure(error: EdgeError) -> bytes:
    causes = encode([_cause(one) for one in (error, *error.also)])
    messages = encode([Message(REMARK, text) for text in error.remarks])
    refusal = b',"success":false,"errors":' + causes + b',"messages":' + messages + b"}"
    return b'{"result":' + error.result + refusal


def _cause(error: EdgeError) -> Cause:
    source = Source(error.pointer) if error.pointer is not None else None
    return Cause(error.code, error.message, source, [_cause(one) for one in error.chain])
