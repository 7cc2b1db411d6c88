"""A snapshot as a file without a name, from one process to another.

Owns  writing the feed's state into a memory file that can be passed on, and reading it in slices.
Not   the messages about it.

The file is in memory, so that a full disk cannot keep a DNS process from starting; while it is being loaded
it takes as much memory as the served data. It is sealed: a consumer cannot change what another one reads.
"""

import fcntl
import os
from collections.abc import Iterator, Sequence

from edgestead.feed.protocol import Frames, ProtocolError, batches, decode_changes, frame_changes
from edgestead.store.changes import Change, ChangeFeed

READ_BYTES = 262_144


def write(feed: ChangeFeed, kinds: frozenset[str]) -> tuple[int, int]:
    """Scan the feed into a sealed file; returns (descriptor, sequence). Blocks; the caller closes it.

    Raises what `ChangeFeed.snapshot` raises, and OSError.
    """
    descriptor = os.memfd_create("feed", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        with open(descriptor, "wb", closefd=False) as file:

            def sink(changes: Sequence[Change]) -> None:
                for batch in batches(changes):
                    file.write(frame_changes(batch))

            sequence = feed.snapshot(kinds, sink)
        seals = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, seals)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor, sequence


def read(descriptor: int) -> Iterator[list[Change]]:
    """The changes of a snapshot's file, slice by slice. Closes the descriptor at the end.

    Reads by position, because consumers of one snapshot share one descriptor's offset.
    Raises ProtocolError for a file that is cut short.
    """
    frames = Frames()
    place = 0
    try:
        while data := os.pread(descriptor, READ_BYTES, place):
            place += len(data)
            for body in frames.feed(data):
                yield decode_changes(body)
        if not frames.empty:
            raise ProtocolError("a snapshot is cut short")
    finally:
        os.close(descriptor)
