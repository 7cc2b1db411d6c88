"""The setting security_header: browsers are asked to come over TLS only, and to take types as they are said.

Owns  what the setting adds to answers over TLS.
Not   redirecting who comes without TLS (`always_use_https`).

Answers without TLS say nothing: browsers do not believe them (RFC 6797 §7.2). An origin's own header gives
way to the zone's; rules for headers of answers come later and may change both.
"""

from edgestead.edge.exchanges.exchange import Exchange, set_header
from edgestead.edge.tools.phase import Step, Tools, ZoneRules

SETTING = "security_header"


def compile_header(rules: ZoneRules, tools: Tools) -> Step | None:
    asked = rules.facts.settings.get(SETTING, {}).get("strict_transport_security", {})
    transport, nosniff = _transport(asked), bool(asked.get("nosniff"))
    if transport is None and not nosniff:
        return None

    def step(exchange: Exchange) -> None:
        head = exchange.response
        if head is None or exchange.scheme != b"https":
            return
        if transport is not None:
            set_header(head.headers, b"strict-transport-security", transport)
        if nosniff:
            set_header(head.headers, b"x-content-type-options", b"nosniff")

    return step


def _transport(asked: dict[str, object]) -> bytes | None:
    """The header's value (RFC 6797 §6.1); None where it is off. `max_age` 0 makes browsers forget it."""
    if not asked.get("enabled"):
        return None
    value = f"max-age={asked.get('max_age', 0)}"
    for member, directive in (("include_subdomains", "includeSubDomains"), ("preload", "preload")):
        if asked.get(member):
            value += f"; {directive}"
    return value.encode()
