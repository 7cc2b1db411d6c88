"""The first page: how the server is, and what there is.

Owns  which of the health rows and counts it shows.
Not   what is well: `health`.
"""

from edgestead.web.asker import Refused
from edgestead.web.pages.shared import account_of
from edgestead.web.visit import Shown, Visit


async def show(visit: Visit) -> Shown:
    checks = await visit.api.health()
    data = {
        "checks": sorted(checks, key=lambda row: ("fail", "warn", "ok").index(row["state"])),
        "charts": [chart._asdict() for chart in visit.charts()],
        "zones": await _count(visit, "/zones"),
        "namespaces": await _count(visit, f"/accounts/{await account_of(visit)}/storage/kv/namespaces"),
    }
    return Shown("overview.html", "Overview", data)


async def _count(visit: Visit, path: str) -> int | None:
    """None where the session may not ask."""
    try:
        answer = await visit.api.get(path, {"per_page": 5})
    except Refused:
        return None
    return int((answer.get("result_info") or {}).get("total_count", 0))
