"""A record draft: the body of a request, checked and completed.

Owns  defaults and merging (create, patch, put), TTL, proxy status, comment, tags, settings.
Not   the other records of the zone.

Unknown members of the body are ignored, and null means not sent, except that it clears `comment` and `tags`.
"""

from ipaddress import IPv6Address
from typing import Any, NamedTuple

import msgspec

from edgestead.model import names
from edgestead.model.call import Call, Profile
from edgestead.model.names import InvalidName
from edgestead.model.plans import PLANS
from edgestead.model.records import TYPES, RecordType, folded_content, record_type_named
from edgestead.model.records.table import Rdata
from edgestead.model.refusals.record import (
    CannotBeProxied,
    CommentRefused,
    FieldMissing,
    FieldRefused,
    NameRefused,
    NoEdgeAddress,
    TagRefused,
    TargetRefused,
    TooManyTags,
    TtlRefused,
    TypeIsFixed,
    UnknownType,
)
from edgestead.tables.records import RecordRow
from edgestead.tables.zones import ZoneRow
from edgestead.usecases import limits
from edgestead.usecases.change.neighbours import Draft
from edgestead.usecases.platform import Platform
from edgestead.usecases.record import srv_members
from edgestead.usecases.serving.facts import apex_of
from edgestead.usecases.serving.rendering import Settings, read_settings


class RecordBody(msgspec.Struct, frozen=True):
    """What create, patch and put take."""

    type: str | None = None
    name: str | None = None
    content: str | None = None
    data: dict[str, Any] | None = None
    priority: Any = None
    ttl: int | None = None
    proxied: bool | None = None
    comment: str | msgspec.UnsetType | None = msgspec.UNSET
    tags: list[str] | msgspec.UnsetType | None = msgspec.UNSET
    settings: Settings | None = None


class _Contents(NamedTuple):
    rdata: bytes
    priority: int | None
    content: str
    content_folded: str
    data: str | None


_encode = msgspec.json.Encoder().encode


def draft(call: Call, zone: ZoneRow, platform: Platform, body: RecordBody) -> Draft:
    """A new record, or the one that replaces another by put: what is not sent has its default.

    Raises RecordRefused and its children.
    """
    row = _type(call, body.type)
    apex = apex_of(zone)
    owner = _owner(call, row, _name(call, row, body, None), apex)
    return _complete(zone, platform, row, owner, _read(call, row, body, None), body, None)


def put(call: Call, zone: ZoneRow, platform: Platform, body: RecordBody, old: RecordRow) -> Draft:
    """The record that takes the old one's place: as `draft`, and of the same type."""
    check_same_type(body, old)
    return draft(call, zone, platform, body)


def patched(call: Call, zone: ZoneRow, platform: Platform, body: RecordBody, old: RecordRow) -> Draft:
    """A record with some members replaced: what is not sent stays. Raises RecordRefused and its children."""
    row = TYPES[old.type]
    check_same_type(body, old)
    apex = apex_of(zone)
    name = _name(call, row, body, old)
    owner = names.wire_from_text(old.name) if name is None else _owner(call, row, name, apex)
    return _complete(zone, platform, row, owner, _read(call, row, body, old), body, old)


def check_same_type(body: RecordBody, old: RecordRow) -> None:
    """Raises TypeIsFixed."""
    if body.type is not None and body.type.upper() != old.type:
        raise TypeIsFixed(type=old.type, field="type")


def _type(call: Call, text: str | None) -> RecordType:
    if text is None:
        raise FieldMissing(type="", field="type")
    row = record_type_named(text.upper())
    if row.is_extension and call.profile is Profile.SPEC:
        raise UnknownType(type=row.name, field="type")
    return row


def _name(call: Call, row: RecordType, body: RecordBody, old: RecordRow | None) -> str | None:
    """The name that was sent; None when none was."""
    if row.name != "SRV" or body.data is None:
        return body.name
    before = body.name if body.name is not None or old is None else old.name
    composed = srv_members.name_of(call, body.data, before)
    return body.name if composed is before else composed


def _owner(call: Call, row: RecordType, text: str | None, apex: bytes) -> bytes:
    if text is None or not text.strip():  # not the apex: a script's empty variable must not become it
        raise NameRefused(type=row.name, field="name", reason="it is missing (the apex is written @)")
    try:
        owner = names.owner_from_text(text.strip(), apex)
    except InvalidName as error:
        raise NameRefused(type=row.name, field="name", reason=error.reason) from None
    row.check_name(owner, call.profile, apex)
    if row.name == "SOA" and owner != apex:
        raise NameRefused(type="SOA", field="name", reason="a zone has one SOA record, at its apex")
    return owner


def _read(call: Call, row: RecordType, body: RecordBody, old: RecordRow | None) -> _Contents:
    """The contents from `data` or `content`, whichever the type wants; else the old ones."""
    priority = body.priority if body.priority is not None or old is None else old.priority
    if row.form == "data" and body.data is not None:
        rdata = row.rdata.from_data(body.data, priority)
    elif body.content is not None:
        rdata = row.rdata.from_content(body.content, priority)
    elif old is None:
        field = "content" if row.form == "content" else "data"
        raise FieldMissing(type=row.name, field=field)
    elif priority == old.priority or row.priority is None:
        return _Contents(old.rdata, old.priority, old.content, old.content_folded, old.data)
    else:
        rdata = row.rdata.from_content(old.content, priority)
    data = rdata.to_data()
    return _Contents(
        rdata.to_wire(),
        rdata.top_priority,
        _shown_content(call, row, body, rdata),
        folded_content(rdata),
        None if data is None else _encode(data).decode(),
    )


def _shown_content(call: Call, row: RecordType, body: RecordBody, rdata: Rdata) -> str:
    """In the profile `clients` text that came without quotes is answered without: clients compare it with
    what they sent (contract "Text").
    """
    sent = body.content
    if call.profile is Profile.CLIENTS and row.name == "TXT" and sent and not sent.lstrip().startswith('"'):
        return sent
    return rdata.to_content()


def _complete(
    zone: ZoneRow,
    platform: Platform,
    row: RecordType,
    owner: bytes,
    contents: _Contents,
    body: RecordBody,
    old: RecordRow | None,
) -> Draft:
    proxied = bool(old and old.proxied) if body.proxied is None else body.proxied
    _check_target(row, contents, proxied, platform)
    return Draft(
        owner,
        names.text_from_wire(owner),
        row.name,
        contents.rdata,
        1 if proxied else _ttl(row, zone, body.ttl, old),
        int(proxied),
        contents.priority,
        contents.content,
        contents.content_folded,
        contents.data,
        _settings(row, body.settings, old),
        _comment(row, zone, body.comment, old),
        _tags(row, body.tags, old),
    )


def _check_target(row: RecordType, contents: _Contents, proxied: bool, platform: Platform) -> None:
    if proxied and not row.proxiable:
        raise CannotBeProxied(type=row.name, field="proxied")
    if proxied and not platform.edge_addresses:
        raise NoEdgeAddress(type=row.name, field="proxied")
    address = _address(row, contents)
    if address in platform.own_addresses:
        raise TargetRefused(type=row.name, field="content", address=address)


def _address(row: RecordType, contents: _Contents) -> str:
    """The contents as `own_addresses` has addresses: IPv4 in IPv6 (RFC 4291 §2.5.5.2) as what it is."""
    mapped = IPv6Address(contents.rdata).ipv4_mapped if row.name == "AAAA" else None
    return contents.content if mapped is None else str(mapped)


def _ttl(row: RecordType, zone: ZoneRow, ttl: int | None, old: RecordRow | None) -> int:
    if ttl is None:
        return old.ttl if old else 1
    seconds_min = PLANS[zone.plan].ttl_seconds_min
    if ttl != 1 and not seconds_min <= ttl <= limits.TTL_SECONDS_MAX:
        raise TtlRefused(
            type=row.name, field="ttl", seconds_min=seconds_min, seconds_max=limits.TTL_SECONDS_MAX
        )
    return ttl


def _settings(row: RecordType, sent: Settings | None, old: RecordRow | None) -> str:
    """Sent members over the old ones; members without a meaning for the type are dropped."""
    kept = read_settings(old.settings) if old else Settings()
    if sent is None:
        return old.settings if old else "{}"

    def member(name: str, applies: bool) -> bool | None:
        value = getattr(sent, name)
        return (getattr(kept, name) if value is None else value) if applies else None

    settings = Settings(
        member("flatten_cname", row.name == "CNAME"),
        member("ipv4_only", row.proxiable),
        member("ipv6_only", row.proxiable),
    )
    if settings.ipv4_only and settings.ipv6_only:
        raise FieldRefused(
            type=row.name, field="settings", reason="ipv4_only and ipv6_only exclude one another"
        )
    return _encode(settings).decode()


def _comment(
    row: RecordType, zone: ZoneRow, sent: str | msgspec.UnsetType | None, old: RecordRow | None
) -> str | None:
    if isinstance(sent, msgspec.UnsetType):
        return old.comment if old else None
    if not sent:
        return None
    characters_max = PLANS[zone.plan].comment_characters_max
    if len(sent) > characters_max:
        reason = f"it has {len(sent)} characters, more than {characters_max}"
        raise CommentRefused(type=row.name, field="comment", reason=reason)
    if not sent.isprintable():
        raise CommentRefused(
            type=row.name, field="comment", reason="it holds characters without a graphic form"
        )
    return sent


def _tags(row: RecordType, sent: list[str] | msgspec.UnsetType | None, old: RecordRow | None) -> str:
    if isinstance(sent, msgspec.UnsetType):
        return old.tags if old else "[]"
    if not sent:
        return "[]"
    if len(sent) > limits.TAGS_MAX:
        raise TooManyTags(type=row.name, field="tags", tags=len(sent), tags_max=limits.TAGS_MAX)
    for tag in sent:
        _check_tag(row, tag)
    return _encode(list(dict.fromkeys(sent))).decode()


def _check_tag(row: RecordType, tag: str) -> None:
    name, _, value = tag.partition(":")
    plain = name.replace("-", "").replace("_", "")
    reason = None
    if not 0 < len(name) <= limits.TAG_NAME_CHARACTERS_MAX or not (plain.isascii() and plain.isalnum()):
        reason = f"its name has 1 to {limits.TAG_NAME_CHARACTERS_MAX} letters, digits, '-' and '_'"
    elif len(value) > limits.TAG_VALUE_CHARACTERS_MAX or not value.isprintable():
        reason = f"its value has at most {limits.TAG_VALUE_CHARACTERS_MAX} graphic characters"
    if reason:
        raise TagRefused(type=row.name, field="tags", reason=f"{names.shown(tag)}: {reason}")
