"""Refusals of a zone's history: reading it, undoing, restoring.

Owns  code, status and wording of each.
Asks  `model.errors` for the bases.
Tells `services.history`.
Not   refusals of records (`model.record_errors`, `model.zone_errors`), which arrive as a cause.

    NotFound (404)                       BadRequest (400)
    └── ChangeNotFound     9500          ├── ChangedSince        9501
                                         ├── CannotBringBack     9502 with the cause in `error_chain`
                                         └── TooMuchToRestore    9503
"""

from edgestead.model.errors import BadRequest, NotFound


class ChangeNotFound(NotFound):
    """No change has that number, or it is older than what is kept."""

    code, wording = 9500, "The zone's history has no change {sequence}."


class ChangedSince(BadRequest):
    """An undo would overwrite what came later. Restoring says what is wanted instead."""

    code, wording = 9501, "Change {sequence} cannot be undone: {what} was changed again since."


class CannotBringBack(BadRequest):
    """What was there once breaks a rule now."""

    code, wording = 9502, "{what} cannot be brought back: {reason}"


class TooMuchToRestore(BadRequest):
    """One transaction has to hold it."""

    code, wording = 9503, "That would go through more than {limit} changes at once; restore single names."
