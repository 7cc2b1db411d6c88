"""What the edge decided about requests: why one was blocked, and the exception that lets it pass.

Owns  the list with its filters, one event with every rule that scored; an exception with preview and undo.
Not   what becomes an event.
"""

import asyncio
import sys
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, cast

from edgestead.model import managed_settings
from edgestead.web.asker import PER_PAGE, Json, Refused
from edgestead.web.pages.phases import MANAGED, PHASES, entry_of, words_of
from edgestead.web.pages.shared import zone_of
from edgestead.web.visit import ROOT, Data, Moved, Shown, Visit, segment

if TYPE_CHECKING:
    from edgestead.edge.exchanges.exchange import Exchange

_TRIAL = "edgestead.edge.phases.trial"
PREVIEWED_MAX = 100  # events that an exception is tried on
PREVIEWED_AT_ONCE = 20  # then others have their turn
FILTERS = ("action", "phase", "client", "rule_id", "ray_id", "host", "path_prefix")


async def show(zone: str, visit: Visit) -> Shown:
    found = await zone_of(visit, zone)
    filters = {name: visit.query.get(name, "").strip() for name in FILTERS}
    query = filters | {"cursor": visit.query.get("cursor", ""), "per_page": PER_PAGE}
    answer = await visit.api.get(f"/zones/{found['id']}/security/events", query)
    after = ((answer.get("result_info") or {}).get("cursors") or {}).get("after", "")
    data: Data = {
        "zone": found,
        "events": answer["result"],
        "filters": filters,
        "after": after,
        "phases": PHASES,
    }
    return Shown("events.html", f"Events of {zone}", data)


async def show_one(zone: str, event: str, visit: Visit, refused: Refused | None = None) -> Shown:
    found = await zone_of(visit, zone)
    held = await _event(visit, found, event)
    may_except = held["phase"] == MANAGED and bool(held["contributions"])
    exception = await _exception(visit, found, held) if may_except else None
    expression = visit.field("expression") or visit.query.get("expression", "") or _expression(held)
    data: Data = {
        "zone": found,
        "event": held,
        "phase": words_of(held["phase"]),
        "matching": await _matching(visit, found, held, expression) if may_except and not exception else None,
        "exception": exception,
        "expression": expression,
        "may_except": may_except,
        "errors": refused.messages if refused else [],
    }
    return Shown("event.html", f"Event {held['ray_id']}", data)


async def allow(zone: str, event: str, visit: Visit) -> Shown | Moved:
    """An exception for requests like this one: they skip the managed rules that scored."""
    found = await zone_of(visit, zone)
    if visit.field("what") == "undo":
        await _undo(visit, found)
        return Moved(f"{ROOT}/zones/{segment(zone)}/events/{segment(event)}", "The exception is deleted.")
    held = await _event(visit, found, event)
    rules = sorted(_scoring(held))
    path = f"/zones/{found['id']}/rulesets"
    entry: Json = await visit.api.result(f"{path}/phases/{MANAGED}/entrypoint")
    rule = {
        "action": "skip",
        "action_parameters": {"rules": {held["ruleset_id"]: rules}},
        "expression": visit.field("expression") or _expression(held),
        "description": f"Exception for {held['host']}{held['path']}"[:200],
        "position": {"index": 1},
    }
    try:
        await visit.api.send("POST", f"{path}/{entry['id']}/rules", rule)
    except Refused as refused:
        if refused.status != 400:
            raise
        return await show_one(zone, event, visit, refused)
    return Moved(
        f"{ROOT}/zones/{segment(zone)}/events/{segment(event)}",
        "Requests like that one pass now. The rule is the first of the managed phase.",
    )


async def _undo(visit: Visit, zone: Json) -> None:
    path = f"/zones/{zone['id']}/rulesets"
    entry = await visit.api.result(f"{path}/phases/{MANAGED}/entrypoint")
    await visit.api.send("DELETE", f"{path}/{entry['id']}/rules/{segment(visit.field('exception'))}")


async def _exception(visit: Visit, zone: Json, event: Json) -> Json | None:
    """The rule that lets requests like this one skip what scored, before its ruleset is executed."""
    if _TRIAL not in sys.modules:
        await asyncio.to_thread(import_module, _TRIAL)  # the edge's rules take a tenth of a second
    from edgestead.edge.phases import trial
    from edgestead.language import FilterError

    request, ruleset = _request(event), event["ruleset_id"]
    for rule in (await entry_of(visit, zone, MANAGED) or {}).get("rules", ()):
        if managed_settings.executes(rule, ruleset):
            break
        skipped = ((rule.get("action_parameters") or {}).get("rules") or {}).get(ruleset, ())
        if rule["action"] != "skip" or not rule["enabled"] or not _scoring(event) <= set(skipped):
            continue
        with suppress(FilterError):
            if trial.matches(rule["expression"], MANAGED, request):
                return cast("Json", rule)
    return None


def _scoring(event: Json) -> set[str]:
    """The rules that scored."""
    return {one["rule_id"] for one in event["contributions"]}


async def _matching(visit: Visit, zone: Json, event: Json, expression: str) -> Json | None:
    """How many of the newest requests that managed rules stopped an exception would let pass.

    As far as their events tell: these hold no headers but one, and no body.
    """
    from edgestead.edge.phases import trial
    from edgestead.language import FilterError

    query = {"phase": MANAGED, "per_page": PREVIEWED_MAX}
    newest = await visit.api.result(f"/zones/{zone['id']}/security/events", query)
    found = [one for one in newest if one["action"] != "log"]
    try:
        matches = trial.matcher(expression, MANAGED)
    except FilterError as error:
        return {"error": str(error), "events": len(found), "count": 0, "clients": 0}
    skipped, clients = _scoring(event), []
    for number, one in enumerate(found, 1):
        if number % PREVIEWED_AT_ONCE == 0:
            await asyncio.sleep(0)
        if _would_pass(one, event["ruleset_id"], skipped) and matches(_request(one)):
            clients.append(one["client"])
    return {"error": "", "events": len(found), "count": len(clients), "clients": len(set(clients))}


def _would_pass(one: Json, ruleset: str, skipped: set[str]) -> bool:
    """Whether a request that was stopped scores too little without the rules that are skipped."""
    if one["ruleset_id"] != ruleset or one["threshold"] is None:
        return False
    left = sum(part["score"] for part in one["contributions"] if part["rule_id"] not in skipped)
    return bool(left < one["threshold"])


def _request(event: Json) -> "Exchange":
    from edgestead.edge.phases import trial

    url = f"{event['scheme']}://{event['host']}{event['path']}"
    return trial.request_of(
        f"{url}?{event['query']}" if event["query"] else url,
        method=event["method"],
        headers=[(b"user-agent", event["user_agent"].encode())],
        client=event["client"],
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
