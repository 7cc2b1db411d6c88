"""Challenging a request, and taking the answers.

Owns  who is let on, which form a challenge takes, the place that takes answers, the cookie, and that no
      origin sees it.
Not   which rule challenges.

A browser that opens a page gets one to solve. Whoever else asks, a program or a script of a page, could do
nothing with it and gets 403 with the reason.
"""

from urllib.parse import unquote_to_bytes

from edgestead.edge.challenge.page import PATH, challenge_page
from edgestead.edge.exchanges.exchange import Exchange, Headers, Response, values_of
from edgestead.edge.tools import texts
from edgestead.edge.tools.clearance import COOKIE_PREFIX, KINDS, Subject, cookie_name
from edgestead.edge.tools.phase import Step, Tools, ZoneRules
from edgestead.edge.tools.refusals import stopped, wants_page
from edgestead.edge.tools.skips import skips_product
from edgestead.model.events import Decision

PHASE = "challenge"
TTL_SECONDS_DEFAULT = 1_800  # the setting challenge_ttl, where a zone has none
_US = 1_000_000
_DOCUMENTS = (b"document", b"iframe", b"frame")
_NEEDED = "This request needs a check that only a browser can answer, and it does not look like a browser's."
_MITIGATED = (b"edge-mitigated", b"challenge")


def challenge(exchange: Exchange, tools: Tools, decision: Decision) -> Response | None:
    """The challenge that the decision's action names; None for who has answered it already."""
    if _is_cleared(exchange, tools, decision.action):
        return None
    tools.observer.decided(exchange, decision)
    if not _is_browser(exchange):
        return stopped(exchange, 403, _NEEDED, [_MITIGATED])
    kind, now_s = KINDS[decision.action], exchange.arrived_us // _US
    demand = tools.pressure.demand(kind, exchange, now_s)
    token = tools.clearances.token(kind.name, _subject(exchange), now_s, demand.bits, click=demand.click)
    return challenge_page(
        kind,
        demand,
        token,
        host=exchange.host.decode("ascii", "replace"),
        ray=exchange.ray.decode("ascii", "replace"),
        target=exchange.raw_target if exchange.method == b"GET" else b"/",
        again=exchange.method in (b"GET", b"HEAD"),
    )


def is_challenge(exchange: Exchange) -> bool:
    """Whether the edge's own answer to this request is part of a challenge, which only works as it is."""
    head = exchange.response
    return exchange.path == PATH or (head is not None and _MITIGATED in head.headers)


def compile_answers(rules: ZoneRules, tools: Tools) -> Step:
    """The place where answers are sent to. No rule is asked before: it must not be challenged itself."""

    def step(exchange: Exchange) -> Response | None:
        if exchange.path != PATH:
            return None
        return _answered(exchange, tools)

    return step


def compile_under_attack(rules: ZoneRules, tools: Tools) -> Step | None:
    """The security level `under_attack` challenges whoever comes."""
    if rules.facts.settings.get("security_level") != "under_attack":
        return None
    decision = Decision(
        "security_level",
        "managed_challenge",
        403,
        description="under_attack",
        reason="the setting security_level is under_attack",
    )

    def step(exchange: Exchange) -> Response | None:
        if exchange.keep is not None and skips_product(exchange, "securityLevel"):
            return None
        return challenge(exchange, tools, decision)

    return step


def compile_hiding(rules: ZoneRules, tools: Tools) -> Step:
    """Clearances are between the client and us. Last of all, so that no rule brings them back."""
    return _hide


def _hide(exchange: Exchange) -> None:
    if exchange.to_send is exchange.headers:
        cookies = exchange.by_name.get(b"cookie")
        if cookies is None or cookies.find(COOKIE_PREFIX) < 0:
            return
    for name, value in exchange.to_send:
        if name == b"cookie" and COOKIE_PREFIX in value:
            kept: Headers = []
            for other, text in exchange.outgoing:
                left = _without_clearances(text) if other == b"cookie" else text
                if left or other != b"cookie":
                    kept.append((other, left))
            exchange.outgoing[:] = kept
            return


def _without_clearances(header: bytes) -> bytes:
    pieces = [piece.strip() for piece in header.split(b";")]
    return b"; ".join(piece for piece in pieces if not piece.startswith(COOKIE_PREFIX))


def _is_cleared(exchange: Exchange, tools: Tools, kind: str) -> bool:
    headers = values_of(exchange.headers, b"cookie")
    if not any(COOKIE_PREFIX in header for header in headers):
        return False
    subject, now_s = _subject(exchange), exchange.arrived_us // _US
    ttl_seconds = _ttl_seconds(exchange)
    cookies = texts.grouped(pair for header in headers for pair in texts.cookie_pairs(header))
    return any(
        tools.clearances.clears(accepted, value, subject, now_s, ttl_seconds)
        for accepted in KINDS[kind].accepts
        for value in cookies.get(cookie_name(accepted), ())
    )


def _is_browser(exchange: Exchange) -> bool:
    """Whether a page that is answered will be shown to somebody."""
    wanted = exchange.header(b"sec-fetch-dest")
    return wants_page(exchange) and (wanted is None or wanted in _DOCUMENTS)


def _subject(exchange: Exchange) -> Subject:
    return Subject(exchange.zone.id, exchange.client, exchange.header(b"user-agent") or b"")


def _ttl_seconds(exchange: Exchange) -> int:
    seconds: int = exchange.zone.settings.get("challenge_ttl", TTL_SECONDS_DEFAULT)
    return seconds


def _answered(exchange: Exchange, tools: Tools) -> Response:
    sent = dict(texts.pairs(exchange.query))
    kind = sent.get(b"kind", b"").decode("ascii", "replace")
    token, solution = sent.get(b"token", b""), sent.get(b"solution", b"")
    subject, now_s = _subject(exchange), exchange.arrived_us // _US
    clicked = sent.get(b"clicked") == b"1"
    if (
        exchange.method != b"POST"
        or kind not in KINDS
        or (kind == "managed_challenge" and sent.get(b"tells") and not clicked)
        or not tools.clearances.solves(kind, token, solution, subject, now_s, clicked=clicked)
    ):
        if kind in KINDS:
            tools.pressure.failed(kind)
        tools.observer.decided(exchange, Decision(PHASE, "challenge_failed", 403))
        return stopped(exchange, 403, "This is not the answer to a challenge of yours.")
    tools.pressure.solved(kind, exchange)
    status = 303 if b"target" in sent else 204
    tools.observer.decided(exchange, Decision(PHASE, "challenge_solved", status, description=kind))
    ttl_seconds = _ttl_seconds(exchange)
    clearance = tools.clearances.clearance(kind, subject, now_s, ttl_seconds)
    headers: Headers = [
        (b"cache-control", b"private, no-store"),
        (b"set-cookie", _cookie(exchange, kind, clearance, ttl_seconds)),
    ]
    if status == 303:
        headers.append((b"location", _local(unquote_to_bytes(sent[b"target"]))))
    return Response(status, headers)


def _cookie(exchange: Exchange, kind: str, value: str, ttl_seconds: int) -> bytes:
    secure = b"; Secure" if exchange.scheme == b"https" else b""
    return b"%b=%b; Path=/; Max-Age=%d; HttpOnly; SameSite=Lax%b" % (
        cookie_name(kind),
        value.encode(),
        ttl_seconds,
        secure,
    )


def _local(target: bytes) -> bytes:
    """A target on this host, whatever was sent."""
    if target[:1] != b"/" or target[1:2] in (b"/", b"\\"):
        return b"/"
    return texts.safe_location(target)
