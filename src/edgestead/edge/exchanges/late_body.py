"""The rest of a request's body, looked at on its way to the origin.

Owns  `LateBody`: what of each chunk passes, what its inspectors say of later parts.
Not   inspecting; connections.
"""

from collections.abc import Callable, Generator

from edgestead.edge.exchanges.later import Later
from edgestead.http1.messages import Response
from edgestead.waf.bodies.late_parts import LateParts
from edgestead.waf.transaction import Refused

Inspect = Callable[[bytes], Generator[None, None, Response | None]]
Refuse = Callable[[Refused], Response | None]


class LateBody:
    """One multipart body. Everybody who inspected its start sees its later parts.

    Each inspector is asked about a small multipart body of parts that nobody has seen, and told when the body
    cannot be inspected any further; an answer of any of them is the request's.
    """

    def __init__(self, parts: LateParts) -> None:
        self._parts = parts
        self._inspectors: list[tuple[Inspect, Refuse]] = []
        self._blind = False

    def add(self, inspect: Inspect, refuse: Refuse) -> None:
        self._inspectors.append((inspect, refuse))

    @property
    def first(self) -> bytes:
        """What of the inspected prefix may pass."""
        return self._parts.first

    def feed(self, chunk: bytes) -> bytes | Response | Later:
        """What may pass, or the answer; `Later` where inspecting takes time. Nothing may be fed meanwhile."""
        if self._blind:
            return chunk
        try:
            passes, late = self._parts.feed(chunk)
        except Refused as refused:
            return self._refused(refused) or self._let_go(chunk)
        if not late:
            return passes
        return Later(self._inspect(late, passes))

    def _inspect(self, late: bytes, passes: bytes) -> Generator[None, None, bytes | Response]:
        for inspect, _ in self._inspectors:
            answer = yield from inspect(late)
            if answer is not None:
                return answer
        return passes

    def end(self) -> Response | None:
        try:
            if not self._blind:
                self._parts.end()
        except Refused as refused:
            return self._refused(refused)
        return None

    def _refused(self, refused: Refused) -> Response | None:
        answers = [answer for _, refuse in self._inspectors if (answer := refuse(refused)) is not None]
        return answers[0] if answers else None

    def _let_go(self, chunk: bytes) -> bytes:
        """Nobody minds: whoever inspects only logs."""
        self._blind = True
        return self._parts.held() + chunk
