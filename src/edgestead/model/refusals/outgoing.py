"""Refusals of outgoing transfers, and of the ranges of addresses that may ask for them.

Owns  code, status and wording of each.
Not   peers (`model.refusals.secondary`).

    BadRequest (400)
    ├── AclRefused       9621
    └── OutgoingRefused  9623
    NotFound (404)
    ├── AclNotFound      9620
    └── OutgoingNotFound 9622
"""

from edgestead.model.refusals import BadRequest, NotFound


class AclNotFound(NotFound):
    code, wording = 9620, "The account has no ACL with this id."


class AclRefused(BadRequest):
    code, wording = 9621, "The ACL is refused: {reason}"


class OutgoingNotFound(NotFound):
    code, wording = (
        9622,
        "Nothing is said of the zone's transfers yet: POST to its secondary_dns/outgoing says who has them.",
    )


class OutgoingRefused(BadRequest):
    code, wording = 9623, "The zone cannot be transferred so: {reason}"
