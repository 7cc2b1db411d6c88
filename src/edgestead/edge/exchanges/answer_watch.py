"""An origin's answer that somebody looks at before its client gets a byte of it.

Owns  `AnswerWatch`: who looks, and how much of a body is held for them; `HeldAnswer`, the answer meanwhile.
Not   looking; connections.

Only a body of a text type is held, and of it only what is looked at: what follows passes as it comes. A
stream of events is never held, as its end may never come, and neither is a packed body, which says nothing.
"""

from collections.abc import Callable, Generator

from edgestead.edge.exchanges.later import Later
from edgestead.edge.exchanges.pieces import hold
from edgestead.http1.head import Headers
from edgestead.http1.messages import Response
from edgestead.waf.bodies.body import is_text

Steps = Generator[None, None, Response | None]
Look = Callable[["HeldAnswer"], Steps]


class AnswerWatch:
    """One request's: everybody who looks at its answer, in order. `octets_max` is of a body."""

    __slots__ = ("_looks", "_octets_max")

    def __init__(self, octets_max: int) -> None:
        self._looks: list[Look] = []
        self._octets_max = octets_max

    def add(self, look: Look) -> None:
        self._looks.append(look)

    def hold(self, status: int, headers: Headers, length: int | None, bodyless: bool) -> "HeldAnswer":
        looks_at_body = not bodyless and _is_readable(headers)
        return HeldAnswer(status, headers, length, bodyless, self._octets_max if looks_at_body else 0)

    def decide(self, held: "HeldAnswer") -> Later:
        """What ends with another answer, or with None to send that of the origin."""
        return Later(self._decide(held))

    def _decide(self, held: "HeldAnswer") -> Steps:
        for look in self._looks:
            answer = yield from look(held)
            if answer is not None:
                return answer
        return None


class HeldAnswer:
    """The head as the origin sent it, without what concerns its connection, and the body so far."""

    __slots__ = (
        "_octets",
        "_wanted",
        "bodyless",
        "chunks",
        "ended",
        "headers",
        "length",
        "status",
        "trailers",
    )

    def __init__(
        self, status: int, headers: Headers, length: int | None, bodyless: bool, wanted: int
    ) -> None:
        self.status, self.headers, self.length, self.bodyless = status, headers, length, bodyless
        self.chunks: list[bytes] = []
        self.trailers: Headers = []
        self.ended = False
        self._wanted = wanted
        self._octets = 0

    def add(self, chunk: bytes) -> None:
        hold(self.chunks, chunk)
        self._octets += len(chunk)

    @property
    def is_enough(self) -> bool:
        """Whether nothing more has to come before somebody looks."""
        return self.ended or self._octets >= self._wanted or self._octets == self.length

    @property
    def body(self) -> bytes:
        """What is looked at."""
        return b"".join(self.chunks)[: self._wanted]

    @property
    def is_complete(self) -> bool:
        """Whether `body` is all of it."""
        return (self.ended or self._octets == self.length) and self._octets <= self._wanted


def _is_readable(headers: Headers) -> bool:
    found = dict(headers)
    coding = found.get(b"content-encoding", b"").strip().lower()
    return coding in (b"", b"identity") and is_text(found.get(b"content-type", b""))
