"""Refusals of a DNS record's type, name and contents.

Owns  code and wording of each.
Asks  `model.errors` for the root.
Tells `model.records`, which raises them, and `services`, which adds refusals between records.
Not   rules between records (conflicts, quotas), TTL, proxy status, comments and tags.

    BadRequest (400)
    └── RecordRefused           type, field and reason as attributes
        ├── NameRefused    9000 the owner name
        ├── UnknownType    9002
        ├── NotIPv4        9005 content of an A record
        ├── NotIPv6        9006 content of an AAAA record
        ├── ContentRefused 9007 any other content
        ├── ContentTooLong 9015
        ├── FieldMissing   9101 also a missing priority or content
        └── FieldRefused   9102 a member of `data`, or priority
"""

from typing import Any

from edgestead.model.errors import BadRequest


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
