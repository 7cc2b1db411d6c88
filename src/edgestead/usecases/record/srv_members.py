"""`service`, `proto` and `name` of an SRV record's data, which stood there until 2024-05-31.

Owns  composing a record's name from them, and taking a name apart for an answer.
Not   `priority`, `weight`, `port` and `target`, which are rdata.

Spec "Deprecations", 2024-05-31. From that day on the profile `spec` refuses them and `clients` ignores them.
"""

from collections.abc import Mapping
from typing import Any

from edgestead.changes import changed
from edgestead.model import names
from edgestead.model.call import Call, Profile
from edgestead.model.names import InvalidName
from edgestead.model.refusals import CLIENTS_TAKE_IT
from edgestead.model.refusals.record import FieldMissing, FieldRefused

MEMBERS = ("service", "proto", "name")


def name_of(call: Call, data: Mapping[str, Any], name: str | None) -> str | None:
    """The record's name: of the members where they count and were sent, else `name` as it is.

    A member that was not sent comes from `name`, when that has the shape `_service._proto.base`.
    Raises FieldRefused: a member where none is taken, or one that is no text; FieldMissing.
    """
    sent = {member: data[member] for member in MEMBERS if data.get(member) is not None}
    if not sent:
        return name
    if changed("srv-data-members", call.as_of):
        if call.profile is Profile.CLIENTS:
            return name
        reason = (
            f"it is no longer taken: write _service._proto in front of the record's name; {CLIENTS_TAKE_IT}"
        )
        raise FieldRefused(type="SRV", field=f"data/{next(iter(sent))}", reason=reason)
    known = {**_from_name(name), **sent}
    for member, value in known.items():
        if not isinstance(value, str):
            raise FieldRefused(type="SRV", field=f"data/{member}", reason="must be text")
    for member in ("service", "proto"):
        if member not in known:
            raise FieldMissing(type="SRV", field=f"data/{member}")
    base = known["name"].strip()
    return ".".join([known["service"], known["proto"], *([] if base in ("", "@") else [base])])


def members_of(name: str) -> dict[str, str]:
    """The members that an SRV record of this full name had."""
    service, proto, *_ = names.labels(wire := names.wire_from_text(name))
    base = names.parent(names.parent(wire))
    return {
        "service": names.text_from_wire(names.wire_from_labels([service])),
        "proto": names.text_from_wire(names.wire_from_labels([proto])),
        "name": names.text_from_wire(base),
    }


def _from_name(name: str | None) -> dict[str, str]:
    """What a top-level name says; one of another shape is the base."""
    if name is None or name.strip() in ("", "@"):
        return {"name": "@"}
    try:
        wire = names.wire_from_text(name.strip())
    except InvalidName:
        return {"name": name}
    first_two = names.labels(wire)[:2]
    if len(first_two) == 2 and all(label.startswith(b"_") for label in first_two):
        base = names.parent(names.parent(wire))
        return {**members_of(name.strip()), "name": "@" if base == names.ROOT else names.text_from_wire(base)}
    return {"name": name}
