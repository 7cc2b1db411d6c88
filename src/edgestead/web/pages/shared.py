"""What several pages ask.

Owns  the account, a zone by its name, a page of a list.
Not   a page.
"""

from typing import Any

from edgestead.web.asker import PER_PAGE, Json, Refused
from edgestead.web.visit import Visit


async def zone_of(visit: Visit, name: str) -> Json:
    """A zone by its name. Raises Refused: 404."""
    found = await visit.api.result("/zones", {"name": name})
    if not found:
        raise Refused(404, [{"code": 1001, "message": f"There is no zone {name}, or you may not see it."}])
    zone: Json = found[0]
    return zone


async def account_of(visit: Visit) -> str:
    """The first account that the session sees. Raises Refused."""
    found = await visit.api.result("/accounts", {"per_page": 5})
    if not found:
        raise Refused(403, [{"code": 9109, "message": "These credentials see no account."}])
    return str(found[0]["id"])


async def listed(visit: Visit, path: str, **query: object) -> dict[str, Any]:
    """One page of a list with what its links need."""
    answer = await visit.api.get(path, {"per_page": PER_PAGE, "page": visit.page, **query})
    info = answer.get("result_info") or {}
    pages = max(1, int(info.get("total_pages") or 1))
    return {
        "items": answer["result"],
        "page": visit.page,
        "pages": pages,
        "count": info.get("total_count", 0),
    }


async def tried(visit: Visit, method: str, path: str, body: object) -> Refused | None:
    """Send it; the refusal, where its words belong on the form's own page."""
    try:
        await visit.api.send(method, path, body)
    except Refused as refused:
        if refused.status != 400:
            raise
        return refused
    return None
