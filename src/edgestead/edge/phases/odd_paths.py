"""Paths that servers read in different ways: refused, said in one way, or passed, as the zone chooses.

Owns  what is ambiguous in a path, the steps of the setting `ambiguous_paths`.
Not   what rules see of any other path (`fields`).

An escaped slash or backslash, a backslash, a parameter behind `;` and NUL divide or end a segment for some
servers and are part of it for others: `/%2fadmin` is `/admin` to nginx, `/x/..;/admin` to servlets. `%u0061`
is an `a` to the servers of one system, and nothing to others. A rule for `/admin` sees none of them. So
`auto` refuses them where a rule looks at paths to stop requests, to count them or to let them by; elsewhere
nobody is asked to do without them.
"""

import re

import msgspec

from edgestead.edge.exchanges.exchange import Exchange, Response
from edgestead.edge.exchanges.later import Later
from edgestead.edge.managed import rules as managed_rules
from edgestead.edge.phases import firewall_rules, rate_rules
from edgestead.edge.rules.rules import Rule, all_rules
from edgestead.edge.tools import texts
from edgestead.edge.tools.phase import Step, Tools, ZoneRules
from edgestead.edge.tools.refusals import stopped
from edgestead.language import FIELDS
from edgestead.model.events import Decision

SETTING = "ambiguous_paths"
_PHASES = (firewall_rules.PHASE, rate_rules.PHASE, managed_rules.PHASE)
_OF_PATHS = ("http.request.uri", "http.request.uri.path", "http.request.uri.path.extension")
_NAMES = [name for name in FIELDS if name.removeprefix("raw.") in (*_OF_PATHS, "http.request.full_uri")]
_READS_PATHS = re.compile(rb"(?:%b)(?![\w.])" % b"|".join(re.escape(name.encode()) for name in _NAMES))
_WORDS = "Its path could be read in two ways: it has an escaped slash, a backslash, a semicolon, NUL or %u."
_encode = msgspec.json.Encoder().encode


def compile_odd_paths(rules: ZoneRules, tools: Tools) -> Step | None:
    make = _STEPS.get(rules.facts.settings.get(SETTING, "auto"), _refuse)  # a newer release has more words
    return make(rules, tools)


def is_ambiguous(path: bytes) -> bool:
    """Whether servers disagree about where its segments end. Escapes may make up another one: `%%32f`."""
    text = path.decode("latin-1")  # looking into a str takes a fifth of the time
    if "%" not in text:
        return ";" in text or "\\" in text
    return _is_odd(text) or _is_odd(texts.unescaped(path).decode("latin-1"))


def _is_odd(text: str) -> bool:
    text = text.lower()
    return ";" in text or "\\" in text or "%2f" in text or "%5c" in text or "%00" in text or "%u" in text


def said_in_one_way(path: bytes) -> bytes | None:
    """The normal path with real slashes for escaped ones, without parameters; None for one that has none.

    >>> said_in_one_way(b"/x/..%2fadmin;a=b/%61")
    b'/admin/a'
    """
    segments = _SLASHES.sub(b"/", texts.unescaped(path)).split(b"/")
    plain = texts.normal_path(b"/".join(segment.partition(b";")[0] for segment in segments))
    return None if is_ambiguous(plain) else plain


_SLASHES = re.compile(rb"%2f|%5c|\\", re.IGNORECASE)


def _refuse(rules: ZoneRules, tools: Tools) -> Step:
    decision = Decision(SETTING, "refuse", 400, reason=_WORDS)

    def step(exchange: Exchange) -> Response | None:
        if not is_ambiguous(exchange.path):
            return None
        tools.observer.decided(exchange, decision)
        return stopped(exchange, 400, _WORDS)

    return step


def _normalise(rules: ZoneRules, tools: Tools) -> Step:
    refuse = _refuse(rules, tools)

    def step(exchange: Exchange) -> Response | Later | None:
        path = said_in_one_way(exchange.path)
        if path is None:
            return refuse(exchange)
        if path != exchange.path:
            exchange.rewrite(path=path)
        return None

    return step


def _pass(rules: ZoneRules, tools: Tools) -> None:
    return None


def _auto(rules: ZoneRules, tools: Tools) -> Step | None:
    reads = any(_reads_paths(rule) for phase in _PHASES for rule in all_rules(rules, phase))
    return _refuse(rules, tools) if reads else None


def _reads_paths(rule: Rule) -> bool:
    """By the names alone, wherever they stand."""
    return _READS_PATHS.search(_encode((rule.expression, rule.ratelimit))) is not None


_STEPS = {"auto": _auto, "refuse": _refuse, "normalise": _normalise, "pass": _pass}
