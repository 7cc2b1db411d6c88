"""The parts of a multipart body as expressions see them.

Owns  `Parts`: names, values, file names and headers of the parts, in their order.
Not   what a damaged body means: the parts before the damage are there, those behind it are not.
"""

from functools import lru_cache

from edgestead.waf.bodies.dispositions import Malformed
from edgestead.waf.bodies.multipart import Multipart, Part
from edgestead.waf.transaction import Refused

BODIES_KEPT_MAX = 4  # several fields of one request ask for the same parts


class _Reader(Multipart):
    """Keeps contents, of files too, as far as the body is here; so it does of a part that is cut."""

    def __init__(self, content_type: bytes) -> None:
        super().__init__(content_type)
        self.parts: list[Part] = []
        self.values: list[bytes] = []
        self.missing = 0  # octets of the last part, whose content was not walked

    def _keep(self, part: Part, content: bytes, size: int) -> None:
        self.parts.append(part)
        self.missing = size

    def _content(self, body: bytes, start: int, delimiter: bytes, part: Part) -> int:
        end = super()._content(body, start, delimiter, part)
        self.values.append(body[start : max(start, end - 1)].removesuffix(b"\r"))
        return end

    def read_cut(self, body: bytes, at: int) -> None:
        """The part that begins at `at` and has no end yet. Raises Malformed, Refused: nor its headers."""
        part = Part()
        start = self.headers(body, self._boundary(body, at, self.delimiter)[0], part)
        self.parts.append(part)
        self.values.append(body[start:])


class Parts:
    """What could be read of a body; `complete` says whether all of it is here. Raises nothing."""

    def __init__(self, content_type: bytes, body: bytes, complete: bool) -> None:
        reader = _Reader(content_type)
        try:
            at = reader.read(body, complete=complete)
            if at < len(body):
                reader.read_cut(body, at)
        except (Refused, Malformed):
            pass
        self._parts, self.values = reader.parts, reader.values
        if len(self.values) < len(self._parts):  # the start of a file
            self.values.append(body[len(body) - reader.missing :])

    @property
    def grouped(self) -> dict[bytes, list[bytes]]:
        """Values by name."""
        found: dict[bytes, list[bytes]] = {}
        for part, value in zip(self._parts, self.values, strict=True):
            found.setdefault(part.names.name, []).append(value)
        return found

    @property
    def names(self) -> list[list[bytes]]:
        return [[part.names.name] for part in self._parts]

    @property
    def filenames(self) -> list[list[bytes]]:
        """An empty list for a part that is no file."""
        return [[part.names.filename] if part.names.has_filename else [] for part in self._parts]

    def headers(self, name: bytes) -> list[list[bytes]]:
        """Of each part; an empty list where it has none of that lower-case name."""
        return [[part.headers[name]] if name in part.headers else [] for part in self._parts]


parts_of = lru_cache(BODIES_KEPT_MAX)(Parts)
