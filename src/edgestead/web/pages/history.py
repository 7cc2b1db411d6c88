"""A zone's history: who changed what, and the way back behind a preview.

Owns  the list, the preview of undoing one change or restoring what was after it, doing so.
Not   what is written down, and what may come back: the API says.
"""

from edgestead.web.asker import Json, Refused
from edgestead.web.pages.shared import listed, tried, zone_of
from edgestead.web.visit import ROOT, Data, Moved, Shown, Visit, segment

ROWS_MAX = 20  # of a page
ITEMS_MAX = 3  # of a change in the list; the preview of its way back has more


async def show(zone: str, visit: Visit) -> Shown:
    found = await zone_of(visit, zone)
    name = visit.query.get("name", "").strip()
    changes = await listed(visit, f"/zones/{found['id']}/history", name=name, per_page=ROWS_MAX)
    data: Data = {"zone": found, "changes": changes, "name": name, "items_max": ITEMS_MAX}
    return Shown("history.html", f"History of {zone}", data)


async def preview(zone: str, sequence: str, way: str, visit: Visit, refused: Refused | None = None) -> Shown:
    """What `undo` or `restore` would change, and the button that does it."""
    found = await zone_of(visit, zone)
    name = (visit.field("name") if visit.form is not None else visit.query.get("name", "")).strip()
    path = f"/zones/{found['id']}/history/{segment(sequence)}"
    if way == "undo":
        change = await visit.api.result(path)
        items, count = [_reversed(item) for item in change["changes"]], change["changes_count"]
        title, name = f"Undo change {sequence}", ""
    elif way == "restore":
        coming = await visit.api.result(f"{path}/restore", {"name": name})
        items, count = coming["changes"], coming["changes_count"]
        title = f"Restore {name or zone} to after change {sequence}"
    else:
        raise Refused(404, [{"code": 1001, "message": "There is no such way back."}])
    data: Data = {
        "zone": found,
        "way": way,
        "name": name,
        "items": items,
        "count": count,
        "errors": refused.messages if refused else [],
    }
    return Shown("way_back.html", title, data, 400 if refused else 200)


def _reversed(item: Json) -> Json:
    return item | {"before": item["after"], "after": item["before"]}


async def take_back(zone: str, sequence: str, way: str, visit: Visit) -> Shown | Moved:
    found = await zone_of(visit, zone)
    body = {"name": visit.field("name")} if way == "restore" and visit.field("name") else {}
    path = f"/zones/{found['id']}/history/{segment(sequence)}/{'undo' if way == 'undo' else 'restore'}"
    refused = await tried(visit, "POST", path, body)
    if refused is not None:
        return await preview(zone, sequence, way, visit, refused)
    return Moved(f"{ROOT}/zones/{segment(zone)}/history", "Done. It is a change itself, and can be undone.")
