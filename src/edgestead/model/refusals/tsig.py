"""Refusals about TSIG keys.

Owns  their wording, codes and statuses.
Not   answers of DNS to messages with such a key (`dns.tsig`).

    BadRequest (400)
    ├── TsigRefused  1001
    ├── TsigExists   1001
    ├── TooManyTsigs 1001
    └── TsigInUse    1001
    NotFound (404)
    └── TsigNotFound 1001
    Unavailable (503)
    └── TsigSealed
"""

from edgestead.model.refusals import BadRequest, NotFound, Unavailable


class TsigNotFound(NotFound):
    code, wording = 1001, "No such TSIG key."


class TsigRefused(BadRequest):
    code, wording = 1001, "TSIG key is invalid: {reason}"


class TsigExists(BadRequest):
    """Also when another account has it: a key is known by its name alone."""

    code, wording = 1001, "There is a TSIG key of the name {name} already."


class TooManyTsigs(BadRequest):
    code, wording = 1001, "An account has at most {keys_max} TSIG keys."


class TsigInUse(BadRequest):
    """Without it the peer's zones would be transferred no longer, and expire."""

    code, wording = 1001, "Transfers from {peer} are signed with this key: change that first."


class TsigSealed(Unavailable):
    """The secret that sealed a key is not the data folder's, as after a restore without it."""

    wording = "TSIG keys cannot be opened: put seal.key back into the data folder, or make them anew."
