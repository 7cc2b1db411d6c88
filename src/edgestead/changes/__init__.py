"""Behaviours that changed on a date: one table, one question.

Owns  the dated rows of the specification and `changed(subject, as_of)`.
Not   the behaviours themselves: they are in the rooms that have them.
"""

from edgestead.changes.model import Change, Endpoint, Kind
from edgestead.changes.table import CHANGES, NEWEST, OLDEST, changed, ending

__all__ = ["CHANGES", "NEWEST", "OLDEST", "Change", "Endpoint", "Kind", "changed", "ending"]
