"""The bodies that the rulesets' routes take, checked.

Owns  which members each body has; positions.
Not   JSON text (`rest`); what is stored already.

Reading a body needs no transaction: the kind and phase of a ruleset never change, so the slow part of a
write, compiling its expressions, happens before it.
"""

from typing import Any, Literal, NamedTuple

import msgspec

from edgestead.model.refusals import EdgeError
from edgestead.model.refusals.ruleset import PhaseRefused, TooManyRegexes, TooManyRules, ValueRefused
from edgestead.usecases.limits import (
    DESCRIPTION_CHARACTERS_MAX,
    REGEXES_PER_RULESET_MAX,
    RULES_PER_RULESET_MAX,
    RULESET_NAME_CHARACTERS_MAX,
)
from edgestead.usecases.ruleset import phases
from edgestead.usecases.ruleset.actions import identifier
from edgestead.usecases.ruleset.expressions import regex_uses
from edgestead.usecases.ruleset.gathered import Refusals
from edgestead.usecases.ruleset.rule import RuleDraft, read_rule
from edgestead.usecases.ruleset.shapes import Check, Place, members, shown, text, whole


class RulesetBody(msgspec.Struct, frozen=True):
    """What create and the two kinds of PUT take. None is what was not sent.

    `refused` holds what is wrong with rules that are therefore not among `rules`. Whoever looks further into
    the others, answers both.
    """

    name: str | None
    description: str | None
    kind: str | None
    phase: str | None
    rules: list[RuleDraft] | None
    refused: tuple[EdgeError, ...] = ()


class Position(NamedTuple):
    """`before` and `after` name a rule, or with "" the first and the last place; `index` counts from 1."""

    how: Literal["before", "after", "index"]
    where: str | int


class RuleBody(msgspec.Struct, frozen=True):
    """What the routes of one rule take. `draft` None: only the position was sent."""

    draft: RuleDraft | None
    position: Position | None


def _list(value: Any, place: Place) -> list[Any]:
    if not isinstance(value, list):
        place.mistyped("a list")
    return value


def _rule_or_end(value: Any, place: Place) -> str:
    return "" if value == "" else str(identifier(value, place))


_name = text(RULESET_NAME_CHARACTERS_MAX)
_HEAD: dict[str, Check] = {
    "description": text(DESCRIPTION_CHARACTERS_MAX, characters_min=0, line=False),
    "rules": _list,
}
_kind = text(32, characters_min=0)
_phase = text(64, characters_min=0)
_CREATE = members(_HEAD, required={"name": _name, "kind": _kind, "phase": _phase})
_REPLACE = members({"name": _name, "kind": _kind, "phase": _phase, **_HEAD})
_ENTRYPOINT = members({"name": _name, **_HEAD})
_POSITION = members(
    {"before": _rule_or_end, "after": _rule_or_end, "index": whole(1, RULES_PER_RULESET_MAX)},
    exactly_one=("before", "after", "index"),
)


def read_create(value: Any, scope: str) -> RulesetBody:
    """The body of POST rulesets. Raises RulesetRefused's children, except for what is wrong with a rule."""
    start = Place("")
    sent = _CREATE(value, start)
    check_kind(sent["kind"], scope)
    check_phase(sent["phase"], sent["kind"], "/phase")
    return _body(sent, sent["phase"], sent["kind"], may_only_name=False)


def read_replace(value: Any, kind: str, phase: str) -> RulesetBody:
    """The body of PUT for a stored ruleset, whose kind and phase it has to repeat if it names them."""
    start = Place(phase)
    sent = _REPLACE(value, start)
    for member, stored in (("kind", kind), ("phase", phase)):
        check_same(sent.get(member), stored, start.at(member))
    return _body(sent, phase, kind, may_only_name=True)


def read_entrypoint(value: Any, kind: str, phase: str) -> RulesetBody:
    """The body of PUT for an entry point, whose kind and phase the path says."""
    return _body(_ENTRYPOINT(value, Place(phase)), phase, kind, may_only_name=True)


def read_rule_body(value: Any, kind: str, phase: str, *, may_only_move: bool = False) -> RuleBody:
    """A rule with its position. `may_only_move`: the position alone is enough."""
    place = Place(phase)
    if not isinstance(value, dict):
        place.mistyped("an object")
    rule = {name: one for name, one in value.items() if name != "position"}
    position = None
    if value.get("position") is not None:
        sent = _POSITION(value["position"], place.at("position"))
        ((how, where),) = sent.items()
        position = Position(how, where)
    if may_only_move and position is not None and all(one is None for one in rule.values()):
        return RuleBody(None, position)
    return RuleBody(read_rule(rule, place, kind), position)


def check_kind(kind: str, scope: str) -> None:
    """Raises ValueRefused: none of the kinds that can be made there."""
    kinds = ("zone",) if scope == "zone" else ("custom", "root")
    if kind not in kinds:
        reason = f"a ruleset of this kind cannot be made in {_article(scope)}: expected " + " or ".join(kinds)
        raise ValueRefused(value=shown(kind), field="kind", reason=reason, pointer="/kind")


def check_phase(phase: str, kind: str, pointer: str | None = None) -> None:
    """Raises PhaseRefused: no phase, or one without rulesets of this kind."""
    row = phases.TABLE.get(phase)
    if row is None:
        raise PhaseRefused(phase=shown(phase), because="", pointer=pointer)
    if not row.actions(kind):
        raise PhaseRefused(phase=phase, because=f": it has no rulesets of kind {kind}", pointer=pointer)


def check_same(sent: str | None, stored: str, place: Place) -> None:
    """Raises ValueRefused: another value for what never changes."""
    if sent is not None and sent != stored:
        place.refuse(sent, f"it cannot change from '{stored}'")


def _article(scope: str) -> str:
    return "a zone" if scope == "zone" else "an account"


def _body(sent: dict[str, Any], phase: str, kind: str, *, may_only_name: bool) -> RulesetBody:
    refusals = Refusals()
    rules = None
    if "rules" in sent:
        rules = _rules(sent["rules"], Place(phase).at("rules"), kind, may_only_name, refusals)
    return RulesetBody(
        name=sent.get("name"),
        description=sent.get("description"),
        kind=sent.get("kind"),
        phase=sent.get("phase"),
        rules=rules,
        refused=refusals.all(),
    )


def _rules(
    values: list[Any], place: Place, kind: str, may_only_name: bool, refusals: Refusals
) -> list[RuleDraft]:
    """The rules that are right by themselves."""
    check_count(len(values), place.phase, place.pointer)
    check_regexes(values, place.pointer)
    drafts: list[RuleDraft] = []
    for index, value in enumerate(values):
        with refusals.gathered():
            drafts.append(read_rule(value, place.at(index), kind, may_only_name=may_only_name))
    return drafts


def check_count(rules: int, phase: str, pointer: str | None = None) -> None:
    """Raises TooManyRules."""
    if rules > RULES_PER_RULESET_MAX:
        raise TooManyRules(phase=phase, rules=rules, rules_max=RULES_PER_RULESET_MAX, pointer=pointer)


def check_regexes(rules: list[Any], pointer: str | None = None) -> None:
    """Before the first of them is compiled. Raises TooManyRegexes."""
    uses = regex_uses(rules)
    if uses > REGEXES_PER_RULESET_MAX:
        raise TooManyRegexes(uses=uses, uses_max=REGEXES_PER_RULESET_MAX, pointer=pointer)
