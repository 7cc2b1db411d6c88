"""Rules of a document, and the custom rulesets that they name.

Owns  which of these names mean nothing here; making rulesets and rules through the API.
Not   how a ruleset is called (`cli.rule.names`); what differs (`cli.state.plan`).

The API replaces the rules of a ruleset as a whole. So each is read once more right before, and must be what
the plan was made of, in the words that the plan had for it.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from edgestead.cli.failure import Failed, changed_meanwhile
from edgestead.cli.http import segment
from edgestead.cli.rule.entrypoint import Begun, begin, ruleset_at
from edgestead.cli.rule.names import Names, kept, names_in, newest, not_here, rule_names
from edgestead.cli.rule.phases import full_name
from edgestead.cli.state.document import Json, rule_form, ruleset_name
from edgestead.cli.state.plan import Change

if TYPE_CHECKING:
    from edgestead.cli.http import Api

OF_ACCOUNT = ("rules", "rulesets")
Rules = list[Json]


class Naming(NamedTuple):
    """What rules and rulesets are called: `then` in the plan, which the changes use, and `now`."""

    then: Names
    now: Names


def _lists(document: Json) -> Iterator[tuple[str, Rules]]:
    """Every list of rules in a document, with its place for people."""
    for phase, rules in document.get("rules", {}).items():
        yield f"the account, rules {phase}", rules
    for ruleset in document.get("rulesets", ()):
        yield f"ruleset {ruleset_name(ruleset)}", ruleset["rules"]
    for name, zone in document.get("zones", {}).items():
        for phase, rules in zone.get("rules", {}).items():
            yield f"{name}, rules {phase}", rules


def rulesets_named(document: Json) -> list[Json]:
    """The document's custom rulesets that rules of its zones name, and that these name."""
    held = {ruleset_name(one): one for one in document.get("rulesets", ())}
    found: list[Json] = []
    names = names_in_zones(document)
    while names:
        name = names.pop()
        if name in held:
            found.append(held.pop(name))
            names |= {one for rule in found[-1]["rules"] for one in names_in(rule)}
    return sorted(found, key=ruleset_name)


def names_in_zones(document: Json) -> set[str]:
    zones = {"zones": document.get("zones", {})}
    return {name for _, rules in _lists(zones) for rule in rules for name in names_in(rule)}


def name_rulesets(document: Json, names: Names) -> None:
    """Ids that somebody wrote, or an earlier version exported, as the names that they have here."""
    for _, rules in _lists(document):
        rules[:] = [rule_form(names.named(rule)) for rule in rules]


def refuse_unknown(document: Json, names: Names) -> None:
    """Before anything is changed. Raises Failed: a rule names a ruleset that is neither here nor made."""
    made = {ruleset_name(one) for one in document.get("rulesets", ())}
    for where, rules in _lists(document):
        for rule in rules:
            for name in names_in(rule):
                if name not in made and name not in names.custom:
                    raise Failed(
                        f"{where}: there is no ruleset {name}, neither here nor among what is applied.",
                        "`edgecli ruleset list --account` shows those there are.",
                    )


def leave_absent(document: Json, names: Names) -> Iterator[str]:
    """Take out rules of another server that execute or skip rulesets which are not here. A line for each."""
    for where, rules in _lists(document):
        absent = [(rule, names.absent(rule)) for rule in rules]
        rules[:] = [rule for rule, missing in absent if not missing]
        yield from (f"{where}: {not_here(rule, missing)}" for rule, missing in absent if missing)


def newest_versions(document: Json) -> Iterator[str]:
    """Take out which version of a custom ruleset is executed. A line for each."""
    for where, rules in _lists(document):
        for place, rule in enumerate(rules):
            rules[place] = newest(rule)
            if rules[place] != rule:
                parameters = rule["action_parameters"]
                version = f"version {parameters['version']} of {parameters['id']}"
                yield f"{where}: {version}; its newest is executed"


def make_rulesets(
    server: "Api",
    account: str,
    naming: Naming,
    changes: Sequence[Change],
    tell: Callable[[str], None],
) -> None:
    """Custom rulesets with their rules. All are there before the first rule names one.

    Raises Failed: one is no longer as the plan found it.
    """
    path, names = f"/accounts/{account}/rulesets", naming.now
    for change in changes:
        if change.before is None:
            if change.what in names.custom:
                raise changed_meanwhile(f"The ruleset {change.what}")
            wanted = change.after
            body = {"name": wanted["name"], "kind": "custom", "phase": full_name(wanted["phase"])}
            names.learn([server.call("POST", path, json_body=body, repeat=False)["result"]])
    again = []
    for change in changes:
        if change.before is not None:
            _refuse_changed(server, path, naming, change)
        if _put(server, path, names, change, [*names.possible(change.after["rules"])]):
            tell(str(change))
        else:
            again.append(change)
    for change in again:  # which skip rules that were not there yet
        _put(server, path, names, change, [names.identified(rule) for rule in change.after["rules"]])
        tell(str(change))


def _put(server: "Api", path: str, names: Names, change: Change, rules: Rules) -> bool:
    """Whether these are all rules of the ruleset."""
    ruleset_id = names.custom[change.what]
    bodies = kept(rules, names.rules_in(ruleset_id))
    body = {"description": change.after.get("description", ""), "rules": bodies}
    answer = server.call("PUT", f"{path}/{ruleset_id}", json_body=body)["result"]
    names.set_rules(ruleset_id, answer.get("rules") or ())
    return len(rules) == len(change.after["rules"])


def _refuse_changed(server: "Api", path: str, naming: Naming, change: Change) -> None:
    ruleset_id = naming.now.custom.get(change.what)
    there = ruleset_at(server, f"{path}/{ruleset_id}") if ruleset_id else None
    held, before = there or {}, change.before
    if (
        there is None
        or (held.get("description") or None) != before.get("description")
        or _forms(held, naming.then) != before["rules"]
    ):
        raise changed_meanwhile(f"The ruleset {change.what}")


def _forms(ruleset: Json, names: Names) -> Rules:
    return [rule_form(names.named(rule)) for rule in ruleset.get("rules") or ()]


def make_rules(server: "Api", path: str, naming: Naming, change: Change) -> None:
    """A phase's entry point of the zone or account at `path`.

    Raises Failed: its rules are no longer those that the plan found.
    """
    phase, what = full_name(change.what), f"The phase {change.what} of {change.where or 'the account'}"
    entry = f"{path}/rulesets/phases/{segment(phase)}/entrypoint"
    rules = [naming.now.identified(rule) for rule in change.after]
    present = ruleset_at(server, entry)
    if _forms(present or {}, naming.then) != (change.before or []):
        raise changed_meanwhile(what)
    if present is not None:
        server.call("PUT", entry, json_body={"rules": kept(rules, rule_names(present.get("rules") or ()))})
        return
    try:
        kind = "zone" if change.where else "root"
        begin(server, f"{path}/rulesets", kind, phase, kept(rules, {}))
    except Begun:
        raise changed_meanwhile(what) from None
