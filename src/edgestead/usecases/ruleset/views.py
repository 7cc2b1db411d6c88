"""Older interfaces whose rules are rules of an entry point, read and changed for them.

Owns  adding, changing and removing one rule of a phase, and making its entry point for the first.
Not   what an interface's rule says (`usecases.ruleset.access_rules`); what any rule is refused for.

They stand in the entry point itself, because a zone has no rulesets of its own that it could execute. So the
edge enforces them, they have versions as all rules do, and whoever replaces the entry point replaces them,
too.
"""

from typing import Any

import msgspec

from edgestead.model.call import Call
from edgestead.store.control import Reader, Transaction
from edgestead.tables import rulesets
from edgestead.usecases.ruleset import change as rulesets_change
from edgestead.usecases.ruleset.body import Position, RuleBody, RulesetBody
from edgestead.usecases.ruleset.change import Change
from edgestead.usecases.ruleset.managed import Platform
from edgestead.usecases.ruleset.merge import Rule
from edgestead.usecases.ruleset.rule import RuleDraft, read_rule
from edgestead.usecases.ruleset.scope import Scope, account_of, entrypoint_of
from edgestead.usecases.ruleset.shapes import Place

PHASE = "http_request_firewall_custom"
_decode_rules = msgspec.json.Decoder(list[dict[str, Any]]).decode


def stored(reader: Reader, scope: Scope, phase: str = PHASE) -> list[Rule]:
    """Every rule of the entry point, none without one. Raises ZoneNotFound."""
    account_of(reader, scope)
    row = rulesets.entrypoint(reader, scope.kind, scope.id, phase)
    return [] if row is None else _decode_rules(row.rules)


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
    row = rulesets.entrypoint(tx, scope.kind, scope.id, phase)
    before = {one["id"] for one in stored(tx, scope, phase)}
    change: Change
    if row is None:
        whole = RulesetBody(name=None, description=None, kind=None, phase=None, rules=[draft])
        change = rulesets_change.replace_entrypoint(call, tx, platform, scope, phase, whole)
    else:
        placed = RuleBody(draft, None if index is None else Position("index", index))
        change = rulesets_change.add_rule(call, tx, platform, scope, row.id, placed)
    rulesets_change.commit(tx, change)
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
    ruleset_id = entrypoint_of(tx, scope, phase).id
    placed = RuleBody(_draft(scope, body, phase), None if index is None else Position("index", index))
    made = rulesets_change.change_rule(call, tx, platform, scope, ruleset_id, rule_id, placed)
    rulesets_change.commit(tx, made)
    return next(one for one in stored(tx, scope, phase) if one["id"] == rule_id)


def remove(
    call: Call, tx: Transaction, platform: Platform, scope: Scope, rule_id: str, phase: str = PHASE
) -> None:
    ruleset_id = entrypoint_of(tx, scope, phase).id
    rulesets_change.commit(tx, rulesets_change.remove_rule(call, tx, platform, scope, ruleset_id, rule_id))


def _draft(scope: Scope, body: Rule, phase: str) -> RuleDraft:
    return read_rule(body, Place(phase), scope.entry_kind)
