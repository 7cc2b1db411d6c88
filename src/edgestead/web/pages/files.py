"""A zone as a file: into the zone behind a preview, and out of it.

Owns  these pages.
Not   reading and writing zone files: the API's.
"""

from edgestead.web.asker import Json, Refused
from edgestead.web.pages.shared import zone_of
from edgestead.web.visit import ROOT, Data, Moved, Sent, Shown, Visit, segment


async def show(zone: str, visit: Visit) -> Shown:
    return _page(await zone_of(visit, zone), visit, None, [])


async def bring_in(zone: str, visit: Visit) -> Shown | Moved:
    """Say what the file would add; add it, where that was asked for."""
    found = await zone_of(visit, zone)
    file, is_sure = (visit.form or {}).get("file", ""), visit.field("what") == "import"
    proxied = "true" if visit.field("proxied") == "on" else "false"
    path = f"/zones/{found['id']}/dns_records/import"
    query = {} if is_sure else {"dry_run": "true"}
    try:
        done: Json = (await visit.api.send_form(path, query, file=file, proxied=proxied))["result"]
    except Refused as refused:
        if refused.status != 400:
            raise
        return _page(found, visit, None, refused.messages)
    if not is_sure:
        return _page(found, visit, done, [])
    said = f"{done['recs_added']} of {done['total_records_parsed']} records are added."
    return Moved(f"{ROOT}/zones/{segment(zone)}", f"{said} The history can take that back.")


def _page(zone: Json, visit: Visit, coming: Json | None, errors: list[str]) -> Shown:
    data: Data = {
        "zone": zone,
        "file": (visit.form or {}).get("file", ""),
        "proxied": visit.field("proxied") == "on",
        "coming": coming,
        "errors": errors,
    }
    return Shown("import.html", f"Import into {zone['name']}", data, 400 if errors else 200)


async def export(zone: str, visit: Visit) -> Sent:
    found = await zone_of(visit, zone)
    content = await visit.api.octets(f"/zones/{found['id']}/dns_records/export")
    return Sent(f"{zone}.zone", content)
