"""A ruleset's next list of rules: identity, versions, places.

Owns  which rule of a body is which stored rule; when a rule's version grows; where a rule goes.
Not   whether a draft is right.

Source: contract "Rulesets" §2.
"""

from collections.abc import Callable, Iterable
from typing import Any, NoReturn

import msgspec

from edgestead.model.refusals.ruleset import ActionNeeded, DuplicateRule, PositionRefused
from edgestead.usecases.ruleset.body import Position
from edgestead.usecases.ruleset.gathered import Refusals
from edgestead.usecases.ruleset.rule import RuleDraft

Rule = dict[str, Any]
_IDENTITY = ("id", "version", "last_updated", "ref")


class Stamp(msgspec.Struct, frozen=True):
    """What a changed rule gets: the time as answers write it, and identifiers."""

    last_updated: str
    new_id: Callable[[], str]


def replaced(stored: list[Rule], drafts: Iterable[RuleDraft], stamp: Stamp) -> list[Rule]:
    """All rules of a PUT: a draft is the stored rule that its `id` names, else the one that its `ref` names.

    Raises, all of them together: DuplicateRule, two rules with one `id` or `ref`; ActionNeeded, a draft that
    only names a rule which is not there.
    """
    by_id = {rule["id"]: rule for rule in stored}
    by_ref = {rule["ref"]: rule for rule in stored}
    rules: list[Rule] = []
    taken, refusals = _Taken(), Refusals()
    for draft in drafts:
        old = by_id.get(draft.id or "") or by_ref.get(draft.ref or "")
        with refusals.gathered():
            rule = _changed(old, draft, stamp) if old is not None else _new(draft, stamp)
            taken.add(rule, draft)
            rules.append(rule)
    refusals.raise_any()
    return rules


def added(stored: list[Rule], draft: RuleDraft, position: Position | None, stamp: Stamp) -> list[Rule]:
    """The rules with a further one, at the end unless `position` says otherwise.

    Raises DuplicateRule, PositionRefused.
    """
    taken = _Taken()
    for rule in stored:
        taken.add(rule)
    if draft.id in taken.ids:
        _refuse_duplicate(draft.id or "", draft, "id")
    rule = _new(draft, stamp)
    taken.add(rule, draft)
    return _inserted(stored, rule, position or Position("after", ""))


def changed(
    stored: list[Rule], rule_id: str, draft: RuleDraft | None, position: Position | None, stamp: Stamp
) -> list[Rule]:
    """The rules with one of them replaced, moved, or both. A rule that only moves keeps its version.

    A draft without `ref` keeps the stored one: like the id it is who the rule is, not what it does.

    Raises DuplicateRule, PositionRefused; StopIteration when there is no such rule.
    """
    index = index_of(stored, rule_id)
    rule = stored[index]
    others = [*stored[:index], *stored[index + 1 :]]
    if draft is not None:
        if draft.id not in (None, rule_id):
            _refuse_duplicate(draft.id or "", draft, "id", "it is not the rule that the path names")
        rule = _changed(rule, draft, stamp)
        taken = _Taken()
        for other in others:
            taken.add(other)
        taken.add(rule, draft)
    if position is None:
        return [*stored[:index], rule, *stored[index + 1 :]]
    return _inserted(others, rule, position)


def index_of(rules: list[Rule], rule_id: str) -> int:
    """Raises StopIteration: not there."""
    return next(index for index, rule in enumerate(rules) if rule["id"] == rule_id)


def _new(draft: RuleDraft, stamp: Stamp) -> Rule:
    if draft.definition is None:
        because = ": the ruleset has no such rule that could stay as it is"
        raise ActionNeeded(because=because, pointer=draft.place.at("action").pointer)
    id_ = stamp.new_id()
    return _rule(id_, 1, draft.ref or id_, stamp.last_updated, draft.definition)


def _changed(old: Rule, draft: RuleDraft, stamp: Stamp) -> Rule:
    """The old rule itself when nothing differs, else its next version."""
    ref = draft.ref or old["ref"]
    before = {name: one for name, one in old.items() if name not in _IDENTITY}
    definition = before if draft.definition is None else draft.definition
    if ref == old["ref"] and definition == before:
        return old
    return _rule(old["id"], int(old["version"]) + 1, ref, stamp.last_updated, definition)


def _rule(id_: str, version: int, ref: str, last_updated: str, definition: dict[str, Any]) -> Rule:
    return {"id": id_, "version": str(version), **definition, "last_updated": last_updated, "ref": ref}


class _Taken:
    """The ids and refs that rules before this one have."""

    def __init__(self) -> None:
        self.ids: set[str] = set()
        self.refs: set[str] = set()

    def add(self, rule: Rule, draft: RuleDraft | None = None) -> None:
        for member, values in (("id", self.ids), ("ref", self.refs)):
            if draft is not None and rule[member] in values:
                _refuse_duplicate(rule[member], draft, member)
            values.add(rule[member])


def _refuse_duplicate(
    value: str, draft: RuleDraft, member: str, reason: str = "another rule of the ruleset has it"
) -> NoReturn:
    pointer = draft.place.at(member).pointer
    raise DuplicateRule(value=value, field=member, reason=reason, pointer=pointer)


def _inserted(others: list[Rule], rule: Rule, position: Position) -> list[Rule]:
    at = _index(others, rule, position)
    return [*others[:at], rule, *others[at:]]


def _index(others: list[Rule], rule: Rule, position: Position) -> int:
    how, where = position
    if isinstance(where, int):
        if where > len(others) + 1:
            _refuse_position(position, f"the ruleset has {len(others) + 1} places")
        return where - 1
    if where == "":
        return 0 if how == "before" else len(others)
    if where == rule["id"]:
        _refuse_position(position, "a rule has no place next to itself")
    try:
        return index_of(others, where) + (how == "after")
    except StopIteration:
        _refuse_position(position, "the ruleset has no such rule")


def _refuse_position(position: Position, reason: str) -> NoReturn:
    raise PositionRefused(
        value=position.where, field=position.how, reason=reason, pointer=f"/position/{position.how}"
    )
