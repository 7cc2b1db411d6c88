"""`edgecli waf learn`: watch a zone with a shadow, propose a configuration, enforce it, take it back.

Owns  its arguments, the shadow, the proposal as one version of the zone's rules.
Not   what is made of the events (`cli.waf.learning`). Imports click and the standard library only.

All it knows is in the zone: the shadow's description says since when and until when it learns, and the rule
that it enforces names the version before. So it may be interrupted and begun again, also elsewhere.
"""

import re
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from edgestead.cli.dry_run import DRY_RUN
from edgestead.cli.failure import Failed, changed_meanwhile
from edgestead.cli.rule.entrypoint import ruleset_at
from edgestead.cli.rule.phases import word_of
from edgestead.cli.rule.target import JSON, Command, Target, zone_target
from edgestead.cli.table import echo_table, show
from edgestead.cli.target import zone_first
from edgestead.cli.waf.suggest import path_expression
from edgestead.cli.waf.zone import PHASE, managed_of
from edgestead.model import managed_settings as deployed
from edgestead.model.rule_members import sent_back

if TYPE_CHECKING:
    from edgestead.cli.waf.learning import Choice, Learned

FOR_DEFAULT: Final = "1d"
SECONDS_MAX: Final = 30 * 86_400
SHARE_DEFAULT: Final = 0.1  # per cent of requests that may be stopped
POLL_SECONDS = 5.0
PAGE_EVENTS: Final = 1_000
_SHADOW = re.compile(r"learn: shadow from (\S+) until (\S+)")
_LEARNED = re.compile(r"learned on \S+, version (\d+) before")
_TIME = "%Y-%m-%dT%H:%M:%SZ"
_UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
Json = dict[str, Any]


def _seconds(ctx: click.Context, param: click.Parameter, value: str) -> int:
    found = re.fullmatch(r"(\d{1,9})([smhd])", value)
    seconds = int(found[1]) * _UNITS[found[2]] if found else 0
    if not 0 < seconds <= SECONDS_MAX:
        raise click.BadParameter(f"{value!r} is no time up to 30d, such as 1d, 12h or 90m.", ctx, param)
    return seconds


class Zone(NamedTuple):
    """The zone's rules of the phase as they are. `version` "" where there are none yet."""

    target: Target
    managed: Json
    rules: list[Json]
    version: str

    @property
    def shadow(self) -> Json | None:
        return next((rule for rule in self.rules if _SHADOW.match(rule.get("description", ""))), None)

    @property
    def learned(self) -> Json | None:
        return next((rule for rule in self.rules if _LEARNED.match(rule.get("description", ""))), None)

    def without_shadow(self) -> list[Json]:
        return [sent_back(rule) for rule in self.rules if rule is not self.shadow]

    def put(self, rules: list[Json]) -> None:
        """In the place of those it has. Raises Failed: they are no longer the ones that were read."""
        path = self.target.entrypoint(PHASE)
        if (ruleset_at(self.target.api, path) or {}).get("version", "") != self.version:
            raise changed_meanwhile(f"The phase {word_of(PHASE)} of {self.target.name}")
        self.target.api.call("PUT", path, json_body={"rules": rules})


@click.command("learn", cls=Command)
@zone_first
@click.option(
    "--for",
    "seconds",
    metavar="TIME",
    default=FOR_DEFAULT,
    callback=_seconds,
    help="How long to watch, as in 12h or 90m; 1d by default.",
)
@click.option(
    "--stops",
    "percent",
    metavar="PERCENT",
    type=click.FloatRange(0, 100),
    default=SHARE_DEFAULT,
    help="The largest share of requests that the proposal may stop; 0.1 by default.",
)
@click.option("--now", is_flag=True, help="Do not wait: show what has been learned so far.")
@click.option(
    "--enforce", is_flag=True, help="Give the zone the proposal, in one version, without the shadow."
)
@click.option("--stop", is_flag=True, help="Take the shadow away and change nothing else.")
@click.option("--undo", is_flag=True, help="Give the zone the rules back that it had before --enforce.")
@DRY_RUN
@JSON
def learn(
    zone: str | None,
    seconds: int,
    percent: float,
    now: bool,
    enforce: bool,
    stop: bool,
    undo: bool,
    as_json: bool,
) -> None:
    """Watch a zone's traffic, and propose level, threshold and exceptions of the managed rules.

    A shadow scores every request with all rules and stops none. After the time the proposal is shown, with
    the share of requests that it would stop; --enforce makes it so, --undo takes that back. The command may
    be interrupted, and called again: what it knows is in the zone.

    \b
      edgecli waf learn example.com --for 12h
      edgecli waf learn example.com --enforce
    """
    if enforce + stop + undo + now > 1:
        raise click.UsageError("--now, --enforce, --stop and --undo exclude one another.")
    found = _zone(zone)
    if undo:
        _undo(found)
        return
    if stop:
        _stop(found)
        return
    if enforce and found.shadow is None:
        raise Failed(
            f"{found.target.name} is not being learned.",
            "`edgecli waf learn ZONE` begins, and shows a proposal.",
        )
    if found.shadow is None:
        found = _begin(found, seconds)
    if not (now or enforce):
        _wait(found, as_json=as_json)
    learned = _learned(found)
    choice = learned.proposal(percent / 100)
    show(_told(found, learned, choice), lambda: _echo(found, learned, choice), as_json=as_json)
    if enforce:
        found.put(_enforced(found, choice))
        if not as_json:
            click.echo(f"\n{found.target.name} does so now. `edgecli waf learn {found.target.name} --undo`")
            click.echo("gives it back the rules that it had.")


def _zone(zone: str | None) -> Zone:
    target = zone_target(zone)
    managed = managed_of(target)
    entrypoint = ruleset_at(target.api, target.entrypoint(PHASE)) or {}
    return Zone(target, managed, entrypoint.get("rules", []), entrypoint.get("version", ""))


def _begin(found: Zone, seconds: int) -> Zone:
    """Put the shadow before the rule that acts: behind exceptions, which hold for it as well."""
    begin = int(time.time())
    managed_id, anomaly = found.managed["id"], found.managed["rules"][-1]
    rule = deployed.with_threshold(deployed.new_rule(managed_id), anomaly["id"], 1, "log")
    rule["action_parameters"]["overrides"]["action"] = "log"
    rule["description"] = f"learn: shadow from {_text(begin)} until {_text(begin + seconds)}"
    rules = [sent_back(one) for one in found.rules]
    acting = [at for at, one in enumerate(found.rules) if deployed.executes(one, managed_id)]
    rules.insert(acting[0] if acting else len(rules), rule)
    found.put(rules)
    click.echo(
        f"Watching {found.target.name} until {_text(begin + seconds)}; nothing is stopped by it.", err=True
    )
    return _zone(found.target.name)


def _stop(found: Zone) -> None:
    if found.shadow is None:
        raise Failed(f"{found.target.name} is not being learned.", "There is nothing to stop.")
    found.put(found.without_shadow())
    click.echo(f"{found.target.name} is no longer watched; its other rules are as they were.")


def _undo(found: Zone) -> None:
    rule = found.learned
    if rule is None:
        raise Failed(f"{found.target.name} has no rule that was learned.", "There is nothing to undo.")
    match = _LEARNED.match(rule["description"])
    assert match is not None
    path = f"{found.target.entrypoint(PHASE)}/versions/{match[1]}"
    before = found.target.api.call("GET", path)["result"].get("rules", [])
    found.put([sent_back(one) for one in before if not _SHADOW.match(one.get("description", ""))])
    click.echo(f"{found.target.name} has the rules of version {match[1]} again, without the shadow.")


def _wait(found: Zone, *, as_json: bool) -> None:
    """Until the shadow's time is over. Interrupted, it goes on with the next call."""
    from edgestead.cli.progress import Progress

    begin, end = _times(found)
    total = max(1, end - begin)
    with Progress("Watching", "seconds", total) as progress:
        done = 0
        while (left := end - time.time()) > 0:
            passed = int(total - left)
            if passed > done:
                progress.advance(passed - done, passed - done)
                done = passed
            time.sleep(min(POLL_SECONDS, max(0.05, left)))


def _learned(found: Zone) -> "Learned":
    from edgestead.cli.waf.learning import Learned

    levels = {deployed.tag(level): level for level in deployed.LEVELS}
    by_id = {
        rule["id"]: levels[tag]
        for rule in found.managed["rules"]
        for tag in rule.get("categories", ())
        if tag in levels
    }
    learned = Learned(by_id)
    shadow = found.shadow
    assert shadow is not None
    for event in _events(found, _text(_times(found)[0])):
        if f"({shadow['description']})" in event["description"]:
            learned.add(event)
    return learned


def _events(found: Zone, since: str) -> Iterator[Json]:
    path = f"{found.target.path.removesuffix('/rulesets')}/security/events"
    query: dict[str, object] = {"since": since, "action": "log", "phase": PHASE, "direction": "asc"}
    query["per_page"] = PAGE_EVENTS
    while True:
        answer = found.target.api.call("GET", path, query=query)
        yield from answer["result"]
        cursors = answer["result_info"].get("cursors")
        if cursors is None:
            return
        query["cursor"] = cursors["after"]


def _enforced(found: Zone, choice: "Choice") -> list[Json]:
    """The zone's rules with the proposal: one version, of which --undo knows the one before."""
    from edgestead.crs.catalogue import entry_id

    managed_id, anomaly = found.managed["id"], found.managed["rules"][-1]
    rules = found.without_shadow()
    acting = [at for at, rule in enumerate(rules) if deployed.executes(rule, managed_id)]
    at = acting[0] if acting else len(rules)
    rule = rules.pop(at) if acting else deployed.new_rule(managed_id)
    rule = deployed.with_level(rule, choice.level)
    rule = deployed.with_threshold(rule, anomaly["id"], choice.threshold, None)
    everywhere = [entry_id(id_) for one in choice.proposals if not one.paths for id_ in one.rules]
    rule = deployed.with_rules_off(rule, everywhere) if everywhere else rule
    rule["enabled"] = True
    rule["description"] = f"learned on {_text(int(time.time()))}, version {found.version} before"
    exceptions = [
        {
            "action": "skip",
            "expression": path_expression(one.paths),
            "description": f"learned: several clients meet {', '.join(map(str, one.rules))}"[:500],
            "enabled": True,
            "action_parameters": {"rules": {managed_id: [entry_id(id_) for id_ in one.rules]}},
        }
        for one in choice.proposals
        if one.paths
    ]
    return [*rules[:at], *exceptions, rule, *rules[at:]]


def _told(found: Zone, learned: "Learned", choice: "Choice") -> Json:
    begin, end = _times(found)
    return {
        "zone": found.target.name,
        "from": _text(begin),
        "until": _text(end),
        "complete": time.time() >= end,
        "requests": learned.inspected,
        "scored": learned.scored,
        "refused": learned.refused,
        "dropped": learned.dropped,
        "level": choice.level,
        "threshold": choice.threshold,
        "stopped": choice.stopped,
        "stopped_without_exceptions": choice.before,
        "exceptions": [{"rules": list(one.rules), "paths": list(one.paths)} for one in choice.proposals],
        "default_would_stop": learned.stopped(deployed.LEVELS[-1], deployed.THRESHOLDS["medium"]),
    }


def _echo(found: Zone, learned: "Learned", choice: "Choice") -> None:
    from edgestead.cli.waf.learning import THRESHOLDS

    begin, end = _times(found)
    so_far = "" if time.time() >= end else " so far"
    click.echo(
        f"Seen{so_far} since {_text(begin)}: at least {learned.inspected} requests, {learned.scored} scored."
    )
    if learned.dropped:
        click.echo(f"{learned.dropped} events were not kept: the shares are of the others.")
    for reason, count in sorted(learned.refused.items()):
        click.echo(f"{count} requests cannot be inspected whole ({reason}); they would be refused.")
    click.echo("\nRequests that would be stopped, by level and threshold:")
    echo_table(
        ("level", *map(str, THRESHOLDS)),
        [
            (level, *(_share(learned.stopped(level, threshold), learned) for threshold in THRESHOLDS))
            for level in deployed.LEVELS
        ],
    )
    click.echo(f"\nProposal: level {choice.level}, threshold {choice.threshold}.")
    click.echo(
        f"It stops {_share(choice.stopped, learned)} of the requests"
        f" ({choice.stopped} of {learned.inspected}); without its exceptions {choice.before}."
    )
    _echo_exceptions(choice)
    click.echo(f"\n`edgecli waf learn {found.target.name} --enforce` does so.")


def _echo_exceptions(choice: "Choice") -> None:
    from edgestead.cli.table import words

    for one in choice.proposals:
        verb = "leave out" if one.paths else "turn off"
        where = f" at {', '.join(map(words, one.paths))}" if one.paths else ""
        click.echo(f"  {verb} {', '.join(map(str, one.rules))}{where}")
        for evidence in one.evidence[:1]:
            click.echo(
                f"    {words(evidence.request)}  {words(evidence.variable)}: {words(evidence.matched)}"
            )


def _share(count: int, learned: "Learned") -> str:
    return f"{100 * count / max(1, learned.inspected):.2f} %"


def _times(found: Zone) -> tuple[int, int]:
    shadow = found.shadow
    assert shadow is not None
    match = _SHADOW.match(shadow["description"])
    assert match is not None
    return _read_time(match[1]), _read_time(match[2])


def _text(seconds: int) -> str:
    return time.strftime(_TIME, time.gmtime(seconds))


def _read_time(text: str) -> int:
    import calendar

    try:
        return calendar.timegm(time.strptime(text, _TIME))
    except ValueError:
        raise Failed(
            f"The shadow's description has no time: {text[:40]!r}.", "--stop takes it away."
        ) from None
