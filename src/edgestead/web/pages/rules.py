"""The rules of a zone, in the order of evaluation.

Owns  the page, switching a rule on and off, adding, moving and deleting one.
Not   what a rule may be: the API says.
"""

from edgestead.web.asker import Json, Refused
from edgestead.web.pages.shared import tried, zone_of
from edgestead.web.visit import ROOT, Data, Moved, Shown, Visit

PHASES = {
    "http_request_dynamic_redirect": "Redirects",
    "http_request_transform": "Rewrites of the URL",
    "http_request_origin": "Choice of the origin",
    "http_request_firewall_custom": "Custom rules",
    "http_ratelimit": "Rate limits",
    "http_request_firewall_managed": "Managed rules",
    "http_request_late_transform": "Request headers",
    "http_response_headers_transform": "Response headers",
}
ACTIONS = ("block", "managed_challenge", "js_challenge", "log")
_SENT = ("action", "action_parameters", "expression", "description", "enabled", "ref", "logging", "ratelimit")


async def show(zone: str, visit: Visit, refused: Refused | None = None) -> Shown:
    found = await zone_of(visit, zone)
    phases = []
    for phase, words in PHASES.items():
        entry = await _entry(visit, found, phase)
        phases.append({"phase": phase, "words": words, "rules": (entry or {}).get("rules") or []})
    data: Data = {
        "zone": found,
        "phases": phases,
        "actions": ACTIONS,
        "form": {"expression": "", "description": "", "action": "block"} | dict(visit.form or {}),
        "errors": refused.messages if refused else [],
    }
    return Shown("rules.html", f"Rules of {zone}", data, 200 if refused is None else 400)


async def change(zone: str, visit: Visit) -> Shown | Moved:
    found = await zone_of(visit, zone)
    what, phase = visit.field("what"), visit.field("phase")
    entry = await _entry(visit, found, phase if phase in PHASES else "http_request_firewall_custom")
    path = f"/zones/{found['id']}/rulesets"
    if what == "add":
        refused = await _add(visit, path, entry)
    elif what == "delete" and entry is not None:
        await visit.api.send("DELETE", f"{path}/{entry['id']}/rules/{visit.field('rule')}")
        refused = None
    else:
        refused = await _switch(visit, path, entry, enabled=what == "on")
    if refused is not None:
        return await show(zone, visit, refused)
    return Moved(f"{ROOT}/zones/{zone}/rules", "Done. Every edge process has the rules.")


async def _add(visit: Visit, path: str, entry: Json | None) -> Refused | None:
    rule = {
        "action": visit.field("action"),
        "expression": visit.field("expression"),
        "description": visit.field("description"),
    }
    if entry is not None:
        return await tried(visit, "POST", f"{path}/{entry['id']}/rules", rule)
    return await tried(
        visit, "PUT", f"{path}/phases/http_request_firewall_custom/entrypoint", {"rules": [rule]}
    )


async def _switch(visit: Visit, path: str, entry: Json | None, *, enabled: bool) -> Refused | None:
    """A rule is replaced as a whole, so all that it says is sent again."""
    rule = next((one for one in (entry or {}).get("rules", ()) if one["id"] == visit.field("rule")), None)
    if entry is None or rule is None:
        return Refused(400, [{"code": 1001, "message": "The rule is not there any more."}])
    body = {name: rule[name] for name in _SENT if name in rule} | {"enabled": enabled}
    return await tried(visit, "PATCH", f"{path}/{entry['id']}/rules/{rule['id']}", body)


async def _entry(visit: Visit, zone: Json, phase: str) -> Json | None:
    try:
        found: Json = await visit.api.result(f"/zones/{zone['id']}/rulesets/phases/{phase}/entrypoint")
    except Refused as refused:
        if refused.status == 404:
            return None
        raise
    return found
