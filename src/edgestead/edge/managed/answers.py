"""The managed ruleset on answers: what its rules of the response phases say of one, and what then happens.

Owns  the phase's name in events, `look`, what a verdict means for the answer.
Not   requests (`managed_rules`); which part of a body is here (`answer_watch`).

Answers are looked at only where the operator said how much of their bodies (`managed-response-bytes`). The
action is the one of the last rule; nobody can be challenged for an answer, so challenges block.
"""

from collections.abc import Callable, Generator

from edgestead.edge.exchanges.answer_watch import AnswerWatch, HeldAnswer
from edgestead.edge.exchanges.exchange import Exchange, Response, remove_header
from edgestead.edge.tools.phase import Observer
from edgestead.edge.tools.refusals import stopped
from edgestead.model.events import Decision
from edgestead.waf.engine import Inspection
from edgestead.waf.transaction import PASSING, Verdict
from edgestead.waf.transaction import Response as Answer

PHASE = "http_response_firewall_managed"
STATUS = 403
DESCRIPTION = "959100: Outbound Anomaly Score Exceeded"
_WORDS = "This site's answer looks like it tells what nobody should know, and was not let through."
Decide = Callable[[Verdict, str, int], Decision]


def look(
    exchange: Exchange,
    inspection: Inspection,
    octets_max: int,
    observer: Observer,
    decide: Decide,
) -> None:
    """Have the request's answer inspected. `decide` makes the event of a verdict, an action and a status."""
    if exchange.watch is None:
        exchange.watch = AnswerWatch(octets_max)
        remove_header(exchange.outgoing, b"accept-encoding")  # a packed body says nothing

    def inspect(held: HeldAnswer) -> Generator[None, None, Response | None]:
        verdict = yield from inspection.response(_answer_of(held))
        action = verdict.action or ("refuse" if verdict.refused else "")
        if not action:
            return None
        logs = inspection.policy.action in PASSING
        shown = "log" if logs else "refuse" if verdict.refused else "block"
        observer.decided(exchange, decide(verdict, shown, 0 if logs else STATUS))
        return None if logs else stopped(exchange, STATUS, _WORDS)

    exchange.watch.add(inspect)


def _answer_of(held: HeldAnswer) -> Answer:
    return Answer(
        status=held.status, headers=tuple(held.headers), body=held.body, body_complete=held.is_complete
    )
