"""Pieces of a body that is held until somebody has looked at it.

Owns  how many there may be before they are joined.
Not   how many octets may be held.
"""

from edgestead.edge import limits


def hold(pieces: list[bytes], piece: bytes) -> None:
    """Keep one more. Two octets take fifty as an object, and bounds count octets: many are joined.

    The first piece stays as it is: it may be what was inspected.
    """
    pieces.append(piece)
    if len(pieces) > limits.CHUNKS_HELD_MAX:
        pieces[1:] = [b"".join(pieces[1:])]
