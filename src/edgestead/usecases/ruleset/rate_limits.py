"""Rate limits, as they were before rulesets: rules of the phase http_ratelimit.

Owns  what each is as a rule, and reading it from one again.
Not   the entry point that they stand in (`usecases.ruleset.views`); until when (`changes`); HTTP.

Every rule of the phase that a rate limit can express is one, and both faces have its id. What the phase
cannot do is refused with its reason: that is what somebody who moves has to know.
"""

import re
from collections.abc import Sequence
from typing import Any, NoReturn

import msgspec

from edgestead.model.call import Call
from edgestead.model.refusals.firewall import OlderRuleNotFound, OlderRuleRefused
from edgestead.store.control import Reader, Transaction
from edgestead.usecases.limits import DESCRIPTION_CHARACTERS_MAX
from edgestead.usecases.ruleset import url_patterns, views
from edgestead.usecases.ruleset.managed import Platform
from edgestead.usecases.ruleset.merge import Rule
from edgestead.usecases.ruleset.phases import RATE_LIMIT_PHASE
from edgestead.usecases.ruleset.rule import PERIODS_SECONDS
from edgestead.usecases.ruleset.scope import Scope

FAMILY = "ratelimit"
ALL = "_ALL_"
SCHEMES = {"HTTP": "not ssl", "HTTPS": "ssl"}
_BOTH_SCHEMES = "(not ssl or ssl)"  # always true: so that two named schemes are not read as ALL
METHODS = ("GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS")
MODES = {  # what the product called an action
    "simulate": "log",
    "ban": "block",
    "challenge": "challenge",
    "js_challenge": "js_challenge",
    "managed_challenge": "managed_challenge",
}
TIMEOUT_MAX = 86_400  # seconds: what a rule takes as mitigation_timeout
BYPASSES_MAX = 20  # urls of one rate limit; each is a test in its expression
_STATUS_BLOCKED = 429
_UNCACHED = ("cf-cache-status", "ne", "HIT")
_BY_ACTION = {action: mode for mode, action in MODES.items()}
_METHODS = re.compile(r'http\.request\.method in \{("[A-Z]+"(?: "[A-Z]+")*)\}')
_BYPASS = re.compile(r"not \((.*)\)")
_STATUSES = re.compile(r"\((.*)\) and http\.response\.code in \{([0-9 ]+)\}")
_ASIDE = frozenset(("id", "version", "last_updated", "ref", "enabled", "description"))


class RequestMatch(msgspec.Struct, frozen=True):
    """None, and a list with ALL, mean every one. In `url` a star is any text."""

    methods: tuple[str, ...] | None = None
    schemes: tuple[str, ...] | None = None
    url: str | None = None


class HeaderMatch(msgspec.Struct, frozen=True):
    name: str
    op: str
    value: str


class ResponseMatch(msgspec.Struct, frozen=True, omit_defaults=True):
    """Answers that count. The only header that is understood leaves out what came from a cache."""

    status: tuple[int, ...] | None = None
    origin_traffic: bool | None = None
    headers: tuple[HeaderMatch, ...] | None = None


class Match(msgspec.Struct, frozen=True, omit_defaults=True):
    request: RequestMatch
    response: ResponseMatch | None = None
    headers: tuple[HeaderMatch, ...] | None = None


class CustomResponse(msgspec.Struct, frozen=True):
    content_type: str
    body: str


class RateAction(msgspec.Struct, frozen=True, omit_defaults=True):
    """`mode` is one of MODES; `timeout`, in seconds, is for simulate and ban."""

    mode: str
    timeout: int | None = None
    response: CustomResponse | None = None


class Bypass(msgspec.Struct, frozen=True):
    """`name` is always "url"."""

    name: str
    value: str


class RateLimitSent(msgspec.Struct, frozen=True):
    match: Match
    threshold: int
    period: int
    action: RateAction
    disabled: bool = False
    description: str | None = None
    bypass: tuple[Bypass, ...] | None = None
    correlate: dict[str, str] | None = None


class RateLimitView(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    id: str
    disabled: bool
    description: str
    match: Match
    threshold: int
    period: int
    action: RateAction
    bypass: tuple[Bypass, ...] = ()


def check(sent: RateLimitSent) -> None:
    """Raises OlderRuleRefused."""
    request, response = sent.match.request, sent.match.response or ResponseMatch()
    bypassed = sent.bypass or ()
    seconds = sent.action.timeout or 0
    headers = (*(response.headers or ()), *(sent.match.headers or ()))
    for holds, reason in (
        (set(request.methods or ()) <= {ALL, *METHODS}, "methods are some of " + ", ".join(METHODS)),
        (set(request.schemes or ()) <= {ALL, *SCHEMES}, "schemes are some of HTTP, HTTPS"),
        (_is_any(request.url) or url_patterns.is_pattern(request.url or ""), f"url is {url_patterns.FORM}"),
        (all(map(_is_uncached, headers)), "the only header is Cf-Cache-Status, ne, HIT"),
        (all(100 <= one <= 999 for one in response.status or ()), "status are numbers of three digits"),
        (len(response.status or ()) <= 100, "status are at most 100"),
        (sent.action.mode in MODES, "mode is one of " + ", ".join(MODES)),
        (0 <= seconds <= TIMEOUT_MAX, f"timeout is 0 to {TIMEOUT_MAX} seconds"),
        (sent.period in PERIODS_SECONDS, f"period is one of {', '.join(map(str, PERIODS_SECONDS))} seconds"),
        (sent.threshold > 0, "threshold is at least 1"),
        (len(bypassed) <= BYPASSES_MAX, f"bypass has at most {BYPASSES_MAX} items"),
        (
            all(one.name == "url" and url_patterns.is_pattern(one.value) for one in bypassed),
            f"bypass has urls, each {url_patterns.FORM}",
        ),
        (not sent.correlate, "correlate is not done here: clients behind one address count as one"),
        (
            len(sent.description or "") <= DESCRIPTION_CHARACTERS_MAX,
            f"the description has at most {DESCRIPTION_CHARACTERS_MAX} characters",
        ),
    ):
        if not holds:
            _refuse(reason)


def as_rule(sent: RateLimitSent) -> Rule:
    """The rule that enforces it, as a client of rulesets would send it."""
    expression = _expression(sent)
    response = sent.match.response or ResponseMatch()
    uncached = response.headers or sent.match.headers or response.origin_traffic
    limit: dict[str, Any] = {
        "characteristics": ["ip.src"],
        "period": sent.period,
        "requests_per_period": sent.threshold,
        "mitigation_timeout": 0 if sent.action.mode not in ("ban", "simulate") else sent.action.timeout or 0,
        "requests_to_origin": bool(uncached),
    }
    if response.status:
        codes = " ".join(map(str, response.status))
        limit["counting_expression"] = f"({expression}) and http.response.code in {{{codes}}}"
    body: Rule = {
        "action": MODES[sent.action.mode],
        "expression": expression,
        "description": sent.description or "",
        "enabled": not sent.disabled,
        "ratelimit": limit,
    }
    custom = sent.action.response
    if custom is not None and sent.action.mode == "ban":
        response_ = {
            "status_code": _STATUS_BLOCKED,
            "content": custom.body,
            "content_type": custom.content_type,
        }
        body["action_parameters"] = {"response": response_}
    return body


def from_rule(stored: Rule) -> RateLimitView | None:
    """The rate limit that a rule stands for, None where no rate limit could say the same."""
    limit = stored.get("ratelimit", {})
    request = _request_of(stored["expression"])
    mode = _BY_ACTION.get(stored["action"])
    if request is None or mode is None or "requests_per_period" not in limit:
        return None
    matched, bypassed = request
    counted = _STATUSES.fullmatch(limit.get("counting_expression", ""))
    status = tuple(map(int, counted[2].split())) if counted else None
    response = None
    if status or limit["requests_to_origin"]:
        response = ResponseMatch(status, limit["requests_to_origin"] or None)
    custom = stored.get("action_parameters", {}).get("response")
    words = None if custom is None else CustomResponse(custom["content_type"], custom["content"])
    timeout = limit["mitigation_timeout"] if mode in ("ban", "simulate") else None
    view = RateLimitView(
        id=stored["id"],
        disabled=not stored["enabled"],
        description=stored["description"],
        match=Match(matched, response),
        threshold=limit["requests_per_period"],
        period=limit["period"],
        action=RateAction(mode, timeout, words),
        bypass=bypassed,
    )
    said = as_rule(RateLimitSent(view.match, view.threshold, view.period, view.action, bypass=view.bypass))
    return view if _acts(said) == _acts(stored) else None


def create(
    call: Call, tx: Transaction, platform: Platform, scope: Scope, sent: RateLimitSent
) -> RateLimitView:
    """Raises ZoneNotFound, OlderRuleRefused, and what rulesets refuse."""
    check(sent)
    made = views.add(call, tx, platform, scope, as_rule(sent), None, RATE_LIMIT_PHASE)
    return show(tx, scope, made["id"])


def replace(
    call: Call, tx: Transaction, platform: Platform, scope: Scope, rule_id: str, sent: RateLimitSent
) -> RateLimitView:
    """Raises ZoneNotFound, OlderRuleNotFound, OlderRuleRefused, and what rulesets refuse."""
    show(tx, scope, rule_id)
    check(sent)
    views.change(call, tx, platform, scope, rule_id, as_rule(sent), None, RATE_LIMIT_PHASE)
    return show(tx, scope, rule_id)


def delete(call: Call, tx: Transaction, platform: Platform, scope: Scope, rule_id: str) -> None:
    """Raises ZoneNotFound, OlderRuleNotFound."""
    show(tx, scope, rule_id)
    views.remove(call, tx, platform, scope, rule_id, RATE_LIMIT_PHASE)


def show(reader: Reader, scope: Scope, rule_id: str) -> RateLimitView:
    """Raises ZoneNotFound, OlderRuleNotFound."""
    for one in listed(reader, scope):
        if one.id == rule_id:
            return one
    raise OlderRuleNotFound(family=FAMILY)


def listed(reader: Reader, scope: Scope) -> list[RateLimitView]:
    """In the order in which the edge asks them. Raises ZoneNotFound."""
    stored = views.stored(reader, scope, RATE_LIMIT_PHASE)
    return [found for one in stored if (found := from_rule(one)) is not None]


def _acts(rule: Rule) -> Rule:
    return {name: one for name, one in rule.items() if name not in _ASIDE}


def _is_any(url: str | None) -> bool:
    return url in (None, "", "*")


def _is_uncached(header: HeaderMatch) -> bool:
    return (header.name.lower(), header.op, header.value) == _UNCACHED


def _expression(sent: RateLimitSent) -> str:
    request = sent.match.request
    parts = []
    if request.methods and ALL not in request.methods:
        named = " ".join(f'"{one}"' for one in request.methods)
        parts.append(f"http.request.method in {{{named}}}")
    schemes = set(request.schemes or (ALL,))
    if ALL not in schemes:
        parts.append(_BOTH_SCHEMES if len(schemes) > 1 else SCHEMES[schemes.pop()])
    if not _is_any(request.url):
        parts.append(url_patterns.as_test(request.url or ""))
    parts += [f"not ({url_patterns.as_test(one.value)})" for one in sent.bypass or ()]
    return " and ".join(parts) or "true"


def _request_of(expression: str) -> tuple[RequestMatch, tuple[Bypass, ...]] | None:
    """What an expression of `_expression` says; None of any other. No pattern holds a blank."""
    methods: tuple[str, ...] = (ALL,)
    schemes: tuple[str, ...] = (ALL,)
    url, bypassed = "*", []
    for part in () if expression == "true" else _parts(expression):
        pattern = url_patterns.from_test(part)
        if found := _METHODS.fullmatch(part):
            methods = tuple(found[1].replace('"', "").split())
        elif part in (*SCHEMES.values(), _BOTH_SCHEMES):
            schemes = tuple(name for name, test in SCHEMES.items() if part in (test, _BOTH_SCHEMES))
        elif pattern is not None:
            url = pattern
        elif (found := _BYPASS.fullmatch(part)) and (pattern := url_patterns.from_test(found[1])):
            bypassed.append(Bypass("url", pattern))
        else:
            return None
    return RequestMatch(methods, schemes, url), tuple(bypassed)


def _parts(expression: str) -> Sequence[str]:
    return expression.split(" and ")


def _refuse(reason: str) -> NoReturn:
    raise OlderRuleRefused(family=FAMILY, reason=reason)
