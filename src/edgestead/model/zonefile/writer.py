"""One record as a line of a zone file.

Owns  the order of its parts.
Not   which records there are.
"""

from edgestead.model import names
from edgestead.model.call import Profile
from edgestead.model.records import Rdata
from edgestead.model.zonefile.notes import Notes, write_notes


def write_line(owner: bytes, ttl: int, rdata: Rdata, notes: Notes, profile: Profile) -> str:
    """ASCII but for the comment, names absolute: any name server reads it, and `read` reads it back."""
    text = f"{names.absolute_text(owner)}\t{ttl}\tIN\t{rdata.row.name}\t{rdata.to_zone_text()}"
    said = write_notes(notes, profile)
    return f"{text} ; {said}\n" if said else text + "\n"
