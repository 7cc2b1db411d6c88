"""Zone files: RFC 1035 §5, with $TTL (RFC 2308 §4), $GENERATE, and our words in comments.

Owns  reading text into entries, and writing records as lines that read back the same.
Not   storing; which records a zone takes.

    for entry in read(text, apex): entry.line, entry.owner, entry.ttl, entry.type, entry.content …

Pure and bounded: everything walks its text once, and entries come one by one, so that the caller can stop,
count, or let others pass in between.
"""

from edgestead.model.zonefile.notes import Notes, read_notes, write_notes
from edgestead.model.zonefile.reader import Entry, read
from edgestead.model.zonefile.writer import write_line

__all__ = ["Entry", "Notes", "read", "read_notes", "write_line", "write_notes"]
