"""Refusals of a zone file and of its import.

Owns  code, status and wording of each.
Asks  `model.errors` for the bases.
Tells `model.zonefile`, which raises them, `services.zone_import` and `api.zone_files`.
Not   refusals of a record (`model.record_errors`, `model.zone_errors`), which arrive as a cause.

    BadRequest (400)
    ├── FormExpected       9207
    ├── LineUnreadable     9401 syntax, a directive, a name outside the zone
    ├── LineRefused        9402 a record that cannot be stored; the cause stands in `error_chain`
    └── ZoneFileTooLarge   9403 more than can be read at once
"""

from edgestead.model.errors import BadRequest


class FormExpected(BadRequest):
    code, wording = 9207, "A zone file is sent as multipart/form-data, in a part named file."


class LineUnreadable(BadRequest):
    """RFC 1035 §5.1. `line` is where the entry begins, counted from 1."""

    code, wording = 9401, "Line {line}: {reason}."


class LineRefused(BadRequest):
    code, wording = 9402, "Line {line}, {type} {name}: {reason}"


class ZoneFileTooLarge(BadRequest):
    code, wording = 9403, "The zone file has more than {limit} {what}."
