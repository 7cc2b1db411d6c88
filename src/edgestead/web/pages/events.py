"""What the edge decided about requests: why one was blocked, and the exception that lets it pass.

Owns  the list with its filters, one event with every rule that scored, making an exception of it.
Not   what becomes an event.
"""

from edgestead.web.asker import PER_PAGE, Json, Refused
from edgestead.web.pages.shared import tried, zone_of
from edgestead.web.visit import ROOT, Data, Moved, Shown, Visit

FILTERS = ("action", "client", "rule_id", "ray_id", "host", "path_prefix")
MANAGED = "http_request_firewall_managed"
_SENT = ("action", "action_parameters", "expression", "description", "enabled", "ref", "logging")


async def show(zone: str, visit: Visit) -> Shown:
    found = await zone_of(visit, zone)
    filters = {name: visit.query.get(name, "").strip() for name in FILTERS}
    query = filters | {"cursor": visit.query.get("cursor", ""), "per_page": PER_PAGE}
    answer = await visit.api.get(f"/zones/{found['id']}/security/events", query)
    after = ((answer.get("result_info") or {}).get("cursors") or {}).get("after", "")
    data: Data = {"zone": found, "events": answer["result"], "filters": filters, "after": after}
    return Shown("events.html", f"Events of {zone}", data)


async def show_one(zone: str, event: str, visit: Visit, refused: Refused | None = None) -> Shown:
    found = await zone_of(visit, zone)
    held = await _event(visit, found, event)
    data: Data = {
        "zone": found,
        "event": held,
        "expression": _expression(held),
        "may_except": held["phase"] == MANAGED and bool(held["contributions"]),
        "errors": refused.messages if refused else [],
    }
    return Shown("event.html", f"Event {held['ray_id']}", data)


async def allow(zone: str, event: str, visit: Visit) -> Shown | Moved:
    """An exception for requests like this one: they skip the managed rules that scored."""
    found = await zone_of(visit, zone)
    held = await _event(visit, found, event)
    rules = sorted({one["rule_id"] for one in held["contributions"]})
    path = f"/zones/{found['id']}/rulesets"
    entry: Json = await visit.api.result(f"{path}/phases/{MANAGED}/entrypoint")
    rule = {
        "action": "skip",
        "action_parameters": {"rules": {held["ruleset_id"]: rules}},
        "expression": visit.field("expression") or _expression(held),
        "description": f"Exception for {held['host']}{held['path']}"[:200],
        "position": {"index": 1},
    }
    refused = await tried(visit, "POST", f"{path}/{entry['id']}/rules", rule)
    if refused is not None:
        return await show_one(zone, event, visit, refused)
    return Moved(
        f"{ROOT}/zones/{zone}/rules",
        "Requests like that one pass now. The rule is the first of the managed phase.",
    )


async def _event(visit: Visit, zone: Json, event: str) -> Json:
    """The list begins behind its cursor, so a newer id of the same shape is asked from."""
    newer = f"{int(event, 16) + 1:032x}" if len(event) == 32 and set(event) <= set("0123456789abcdef") else ""
    found = await visit.api.result(f"/zones/{zone['id']}/security/events", {"cursor": newer, "per_page": 5})
    for one in found:
        if one["id"] == event:
            held: Json = one
            return held
    raise Refused(404, [{"code": 1001, "message": "The event is not kept any more."}])


def _expression(event: Json) -> str:
    """The same path of the same host."""
    return f'http.host eq "{_quoted(event["host"])}" and http.request.uri.path eq "{_quoted(event["path"])}"'


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
