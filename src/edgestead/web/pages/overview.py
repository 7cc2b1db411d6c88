"""The first page: how the server is, and what there is.

Owns  which of the health rows and counts it shows; the part of it that is sent again when it changes.
Not   what is well: `health`; zones, where there are many (`web.pages.examination`).
"""

from edgestead.health.setup import of_setup
from edgestead.web.asker import Refused
from edgestead.web.pages.examination import of_zones
from edgestead.web.pages.shared import account_of
from edgestead.web.samples import SPANS, Span
from edgestead.web.visit import Data, Shown, Streamed, Visit

ZONES_MAX = 5  # that are examined here: a page of the API has no fewer, and each costs some calls


async def show(visit: Visit) -> Shown:
    setup, zones = visit.setup(), await _count(visit, "/zones")
    found = list(of_setup(setup)) if setup is not None else []
    if zones is not None and zones <= ZONES_MAX:
        found += await of_zones(visit, await visit.api.result("/zones", {"per_page": ZONES_MAX}))
    data = await _live(visit) | {
        "spans": list(SPANS),
        "remarks": [one._asdict() for one in found if one.state != "ok"],
        "zones": zones,
        "namespaces": await _namespaces(visit),
    }
    return Shown("overview.html", "Overview", data)


async def live(visit: Visit) -> Streamed:
    return Streamed(_span(visit), "live.html", lambda: _live(visit))


async def _live(visit: Visit) -> Data:
    checks, span, processes = await visit.api.health(), _span(visit), visit.processes()
    return {
        "bad": [row for state in ("fail", "warn") for row in checks if row["state"] == state],
        "good": [row for row in checks if row["state"] == "ok"],
        "processes": [row._asdict() for row in processes],
        "restarts": sum(max(0, row.starts - 1) for row in processes),
        "span": span,
        "charts": [
            chart._asdict() | {"lines": [line._asdict() for line in chart.lines]}
            for chart in visit.charts(span)
        ],
    }


def _span(visit: Visit) -> Span:
    return "day" if visit.query.get("span") == "day" else "hour"


async def _namespaces(visit: Visit) -> int | None:
    """None where the session may not ask, or sees no account, such as a token of one zone."""
    try:
        account = await account_of(visit)
    except Refused:
        return None
    return await _count(visit, f"/accounts/{account}/storage/kv/namespaces")


async def _count(visit: Visit, path: str) -> int | None:
    """None where the session may not ask."""
    try:
        answer = await visit.api.get(path, {"per_page": 5})
    except Refused:
        return None
    return int((answer.get("result_info") or {}).get("total_count", 0))
