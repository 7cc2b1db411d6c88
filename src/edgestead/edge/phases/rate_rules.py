"""The phase http_ratelimit: rules that count, and act on who comes too often.

Owns  what a rule counts and by what, when it counts, when it acts.
Not   the memory that counts are in.

The first `requests_per_period` requests of a key pass, the next ones are acted on: until the window ends, or
for `mitigation_timeout` once the limit is passed. What is held back by a mitigation does not count.

A rule counts when a request comes, and so before it acts on it. It counts when an answer comes where its
counting expression sees the answer, where a score is in it, or where only requests count that reach the
origin; then it acts on the requests after that. An answer of the edge's own counts unless it is the latter.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from edgestead.edge.exchanges.exchange import Exchange, Response, values_of
from edgestead.edge.rules.acts import act_of
from edgestead.edge.rules.fields import RESPONSE_FIELDS, view_of
from edgestead.edge.rules.rules import (
    Act,
    Outcome,
    Place,
    Rule,
    all_rules,
    body_octets,
    compile_phase,
    condition,
)
from edgestead.edge.tools.phase import Step, Tools, ZoneRules
from edgestead.edge.tools.rates import Counted, Rates
from edgestead.language import FilterError, Value, View, compile_value
from edgestead.language.fields import VISITOR
from edgestead.language.types import BOOL, INT, IP, IPV6_FLAG, STRING, Type, array, ip_text

PHASE = "http_ratelimit"
BLOCK_STATUS = 429
SCORE_MAX = 1_000_000  # that one answer may add

_MS = 1_000
_IPV6_HOST_BITS = 64  # a household or a server has all addresses of a /64
_CLIENT = "ip.src"
_ALL = "true"
_ABSENT = "nothing"
TimedAct = Callable[[Exchange, View, int], Outcome]
_WAITING = "rates"
_TYPES = (STRING, INT, IP, BOOL, array(STRING))


class _Limit(NamedTuple):
    """A compiled rule. `matches` says which requests it acts on, `counts` which it counts."""

    name: bytes
    gets: tuple[Callable[[View], Value | None], ...]
    matches: Callable[[View], bool]
    counts: Callable[[View], bool]
    last_allowed: int  # the total with which a request still passes
    period_ms: int
    timeout_ms: int
    waits: bool  # for the answer, to count
    from_origin: bool
    score_header: bytes


def compile_rules(rules: ZoneRules, tools: Tools) -> Step | None:
    return compile_phase(rules, PHASE, lambda rule, place: _make(rule, place, tools), _asked_for)


def _asked_for(rule: Rule) -> str:
    """A rule that counts by a condition of its own looks at every request."""
    return _ALL if rule.ratelimit.get("counting_expression") else rule.expression


def compile_answers(rules: ZoneRules, tools: Tools) -> Step | None:
    """Counts what has waited for an answer. Part of every zone with a rule that does."""
    if not any(rule.ratelimit for rule in all_rules(rules, PHASE)):
        return None
    rates = tools.rates

    def step(exchange: Exchange) -> Response | None:
        if exchange.keep is not None:
            view = view_of(exchange)
            for limit, key in exchange.keep.pop(_WAITING, ()):
                _count_answer(exchange, view, limit, key, rates)
        return None

    return step


def octets(rules: ZoneRules) -> int:
    return body_octets(rules, PHASE)


def _make(rule: Rule, place: Place, tools: Tools) -> Act | None:
    act = act_of(rule, place, tools, block_status=BLOCK_STATUS)
    if act is None or rule.action == "skip":
        return act
    limit = _limit(rule, place)
    return _limited(limit, _timed(act), tools.rates)


class Counting(NamedTuple):
    """What a rule counts of one request; `key` are its characteristics and their values, for people.

    `counts` is None where the answer decides. The first `last_allowed` of a period pass; with `by_score` it
    is a sum of scores.
    """

    key: tuple[tuple[str, str], ...]
    counts: bool | None
    last_allowed: int
    period_seconds: int
    timeout_seconds: int
    by_score: bool


def counting(rule: Rule, place: Place, exchange: Exchange) -> Counting:
    """Nothing is counted by asking. Raises FilterError, KeyError."""
    view = view_of(exchange)
    limit = _limit(rule, place)
    texts = rule.ratelimit["characteristics"]
    return Counting(
        tuple(
            (text, _shown(get(view), text, place.phase)) for text, get in zip(texts, limit.gets, strict=True)
        ),
        None if limit.waits else limit.counts(view),
        limit.last_allowed + (limit.waits and not limit.score_header),
        limit.period_ms // _MS,
        limit.timeout_ms // _MS,
        bool(limit.score_header),
    )


def _shown(value: Value | None, text: str, phase: str) -> str:
    if value is None:
        return _ABSENT
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        is_address = text == VISITOR or _typed(text, phase)[0] is IP
        return ip_text(value) if is_address else str(value)
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    return ", ".join(_shown(one, text, phase) for one in value)


def _limited(limit: _Limit, act: TimedAct, rates: Rates) -> Act:
    waits, last_allowed = limit.waits, limit.last_allowed

    def run(exchange: Exchange, view: View) -> Outcome:
        acts = limit.matches(view)
        now_ms = rates.now_ms()
        key = rates.key(limit.name, [_octets(get(view)) for get in limit.gets])
        seen = rates.look(key, now_ms)
        if seen.mitigation_end_ms:
            return act(exchange, view, _end_ms(seen, last_allowed) - now_ms) if acts else None
        if waits:
            _wait(exchange, limit, key)
        elif limit.counts(view):
            seen = rates.add(key, 1, limit.period_ms, now_ms)
        if not acts or seen.total <= last_allowed:
            return None
        if limit.timeout_ms:
            seen = seen._replace(mitigation_end_ms=now_ms + limit.timeout_ms)
            rates.mitigate(key, seen.mitigation_end_ms, now_ms)
        return act(exchange, view, _end_ms(seen, last_allowed) - now_ms)

    return run


def _end_ms(seen: Counted, last_allowed: int) -> int:
    """When requests pass again: a mitigation that ends within a window that is used up only begins anew."""
    window_end_ms = seen.window_end_ms if seen.total > last_allowed else 0
    return max(seen.mitigation_end_ms, window_end_ms)


def _timed(act: Act) -> TimedAct:
    """Tells whoever is refused when to come again (RFC 9110 §10.2.3)."""

    def run(exchange: Exchange, view: View, wait_ms: int) -> Outcome:
        outcome = act(exchange, view)
        if isinstance(outcome, Response) and outcome.status != 403:
            outcome.headers.append((b"retry-after", b"%d" % max(1, -(-wait_ms // _MS))))
        return outcome

    return run


def _wait(exchange: Exchange, limit: _Limit, key: int) -> None:
    if exchange.keep is None:
        exchange.keep = {}
    exchange.keep.setdefault(_WAITING, []).append((limit, key))


def _count_answer(exchange: Exchange, view: View, limit: _Limit, key: int, rates: Rates) -> None:
    if exchange.response is None or (limit.from_origin and not exchange.response.from_origin):
        return
    amount = _score(exchange, limit.score_header) if limit.score_header else 1
    if amount and limit.counts(view):
        rates.add(key, amount, limit.period_ms, rates.now_ms())


def _score(exchange: Exchange, header: bytes) -> int:
    assert exchange.response is not None
    for value in values_of(exchange.response.headers, header):
        if value.isdigit() and len(value) <= len(str(SCORE_MAX)):
            return min(int(value), SCORE_MAX)
    return 0


def _limit(rule: Rule, place: Place) -> _Limit:
    """Raises FilterError, KeyError: what another release knows and this one does not."""
    told: dict[str, Any] = rule.ratelimit
    own = told.get("counting_expression")
    matches = condition(rule.expression, place.phase).run
    counting = condition(own, place.phase, True) if own else condition(_ALL, place.phase)
    from_origin = told.get("requests_to_origin", False)
    score_header = told.get("score_response_header_name", "").lower().encode("ascii")
    waits = bool(score_header or from_origin or not RESPONSE_FIELDS.isdisjoint(counting.fields))
    return _Limit(
        name=f"{place.ruleset_id}{rule.id}{rule.version}".encode(),
        gets=tuple(_characteristic(text, place.phase) for text in told["characteristics"]),
        matches=matches if own else condition(_ALL, place.phase).run,
        counts=counting.run,
        last_allowed=told["score_per_period"] if score_header else told["requests_per_period"] - waits,
        period_ms=told["period"] * _MS,
        timeout_ms=told.get("mitigation_timeout", 0) * _MS,
        waits=waits,
        from_origin=from_origin,
        score_header=score_header,
    )


def _characteristic(text: str, phase: str) -> Callable[[View], Value | None]:
    if text in (_CLIENT, VISITOR):
        get = compile_value(_CLIENT, phase, result=IP)
        return lambda view: _network(get(view))
    return _typed(text, phase)[1]


def _typed(text: str, phase: str) -> tuple[Type, Callable[[View], Value | None]]:
    refused: FilterError | None = None
    for type_ in _TYPES:
        try:
            return type_, compile_value(text, phase, result=type_)
        except FilterError as error:
            refused = error
    assert refused is not None
    raise refused


def _network(address: int) -> int:
    """Who counts as one client: an IPv4 address, an IPv6 network of 64 bits."""
    return address >> _IPV6_HOST_BITS << _IPV6_HOST_BITS if address & IPV6_FLAG else address


def _octets(value: Value | None) -> bytes:
    """Values of one characteristic as octets; who lacks it counts together, apart from who has it empty."""
    if value is None:
        return b"-"
    if isinstance(value, bytes):
        return b"+" + value
    if isinstance(value, int):
        return b"+%d" % value
    return b"+" + b"\0".join(map(_octets, value))
