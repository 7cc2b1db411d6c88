"""Refusals of zones, and of their history.

Owns  code, status and wording of each.
Not   what a zone holds (`model.refusals.record`), how it is set (`model.refusals.setting`).

    NotFound (404)
    ├── ZoneNotFound   1001
    └── ChangeNotFound 9500
    BadRequest (400)
    ├── ZoneNameRefused  1001
    ├── ZoneTypeRefused  1001
    ├── ZoneExists       1061
    ├── ZoneQuota        1118
    ├── ChangedSince     9501
    ├── CannotBringBack  9502 with the cause in `error_chain`
    └── TooMuchToRestore 9503
"""

from edgestead.model.refusals import BadRequest, NotFound


class ZoneNotFound(NotFound):
    code, wording = 1001, "Invalid zone identifier"


class ZoneNameRefused(BadRequest):
    code, wording = 1001, "Zone name is invalid: {reason}."


class ZoneTypeRefused(BadRequest):
    code, wording = (
        1001,
        "Zone type {type} is not offered: a zone is full or secondary, from its beginning on.",
    )


class ZoneExists(BadRequest):
    code, wording = 1061, "{name} already exists"


class ZoneQuota(BadRequest):
    code, wording = 1118, "The account has {zones_max} zones, and this server gives it no more."


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
