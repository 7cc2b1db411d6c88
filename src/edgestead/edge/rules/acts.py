"""The acts that firewall rules and rate limits share: block, challenge, log, skip.

Owns  the table of these acts.
Not   when a rule acts.
"""

from collections.abc import Callable
from typing import Any

from edgestead.edge.challenge.challenges import challenge
from edgestead.edge.exchanges.exchange import Exchange, Response
from edgestead.edge.rules.rules import Act, Outcome, Place, Rule, skip
from edgestead.edge.tools.clearance import KINDS
from edgestead.edge.tools.phase import Silent, Tools
from edgestead.edge.tools.refusals import stopped
from edgestead.language import View
from edgestead.model.events import Decision

SHOWN_MAX = 120  # characters of an expression in an event
_BLOCKED = {
    403: "A rule of this site does not allow this request.",
    429: "Too many requests of this kind have come from you. Please wait and try again.",
}


def decision_of(rule: Rule, place: Place, status: int = 0) -> Decision:
    """What every event of the rule says, its expression as the reason; made once."""
    return Decision(
        place.phase,
        rule.action,
        status,
        ruleset_id=place.ruleset_id,
        rule_id=rule.id,
        description=rule.description,
        reason=_shortened(" ".join(rule.expression.split())),
    )


def _shortened(expression: str) -> str:
    return expression if len(expression) <= SHOWN_MAX else expression[: SHOWN_MAX - 1] + "…"


def act_of(rule: Rule, place: Place, tools: Tools, *, block_status: int) -> Act | None:
    """The rule's act; None for `execute`. Raises ValueError for an action that this release does not know."""
    if not rule.logs:
        tools = tools._replace(observer=Silent())
    if rule.action == "skip":
        decision = decision_of(rule, place)
        return skip(rule, place, lambda exchange: tools.observer.decided(exchange, decision))
    if rule.action == "execute":
        return None
    make = _MAKERS.get(rule.action)
    if make is None:
        raise ValueError(f"nobody here knows the action {rule.action}")
    return make(rule, place, tools, block_status)


def _block(rule: Rule, place: Place, tools: Tools, block_status: int) -> Act:
    own: dict[str, Any] = rule.action_parameters.get("response", {})
    status = own.get("status_code", block_status)
    decision = decision_of(rule, place, status)
    answer = _own_answer(own) if own else _default_answer(status)

    def act(exchange: Exchange, view: View) -> Outcome:
        tools.observer.decided(exchange, decision)
        return answer(exchange)

    return act


def _own_answer(own: dict[str, Any]) -> Callable[[Exchange], Response]:
    content, status = own["content"].encode(), own["status_code"]
    kind = own["content_type"].encode("ascii", "replace")
    return lambda exchange: Response(
        status, [(b"content-type", kind), (b"cache-control", b"private, no-store")], content
    )


def _default_answer(status: int) -> Callable[[Exchange], Response]:
    words = _BLOCKED.get(status, _BLOCKED[403])
    return lambda exchange: stopped(exchange, status, words)


def _challenge(rule: Rule, place: Place, tools: Tools, block_status: int) -> Act:
    decision = decision_of(rule, place, 403)
    return lambda exchange, view: challenge(exchange, tools, decision)


def _log(rule: Rule, place: Place, tools: Tools, block_status: int) -> Act:
    decision = decision_of(rule, place)
    return lambda exchange, view: tools.observer.decided(exchange, decision)


_MAKERS: dict[str, Callable[[Rule, Place, Tools, int], Act]] = {
    "block": _block,
    "log": _log,
    **dict.fromkeys(KINDS, _challenge),
}
