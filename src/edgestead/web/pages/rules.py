"""The rules of a zone, in the order of evaluation, and an editor of one.

Owns  the page, switching a rule on and off, adding, changing, moving and deleting one.
Not   what a rule may be: the API says. Trying expressions and requests (`web.pages.trial`).
"""

from collections.abc import Iterable, Mapping

import msgspec

from edgestead.model.rule_members import sent_back
from edgestead.web.asker import Json, Refused
from edgestead.web.pages import trial
from edgestead.web.pages.phases import CUSTOM, MANAGED, PHASES, Phase, all_phases, entry_of, words_of
from edgestead.web.pages.shared import errors_of, tried, zone_of
from edgestead.web.visit import ROOT, Data, Moved, Shown, Visit, segment

ACTIONS = {
    CUSTOM: ("block", "managed_challenge", "js_challenge", "log", "skip"),
    MANAGED: ("skip", "execute"),
    "http_ratelimit": ("block", "managed_challenge", "js_challenge", "log"),
    "http_request_dynamic_redirect": ("redirect",),
    "http_request_origin": ("route",),
}
_REWRITES = ("rewrite",)
_RATELIMIT = {
    "characteristics": ["ip.src"],
    "period": 60,
    "requests_per_period": 100,
    "mitigation_timeout": 60,
}
_PARAMETERS: Mapping[str, Json] = {
    "http_request_dynamic_redirect": {
        "from_value": {"target_url": {"value": "https://example.com/"}, "status_code": 302}
    },
    "http_request_transform": {"uri": {"path": {"value": "/new"}}},
    "http_request_origin": {"origin": {"port": 8080}},
    "http_request_late_transform": {"headers": {"X-Name": {"operation": "set", "value": "value"}}},
    "http_response_headers_transform": {"headers": {"X-Name": {"operation": "set", "value": "value"}}},
}
_FIELDS = ("action", "action_parameters", "description", "expression", "ratelimit")
_AS_JSON = ("action_parameters", "ratelimit")
ROWS_MAX = 16  # of a page: with long expressions it stays below 60 KB, its two files included
WORDS_MAX = 160  # characters of a description or an expression in the list; the rule's page has all
_DONE = "Done. Every edge process has the rules."


async def show(zone: str, visit: Visit) -> Shown:
    found = await zone_of(visit, zone)
    counts = await _counts(visit, found)
    phases = await all_phases(visit, found)
    count = sum(len(one.rules) for one in phases)
    pages = max(1, -(-count // ROWS_MAX))
    page = min(_page(visit), pages)
    rows = slice((page - 1) * ROWS_MAX, page * ROWS_MAX)
    data: Data = {
        "zone": found,
        "phases": _on_page(phases, rows, counts),
        "paging": {"page": page, "pages": pages, "count": count},
        "words_max": WORDS_MAX,
        "counts": counts,
    }
    return Shown("rules.html", f"Rules of {zone}", data)


def _page(visit: Visit) -> int:
    asked = visit.query.get("page", "")
    return max(1, int(asked)) if asked.isascii() and asked.isdigit() and len(asked) < 7 else 1


def _on_page(phases: Iterable[Phase], rows: slice, counts: Json | None) -> list[Json]:
    """All phases, each with those of its rules that are rows of the page, and with their places."""
    found, before = [], 0
    for one in phases:
        low, high = max(0, rows.start - before), max(0, rows.stop - before)
        placed = list(enumerate(one.rules, 1))[low:high]
        rules = [rule | {"place": place, "hits": _hits(rule, counts)} for place, rule in placed]
        found.append({"phase": one.phase, "words": one.words, "count": len(one.rules), "rules": rules})
        before += len(one.rules)
    return found


async def _counts(visit: Visit, zone: Json) -> Json | None:
    """The events of the last day by rule; None where the session may not ask."""
    try:
        found: Json = await visit.api.result(f"/zones/{zone['id']}/security/events/counts")
    except Refused as refused:
        if refused.status in (403, 404):
            return None
        raise
    return found


def _hits(rule: Json, counts: Json | None) -> int | None:
    if counts is None:
        return None
    executed = (rule.get("action_parameters") or {}).get("id", "") if rule["action"] == "execute" else ""
    return int(counts["rulesets"].get(executed, 0) if executed else counts["rules"].get(rule["id"], 0))


async def change(zone: str, visit: Visit) -> Shown | Moved:
    """Switch a rule on or off, move it, delete it."""
    found = await zone_of(visit, zone)
    what, phase = visit.field("what"), visit.field("phase")
    entry, rule = await _rule(visit, found, phase, visit.field("rule"))
    path = f"/zones/{found['id']}/rulesets/{entry['id']}/rules/{rule['id']}"
    if what == "delete":
        await visit.api.send("DELETE", path)
    elif what in ("up", "down"):
        place = next(at for at, one in enumerate(entry["rules"], 1) if one["id"] == rule["id"])
        body = sent_back(rule) | {"position": {"index": max(1, place + (1 if what == "down" else -1))}}
        await visit.api.send("PATCH", path, body)
    else:
        await visit.api.send("PATCH", path, sent_back(rule) | {"enabled": what == "on"})
    page = _page(visit)
    return Moved(f"{ROOT}/zones/{segment(zone)}/rules" + (f"?page={page}" if page > 1 else ""), _DONE)


async def edit(zone: str, phase: str, rule: str, visit: Visit, refused: Refused | None = None) -> Shown:
    """The editor: of a rule, or of one that is not there yet (`new`)."""
    found = await zone_of(visit, zone)
    if phase not in PHASES:
        raise Refused(404, [{"code": 1001, "message": f"There is no phase {phase}."}])
    held = None if rule == "new" else (await _rule(visit, found, phase, rule))[1]
    form = _form(held, phase) | dict(visit.form or {})
    data: Data = {
        "zone": found,
        "phase": phase,
        "words": words_of(phase),
        "rule": held,
        "actions": ACTIONS.get(phase, _REWRITES),
        "form": form,
        "with_parameters": bool(form["action_parameters"])
        or phase in _PARAMETERS
        or phase in (CUSTOM, MANAGED),
        "errors": errors_of(refused, _FIELDS),
        "checked": trial.check(form["expression"], phase) if visit.form is not None else None,
        "fields": trial.fields(phase),
    }
    title = (
        f"New rule: {words_of(phase)}"
        if held is None
        else f"Rule: {held.get('description') or words_of(phase)}"
    )
    return Shown("rule.html", title, data, 400 if refused else 200)


async def save(zone: str, phase: str, rule: str, visit: Visit) -> Shown | Moved:
    found = await zone_of(visit, zone)
    try:
        body = _body(visit)
    except msgspec.DecodeError as error:
        source = {"pointer": f"/{'ratelimit' if phase == 'http_ratelimit' else 'action_parameters'}"}
        wrong = Refused(400, [{"code": 1001, "message": f"This is no JSON: {error}.", "source": source}])
        return await edit(zone, phase, rule, visit, wrong)
    path = f"/zones/{found['id']}/rulesets"
    if rule != "new":
        entry, held = await _rule(visit, found, phase, rule)
        kept = {name: value for name, value in sent_back(held).items() if name not in _emptied(visit)}
        refused = await tried(visit, "PATCH", f"{path}/{entry['id']}/rules/{rule}", kept | body)
    elif (there := await entry_of(visit, found, phase)) is not None:
        refused = await tried(visit, "POST", f"{path}/{there['id']}/rules", body)
    else:
        refused = await tried(visit, "PUT", f"{path}/phases/{phase}/entrypoint", {"rules": [body]})
    if refused is not None:
        return await edit(zone, phase, rule, visit, refused)
    return Moved(f"{ROOT}/zones/{segment(zone)}/rules", _DONE)


def _form(rule: Json | None, phase: str) -> Json:
    if rule is None:
        return {
            "action": ACTIONS.get(phase, _REWRITES)[0],
            "expression": "",
            "description": "",
            "action_parameters": _json(_PARAMETERS.get(phase)),
            "ratelimit": _json(_RATELIMIT if phase == "http_ratelimit" else None),
        }
    return {
        "action": rule["action"],
        "expression": rule["expression"],
        "description": rule.get("description", ""),
        "action_parameters": _json(rule.get("action_parameters")),
        "ratelimit": _json(rule.get("ratelimit")),
    }


def _json(value: object) -> str:
    return "" if value is None else msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def _body(visit: Visit) -> Json:
    """Raises DecodeError."""
    body: Json = {name: visit.field(name) for name in ("action", "expression", "description")}
    for name in _AS_JSON:
        if text := visit.field(name):
            body[name] = msgspec.json.decode(text.encode())
    return body


def _emptied(visit: Visit) -> set[str]:
    """Members that the form has a field for, with nothing in it."""
    return {name for name in _AS_JSON if name in (visit.form or {}) and not visit.field(name)}


async def _rule(visit: Visit, zone: Json, phase: str, rule: str) -> tuple[Json, Json]:
    """The entry point and a rule of it. Raises Refused: 404."""
    entry = await entry_of(visit, zone, phase) if phase in PHASES else None
    for one in (entry or {}).get("rules", ()):
        if entry is not None and one["id"] == rule:
            return entry, one
    raise Refused(404, [{"code": 1001, "message": "The rule is not there any more."}])
