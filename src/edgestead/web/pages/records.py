"""The records of a zone.

Owns  the list with its search, adding, changing and deleting one, errors at the fields.
Not   what a record may be: the API says.
"""

from collections.abc import Mapping

from edgestead.web.asker import Json, Refused
from edgestead.web.pages.shared import listed, tried, zone_of
from edgestead.web.visit import ROOT, Data, Moved, Shown, Visit

TYPES = (
    "A",
    "AAAA",
    "CNAME",
    "TXT",
    "MX",
    "NS",
    "SRV",
    "CAA",
    "HTTPS",
    "SVCB",
    "TLSA",
    "SSHFP",
    "PTR",
    "DS",
    "NAPTR",
)
_BLANK = {"name": "", "type": "A", "content": "", "ttl": "1", "proxied": "", "comment": "", "priority": ""}


async def show(zone: str, visit: Visit, refused: Refused | None = None) -> Shown:
    found = await zone_of(visit, zone)
    q, type_ = visit.query.get("q", "").strip(), visit.query.get("type", "")
    # An empty `search` finds everything; a type is exact.
    records = await listed(visit, f"/zones/{found['id']}/dns_records", search=q, type=type_, order="name")
    data: Data = {
        "zone": found,
        "records": records,
        "q": q,
        "type": type_,
        "types": TYPES,
        "form": _BLANK | dict(visit.form or {}),
        "errors": _errors(refused),
    }
    return Shown("records.html", zone, data, 200 if refused is None else 400)


async def add(zone: str, visit: Visit) -> Shown | Moved:
    found = await zone_of(visit, zone)
    body = _body(visit)
    refused = await tried(visit, "POST", f"/zones/{found['id']}/dns_records", body)
    if refused is not None:
        return await show(zone, visit, refused)
    return Moved(f"{ROOT}/zones/{zone}", f"{body['type']} {body['name']} is added, and DNS answers it.")


async def show_one(zone: str, record: str, visit: Visit, refused: Refused | None = None) -> Shown:
    found = await zone_of(visit, zone)
    held: Json = await visit.api.result(f"/zones/{found['id']}/dns_records/{record}")
    form = _BLANK | {name: _text(held.get(name)) for name in _BLANK} | dict(visit.form or {})
    data: Data = {"zone": found, "record": held, "form": form, "errors": _errors(refused), "types": TYPES}
    return Shown("record.html", f"{held['type']} {held['name']}", data, 200 if refused is None else 400)


async def change(zone: str, record: str, visit: Visit) -> Shown | Moved:
    found = await zone_of(visit, zone)
    path = f"/zones/{found['id']}/dns_records/{record}"
    if visit.field("what") == "delete":
        await visit.api.send("DELETE", path)
        return Moved(f"{ROOT}/zones/{zone}", "The record is deleted. The history can take that back.")
    if visit.field("what") in ("proxy", "unproxy"):
        await visit.api.send("PATCH", path, {"proxied": visit.field("what") == "proxy"})
        return Moved(f"{ROOT}/zones/{zone}", "The record is changed, and DNS answers so.")
    refused = await tried(visit, "PATCH", path, _body(visit))
    if refused is not None:
        return await show_one(zone, record, visit, refused)
    return Moved(f"{ROOT}/zones/{zone}", "The record is changed, and DNS answers so.")


def _body(visit: Visit) -> Json:
    """What a form says, as the API takes it. A comment is cleared by an empty one."""
    body: Json = {
        "name": visit.field("name"),
        "type": visit.field("type"),
        "content": visit.field("content"),
        "ttl": visit.field("ttl") or 1,
        "comment": visit.field("comment"),
        "proxied": visit.field("proxied") == "on",
    }
    if visit.field("priority"):
        body["priority"] = visit.field("priority")
    return body


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "on" if value else ""
    return "" if value is None else str(value)


def _errors(refused: Refused | None) -> Mapping[str, object]:
    """By field, and those of none under ""."""
    none: dict[str, object] = {**dict.fromkeys(_BLANK, ""), "": []}
    if refused is None:
        return none
    fields = refused.fields
    rest = [
        text for text, error in zip(refused.messages, refused.errors, strict=True) if not error.get("source")
    ]
    return {**none, **fields, "": rest or ([] if fields else refused.messages)}
