"""Refusals of DNS records: by themselves, among their neighbours, in zone files.

Owns  code, status and wording of each.
Not   undoing what was done to them (`model.refusals.zone`).

    BadRequest (400)
    ├── RecordRefused
    │   ├── NameRefused     9000 the owner name
    │   ├── UnknownType     9002
    │   ├── NotIPv4         9005 content of an A record
    │   ├── NotIPv6         9006 content of an AAAA record
    │   ├── ContentRefused  9007 any other content
    │   ├── ContentTooLong  9015
    │   ├── FieldMissing    9101 also a missing priority or content
    │   ├── FieldRefused    9102 a member of `data`, or priority
    │   ├── TypeIsFixed     9002
    │   ├── TypeNotOffered  9002
    │   ├── TargetRefused   9003 an address of the edge itself
    │   ├── CannotBeProxied 9004
    │   ├── NoEdgeAddress   9004
    │   ├── TtlRefused      9021
    │   ├── TooManyTags     9300
    │   ├── TagRefused      9301
    │   ├── CommentRefused  9301
    │   ├── RecordQuota     81045
    │   ├── AddressHost     81053
    │   ├── AliasHost       81054
    │   ├── OtherHost       81055
    │   ├── DelegatedHost   81056
    │   ├── RecordExists    81057
    │   ├── IdenticalRecord 81058
    │   └── ContentsTooLong 83011
    ├── BatchTooLarge       1001
    ├── RecordInvalid       1004
    ├── FormExpected        9207
    ├── LineUnreadable      9401 syntax, a directive, a name outside the zone
    ├── LineRefused         9402 a record that cannot be stored; the cause stands in `error_chain`
    └── ZoneFileTooLarge    9403 more than can be read at once
    NotFound (404)
    └── RecordNotFound 81044
"""

from typing import Any

from edgestead.model.refusals import BadRequest, NotFound


class RecordRefused(BadRequest):
    """A record that cannot be stored. `field` is a path in the body, or None when no single one is wrong."""

    def __init__(self, *, type: str, field: str | None = None, reason: str = "", **facts: Any) -> None:
        self.type, self.field, self.reason = type, field, reason
        super().__init__(
            pointer=f"/{field}" if field else None,
            type=type,
            field=field and field.removeprefix("data/"),
            reason=reason,
            **facts,
        )


class NameRefused(RecordRefused):
    code, wording = 9000, "DNS name is invalid: {reason}."


class UnknownType(RecordRefused):
    code, wording = 9002, "Record type {type} is invalid."


class NotIPv4(RecordRefused):
    code, wording = 9005, "Content for {type} record must be a valid IPv4 address."


class NotIPv6(RecordRefused):
    code, wording = 9006, "Content for {type} record must be a valid IPv6 address."


class ContentRefused(RecordRefused):
    code, wording = 9007, "Content for {type} record is invalid: {reason}."


class ContentTooLong(RecordRefused):
    code, wording = 9015, "Content for {type} record has {octets} octets, more than {octets_max}."


class FieldMissing(RecordRefused):
    code, wording = 9101, "{field} is a required field."


class FieldRefused(RecordRefused):
    code, wording = 9102, "{field} for {type} record is invalid: {reason}."


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


class FormExpected(BadRequest):
    code, wording = 9207, "A zone file is sent as multipart/form-data, in a part named file."


class LineUnreadable(BadRequest):
    """RFC 1035 §5.1. `line` is where the entry begins, counted from 1."""

    code, wording = 9401, "Line {line}: {reason}."


class LineRefused(BadRequest):
    code, wording = 9402, "Line {line}, {type} {name}: {reason}"


class ZoneFileTooLarge(BadRequest):
    code, wording = 9403, "The zone file has more than {limit} {what}."
