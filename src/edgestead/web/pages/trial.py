"""Expressions and requests, tried before they count.

Owns  checking an expression while one types it, the fields with their meaning, "try a request".
Not   what rules do (`edge.phases.trial`), the language.
"""

import asyncio
from collections.abc import Generator
from importlib import import_module
from typing import Any

from edgestead.language import FilterError, compile_filter
from edgestead.language.fields import FIELDS, find
from edgestead.language.meanings import meaning_of
from edgestead.language.phases import PHASES as LANGUAGE_PHASES
from edgestead.web.asker import Json, Refused
from edgestead.web.pages.phases import CUSTOM, Owner, of_account, of_zone, words_of
from edgestead.web.pages.shared import zone_of
from edgestead.web.visit import Data, Shown, Visit

EXPRESSION_CHARACTERS_MAX = 4_096  # as the API takes them
HEADERS_MAX = 100  # of a request that is tried
ROWS_MAX = 60  # of the page: rules that match, else the first
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS")
_HEADERS = "User-Agent: Mozilla/5.0\nAccept: text/html"


def check(expression: str, phase: str) -> Json | None:
    """The error of an expression with its place; None without one."""
    if not expression.strip():
        return None
    try:
        compile_filter(
            expression[: EXPRESSION_CHARACTERS_MAX + 1], phase if phase in LANGUAGE_PHASES else CUSTOM
        )
    except FilterError as error:
        return {
            "line": error.line,
            "column": error.column,
            "text": str(error),
            "reason": error.reason,
            "hint": error.hint,
        }
    return None


def fields(phase: str) -> list[Json]:
    """The fields that an expression of a phase may name."""
    known = (name for name in FIELDS if find(name, phase) is not None)
    return [
        {"name": name, "type": str(FIELDS[name].type).replace("Bytes", "String"), "about": meaning_of(name)}
        for name in sorted(known)
    ]


async def checked(zone: str, visit: Visit) -> Shown:
    """What a script asks while one types, and a button without one."""
    return _checked(await of_zone(visit, zone), visit)


async def checked_for_account(visit: Visit) -> Shown:
    return _checked(await of_account(visit), visit)


def _checked(owner: Owner, visit: Visit) -> Shown:
    phase = visit.field("phase") or CUSTOM
    expression = (visit.form or {}).get("expression", "")
    data: Data = {
        "zone": owner.zone,
        "base": f"{owner.page}/rules",
        "expression": expression,
        "checked": check(expression, phase),
        "phase": phase,
    }
    return Shown("check.html", "Check of an expression", data)


async def show(zone: str, visit: Visit) -> Shown:
    """The form of a request, and what each rule does with it."""
    found = await zone_of(visit, zone)
    form = {
        "url": visit.query.get("url") or f"http://www.{zone}/",
        "method": "GET",
        "client": "192.0.2.1",
        "header_lines": _HEADERS,
        "body": "",
        "expression": visit.query.get("expression", ""),
    } | dict(visit.form or {})
    data: Data = {
        "zone": found,
        "form": form,
        "tried": None,
        "error": "",
        "methods": METHODS,
    }
    if visit.form is not None:
        try:
            data["tried"] = await _tried(visit, found, form)
        except (ValueError, UnicodeError) as error:
            data["error"] = str(error)
    return Shown("trial.html", f"Try a request at {zone}", data, 400 if data["error"] else 200)


async def _tried(visit: Visit, zone: Json, form: Json) -> Json:
    """Raises ValueError: no request, or no expression."""
    await asyncio.to_thread(
        import_module, "edgestead.edge.phases.trial"
    )  # when somebody asks, and nobody waits
    from edgestead.edge.phases import trial

    lines = [line for line in form["header_lines"].splitlines() if line.strip()]
    if len(lines) > HEADERS_MAX:
        raise ValueError(f"a request has at most {HEADERS_MAX} headers here")
    if form["expression"].strip():
        own = {
            "id": "own",
            "action": "log",
            "expression": form["expression"],
            "description": "this expression",
        }
        entry = {"kind": "zone", "phase": CUSTOM, "rules": [own]}
        gathered = trial.Gathered(trial.Rulesets([entry]), trial.NO_ZONE, [])
    else:
        gathered = await _gathered(visit, trial.gathering(zone))
    request = trial.request_of(
        form["url"].strip(),
        method=form["method"].strip().upper() or "GET",
        headers=[trial.header_of(line) for line in lines],
        client=form["client"].strip(),
        body=form["body"].encode(),
        zone=gathered.facts,
    )
    outcome = await asyncio.to_thread(trial.tried, gathered.rulesets, request)
    rows = [one._asdict() | {"phase": words_of(one.phase), "rule": dict(one.rule)} for one in outcome.rows]
    matching_first = sorted(range(len(rows)), key=lambda at: rows[at]["matches"] != "yes")
    for at in matching_first[:ROWS_MAX]:
        rows[at]["is_shown"] = True
    return {"rows": rows, "status": outcome.status, "why": outcome.why, "unseen": gathered.unseen}


async def _gathered(visit: Visit, asking: Generator[str, Any, Any]) -> Any:
    """Ask the API what it wants to know; what that refuses is unseen."""
    answer = None
    while True:
        try:
            path = asking.send(answer)
        except StopIteration as done:
            return done.value
        try:
            answer = await visit.api.result(path)
        except Refused as refused:
            if refused.status not in (403, 404):
                raise
            answer = None
