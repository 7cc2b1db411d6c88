"""The rules of a zone or of the account, in the order of evaluation, and an editor of one.

Owns  the pages, switching a rule on and off, adding, changing, moving and deleting one, making a ruleset.
Not   what a rule may be: the API says. Trying expressions and requests (`web.pages.trial`).
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from edgestead.model.rule_members import sent_back
from edgestead.web.asker import Json, Refused
from edgestead.web.pages import trial
from edgestead.web.pages.phases import (
    CUSTOM,
    MANAGED,
    OF_ZONES,
    PHASES,
    Owner,
    Placed,
    all_phases,
    begun,
    entries_of,
    entry_of,
    executed_by,
    of_account,
    of_zone,
    rulesets_of,
    words_of,
)
from edgestead.web.pages.shared import errors_of, tried
from edgestead.web.visit import Data, Moved, Shown, Visit

_FIREWALL = ("block", "managed_challenge", "js_challenge", "log")
_RUNS = ("execute", "skip")
ACTIONS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "zone": {
        CUSTOM: (*_FIREWALL, "skip", "execute"),
        MANAGED: ("skip", "execute"),
        "http_ratelimit": (*_FIREWALL, "execute"),
        "http_request_dynamic_redirect": ("redirect",),
        "http_request_origin": ("route",),
        "http_response_compression": ("compress_response",),
    },
    "root": {
        CUSTOM: _RUNS,
        MANAGED: _RUNS,
        "http_ratelimit": _RUNS,
        "http_request_dynamic_redirect": ("redirect",),
        "http_request_origin": ("route",),
        "http_request_transform": ("rewrite", "execute"),
        "http_request_late_transform": ("rewrite", "execute"),
        "http_response_headers_transform": ("rewrite", "execute"),
    },
    "custom": {
        CUSTOM: (*_FIREWALL, "skip"),
        MANAGED: (*_FIREWALL, "skip", "execute"),
        "http_ratelimit": _FIREWALL,
    },
}
"""By the kind of the ruleset and the phase (docs/reference/rulesets.md); where none is named, `rewrite`."""
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
    "http_response_compression": {"algorithms": [{"name": "zstd"}, {"name": "gzip"}]},
}
_FIELDS = ("action", "action_parameters", "description", "expression", "ratelimit")
_AS_JSON = ("action_parameters", "ratelimit")
ROWS_MAX = 16  # of a page: with long expressions it stays below 60 KB, its two files included
_DONE = "Done. Every edge process has the rules."


class Section(NamedTuple):
    """Rules of one phase or ruleset. `where` is how forms name it, `size` the number of its own rules."""

    where: str
    phase: str
    words: str
    rows: Sequence[Placed]
    size: int

    @property
    def height(self) -> int:
        """In rows. Phases stand on every page, a ruleset where its rules are; without any it is one."""
        return len(self.rows) or int(self.where not in PHASES)


async def show(zone: str, visit: Visit) -> Shown:
    """The zone's rules, with what the account has before them."""
    owner = await of_zone(visit, zone)
    counts = await _counts(visit, owner)
    found = await all_phases(visit, owner)
    sections = [
        Section(one.phase, one.phase, one.words, list(one.rows()), len(one.zone)) for one in found.phases
    ]
    return _list(visit, owner, sections, counts, found.unseen)


async def show_account(visit: Visit, refused: Refused | None = None) -> Shown:
    """The account's entry points, then its rulesets that rules execute."""
    owner = await of_account(visit)
    listed = await rulesets_of(visit, owner.api)
    roots = await entries_of(visit, owner.api, "root", listed)
    sections = []
    for phase, words in PHASES.items():
        if phase in OF_ZONES:
            continue
        rules = (roots.get(phase) or {}).get("rules") or []
        sections.append(Section(phase, phase, words, _placed(rules), len(rules)))
    for one in listed:
        if one["kind"] == "custom" and one["phase"] in PHASES:
            entry = await entry_of(visit, owner.api, one["id"])
            rules = (entry or {}).get("rules") or []
            words = f"{one['name']}: a ruleset of {words_of(one['phase'])}"
            sections.append(Section(one["id"], one["phase"], words, _placed(rules), len(rules)))
    return _list(visit, owner, sections, None, unseen=False, refused=refused)


def _placed(rules: Sequence[Json]) -> list[Placed]:
    return [Placed("account", 0, place, rule) for place, rule in enumerate(rules, 1)]


def _list(
    visit: Visit,
    owner: Owner,
    sections: Sequence[Section],
    counts: Json | None,
    unseen: bool,
    refused: Refused | None = None,
) -> Shown:
    count = sum(one.height for one in sections)
    pages = max(1, -(-count // ROWS_MAX))
    page = min(_page(visit), pages)
    data: Data = {
        "zone": owner.zone,
        "base": f"{owner.page}/rules",
        "phases": _on_page(sections, slice((page - 1) * ROWS_MAX, page * ROWS_MAX), owner, counts),
        "paging": {"page": page, "pages": pages, "count": count},
        "counts": counts,
        "unseen": unseen,
        "rulesets_of": {phase: words_of(phase) for phase in ACTIONS["custom"]},
        "form": {name: visit.field(name) for name in ("name", "kind")},
        "errors": refused.messages if refused else [],
    }
    return Shown("rules.html", f"Rules of {owner.name}", data, 400 if refused else 200)


def _page(visit: Visit) -> int:
    asked = visit.query.get("page", "")
    return max(1, int(asked)) if asked.isascii() and asked.isdigit() and len(asked) < 7 else 1


def _on_page(sections: Sequence[Section], rows: slice, owner: Owner, counts: Json | None) -> list[Json]:
    """Sections, each with those of its rules that are rows of the page, and with their places."""
    found, after = [], 0
    for one in sections:
        before, after = after, after + one.height
        if one.where not in PHASES and not (before < rows.stop and rows.start < after):
            continue
        low, high = max(0, rows.start - before), max(0, rows.stop - before)
        rules = [
            row.rule
            | {"place": row.place, "by": row.by, "level": row.level, "hits": _hits(row.rule, counts)}
            | {"own": owner.zone is None or row.is_own}
            for row in one.rows[low:high]
        ]
        about = {"where": one.where, "phase": one.phase, "words": one.words, "count": one.size}
        found.append(about | {"all": len(one.rows), "rules": rules})
    return found


async def _counts(visit: Visit, owner: Owner) -> Json | None:
    """The events of the last day by rule; None where the session may not ask."""
    try:
        found: Json = await visit.api.result(f"{owner.api}/security/events/counts")
    except Refused as refused:
        if refused.status in (403, 404):
            return None
        raise
    return found


def _hits(rule: Json, counts: Json | None) -> int | None:
    """Those of a ruleset count for the rule that executes it."""
    if counts is None:
        return None
    executed = executed_by(rule).partition("/")[0]
    return int(counts["rulesets"].get(executed, 0) if executed else counts["rules"].get(rule["id"], 0))


async def change(zone: str, visit: Visit) -> Shown | Moved:
    return await _change(await of_zone(visit, zone), visit)


async def change_account(visit: Visit) -> Shown | Moved:
    owner = await of_account(visit)
    if visit.field("what") != "create":
        return await _change(owner, visit)
    body = {"name": visit.field("name"), "kind": "custom", "phase": visit.field("kind"), "rules": []}
    refused = await tried(visit, "POST", f"{owner.api}/rulesets", body)
    if refused is not None:
        return await show_account(visit, refused)
    return Moved(f"{owner.page}/rules", "The ruleset is made. A rule with the action execute has it run.")


async def _change(owner: Owner, visit: Visit) -> Moved:
    """Switch a rule on or off, move it, delete it."""
    what, where = visit.field("what"), visit.field("phase")
    entry, rule = await _rule(visit, owner, where, visit.field("rule"))
    path = f"{owner.api}/rulesets/{entry['id']}/rules/{rule['id']}"
    if what == "delete":
        await visit.api.send("DELETE", path)
    elif what in ("up", "down"):
        place = next(at for at, one in enumerate(entry["rules"], 1) if one["id"] == rule["id"])
        position = {"index": max(1, place + (1 if what == "down" else -1))}
        await visit.api.send("PATCH", path, {"position": position})  # alone: the rule stays as it is then
    else:
        # Whole, as the API takes nothing but a position alone, and so of the version that was read.
        body = sent_back(rule) | {"enabled": what == "on"}
        await visit.api.send("PATCH", path, body, {"if_version": rule["version"]})
    page = _page(visit)
    return Moved(f"{owner.page}/rules" + (f"?page={page}" if page > 1 else ""), _DONE)


async def edit(zone: str, phase: str, rule: str, visit: Visit) -> Shown:
    """The editor: of a rule, or of one that is not there yet (`new`)."""
    return await _edit(await of_zone(visit, zone), phase, rule, visit)


async def edit_account(where: str, rule: str, visit: Visit) -> Shown:
    return await _edit(await of_account(visit), where, rule, visit)


async def _edit(owner: Owner, where: str, rule: str, visit: Visit, refused: Refused | None = None) -> Shown:
    entry = await _entry(visit, owner, where)
    phase = entry["phase"] if entry else where
    held = None if rule == "new" else _found(entry, rule)
    actions = ACTIONS[_kind(owner, where)].get(phase, _REWRITES)
    form = _form(held, phase, actions[0]) | dict(visit.form or {})
    data: Data = {
        "zone": owner.zone,
        "base": f"{owner.page}/rules",
        "phase": phase,
        "words": words_of(phase),
        "rule": held,
        "actions": actions,
        "form": form,
        "with_parameters": bool(form["action_parameters"])
        or phase in _PARAMETERS
        or phase in (CUSTOM, MANAGED)
        or "execute" in actions,
        "errors": errors_of(refused, _FIELDS),
        "checked": trial.check(form["expression"], phase) if visit.form is not None else None,
        "fields": trial.fields(phase),
        "rulesets": await _executable(visit, owner, phase) if "execute" in actions else [],
    }
    title = (
        f"New rule: {words_of(phase)}"
        if held is None
        else f"Rule: {held.get('description') or words_of(phase)}"
    )
    return Shown("rule.html", title, data, 400 if refused else 200)


def _kind(owner: Owner, where: str) -> str:
    return "zone" if owner.zone is not None else "root" if where in PHASES else "custom"


async def _executable(visit: Visit, owner: Owner, phase: str) -> list[Json]:
    """What a rule of the phase can execute, for who writes its parameters."""
    listed = await rulesets_of(visit, owner.api)
    return [one for one in listed if one["kind"] in ("custom", "managed") and one["phase"] == phase]


async def save(zone: str, phase: str, rule: str, visit: Visit) -> Shown | Moved:
    return await _save(await of_zone(visit, zone), phase, rule, visit)


async def save_account(where: str, rule: str, visit: Visit) -> Shown | Moved:
    return await _save(await of_account(visit), where, rule, visit)


async def _save(owner: Owner, where: str, rule: str, visit: Visit) -> Shown | Moved:
    try:
        body = _body(visit)
    except Refused as refused:
        return await _edit(owner, where, rule, visit, refused)
    path = f"{owner.api}/rulesets"
    if rule != "new":
        entry, held = await _rule(visit, owner, where, rule)
        kept = {name: value for name, value in sent_back(held).items() if name not in _emptied(visit)}
        query = {"if_version": visit.field("version")}  # that the editor showed, perhaps long ago
        wrong = await tried(visit, "PATCH", f"{path}/{entry['id']}/rules/{rule}", kept | body, query)
    else:
        there, wrong = await _entry(visit, owner, where), None
        if there is None:
            there, wrong = await begun(visit, owner.api, _kind(owner, where), where, body)
        if there is not None:
            wrong = await tried(visit, "POST", f"{path}/{there['id']}/rules", body)
    if wrong is not None:
        return await _edit(owner, where, rule, visit, wrong)
    return Moved(f"{owner.page}/rules", _DONE)


def _form(rule: Json | None, phase: str, action: str) -> Json:
    if rule is None:
        return {
            "version": "",
            "action": action,
            "expression": "",
            "description": "",
            "action_parameters": _json(_PARAMETERS.get(phase)),
            "ratelimit": _json(_RATELIMIT if phase == "http_ratelimit" else None),
        }
    return {
        "version": rule["version"],
        "action": rule["action"],
        "expression": rule["expression"],
        "description": rule.get("description", ""),
        "action_parameters": _json(rule.get("action_parameters")),
        "ratelimit": _json(rule.get("ratelimit")),
    }


def _json(value: object) -> str:
    return "" if value is None else msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def _body(visit: Visit) -> Json:
    """Raises Refused: what is no JSON, with its field."""
    body: Json = {name: visit.field(name) for name in ("action", "expression", "description")}
    for name in _AS_JSON:
        if text := visit.field(name):
            try:
                body[name] = msgspec.json.decode(text.encode())
            except msgspec.DecodeError as error:
                about = {"message": f"This is no JSON: {error}.", "source": {"pointer": f"/{name}"}}
                raise Refused(400, [{"code": 1001} | about]) from None
    return body


def _emptied(visit: Visit) -> set[str]:
    """Members that the form has a field for, with nothing in it."""
    return {name for name in _AS_JSON if name in (visit.form or {}) and not visit.field(name)}


async def _rule(visit: Visit, owner: Owner, where: str, rule: str) -> tuple[Json, Json]:
    """The ruleset and a rule of it. Raises Refused: 404."""
    entry = await _entry(visit, owner, where)
    held = _found(entry, rule)
    assert entry is not None
    return entry, held


async def _entry(visit: Visit, owner: Owner, where: str) -> Json | None:
    """An entry point, None where the phase has none yet; of the account, also a ruleset by its id.

    Raises Refused: 404.
    """
    is_known = where not in OF_ZONES if owner.zone is None else where in PHASES
    entry = await entry_of(visit, owner.api, where) if is_known else None
    if where in PHASES and is_known:
        return entry
    if entry is None or entry["kind"] != "custom":
        raise Refused(404, [{"code": 1001, "message": f"There is no phase {where}."}])
    return entry


def _found(entry: Json | None, rule: str) -> Json:
    """Raises Refused: 404."""
    for one in (entry or {}).get("rules", ()):
        if one["id"] == rule:
            found: Json = one
            return found
    raise Refused(404, [{"code": 1001, "message": "The rule is not there any more."}])
