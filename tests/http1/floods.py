"""Chunked bodies that never end and hardly say anything, and some that are odd and fair."""

PIECE_BYTES = 4_096
FLOOD_BYTES_MAX = 4 << 20  # a flood that nobody has stopped by then goes on for ever

FLOODS = {
    "trailers": (b"5\r\nhello\r\n0\r\n", b"a:b\r\n" * 800),
    "trailers behind an empty body": (b"0\r\n", b"a:b\r\n" * 800),
    "a trailer's value without an end": (b"0\r\na: ", b"x" * PIECE_BYTES),
    "a trailer's name without an end": (b"0\r\n", b"x" * PIECE_BYTES),
    "an extension without an end": (b"5;", b"x" * PIECE_BYTES),
    "extensions behind an octet each": (b"", (b"1;" + b"e" * 1_000 + b"\r\nx\r\n") * 4),
    "zeros before a size": (b"", b"0" * PIECE_BYTES),
}
FAIR = {
    "chunks of an octet": (b"1\r\nx\r\n" * 50_000 + b"0\r\n\r\n", b"x" * 50_000),
    "an extension of each chunk": (b"10;a=b;c=d\r\n0123456789abcdef\r\n" * 5_000 + b"0\r\n\r\n", None),
    "as many trailers as headers": (b"5\r\nhello\r\n0\r\n" + b"a: b\r\n" * 128 + b"\r\n", b"hello"),
    "a large trailer": (b"5\r\nhello\r\n0\r\na: " + b"x" * 30_000 + b"\r\n\r\n", b"hello"),
}


def pieces(data):
    return [data[at : at + PIECE_BYTES] for at in range(0, len(data), PIECE_BYTES)]


def flood(feed, name, is_over):
    """Feed a flood until it is stopped; how many bytes were taken."""
    first, again = FLOODS[name]
    if first:
        feed(first)
    taken = len(first)
    while not is_over() and taken < FLOOD_BYTES_MAX:
        feed(again)
        taken += len(again)
    return taken
