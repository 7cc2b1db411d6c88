"""Restoring an object: the commits of a restore, and its pages in the file.

Owns  the difference between a database file and a state, as a commit; an empty database's one page.
Not   finding the state (`past`); logging the commits.

A restore is an ordinary commit: it is durable as a whole or not at all, is part of history, and can be
undone.
"""

import apsw
import msgspec

from edgestead.store.files import Files
from edgestead.store.objectlog import COMMIT_BYTES_MAX, Commit, CommitKind, LogError, Restored
from edgestead.store.pages import FORMAT_VERSIONS, FRAME_HEADER_BYTES, PAGE_BYTES, frames_of
from edgestead.store.past import ObjectState


def _empty_page() -> bytes:
    """The file of a database from which everything was deleted."""
    connection = apsw.Connection(":memory:")
    for statement in (f"PRAGMA page_size = {PAGE_BYTES}", "CREATE TABLE t (a)", "DROP TABLE t", "VACUUM"):
        connection.execute(statement).fetchall()
    page = bytearray(connection.serialize("main"))
    connection.close()
    page[FORMAT_VERSIONS] = b"\x02\x02"
    return bytes(page)


EMPTY_PAGE = _empty_page()


def restoring_commits(current: bytes, state: ObjectState, session: int) -> list[Commit]:
    """The commits that change an object with the file `current` to `state`, in a new session.

    Raises LogError when there are more changes than fit into one commit.
    """
    follow: list[Commit] = []
    image = bytes(state.image) or (EMPTY_PAGE if current else b"")
    if (frames := differing_frames(current, image)) is not None:
        follow.append(Commit(CommitKind.PAGES, frames))
    if state.tail:
        follow.append(Commit(CommitKind.KEYS, msgspec.msgpack.encode(state.tail)))
    begins = Restored(session, state.position, len(follow))
    return [Commit(CommitKind.RESTORED, msgspec.msgpack.encode(begins)), *follow]


def differing_frames(current: bytes, image: bytes) -> bytes | None:
    """The pages of `image` that `current` does not have, as WAL frames; None when they are equal."""
    if current == image:
        return None
    total = len(image) // PAGE_BYTES
    pages = [
        page
        for page in range(1, total + 1)
        if image[(page - 1) * PAGE_BYTES : page * PAGE_BYTES]
        != current[(page - 1) * PAGE_BYTES : page * PAGE_BYTES]
    ] or [1]  # a commit has at least one page, also when it only cuts the file
    if len(pages) * (FRAME_HEADER_BYTES + PAGE_BYTES) > COMMIT_BYTES_MAX:
        raise LogError(f"a restore may change at most {COMMIT_BYTES_MAX} bytes of pages")
    return frames_of(image, pages, total)


def read_file(files: Files, path: str) -> bytes:
    """A database file's bytes; none when it does not exist."""
    if not files.exists(path):
        return b""
    file = files.open(path)
    try:
        return file.read(file.size(), 0)
    finally:
        file.close()


def apply_frames(frames: bytes | memoryview, image: bytearray) -> None:
    """Apply a logged commit to a database's bytes."""
    step = FRAME_HEADER_BYTES + PAGE_BYTES
    last = len(frames) - step
    length = int.from_bytes(frames[last + 4 : last + 8], "big") * PAGE_BYTES
    for offset in range(0, len(frames), step):
        start = (int.from_bytes(frames[offset : offset + 4], "big") - 1) * PAGE_BYTES
        if start > len(image):
            image.extend(bytes(start - len(image)))
        image[start : start + PAGE_BYTES] = frames[offset + FRAME_HEADER_BYTES : offset + step]
    del image[length:]
    image.extend(bytes(length - len(image)))


def write_frames(files: Files, path: str, frames: bytes) -> None:
    """Apply a logged commit to a database file. Not synced: the commit is in the log."""
    files.make_folder(path.rpartition("/")[0])
    step = FRAME_HEADER_BYTES + PAGE_BYTES
    file = files.open(path, create=True)
    try:
        for offset in range(0, len(frames), step):
            page = int.from_bytes(frames[offset : offset + 4], "big")
            file.write(frames[offset + FRAME_HEADER_BYTES : offset + step], (page - 1) * PAGE_BYTES)
        last = len(frames) - step
        file.truncate(int.from_bytes(frames[last + 4 : last + 8], "big") * PAGE_BYTES)
    finally:
        file.close()
