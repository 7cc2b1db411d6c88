"""Refusals of zones and accounts, and of a record among its neighbours.

Owns  code, status and wording of each.
Asks  `model.errors` and `model.record_errors` for the bases.
Tells `services`.
Not   refusals of one record's type, name and contents (`model.record_errors`).

    NotFound (404)                       BadRequest (400)
    ├── ZoneNotFound       1001          ├── ZoneNameRefused, ZoneTypeRefused  1001
    └── RecordNotFound    81044          ├── ZoneExists                        1061
                                         ├── BatchTooLarge                     1001
                                         ├── RecordInvalid                     1004
                                         └── RecordRefused
    Forbidden (403)                          ├── TargetRefused       9003 an address of the edge itself
    └── AccountNotSeen     9109              ├── CannotBeProxied, NoEdgeAddress  9004
                                             ├── TtlRefused          9021
                                             ├── TypeIsFixed         9002
                                             ├── TooManyTags         9300
                                             ├── CommentRefused, TagRefused  9301
                                             ├── RecordQuota         81045
                                             ├── AddressHost         81053
                                             ├── AliasHost           81054
                                             ├── OtherHost           81055
                                             ├── DelegatedHost       81056
                                             ├── RecordExists        81057
                                             ├── IdenticalRecord     81058
                                             └── ContentsTooLong     83011
"""

from edgestead.model.errors import BadRequest, Forbidden, NotFound
from edgestead.model.record_errors import RecordRefused


class AccountNotSeen(Forbidden):
    """An account that does not exist, or is not the caller's."""

    code, wording = 9109, "Unauthorized to access requested resource"


class ZoneNotFound(NotFound):
    code, wording = 1001, "Invalid zone identifier"


class ZoneNameRefused(BadRequest):
    code, wording = 1001, "Zone name is invalid: {reason}."


class ZoneTypeRefused(BadRequest):
    code, wording = 1001, "Zone type {type} is not offered: this server is a zone's full authority."


class ZoneExists(BadRequest):
    code, wording = 1061, "{name} already exists"


class RecordNotFound(NotFound):
    code, wording = 81044, "Record does not exist."


class TypeIsFixed(RecordRefused):
    code, wording = 9002, "A record's type cannot change from {type}: delete it and create another."


class TypeNotOffered(RecordRefused):
    code, wording = 9002, "{type} records are not taken here: {reason}."


class TargetRefused(RecordRefused):
    """Spec "Content rules" 1."""

    code, wording = 9003, "{address} is an address of the edge itself, which is no target for a record."


class CannotBeProxied(RecordRefused):
    code, wording = 9004, "{type} records cannot be proxied."


class NoEdgeAddress(RecordRefused):
    code, wording = 9004, "No record can be proxied: this server has no address of its edge (--edge-address)."


class TtlRefused(RecordRefused):
    """Spec "TTL rules"; contract "TTL and proxy"."""

    code, wording = 9021, "TTL must be 1 (automatic), or from {seconds_min} to {seconds_max} seconds."


class TooManyTags(RecordRefused):
    code, wording = 9300, "A record has at most {tags_max} tags, not {tags}."


class TagRefused(RecordRefused):
    code, wording = 9301, "Tag is invalid: {reason}."


class CommentRefused(RecordRefused):
    code, wording = 9301, "Comment is invalid: {reason}."


class RecordQuota(RecordRefused):
    code, wording = 81045, "The zone holds {records_max} records, and no more fit."


class BatchTooLarge(BadRequest):
    code, wording = 1001, "A batch in this zone holds at most {changes_max} changes, not {changes}."


class RecordInvalid(BadRequest):
    """Until 2024-10-01, around what is wrong with a record that was to be made (spec "Deprecations")."""

    code, wording = 1004, "DNS Validation Error"


class AddressHost(RecordRefused):
    code, wording = 81053, "An A, AAAA, or CNAME record with that host already exists."


class AliasHost(RecordRefused):
    code, wording = 81054, "A CNAME record with that host already exists."


class OtherHost(RecordRefused):
    code, wording = 81055, "A, AAAA or CNAME records with that host exist, so it cannot be delegated."


class DelegatedHost(RecordRefused):
    code, wording = 81056, "NS records with that host already exist."


class RecordExists(RecordRefused):
    """Same name, type and contents; another TTL, proxy status, comment, tags or settings."""

    code, wording = 81057, "The record already exists."


class IdenticalRecord(RecordRefused):
    code, wording = 81058, "An identical record already exists."


class ContentsTooLong(RecordRefused):
    code, wording = (
        83011,
        "The {type} records of that name hold {octets} octets together, more than {octets_max}.",
    )
