"""Zones, and the settings of one.

Owns  these pages and what their forms do.
Not   records and history (`web.pages.records`, `web.pages.history`).
"""

import msgspec

from edgestead.model.checks import Choice, Flag, Listed
from edgestead.model.settings import SETTINGS
from edgestead.web.asker import Json, Refused
from edgestead.web.pages.shared import account_of, listed, tried, zone_of
from edgestead.web.visit import ROOT, Data, Moved, Shown, Visit, segment

SWITCHES = ("active", "disabled")  # what the button of DNSSEC sends


async def show_all(visit: Visit, error: str = "") -> Shown:
    found = await listed(visit, "/zones", name=_contains(visit), order="name")
    return Shown("zones.html", "Zones", {"zones": found, "q": visit.query.get("q", ""), "error": error})


def _contains(visit: Visit) -> str:
    return f"contains:{visit.query['q'].strip()}" if visit.query.get("q", "").strip() else ""


async def create(visit: Visit) -> Shown | Moved:
    body = {"name": visit.field("name"), "account": {"id": await account_of(visit)}}
    try:
        name = (await visit.api.send("POST", "/zones", body))["result"]["name"]
    except Refused as refused:
        if refused.status != 400:
            raise
        return await show_all(visit, str(refused))
    return Moved(f"{ROOT}/zones/{segment(name)}", f"{name} is a zone now. DNS answers for it.")


async def _sign(visit: Visit, zone: Json, status: str) -> Shown | Moved:
    refused = await tried(visit, "PATCH", f"/zones/{zone['id']}/dnssec", {"status": status})
    if refused is not None:
        return await settings(zone["name"], visit, str(refused))
    said = "The zone is signed." if status == "active" else "The zone will be served without signatures."
    return Moved(f"{ROOT}/zones/{segment(zone['name'])}/settings", said)


async def settings(zone: str, visit: Visit, error: str = "", at: str = "") -> Shown:
    """`at` is the setting that the error is about, whose field holds what was typed."""
    found = await zone_of(visit, zone)
    values = {one["id"]: one for one in await visit.api.result(f"/zones/{found['id']}/settings")}
    rows = [
        {
            "id": id_,
            "value": one["value"],
            "text": visit.field("value") if id_ == at else _text(one["value"]),
            "choices": _choices(id_, _text(one["value"]), visit.field("value") if id_ == at else ""),
            "error": error if id_ == at else "",
            "editable": one["editable"],
            "effect": _EFFECTS.get(id_, ""),
            "on": one.get("modified_on"),
        }
        for id_, one in values.items()
    ]
    rows.sort(key=lambda row: row["id"])
    stored_only = [row for row in rows if not row["effect"]]
    opened = at or visit.query.get("set", "")  # its row is a form: with a form each, the page weighed double
    data: Data = {
        "zone": found,
        "dnssec": await _dnssec(visit, found),
        "rows": [row for row in rows if row["effect"]],
        "stored_only": stored_only,
        "opened": opened if any(row["id"] == opened and row["editable"] for row in stored_only) else "",
        "error": "" if at in values else error,
    }
    return Shown("settings.html", f"Settings of {zone}", data, 400 if error else 200)


def _text(value: object) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _choices(id_: str, *texts: str) -> list[str]:
    """What a setting can be, with these texts; [] where that is no short list."""
    check = SETTINGS[id_].check if id_ in SETTINGS else None
    if isinstance(check, Flag):
        known = ["true", "false"]
    elif isinstance(check, Choice):
        known = list(check.choices)
    elif isinstance(check, Listed):
        known = [str(number) for number in check.numbers]
    else:
        return []
    return known + [text for text in dict.fromkeys(texts) if text and text not in known]


async def _dnssec(visit: Visit, zone: Json) -> Json | None:
    """None where the session may not ask."""
    try:
        found: Json = await visit.api.result(f"/zones/{zone['id']}/dnssec")
    except Refused as refused:
        if refused.status != 403:
            raise
        return None
    return found


_EFFECTS = {id_: row.effect for id_, row in SETTINGS.items()}


async def set_one(zone: str, visit: Visit) -> Shown | Moved:
    found = await zone_of(visit, zone)
    if visit.field("what") in SWITCHES:
        return await _sign(visit, found, visit.field("what"))
    id_, text = visit.field("id"), visit.field("value")
    now = (await visit.api.result(f"/zones/{found['id']}/settings/{id_}"))["value"]
    try:
        value = text if isinstance(now, str) else msgspec.json.decode(text.encode())
    except msgspec.DecodeError:
        return await settings(zone, visit, f"{id_} takes a number or JSON, not {text}.", id_)
    refused = await tried(visit, "PATCH", f"/zones/{found['id']}/settings/{id_}", {"value": value})
    if refused is not None:
        return await settings(zone, visit, str(refused), id_)
    return Moved(f"{ROOT}/zones/{segment(zone)}/settings", f"{id_} is {text}.")
