"""Rulesets of another server: custom ones of its account, and the entry points of account and zones.

Owns  when a ruleset counts as being here; which one here is meant by a rule that names one there.
Not   zones (`cli.server.account_import_zones`). Imports click and the standard library only.

A custom ruleset is found by its phase and name, an entry point by its phase. One that has rules here stays.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress

from edgestead.cli.failure import Failed
from edgestead.cli.http import Api, Refused, segment
from edgestead.cli.rule.names import Json, Names, kept, names_in, newest, not_here
from edgestead.cli.server.account_import_report import Report
from edgestead.cli.server.account_import_zones import ABSENT, optional, put
from edgestead.cli.target import cursor_pages
from edgestead.model.rule_members import sent_back

_ENTRY_KINDS = frozenset({"zone", "root"})


class RulesetImport:
    """Of one account there into one here. `theirs` and `ours` are the paths of the accounts."""

    def __init__(self, there: Api, here: Api, theirs: str, ours: str, report: Report) -> None:
        self._there, self._here, self._report = there, here, report
        self._theirs, self._ours = theirs, ours
        self._their_names = _names(there, theirs)
        self._our_names = _names(here, ours)
        self._begun: set[str] = set()

    def account(self) -> None:
        """All custom rulesets, and the account's entry points."""
        for name in sorted(self._their_names.custom):
            self._custom(name)
        self.entry_points(self._theirs, self._ours, "the account")

    def entry_points(self, their_path: str, our_path: str | None, owner: str) -> None:
        """Of a zone or account, with the custom rulesets that they name. A path of ours is None in a dry run
        over a zone that is not here."""
        for ruleset in _listed(self._there, their_path):
            if ruleset.get("kind") not in _ENTRY_KINDS:
                continue
            entry = f"/rulesets/phases/{segment(ruleset['phase'])}/entrypoint"
            rules = self._there.call("GET", their_path + entry)["result"].get("rules") or []
            if not rules:
                continue
            if our_path is not None and _has_rules(self._here, our_path + entry):
                self._report.was_there("rulesets")
                continue
            what = f"rules of {ruleset['phase']} of {owner}"
            path = "" if our_path is None else our_path + entry
            if named := self._named(rules, what):
                self._put(path, ruleset.get("description"), named, what, {})

    def _custom(self, name: str) -> None:
        """A custom ruleset and its rules, unless it has rules here."""
        if name in self._begun or name not in self._their_names.custom:
            return
        self._begun.add(name)  # before its rules are looked at: these may name it
        whole = self._there.call("GET", f"{self._theirs}/rulesets/{self._their_names.custom[name]}")["result"]
        rules = whole.get("rules") or []
        held = self._our_names.custom.get(name)
        if held is not None and (not rules or self._our_names.rules_in(held)):
            self._report.was_there("rulesets")
            return
        if held is None and not self._report.dry_run:
            held = self._made(name, whole)
            if held is None:
                return
        named = self._named(rules, f"ruleset {name}")
        path, description = f"{self._ours}/rulesets/{held}", whole.get("description")
        possible = [] if self._report.dry_run else [*self._our_names.possible(named)]
        if held is not None and 0 < len(possible) < len(named):  # it skips rules of its own
            body = {"rules": kept(possible, {})}
            with suppress(Refused):  # of which the whole says more
                answer = self._here.call("PUT", path, json_body=body)["result"]
                self._our_names.set_rules(held, answer["rules"])
        present = {} if held is None else self._our_names.rules_in(held)
        answer = self._put(path, description, named, f"ruleset {name}", present)
        if held is not None and answer is not None:
            self._our_names.set_rules(held, answer.get("rules") or ())

    def _made(self, name: str, theirs: Json) -> str | None:
        """The id of a new one; None when it is refused."""
        body = {"name": name.partition("/")[2], "kind": "custom", "phase": theirs["phase"]}
        try:
            made = self._here.call("POST", f"{self._ours}/rulesets", json_body=body, repeat=False)["result"]
        except Refused as refusal:
            self._report.refuse(f"ruleset {name}", refusal)
            return None
        self._our_names.learn([made])
        return str(made["id"])

    def _named(self, rules: list[Json], what: str) -> list[Json]:
        """Their rules by names, without those of rulesets that are not here; custom ones that they name are
        brought over first."""
        named = []
        for rule in (newest(self._their_names.named(_sent(one))) for one in rules):
            if absent := self._our_names.absent(rule):
                self._report.left.append(f"{what}: {not_here(rule, absent)}")
            else:
                named.append(rule)
        for name in [name for rule in named for name in names_in(rule)]:
            self._custom(name)
        return named

    def _put(
        self, path: str, description: str | None, named: list[Json], what: str, present: Mapping[str, str]
    ) -> Json | None:
        """The ruleset as it is then; None in a dry run, and when it is refused."""
        if self._report.dry_run:
            self._report.made("rulesets")
            return None
        try:
            rules = kept(map(self._our_names.identified, named), present)
        except Failed as failure:
            self._report.refuse(what, failure)
            return None
        body = {"description": description or "", "rules": rules}
        return put(self._here, "PUT", path, body, what, "rulesets", self._report)


def _sent(rule: Json) -> Json:
    """A rule as it is made anew. A `ref` that nobody chose is its id there."""
    body = sent_back(rule)
    if body.get("ref") == rule.get("id"):
        body.pop("ref", None)
    return body


def _names(server: Api, account: str) -> Names:
    def rules_of(ruleset_id: str) -> list[Json]:
        return list(server.call("GET", f"{account}/rulesets/{ruleset_id}")["result"].get("rules") or ())

    return Names(_listed(server, account), rules_of)


def _listed(server: Api, path: str) -> Iterator[Json]:
    """None where the server does not offer rulesets."""
    try:
        yield from cursor_pages(server, f"{path}/rulesets")
    except Refused as refusal:
        if refusal.status not in ABSENT:
            raise


def _has_rules(here: Api, path: str) -> bool:
    found = optional(here, path)
    return isinstance(found, dict) and bool(found.get("rules"))
