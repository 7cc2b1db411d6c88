"""One rule as a client sends it: checked, with its defaults, not yet part of a ruleset.

Owns  the members of a rule, their order and defaults; rate limits; what goes together.
Not   identity and versions (`usecases.ruleset.merge`); whether ids in it exist
      (`usecases.ruleset.references`).

Source: contract "Rulesets" §2 and §3; spec "Rule".
"""

from typing import Any

import msgspec

from edgestead.model.refusals.ruleset import (
    ActionNeeded,
    ActionRefused,
    ExpressionBlank,
    InvalidJson,
    ParametersNeeded,
)
from edgestead.usecases.limits import CHARACTERISTICS_MAX, DESCRIPTION_CHARACTERS_MAX, REF_CHARACTERS_MAX
from edgestead.usecases.ruleset import actions as rulesets_actions
from edgestead.usecases.ruleset import phases
from edgestead.usecases.ruleset.actions import header_name, identifier
from edgestead.usecases.ruleset.expressions import (
    characteristic,
    counting_expression,
    filter_expression,
    value_expression,
)
from edgestead.usecases.ruleset.phases import EXECUTE, RATE_LIMIT_PHASE, SKIP
from edgestead.usecases.ruleset.shapes import Place, choice, each, members, shown, text, truth, whole

PERIODS_SECONDS = (10, 60, 120, 300, 600, 3_600, 86_400)
_COUNT_MAX = 1_000_000_000
_NAMES = frozenset(("id", "ref"))


class RuleDraft(msgspec.Struct, frozen=True):
    """A rule that is right by itself. `definition` holds what is stored of it, in the order of answers; None
    says that the stored rule which `id` or `ref` names stays as it is.

    `id` and `ref` are what was sent, None without; `place` is where the rule stood in the body.
    """

    place: Place
    id: str | None
    ref: str | None
    definition: dict[str, Any] | None


def _later(value: Any, place: Place) -> Any:
    """A member whose check depends on others."""
    return value


def _ignored(value: Any, place: Place) -> None:
    """A member of answers that a client may send back; only the server writes it."""


def _id(value: Any, place: Place) -> str:
    """Empty is absent, as several clients write it."""
    return "" if value == "" else identifier(value, place)


_RULE = members(
    {
        "id": _id,
        "ref": text(REF_CHARACTERS_MAX, characters_min=0),
        "action": text(64, characters_min=0),
        "action_parameters": _later,
        "expression": _later,
        "description": text(DESCRIPTION_CHARACTERS_MAX, characters_min=0, line=False),
        "enabled": truth,
        "logging": members(required={"enabled": truth}),
        "ratelimit": _later,
        "exposed_credential_check": members(
            required={"username_expression": value_expression, "password_expression": value_expression}
        ),
        "version": _ignored,
        "last_updated": _ignored,
        "categories": _ignored,
    }
)
_RATELIMIT = members(
    {
        "requests_per_period": whole(1, _COUNT_MAX),
        "score_per_period": whole(1, _COUNT_MAX),
        "score_response_header_name": header_name,
        "mitigation_timeout": whole(0, 86_400),
        "counting_expression": counting_expression,
        "requests_to_origin": truth,
    },
    required={
        "characteristics": each(characteristic, CHARACTERISTICS_MAX, items_min=1),
        "period": choice(*PERIODS_SECONDS),
    },
    exactly_one=("requests_per_period", "score_per_period"),
)


def read_rule(value: Any, place: Place, kind: str, *, may_only_name: bool = False) -> RuleDraft:
    """Check one rule for a ruleset of this kind in the place's phase.

    `may_only_name`: an `id` or `ref` alone is enough, for a rule that is there already.

    Raises InvalidJson, UnknownField, ActionNeeded, ActionRefused, ParametersNeeded, ExpressionBlank,
    ExpressionRefused, ValueRefused: the first that applies, with its pointer.
    """
    sent = _RULE(value, place)
    id_, ref = sent.get("id") or None, sent.get("ref") or None
    if may_only_name and (id_ or ref) and all(sent[name] is None for name in sent.keys() - _NAMES):
        return RuleDraft(place, id_, ref, None)
    action = _action(sent, place, kind)
    parameters = _parameters(sent, place, action)
    if "expression" not in sent:
        raise ExpressionBlank(field="expression", pointer=place.at("expression").pointer)
    definition = {
        "action": action.name,
        "action_parameters": parameters,
        "expression": filter_expression(sent["expression"], place.at("expression")),
        "description": sent.get("description", ""),
        "enabled": sent.get("enabled", True),
        "logging": sent.get("logging", {"enabled": True} if action.name == SKIP else None),
        "ratelimit": _ratelimit(sent, place, action.name),
        "exposed_credential_check": sent.get("exposed_credential_check"),
    }
    kept = {name: one for name, one in definition.items() if one is not None}
    return RuleDraft(place, id_, ref, kept)


def _action(sent: dict[str, Any], place: Place, kind: str) -> rulesets_actions.Action:
    name = sent.get("action")
    pointer = place.at("action").pointer
    if name is None:
        because = " for action parameters" if "action_parameters" in sent else ""
        raise ActionNeeded(because=because, pointer=pointer)
    if name not in rulesets_actions.TABLE and name not in rulesets_actions.MANAGED_ONLY:
        raise ActionRefused(value=shown(name), reason="it is not an action", pointer=pointer)
    if name not in phases.TABLE[place.phase].actions(kind):
        reason = (
            f"it is not possible to use the {name} action in a ruleset with phase {place.phase}"
            f" and kind {kind}"
        )
        raise ActionRefused(value=name, reason=reason, pointer=pointer)
    return rulesets_actions.TABLE[name]


def _parameters(sent: dict[str, Any], place: Place, action: rulesets_actions.Action) -> dict[str, Any] | None:
    """The checked parameters; None when there are none, or none in them."""
    inner = place.at("action_parameters")
    if "action_parameters" not in sent:
        if action.needed:
            raise ParametersNeeded(action=action.name, pointer=inner.pointer)
        return None
    found: dict[str, Any] = action.parameters(sent["action_parameters"], inner)
    return found or None


def _ratelimit(sent: dict[str, Any], place: Place, action: str) -> dict[str, Any] | None:
    """What is not sent is answered: no mitigation time, and every request counts."""
    inner = place.at("ratelimit")
    wanted = place.phase == RATE_LIMIT_PHASE and action not in (EXECUTE, SKIP)
    if "ratelimit" not in sent:
        if wanted:
            raise InvalidJson(
                reason=f'missing field "ratelimit" in phase {place.phase}', pointer=inner.pointer
            )
        return None
    if not wanted:
        inner.refuse(sent["ratelimit"], f"a {action} rule in phase {place.phase} does not limit rates")
    found: dict[str, Any] = _RATELIMIT(sent["ratelimit"], inner)
    if "score_response_header_name" in found and "score_per_period" not in found:
        inner.missing("score_per_period")
    if "score_per_period" in found and "score_response_header_name" not in found:
        inner.missing("score_response_header_name")
    found.setdefault("mitigation_timeout", 0)
    found.setdefault("requests_to_origin", False)
    return found
