"""Pages of an object's database, as commits carry them: frames of SQLite's write-ahead log.

Owns  the sizes, and the body of a commit of pages (SQLite file format §4.1, without the log's own header).
Not   reading the frames from a database; how history packs them.
"""

PAGE_BYTES = 4_096
FRAME_HEADER_BYTES = 24  # before each page image
FORMAT_VERSIONS = slice(18, 20)  # of the first page (§1.3.3): 2 means that the file is in WAL mode


def frames_of(image: bytes, pages: list[int], total: int) -> bytes:
    """Pages of a database as the WAL frames of one transaction."""
    parts: list[bytes] = []
    for page in pages:
        size = total if page == pages[-1] else 0
        header = page.to_bytes(4, "big") + size.to_bytes(4, "big")
        parts += (header.ljust(FRAME_HEADER_BYTES, b"\0"), image[(page - 1) * PAGE_BYTES : page * PAGE_BYTES])
    return b"".join(parts)
