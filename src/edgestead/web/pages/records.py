"""The records of a zone.

Owns  the list with its search, adding one, changing one in its row, a page of one, errors at the fields.
Not   what a record may be: the API says.
"""

from urllib.parse import urlencode

from edgestead.model.records import TYPES as RECORD_TYPES
from edgestead.web.asker import Json, Refused
from edgestead.web.pages.shared import errors_of, listed, tried, zone_of
from edgestead.web.visit import ROOT, Data, Moved, Shown, Visit, segment

ROWS_MAX = 40  # of a page: with long names and comments it stays below 60 KB, its two files included
_COMMON = ("A", "AAAA", "CNAME", "TXT", "MX", "NS", "SRV", "CAA", "HTTPS")
TYPES = (*_COMMON, *sorted(RECORD_TYPES.keys() - set(_COMMON)))  # of forms: what most have first
_CHANGED = "The record is changed, and DNS answers so."
_BLANK = {"name": "", "type": "A", "content": "", "ttl": "1", "proxied": "", "comment": "", "priority": ""}


async def show(zone: str, visit: Visit, refused: Refused | None = None) -> Shown | Moved:
    found = await zone_of(visit, zone)
    q, type_ = visit.query.get("q", "").strip(), visit.query.get("type", "")
    # An empty `search` finds everything; a type is exact.
    query = {"search": q, "type": type_, "order": "name", "per_page": ROWS_MAX}
    records = await listed(visit, f"/zones/{found['id']}/dns_records", **query)
    in_row = visit.field("record") or visit.query.get("edit", "")
    held = next((one for one in records["items"] if one["id"] == in_row), None)
    if in_row and held is None:  # on another page of the list by now
        if refused is not None:
            return await show_one(zone, in_row, visit, refused)
        return Moved(f"{ROOT}/zones/{segment(zone)}/records/{segment(in_row)}")
    adds = held is None
    data: Data = {
        "zone": found,
        "records": records,
        "q": q,
        "type": type_,
        "asked": _asked(visit),
        "types": TYPES,
        "form": _BLANK | (_typed(visit) if adds else {}),
        "errors": errors_of(refused if adds else None, _BLANK),
        "edit": None if held is None else _in_row(held, visit, refused),
    }
    return Shown("records.html", zone, data, 200 if refused is None else 400)


def _asked(visit: Visit) -> dict[str, str]:
    """Which part of the list is looked at."""
    return {name: visit.query[name] for name in ("q", "type", "page") if visit.query.get(name)}


def _in_row(record: Json, visit: Visit, refused: Refused | None) -> Json:
    return {"id": record["id"], "form": _form_of(record, visit), "errors": errors_of(refused, _BLANK)}


def _form_of(record: Json, visit: Visit) -> Json:
    """A record as text, or what was typed over it."""
    return {name: _text(record.get(name)) for name in _BLANK} | _typed(visit)


def _typed(visit: Visit) -> Json:
    """A box that is not ticked is not sent."""
    return {} if visit.form is None else {name: visit.form.get(name, "") for name in _BLANK}


async def add(zone: str, visit: Visit) -> Shown | Moved:
    """Add a record, or change the one in whose row the form stands."""
    found = await zone_of(visit, zone)
    body, path = _body(visit), f"/zones/{found['id']}/dns_records"
    if record := visit.field("record"):
        refused = await tried(visit, "PATCH", f"{path}/{segment(record)}", body)
        if refused is not None:
            return await show(zone, visit, refused)
        return Moved(f"{ROOT}/zones/{segment(zone)}?{urlencode(_asked(visit))}", _CHANGED)
    refused = await tried(visit, "POST", path, body)
    if refused is not None:
        return await show(zone, visit, refused)
    return Moved(
        f"{ROOT}/zones/{segment(zone)}", f"{body['type']} {body['name']} is added, and DNS answers it."
    )


async def show_one(zone: str, record: str, visit: Visit, refused: Refused | None = None) -> Shown:
    found = await zone_of(visit, zone)
    held: Json = await visit.api.result(f"/zones/{found['id']}/dns_records/{record}")
    data: Data = {
        "zone": found,
        "record": held,
        "form": _form_of(held, visit),
        "errors": errors_of(refused, _BLANK),
        "types": TYPES,
    }
    return Shown("record.html", f"{held['type']} {held['name']}", data, 200 if refused is None else 400)


async def change(zone: str, record: str, visit: Visit) -> Shown | Moved:
    found = await zone_of(visit, zone)
    path = f"/zones/{found['id']}/dns_records/{record}"
    if visit.field("what") == "delete":
        await visit.api.send("DELETE", path)
        return Moved(
            f"{ROOT}/zones/{segment(zone)}", "The record is deleted. The history can take that back."
        )
    if visit.field("what") in ("proxy", "unproxy"):
        await visit.api.send("PATCH", path, {"proxied": visit.field("what") == "proxy"})
        return Moved(f"{ROOT}/zones/{segment(zone)}?{urlencode(_asked(visit))}", _CHANGED)
    refused = await tried(visit, "PATCH", path, _body(visit))
    if refused is not None:
        return await show_one(zone, record, visit, refused)
    return Moved(f"{ROOT}/zones/{segment(zone)}", _CHANGED)


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
