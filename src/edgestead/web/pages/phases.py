"""The phases of rules, and what a zone or the account has in them.

Owns  their words, whose rules a page is about, reading the rules of all phases; entry points.
Not   a page.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from edgestead.model.refusals.ruleset import RulesetExists
from edgestead.web.asker import Json, Refused
from edgestead.web.pages.shared import account_of, tried, zone_of
from edgestead.web.visit import ROOT, Visit, segment

PHASES = {
    "http_request_dynamic_redirect": "Redirects",
    "http_request_transform": "Rewrites of the URL",
    "http_request_origin": "Choice of the origin",
    "http_request_firewall_custom": "Custom rules",
    "http_ratelimit": "Rate limits",
    "http_request_firewall_managed": "Managed rules",
    "http_request_late_transform": "Request headers",
    "http_response_headers_transform": "Response headers",
    "http_response_compression": "Compression",
}
"""In the order of evaluation (docs/reference/rulesets.md)."""
OF_ZONES = frozenset({"http_response_compression"})  # the account has no rules of these
CUSTOM, MANAGED = "http_request_firewall_custom", "http_request_firewall_managed"
LISTED_MAX = 1_000  # rulesets of a list
_EXISTS = RulesetExists.code  # also that of TooManyRules, where there is none
EXECUTED_MAX = 20  # rulesets of the account that one page reads, because rules execute them


class Owner(NamedTuple):
    """Whose rules: a zone's, or the account's, where `zone` is None.

    `api` is the path before `/rulesets`, `page` the address before `/rules`.
    """

    api: str
    page: str
    name: str
    zone: Json | None


async def of_zone(visit: Visit, name: str) -> Owner:
    """Raises Refused: 404."""
    zone = await zone_of(visit, name)
    return Owner(f"/zones/{zone['id']}", f"{ROOT}/zones/{segment(name)}", name, zone)


async def of_account(visit: Visit) -> Owner:
    return Owner(f"/accounts/{await account_of(visit)}", ROOT, "the account", None)


class Placed(NamedTuple):
    """A rule and where it stands. `by` is the place of the rule that executes its ruleset, 0 of none."""

    level: str
    by: int
    place: int
    rule: Json

    @property
    def is_own(self) -> bool:
        """Of the zone itself: what others have is shown there."""
        return self.level == "zone" and not self.by


class Phase(NamedTuple):
    """What one phase does with requests of a zone: the account's rules, then the zone's own."""

    phase: str
    words: str
    account: list[Json]
    zone: list[Json]
    executed: Mapping[str, Json]

    def rows(self) -> Iterator[Placed]:
        for level, rules in (("account", self.account), ("zone", self.zone)):
            for place, rule in enumerate(rules, 1):
                yield Placed(level, 0, place, rule)
                inner = self.executed.get(executed_by(rule), {}).get("rules") or ()
                yield from (Placed(level, place, at, one) for at, one in enumerate(inner, 1))


class Found(NamedTuple):
    """`unseen`: the session may not read the account's rules."""

    phases: list[Phase]
    unseen: bool


def words_of(phase: str) -> str:
    return PHASES.get(phase, phase)


def executed_by(rule: Json) -> str:
    """The ruleset that a rule executes, with its version; "" of another one."""
    if rule["action"] != "execute":
        return ""
    said = rule.get("action_parameters") or {}
    version = str(said.get("version", "latest"))
    return str(said.get("id", "")) + ("" if version == "latest" else f"/versions/{version}")


async def all_phases(visit: Visit, owner: Owner) -> Found:
    """Of a zone."""
    assert owner.zone is not None
    listed = await rulesets_of(visit, owner.api)
    own = await entries_of(visit, owner.api, "zone", listed)
    account = f"/accounts/{owner.zone['account']['id']}"
    roots: Mapping[str, Json] = {}
    executed: Mapping[str, Json] = {}
    try:
        roots = await entries_of(visit, account, "root", await rulesets_of(visit, account))
        custom = {one["id"] for one in listed if one["kind"] == "custom"}
        executed = await _executed(visit, account, custom, (*roots.values(), *own.values()))
        unseen = False
    except Refused as refused:
        if refused.status not in (403, 404):
            raise
        unseen = True
    return Found(
        [
            Phase(phase, words, _rules(roots.get(phase)), _rules(own.get(phase)), executed)
            for phase, words in PHASES.items()
        ],
        unseen,
    )


async def rulesets_of(visit: Visit, api: str) -> list[Json]:
    """Summaries."""
    found: list[Json] = await visit.api.result(f"{api}/rulesets", {"per_page": LISTED_MAX})
    return found


async def entries_of(visit: Visit, api: str, kind: str, listed: Iterable[Json]) -> dict[str, Json]:
    """The rulesets of a kind with their rules, by phase: of entry points there is one a phase."""
    wanted = [one for one in listed if one["kind"] == kind and one["phase"] in PHASES]
    return {one["phase"]: await visit.api.result(f"{api}/rulesets/{one['id']}") for one in wanted}


async def _executed(visit: Visit, api: str, custom: set[str], entries: Iterable[Json]) -> dict[str, Json]:
    """The rulesets of the account that these execute, as the account reads them; none that went."""
    named = dict.fromkeys(executed_by(rule) for entry in entries for rule in _rules(entry))
    wanted = [one for one in named if one.partition("/")[0] in custom][:EXECUTED_MAX]
    found: dict[str, Json] = {}
    for one in wanted:
        try:
            found[one] = await visit.api.result(f"{api}/rulesets/{one}")
        except Refused as refused:
            if refused.status != 404:
                raise
    return found


def _rules(entry: Json | None) -> list[Json]:
    return (entry or {}).get("rules") or []


async def entry_of(visit: Visit, api: str, where: str) -> Json | None:
    """The entry point of a phase, or the ruleset of an id; None where there is none."""
    path = f"phases/{where}/entrypoint" if where in PHASES else segment(where)
    try:
        found: Json = await visit.api.result(f"{api}/rulesets/{path}")
    except Refused as refused:
        if refused.status == 404:
            return None
        raise
    return found


async def begun(
    visit: Visit, api: str, kind: str, phase: str, rule: Json
) -> tuple[Json | None, Refused | None]:
    """Make a phase's entry point of its first rule.

    What somebody else has made meanwhile, which stays as it is; or the refusal. Neither when it is done.
    """
    body = {"name": "default", "kind": kind, "phase": phase, "rules": [rule]}
    refused = await tried(visit, "POST", f"{api}/rulesets", body)
    if refused is None or _EXISTS not in {error.get("code") for error in refused.errors}:
        return None, refused
    there = await entry_of(visit, api, phase)
    return there, None if there else refused
