"""A multipart body that is larger than what is inspected at once: its later parts, as they come.

Owns  the walk over what follows the inspected prefix; what may pass, and what has to be inspected first.
Not   inspecting; contents of files, which pass as they come.

Forms put fields behind files, so an inspected prefix alone would be a way around every rule: a large file
first, the attack behind it. Here each later field is held back until it is whole and inspected, and so are
the headers of each later file. As the origin has not got the end of the body by then, it has not acted on it.
"""

from collections.abc import Generator

from edgestead.waf.bodies import dispositions
from edgestead.waf.bodies.multipart import MALFORMED, Multipart, Part
from edgestead.waf.limits import BODY_BYTES_MAX, PART_HEADER_BYTES_MAX, PARTS_MAX, at_once
from edgestead.waf.transaction import Refused

HELD_BYTES_MAX = BODY_BYTES_MAX + PART_HEADER_BYTES_MAX  # of a field with its headers


class LateParts:
    """`first` is what of the prefix may pass at once.

    Raises: Refused, as do `feed` and `end`: 400 for what is no multipart body, 413 over a limit.
    """

    def __init__(self, content_type: bytes, prefix: bytes) -> None:
        at_once(self._reading(content_type, prefix))

    @classmethod
    def reading(cls, content_type: bytes, prefix: bytes) -> Generator[int, None, "LateParts"]:
        """One of these; tells the units of work of each portion."""
        made = cls.__new__(cls)
        yield from made._reading(content_type, prefix)
        return made

    def _reading(self, content_type: bytes, prefix: bytes) -> Generator[int, None, None]:
        self._reader = Multipart(content_type)
        seen = yield from self._reader.reading(prefix, complete=False)
        self._delimiter = self._reader.delimiter
        self._done = self._reader.ended
        self._in_file = seen == len(prefix)
        self._begins = False  # whether the file's first byte is still to come
        self._parts = 0
        # of the part whose boundary is held
        self._head_octets = self._searched = 0
        self._is_file = False
        if self._in_file and not self._done:
            seen = max(seen - self._kept_back, 0)
        self.first, self._held = prefix[:seen], prefix[seen:]
        self._before = self._held

    @property
    def _kept_back(self) -> int:
        """Of a file's content, as a boundary may begin there."""
        return len(self._delimiter) + 2

    def held(self) -> bytes:
        """What has not passed yet, for a caller who gives up; without the chunk that was refused."""
        return self._before

    def feed(self, chunk: bytes) -> tuple[bytes, bytes]:
        """(what may pass, a multipart body to inspect before it does, or nothing)."""
        self._before = self._held
        self._held += chunk
        passes: list[bytes] = []
        late: list[bytes] = []
        try:
            while self._step(passes, late):
                pass
        except dispositions.Malformed:
            raise Refused(MALFORMED, 400) from None
        if late:
            late.append(self._delimiter + b"--\r\n")
        return b"".join(passes), b"".join(late)

    def end(self) -> None:
        """The body is over."""
        if not self._done:
            raise Refused(MALFORMED, 400)

    def _step(self, passes: list[bytes], late: list[bytes]) -> bool:
        """Take the next piece off what is held; False when more has to come first."""
        if self._done:
            self._reader.epilogue(self._held)
            self._pass(len(self._held), passes)
            return False
        return self._file(passes) if self._in_file else self._part(passes, late)

    def _pass(self, count: int, passes: list[bytes]) -> bytes:
        piece, self._held = self._held[:count], self._held[count:]
        passes.append(piece)
        return piece

    def _file(self, passes: list[bytes]) -> bool:
        if self._begins:
            if self._held.startswith(self._delimiter):
                raise dispositions.Malformed  # as `Multipart` does
            if self._delimiter.startswith(self._held):
                return False
            self._begins = False
        found = self._held.find(self._delimiter)  # wherever it stands, as `Multipart` does
        if found < 0:
            self._pass(max(len(self._held) - self._kept_back, 0), passes)
            return False
        self._line_end(found)
        self._pass(found, passes)
        self._in_file = False
        return True

    def _line_end(self, at: int) -> None:
        """Note how the line before a boundary ended. Raises: Malformed where there is none."""
        if not self._held.endswith(b"\n", 0, at):
            raise dispositions.Malformed
        self._reader.line_end(self._held.endswith(b"\r\n", 0, at))

    def _part(self, passes: list[bytes], late: list[bytes]) -> bool:
        """What is held begins with a boundary."""
        if not self._head_octets and not self._head():
            if self._done:
                self._pass(len(self._delimiter) + 2, passes)
            return self._done
        if self._is_file:
            late.append(self._pass(self._head_octets, passes) + b"\r\n")
            self._in_file = self._begins = True
        else:
            found = self._held.find(b"\n" + self._delimiter, self._searched)
            if (len(self._held) if found < 0 else found) > HELD_BYTES_MAX:
                raise Refused("body-size", 413)
            if found < 0:
                self._searched = max(len(self._held) - self._kept_back, self._head_octets)
                return False
            self._line_end(found + 1)
            late.append(self._pass(found + 1, passes))
        self._head_octets = 0
        return True

    def _head(self) -> bool:
        """Read the part's headers, when they are all there; notes the last boundary."""
        held, after = self._held, len(self._delimiter)
        if held.startswith(b"--", after):
            self._done = True
            return False
        line_end = held.find(b"\n", after) + 1
        head_octets = self._head_end(held, line_end)
        if not head_octets:
            if len(held) > PART_HEADER_BYTES_MAX:
                raise Refused("part-headers", 413)
            return False
        self._parts += 1
        if self._parts > PARTS_MAX:
            raise Refused("parts", 413)
        part = Part()
        self._reader.headers(held, line_end, part)
        self._is_file = part.is_file
        self._head_octets = self._searched = head_octets
        return True

    @staticmethod
    def _head_end(held: bytes, line_end: int) -> int:
        """Where the content begins; 0 when the headers are not all there."""
        if not line_end:
            return 0
        gaps = ((held.find(gap, line_end - 1), len(gap)) for gap in (b"\n\r\n", b"\n\n"))
        return min((at + length for at, length in gaps if at >= 0), default=0)
