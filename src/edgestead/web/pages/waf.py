"""The managed rules of a zone: level, threshold and action, tried on the last day's events.

Owns  the page, the replay, deploying the rules and changing their settings.
Not   the rule's overrides (`model.managed_settings`); inspecting requests.

What was decided about a request is kept with each rule's score, so what another level or threshold would have
done is arithmetic, once for all requests that the same rules scored. Requests that no rule acted on were not
kept: of these a replay knows nothing.
"""

from typing import NamedTuple

import msgspec

from edgestead.model import managed_settings
from edgestead.usecases.event_index import Kinds
from edgestead.web.asker import Json, Refused
from edgestead.web.pages.phases import MANAGED, begun, entry_of
from edgestead.web.pages.shared import tried, zone_of
from edgestead.web.visit import ROOT, Data, Moved, Shown, Visit, segment

SHOWN_MAX = 20  # kinds of requests that a replay names, of those that pass and of those that are stopped
THRESHOLD_MAX = 100  # of the slider; the field takes more
_FATES = [(was, would) for was in (False, True) for would in (False, True)]  # stopped, as it was and would be
DIGITS_MAX = 6  # of a level or threshold in a form


class Deployed(NamedTuple):
    """The managed ruleset, where the zone executes it, and what that says. `rule` None: nowhere."""

    managed: Json
    entry: Json | None
    rule: Json | None

    @property
    def anomaly(self) -> Json:
        last: Json = self.managed["rules"][-1]
        return last

    @property
    def settings(self) -> managed_settings.Settings | None:
        return None if self.rule is None else managed_settings.settings_of(self.rule, self.anomaly)


class Wanted(NamedTuple):
    level: int
    threshold: int
    action: str


async def show(zone: str, visit: Visit, refused: Refused | None = None) -> Shown:
    found = await zone_of(visit, zone)
    deployed = await _deployed(visit, found)
    settings = deployed.settings if deployed else None
    data: Data = {
        "zone": found,
        "is_loaded": deployed is not None,
        "by_account": deployed is not None and settings is None and await _by_account(visit, found, deployed),
        "settings": None if settings is None else settings._asdict(),
        "thresholds": managed_settings.THRESHOLDS,
        "threshold_max": THRESHOLD_MAX,
        "actions": managed_settings.ACTIONS,
        "levels": managed_settings.LEVELS,
        "wanted": None,
        "replay": None,
        "errors": refused.messages if refused else [],
    }
    if deployed is not None:
        wanted = _wanted(visit, settings)
        data |= {"wanted": wanted._asdict(), "replay": await _replay(visit, found, deployed, wanted)}
    return Shown("waf.html", f"Managed rules of {zone}", data, 400 if refused else 200)


async def apply(zone: str, visit: Visit) -> Shown | Moved:
    """Make the zone's rule say what the sliders do; the first time, make the rule."""
    found = await zone_of(visit, zone)
    deployed = await _deployed(visit, found)
    if deployed is None:
        raise Refused(400, [{"code": 1001, "message": "The server has loaded no managed ruleset."}])
    wanted = _wanted(visit, deployed.settings)
    api, refused = f"/zones/{found['id']}", None
    if deployed.entry is None:
        there, refused = await begun(visit, api, "zone", MANAGED, _body(deployed, wanted))
        deployed = _executing(deployed.managed, there)
    if deployed.entry is not None:
        rules, body = f"{api}/rulesets/{deployed.entry['id']}/rules", _body(deployed, wanted)
        if deployed.rule is None:
            refused = await tried(visit, "POST", rules, body)
        else:
            query = {"if_version": deployed.rule["version"]}
            refused = await tried(visit, "PATCH", f"{rules}/{deployed.rule['id']}", body, query)
    if refused is not None:
        return await show(zone, visit, refused)
    said = f"Level {wanted.level}, threshold {wanted.threshold}, {wanted.action}: every edge process has it"
    said += "; the rule is off." if deployed.rule and not deployed.rule.get("enabled", True) else "."
    return Moved(f"{ROOT}/zones/{segment(zone)}/waf", said)


def _body(deployed: Deployed, wanted: Wanted) -> Json:
    """The rule as it shall be: what the zone has, else a new one."""
    rule = deployed.rule or managed_settings.new_rule(deployed.managed["id"])
    levelled = managed_settings.with_level(rule, wanted.level)
    return managed_settings.with_threshold(levelled, deployed.anomaly["id"], wanted.threshold, wanted.action)


async def _deployed(visit: Visit, zone: Json) -> Deployed | None:
    """None where the server has loaded no managed ruleset."""
    for one in await visit.api.result(f"/zones/{zone['id']}/rulesets"):
        if one["kind"] == "managed" and "OWASP" in one["name"]:
            managed = await visit.api.result(f"/zones/{zone['id']}/rulesets/{one['id']}")
            break
    else:
        return None
    return _executing(managed, await entry_of(visit, f"/zones/{zone['id']}", MANAGED))


def _executing(managed: Json, entry: Json | None) -> Deployed:
    """Of several rules the first that acts counts."""
    rules = [
        rule for rule in (entry or {}).get("rules") or [] if managed_settings.executes(rule, managed["id"])
    ]
    acting = [
        rule for rule in rules if managed_settings.settings_of(rule, managed["rules"][-1]).action != "log"
    ]
    return Deployed(managed, entry, next(iter(acting or rules), None))


async def _by_account(visit: Visit, zone: Json, deployed: Deployed) -> bool:
    """Whether the account executes them for every zone, as far as the session may see that."""
    try:
        entry = await entry_of(visit, f"/accounts/{zone['account']['id']}", MANAGED)
    except Refused as refused:
        if refused.status != 403:
            raise
        return False
    rules = (entry or {}).get("rules") or ()
    return any(managed_settings.executes(rule, deployed.managed["id"]) for rule in rules)


def _wanted(visit: Visit, settings: managed_settings.Settings | None) -> Wanted:
    """What the sliders say, else what is."""
    said = visit.query if visit.form is None else visit.form
    level = _whole(said.get("level", ""), (settings.level if settings else None) or 1)
    threshold = _whole(
        said.get("threshold", ""), settings.threshold if settings else managed_settings.THRESHOLDS["medium"]
    )
    action = said.get("action", "") or (settings.action if settings else "log")
    return Wanted(min(max(level, 1), 4), max(1, threshold), action)


async def _replay(visit: Visit, zone: Json, deployed: Deployed, wanted: Wanted) -> Json:
    scored = await visit.api.read(f"/zones/{zone['id']}/security/events/scores", Kinds)
    return replay(scored, _levels(deployed.managed), wanted)


def _levels(managed: Json) -> dict[str, int]:
    """The paranoia level of each rule."""
    tags = {managed_settings.tag(level): level for level in managed_settings.LEVELS}
    return {
        rule["id"]: next((tags[tag] for tag in rule.get("categories", ()) if tag in tags), 1)
        for rule in managed["rules"]
    }


def replay(scored: Kinds, levels: dict[str, int], wanted: Wanted) -> Json:
    """What would have become of requests. `let_in` were stopped and would not be; `stopped` the other way.

    A rule that is not there any more counts as one of level 1.
    """
    above = {rule for rule, level in levels.items() if level > wanted.level}
    counts = dict.fromkeys(_FATES, 0)
    changed: dict[tuple[bool, bool], list[Json]] = {(True, False): [], (False, True): []}
    for kind in scored.kinds:
        score = sum([one.score for one in kind.scores if one.rule_id not in above])
        fate = (kind.stopped, score >= wanted.threshold and wanted.action != "log")
        counts[fate] += kind.count
        if fate in changed and len(changed[fate]) < SHOWN_MAX:
            changed[fate].append(msgspec.to_builtins(kind) | {"would_score": score})
    return {
        "events": sum(counts.values()),
        "uncounted": scored.uncounted,
        "since": scored.since,
        "complete": scored.complete,
        "were_stopped": counts[True, False] + counts[True, True],
        "would_be": counts[False, True] + counts[True, True],
        "let_in": changed[True, False],
        "let_in_count": counts[True, False],
        "stopped": changed[False, True],
        "stopped_count": counts[False, True],
    }


def _whole(text: str, otherwise: int) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= DIGITS_MAX else otherwise
