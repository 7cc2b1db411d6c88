"""Answering authorities that ask for a page, where the zone's DNS is elsewhere (RFC 8555 §8.3).

Owns  the path, and that it is answered before anything redirects, challenges or blocks.
Not   which pages there are (`edge.tools.acme`).
"""

from edgestead.edge.exchanges.exchange import Exchange, Response
from edgestead.edge.tools.phase import Step, Tools, ZoneRules
from edgestead.model.settings import ACME_VALIDATION

PREFIX = b"/.well-known/acme-challenge/"
SETTING, METHOD = ACME_VALIDATION, "http"


def compile_answers(rules: ZoneRules, tools: Tools) -> Step | None:
    """None where the zone is proved in another way. Other tokens than ours are the origin's."""
    if rules.facts.settings.get(SETTING) != METHOD:
        return None

    def step(exchange: Exchange) -> Response | None:
        if not exchange.path.startswith(PREFIX) or exchange.method not in (b"GET", b"HEAD"):
            return None
        value = tools.acme.value(exchange.host, exchange.path[len(PREFIX) :])
        if value is None:
            return None
        headers = [(b"content-type", b"application/octet-stream"), (b"cache-control", b"no-store")]
        return Response(200, headers, value.encode())

    return step
