"""Behaviours that changed on a date: one table, one question.

Owns  the dated rows of the specification and `changed(subject, as_of)`.
Not   what the old or the new behaviour is: the room that shows it decides.
"""

from edgestead.changes.model import Change, Endpoint, Kind
from edgestead.changes.table import CHANGES, NEWEST, OLDEST, changed, ending

__all__ = ["CHANGES", "NEWEST", "OLDEST", "Change", "Endpoint", "Kind", "changed", "ending"]
