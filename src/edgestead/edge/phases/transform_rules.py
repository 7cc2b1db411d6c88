"""The phases http_request_transform and http_response_headers_transform: other paths, queries, headers.

Owns  the act of `rewrite`, when its changes take effect.
Not   framing and routing headers, which the API refuses to change.

Every rule of a phase sees the request as it was before the phase, and what they change takes effect together
at its end: of two rules that write the same path the later one wins, headers change in the order of rules.
"""

from collections.abc import Callable
from typing import Any

from edgestead.edge.challenge.challenges import is_challenge
from edgestead.edge.exchanges.exchange import Exchange, Headers, Response, remove_header, set_header
from edgestead.edge.phases.redirect_rules import value_of
from edgestead.edge.rules.rules import Act, Place, Rule, body_octets, compile_phase
from edgestead.edge.tools import texts
from edgestead.edge.tools.phase import Step, Tools, ZoneRules
from edgestead.language import View

REQUEST_PHASE = "http_request_transform"
RESPONSE_PHASE = "http_response_headers_transform"

HeaderChange = tuple[str, bytes, bytes]  # operation, name, value
_CHANGES = "transform"
_SAFE = {"path": texts.safe_path, "query": texts.safe_query}


class _Changes:
    """What the rules of one phase want, so far."""

    __slots__ = ("headers", "to_origin", "uri")

    def __init__(self) -> None:
        self.uri: dict[str, bytes] = {}
        self.to_origin = True
        self.headers: list[HeaderChange] = []


def compile_request(rules: ZoneRules, tools: Tools) -> Step | None:
    step = compile_phase(rules, REQUEST_PHASE, _rewrite)
    return None if step is None else _then(step, _change_request)


def compile_response(rules: ZoneRules, tools: Tools) -> Step | None:
    step = compile_phase(rules, RESPONSE_PHASE, _rewrite)
    return None if step is None else _then(step, _change_response)


def octets(rules: ZoneRules) -> int:
    return body_octets(rules, REQUEST_PHASE, RESPONSE_PHASE)


def _then(step: Step, change: Callable[[Exchange, _Changes], None]) -> Step:
    def run(exchange: Exchange) -> Response | None:
        step(exchange)
        if exchange.keep is not None and (changes := exchange.keep.pop(_CHANGES, None)) is not None:
            change(exchange, changes)
        return None

    return run


def _rewrite(rule: Rule, place: Place) -> Act | None:
    if rule.action != "rewrite":
        return None
    phase, parameters = place.phase, rule.action_parameters
    uri = [
        (part, value_of(source, phase), _SAFE[part])
        for part, source in parameters.get("uri", {}).items()
        if part in _SAFE
    ]
    to_origin = parameters.get("uri", {}).get("origin", True)
    headers = [
        (change["operation"], name.lower().encode("ascii"), _value(change, phase))
        for name, change in parameters.get("headers", {}).items()
    ]

    def act(exchange: Exchange, view: View) -> None:
        changes = _changes_of(exchange)
        for part, get, safe in uri:
            if (value := get(view)) is not None:
                changes.uri[part], changes.to_origin = safe(value), to_origin
        for operation, name, get in headers:
            value = get(view)
            if value is None:  # computed from something that is not there: nothing is left to say
                changes.headers.append(("remove" if operation == "set" else "add", name, b""))
            else:
                changes.headers.append((operation, name, texts.safe_value(value)))

    return act


def _value(change: dict[str, Any], phase: str) -> Callable[[View], bytes | None]:
    return value_of(change, phase) if change["operation"] != "remove" else lambda view: b""


def _changes_of(exchange: Exchange) -> _Changes:
    if exchange.keep is None:
        exchange.keep = {}
    changes: _Changes = exchange.keep.setdefault(_CHANGES, _Changes())
    return changes


def _change_request(exchange: Exchange, changes: _Changes) -> None:
    if changes.uri:
        path, query = changes.uri.get("path"), changes.uri.get("query")
        exchange.rewrite(path=path, query=query, to_origin=changes.to_origin)
    if changes.headers:
        _apply(exchange.outgoing, changes.headers)


def _change_response(exchange: Exchange, changes: _Changes) -> None:
    """A challenge stays as it is: a policy of the site's own would keep its script from working."""
    head = exchange.response
    if head is not None and (head.from_origin or not is_challenge(exchange)):
        _apply(head.headers, changes.headers)


def _apply(headers: Headers, changes: list[HeaderChange]) -> None:
    for operation, name, value in changes:
        if operation == "set":
            set_header(headers, name, value)
        elif operation == "remove":
            remove_header(headers, name)
        elif value:
            headers.append((name, value))
