"""The class of stateful objects that `edgecli demo` runs.

Owns  `Guestbook`.
Not   the demo.
"""

from edgestead import StatefulObject

LINES_MAX = 1_000
LINE_CHARACTERS_MAX = 200


class Guestbook(StatefulObject):
    """Remembers what visitors wrote."""

    async def sign(self, text: str) -> int:
        """Add a line; returns how many there are. Raises ValueError for a long one, or a full book."""
        lines: list[str] = await self.ctx.storage.get("lines", default=[])
        if len(text) > LINE_CHARACTERS_MAX or len(lines) >= LINES_MAX:
            raise ValueError("the line is too long, or the book is full")
        await self.ctx.storage.put("lines", [*lines, text])
        return len(lines) + 1

    async def read(self) -> list[str]:
        """All lines, the oldest first."""
        lines: list[str] = await self.ctx.storage.get("lines", default=[])
        return lines
