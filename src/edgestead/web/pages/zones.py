"""Zones, and of one zone its history and its settings.

Owns  these pages and what their forms do.
Not   records (`web.pages.records`).
"""

import msgspec

from edgestead.model.settings import SETTINGS
from edgestead.web.pages.shared import account_of, listed, tried, zone_of
from edgestead.web.visit import ROOT, Data, Moved, Shown, Visit


async def show_all(visit: Visit, error: str = "") -> Shown:
    found = await listed(visit, "/zones", name=_contains(visit), order="name")
    return Shown("zones.html", "Zones", {"zones": found, "q": visit.query.get("q", ""), "error": error})


def _contains(visit: Visit) -> str:
    return f"contains:{visit.query['q'].strip()}" if visit.query.get("q", "").strip() else ""


async def create(visit: Visit) -> Shown | Moved:
    name = visit.field("name")
    refused = await tried(visit, "POST", "/zones", {"name": name, "account": {"id": await account_of(visit)}})
    if refused is not None:
        return await show_all(visit, str(refused))
    return Moved(f"{ROOT}/zones/{name.lower()}", f"{name} is a zone now. DNS answers for it.")


async def history(zone: str, visit: Visit) -> Shown:
    found = await zone_of(visit, zone)
    changes = await listed(visit, f"/zones/{found['id']}/history", name=visit.query.get("name", ""))
    data: Data = {"zone": found, "changes": changes, "name": visit.query.get("name", "")}
    return Shown("history.html", f"History of {zone}", data)


async def take_back(zone: str, visit: Visit) -> Moved:
    """Undo one change, or restore what was after it."""
    found = await zone_of(visit, zone)
    action = "restore" if visit.field("what") == "restore" else "undo"
    body = {"name": visit.field("name")} if action == "restore" and visit.field("name") else {}
    path = f"/zones/{found['id']}/history/{int(visit.field('sequence') or 0)}/{action}"
    done = (await visit.api.send("POST", path, body))["result"]
    said = "Nothing differs from then." if done["sequence"] is None else f"Done: change {done['sequence']}."
    return Moved(f"{ROOT}/zones/{zone}/history", said)


async def settings(zone: str, visit: Visit, error: str = "") -> Shown:
    found = await zone_of(visit, zone)
    values = {one["id"]: one for one in await visit.api.result(f"/zones/{found['id']}/settings")}
    rows = [
        {
            "id": id_,
            "value": one["value"],
            "editable": one["editable"],
            "effect": _EFFECTS.get(id_, ""),
            "on": one.get("modified_on"),
        }
        for id_, one in values.items()
    ]
    rows.sort(key=lambda row: (not row["effect"], row["id"]))
    return Shown("settings.html", f"Settings of {zone}", {"zone": found, "rows": rows, "error": error})


_EFFECTS = {id_: row.effect for id_, row in SETTINGS.items()}


async def set_one(zone: str, visit: Visit) -> Shown | Moved:
    found = await zone_of(visit, zone)
    id_, text = visit.field("id"), visit.field("value")
    now = (await visit.api.result(f"/zones/{found['id']}/settings/{id_}"))["value"]
    try:
        value = text if isinstance(now, str) else msgspec.json.decode(text.encode())
    except msgspec.DecodeError:
        return await settings(zone, visit, f"{id_} takes a number or JSON, not {text}.")
    refused = await tried(visit, "PATCH", f"/zones/{found['id']}/settings/{id_}", {"value": value})
    if refused is not None:
        return await settings(zone, visit, str(refused))
    return Moved(f"{ROOT}/zones/{zone}/settings", f"{id_} is {text}.")
