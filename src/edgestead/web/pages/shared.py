"""What several pages ask.

Owns  the account, a zone by its name, a page of a list.
Not   a page.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from edgestead.web.asker import PER_PAGE, Asker, Json, Refused, pointed_at
from edgestead.web.visit import Visit


async def zone_of(visit: Visit, name: str) -> Json:
    """A zone by its name. Raises Refused: 404."""
    found = await visit.api.result("/zones", {"name": name})
    if not found:
        raise Refused(404, [{"code": 1001, "message": f"There is no zone {name}, or you may not see it."}])
    zone: Json = found[0]
    return zone


async def account_of(visit: Visit) -> str:
    """The account that the session looks at: the chosen one, while it sees that, else its first.

    Raises Refused.
    """
    seen = [str(one["id"]) for one in await accounts_of(visit)]
    if not seen:
        raise Refused(403, [{"code": 9109, "message": "These credentials see no account."}])
    return visit.session.account if visit.session.account in seen else seen[0]


async def accounts_of(visit: Visit) -> list[Json]:
    """The accounts that the session can choose from. Raises Refused."""
    found: list[Json] = await visit.api.result("/accounts", {"per_page": PER_PAGE})
    return found


def errors_of(refused: Refused | None, fields: Iterable[str]) -> Mapping[str, object]:
    """The messages of a refusal by the field of a form; those of none under ""."""
    found: dict[str, object] = {**dict.fromkeys(fields, ""), "": []}
    if refused is None:
        return found
    at_fields = {name: text for name, text in refused.fields.items() if name in found}
    others = [
        text
        for text, error in zip(refused.messages, refused.errors, strict=True)
        if pointed_at(error) not in at_fields
    ]
    return {**found, **at_fields, "": others}


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


async def tried(
    visit: Visit, method: str, path: str, body: object, query: Mapping[str, object] | None = None
) -> Refused | None:
    """Send it to the API; the refusal, where its words belong on the form's own page."""
    return await tried_at(visit.api, method, path, body, query)


async def tried_at(
    asker: Asker, method: str, path: str, body: object, query: Mapping[str, object] | None = None
) -> Refused | None:
    """The same of any address."""
    try:
        await asker.send(method, path, body, query)
    except Refused as refused:
        if refused.status not in (400, 422):
            raise
        return refused
    return None
