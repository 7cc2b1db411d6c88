"""Reading rdata from bytes, front to back.

Owns  the position in the bytes and the check that nothing is missing.
Not   writing: each kind writes its own octets.
"""

from edgestead.model.names import InvalidValue, read_wire


class WireReader:
    """Uncompressed rdata and how far it has been read. Every method raises InvalidValue when cut short."""

    __slots__ = ("_offset", "_wire")

    def __init__(self, wire: bytes) -> None:
        self._wire = wire
        self._offset = 0

    @property
    def is_done(self) -> bool:
        return self._offset == len(self._wire)

    def take(self, octets: int) -> bytes:
        end = self._offset + octets
        if end > len(self._wire):
            raise InvalidValue("the rdata is cut short")
        piece = self._wire[self._offset : end]
        self._offset = end
        return piece

    def number(self, octets: int) -> int:
        return int.from_bytes(self.take(octets), "big")

    def counted(self, octets: int = 1) -> bytes:
        """A string behind its own length of `octets` octets."""
        return self.take(self.number(octets))

    def rest(self) -> bytes:
        return self.take(len(self._wire) - self._offset)

    def name(self) -> bytes:
        name, self._offset = read_wire(self._wire, self._offset)
        return name
