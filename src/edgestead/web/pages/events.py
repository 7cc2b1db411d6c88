"""What the edge decided about requests: why one was blocked, and the exception that lets it pass.

Owns  the list with its filters, one event with every rule that scored; an exception with preview and undo.
Not   what becomes an event.
"""

import asyncio
import sys
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple, cast

import msgspec

from edgestead.model import managed_settings
from edgestead.web.asker import Json, Refused
from edgestead.web.pages.phases import MANAGED, PHASES, entry_of, words_of
from edgestead.web.pages.shared import zone_of
from edgestead.web.visit import ROOT, Data, Moved, Shown, Visit, segment

if TYPE_CHECKING:
    from edgestead.edge.exchanges.exchange import Exchange

_TRIAL = "edgestead.edge.phases.trial"
NOT_EXECUTED = "No rule that you may see executes these managed rules now."
ROWS_MAX = 40  # of a page of the list
PREVIEWED_MAX = 100  # events that an exception is tried on
PREVIEWED_AT_ONCE = 20  # then others have their turn


class Score(msgspec.Struct, frozen=True):
    rule_id: str
    score: int


class Seen(msgspec.Struct, frozen=True):
    """What a preview has to know of an event: a third of what it is, and read in a fifth of the time."""

    action: str
    client: str
    scheme: str
    method: str
    host: str
    path: str
    query: str
    user_agent: str
    ruleset_id: str | None
    threshold: int | None
    contributions: tuple[Score, ...]


FILTERS = ("action", "phase", "client", "rule_id", "ray_id", "host", "path_prefix")


async def show(zone: str, visit: Visit) -> Shown:
    found = await zone_of(visit, zone)
    filters = {name: visit.query.get(name, "").strip() for name in FILTERS}
    query = filters | {"cursor": visit.query.get("cursor", ""), "per_page": ROWS_MAX}
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
    scored = held["phase"] == MANAGED and bool(held["contributions"])
    levels = await _executing(visit, found, held["ruleset_id"]) if scored else []
    exceptions = [(level, await _exception(level, held)) for level in levels]
    where = next((level for level, rule in exceptions if rule is None), None)
    expression = visit.field("expression") or visit.query.get("expression", "") or _expression(held)
    data: Data = {
        "zone": found,
        "event": held,
        "phase": words_of(held["phase"]),
        "matching": await _matching(visit, found, held, expression) if where else None,
        "exceptions": [
            {"rule": rule, "rules": level.page, "is_of_account": level.is_of_account}
            for level, rule in exceptions
            if rule is not None
        ],
        "is_executed": bool(levels),
        "is_of_account": where is not None and where.is_of_account,
        "not_executed": NOT_EXECUTED,
        "expression": expression,
        "scored": scored,
        "may_except": where is not None,
        "errors": refused.messages if refused else [],
    }
    return Shown("event.html", f"Event {held['ray_id']}", data)


async def allow(zone: str, event: str, visit: Visit) -> Shown | Moved:
    """An exception for requests like this one: they skip the managed rules that scored."""
    found = await zone_of(visit, zone)
    held = await _event(visit, found, event)
    levels = await _executing(visit, found, held["ruleset_id"])
    here = f"{ROOT}/zones/{segment(zone)}/events/{segment(event)}"
    if visit.field("what") == "undo":
        id_ = visit.field("exception")
        where = next((one for one in levels if any(rule["id"] == id_ for rule in one.entry["rules"])), None)
        if where is None:
            raise Refused(404, [{"code": 1001, "message": "The exception is not there any more."}])
        await visit.api.send("DELETE", f"{where.path}/{segment(id_)}")
        return Moved(here, "The exception is deleted.")
    lacking = [one for one in levels if await _exception(one, held) is None] or levels
    if not lacking:
        raise Refused(404, [{"code": 1001, "message": NOT_EXECUTED}])
    where = lacking[0]
    rules = sorted(_scoring(held))
    rule = {
        "action": "skip",
        "action_parameters": {"rules": {held["ruleset_id"]: rules}},
        "expression": visit.field("expression") or _expression(held),
        "description": f"Exception for {held['host']}{held['path']}"[:200],
        "position": {"index": 1},
    }
    try:
        await visit.api.send("POST", where.path, rule)
    except Refused as refused:
        if refused.status != 400:
            raise
        return await show_one(zone, event, visit, refused)
    if len(lacking) > 1:
        return Moved(here, "The zone's rules let requests like that one pass now. The account's do not yet.")
    return Moved(
        here,
        "Requests like that one pass now. The rule is the first of the managed phase"
        + (" of the account." if where.is_of_account else "."),
    )


class Executing(NamedTuple):
    """The entry point that executes a ruleset, for an exception to stand in: levels do not skip one another.

    `page` is where its rules are changed.
    """

    api: str
    page: str
    entry: Json
    is_of_account: bool

    @property
    def path(self) -> str:
        return f"{self.api}/rulesets/{self.entry['id']}/rules"


async def _executing(visit: Visit, zone: Json, ruleset: str) -> list[Executing]:
    """The zone's, and the account's where the session may read that; if both do, each needs an exception."""
    found = []
    levels = (
        (f"/zones/{zone['id']}", f"{ROOT}/zones/{segment(zone['name'])}/rules", False),
        (f"/accounts/{zone['account']['id']}", f"{ROOT}/rules", True),
    )
    for api, page, is_of_account in levels:
        try:
            entry = await entry_of(visit, api, MANAGED)
        except Refused as refused:
            if refused.status != 403 or not is_of_account:
                raise
            break
        if entry and any(managed_settings.executes(rule, ruleset) for rule in entry.get("rules") or ()):
            found.append(Executing(api, page, entry, is_of_account))
    return found


async def _exception(where: Executing, event: Json) -> Json | None:
    """The rule that lets requests like this one skip what scored, before its ruleset is executed."""
    if _TRIAL not in sys.modules:
        await asyncio.to_thread(import_module, _TRIAL)  # the edge's rules take a tenth of a second
    from edgestead.edge.phases import trial
    from edgestead.language import FilterError

    request, ruleset = _request(msgspec.convert(event, Seen)), event["ruleset_id"]
    for rule in where.entry["rules"]:
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
    newest = await visit.api.read(f"/zones/{zone['id']}/security/events", list[Seen], query)
    found = [one for one in newest if one.action != "log"]
    try:
        matches = trial.matcher(expression, MANAGED)
    except FilterError as error:
        return {"error": str(error), "events": len(found), "count": 0, "clients": 0}
    skipped, clients = _scoring(event), []
    for number, one in enumerate(found, 1):
        if number % PREVIEWED_AT_ONCE == 0:
            await asyncio.sleep(0)
        if _would_pass(one, event["ruleset_id"], skipped) and matches(_request(one)):
            clients.append(one.client)
    return {"error": "", "events": len(found), "count": len(clients), "clients": len(set(clients))}


def _would_pass(one: Seen, ruleset: str, skipped: set[str]) -> bool:
    """Whether a request that was stopped scores too little without the rules that are skipped."""
    if one.ruleset_id != ruleset or one.threshold is None:
        return False
    return sum([part.score for part in one.contributions if part.rule_id not in skipped]) < one.threshold


def _request(event: Seen) -> "Exchange":
    from edgestead.edge.phases import trial

    url = f"{event.scheme}://{event.host}{event.path}"
    return trial.request_of(
        f"{url}?{event.query}" if event.query else url,
        method=event.method,
        headers=[(b"user-agent", event.user_agent.encode())],
        client=event.client,
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
