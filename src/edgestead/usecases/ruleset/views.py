"""Older interfaces whose rules are rules of an entry point, read and changed for them.

Owns  adding, changing and removing one rule of a phase, or several as one version (`Edit`), and making the
      place for the first.
Not   what an interface's rule says (`usecases.ruleset.access_rules`); what any rule is refused for.

They stand in the entry point itself, because a zone has no rulesets of its own that it could execute. So the
edge enforces them, they have versions as all rules do, and whoever replaces the entry point replaces them,
too. An account's entry point has no rules that block: its own stand in a custom ruleset named `ACCOUNTS`,
which the entry point executes first. While it does not, no view shows them.
"""

from typing import Any

import msgspec

from edgestead.model.call import Call
from edgestead.store.control import Reader, Transaction
from edgestead.tables import rulesets
from edgestead.tables.rulesets import RulesetRow
from edgestead.usecases.ruleset import change as rulesets_change
from edgestead.usecases.ruleset import merge
from edgestead.usecases.ruleset.body import Position, RuleBody, RulesetBody, check_count
from edgestead.usecases.ruleset.change import Change
from edgestead.usecases.ruleset.managed import Platform
from edgestead.usecases.ruleset.merge import Rule
from edgestead.usecases.ruleset.phases import EXECUTE
from edgestead.usecases.ruleset.rule import RuleDraft, read_rule
from edgestead.usecases.ruleset.scope import Scope, account_of, entrypoint_of
from edgestead.usecases.ruleset.shapes import Place

PHASE = "http_request_firewall_custom"
ACCOUNTS = "IP access rules"
_ALWAYS = "true"
_decode_rules = msgspec.json.Decoder(list[dict[str, Any]]).decode


def stored(reader: Reader, scope: Scope, phase: str = PHASE) -> list[Rule]:
    """Every rule of the entry point, none without one. Raises ZoneNotFound, AuthenticationError."""
    account_of(reader, scope)
    row = _place(reader, scope, phase)
    return [] if row is None else _decode_rules(row.rules)


def ready(call: Call, tx: Transaction, platform: Platform, scope: Scope) -> None:
    """Before `stored` is asked for a further rule: what an account has of them is executed again."""
    account_of(tx, scope)
    if _left(tx, scope) is not None:
        _execute(call, tx, platform, scope)


def add(
    call: Call,
    tx: Transaction,
    platform: Platform,
    scope: Scope,
    body: Rule,
    index: int | None,
    phase: str = PHASE,
) -> Rule:
    """The rule as it is stored now, at its place counted from 1, or at the end. Raises what its ruleset
    does.
    """
    draft = _draft(scope, body, phase)
    row = _place(tx, scope, phase)
    before = set() if row is None else {one["id"] for one in _decode_rules(row.rules)}
    change: Change
    if row is None and scope.kind == "account":
        whole = RulesetBody(name=ACCOUNTS, description=None, kind="custom", phase=phase, rules=[draft])
        change = rulesets_change.create(call, tx, platform, scope, whole)
    elif row is None:
        whole = RulesetBody(name=None, description=None, kind=None, phase=None, rules=[draft])
        change = rulesets_change.replace_entrypoint(call, tx, platform, scope, phase, whole)
    else:
        placed = RuleBody(draft, _position(index))
        change = rulesets_change.add_rule(call, tx, platform, scope, row.id, placed)
    rulesets_change.commit(tx, change)
    if scope.kind == "account":
        _execute(call, tx, platform, scope)
    return next(one for one in stored(tx, scope, phase) if one["id"] not in before)


def change(
    call: Call,
    tx: Transaction,
    platform: Platform,
    scope: Scope,
    rule_id: str,
    body: Rule,
    index: int | None,
    phase: str = PHASE,
) -> Rule:
    """The rule as it is stored now; without `index` it stays where it is."""
    ruleset_id = _ruleset_id(tx, scope, phase)
    placed = RuleBody(_draft(scope, body, phase), _position(index))
    made = rulesets_change.change_rule(call, tx, platform, scope, ruleset_id, rule_id, placed)
    rulesets_change.commit(tx, made)
    return next(one for one in stored(tx, scope, phase) if one["id"] == rule_id)


def remove(
    call: Call, tx: Transaction, platform: Platform, scope: Scope, rule_id: str, phase: str = PHASE
) -> None:
    ruleset_id = _ruleset_id(tx, scope, phase)
    rulesets_change.commit(tx, rulesets_change.remove_rule(call, tx, platform, scope, ruleset_id, rule_id))


class Edit:
    """The rules of a zone's phase while one request changes them: one version, however many it changes.

    `rules` are as they will be stored; nothing is before `commit`.
    """

    def __init__(
        self, call: Call, tx: Transaction, platform: Platform, scope: Scope, phase: str = PHASE
    ) -> None:
        """Raises ZoneNotFound, AuthenticationError."""
        assert scope.kind == "zone"
        self._call, self._tx, self._platform, self._scope, self._phase = call, tx, platform, scope, phase
        self.rules = stored(tx, scope, phase)
        self._stamp = rulesets_change.stamp(call, platform)
        self._drafts: list[RuleDraft] = []

    def add(self, body: Rule, index: int | None) -> Rule:
        """The rule, at its place counted from 1, or at the end. Raises what its ruleset does."""
        check_count(len(self.rules) + 1, self._phase)
        before = {one["id"] for one in self.rules}
        self.rules = merge.added(self.rules, self._drafted(body), _position(index), self._stamp)
        return next(one for one in self.rules if one["id"] not in before)

    def change(self, rule_id: str, body: Rule, index: int | None) -> None:
        """Without `index` it stays where it is. Raises what its ruleset does."""
        self.rules = merge.changed(self.rules, rule_id, self._drafted(body), _position(index), self._stamp)

    def remove(self, rule_id: str) -> None:
        self.rules = [one for one in self.rules if one["id"] != rule_id]

    def commit(self) -> None:
        """Raises what its ruleset does."""
        written = rulesets_change.rewrite_entrypoint(
            self._call, self._tx, self._platform, self._scope, self._phase, self.rules, self._drafts
        )
        rulesets_change.commit(self._tx, written)

    def _drafted(self, body: Rule) -> RuleDraft:
        self._drafts.append(_draft(self._scope, body, self._phase))
        return self._drafts[-1]


def _position(index: int | None) -> Position | None:
    return None if index is None else Position("index", index)


def _draft(scope: Scope, body: Rule, phase: str) -> RuleDraft:
    return read_rule(body, Place(phase), "custom" if scope.kind == "account" else scope.entry_kind)


def _ruleset_id(reader: Reader, scope: Scope, phase: str) -> str:
    row = _place(reader, scope, phase)
    return entrypoint_of(reader, scope, phase).id if row is None else row.id


def _place(reader: Reader, scope: Scope, phase: str) -> RulesetRow | None:
    """The ruleset whose rules these are: the entry point, or what an account executes for them."""
    if scope.kind == "zone":
        return rulesets.entrypoint(reader, scope.kind, scope.id, phase)
    row = _left(reader, scope)
    return row if row is not None and _is_executed(reader, scope, row.id) else None


def _left(reader: Reader, scope: Scope) -> RulesetRow | None:
    """An account's own ruleset of them, executed or not."""
    for row in rulesets.custom_rulesets(reader, scope.id) if scope.kind == "account" else ():
        if row.phase == PHASE and row.name == ACCOUNTS:
            return rulesets.ruleset(reader, row.id)
    return None


def _is_executed(reader: Reader, scope: Scope, ruleset_id: str) -> bool:
    root = rulesets.entrypoint(reader, scope.kind, scope.id, PHASE)
    return root is not None and any(
        one["action"] == EXECUTE
        and one["enabled"]
        and one["expression"] == _ALWAYS
        and one["action_parameters"]["id"] == ruleset_id
        for one in _decode_rules(root.rules)
    )


def _execute(call: Call, tx: Transaction, platform: Platform, scope: Scope) -> None:
    """Have the account's entry point execute its own ruleset, before all others."""
    row = _left(tx, scope)
    assert row is not None
    if _is_executed(tx, scope, row.id):
        return
    rule = {"action": EXECUTE, "expression": _ALWAYS, "action_parameters": {"id": row.id}}
    draft = read_rule(rule | {"description": ACCOUNTS}, Place(PHASE), scope.entry_kind)
    root = rulesets.entrypoint(tx, scope.kind, scope.id, PHASE)
    change: Change
    if root is None:
        whole = RulesetBody(name=None, description=None, kind=None, phase=None, rules=[draft])
        change = rulesets_change.replace_entrypoint(call, tx, platform, scope, PHASE, whole)
    else:
        placed = RuleBody(draft, Position("index", 1))
        change = rulesets_change.add_rule(call, tx, platform, scope, root.id, placed)
    rulesets_change.commit(tx, change)
