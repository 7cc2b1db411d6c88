"""Which answers the log of a cluster keeps, for a client that lost the leader in the middle of its write.

Owns  the routes whose answer is what their one write returns, and holds no secret.
Not   the log (`store.answered`).

An answer is kept in the commit, before its handler has it. So a handler that makes something else of what
its write returned, or writes several times, has none: then it is only known that the request has written.
Every call of the API's tests compares what is kept with what is answered.
Secrets are answers of accounts and users (tokens, TSIG keys): of these nothing is kept.
"""

from typing import Any, Final

from edgestead.model import envelope
from edgestead.rest.routing import BASE_PATH, Answer, Download, Route

JSON_TYPE: Final = b"application/json"
_ZONES: Final = f"{BASE_PATH}/zones"
_ZONE: Final = f"{_ZONES}/{{zone_id}}"
REWORDED: Final = frozenset(
    (
        ("DELETE", _ZONE),
        ("POST", f"{_ZONE}/dns_records/import"),
        ("PUT", f"{_ZONE}/activation_check"),
        ("PUT", f"{_ZONE}/custom_ns"),
        ("DELETE", f"{_ZONE}/custom_certificates/{{certificate_id}}"),
        ("DELETE", f"{_ZONE}/ssl/certificate_packs/{{certificate_pack_id}}"),
        ("DELETE", f"{_ZONE}/rulesets/{{ruleset_id}}"),
        ("DELETE", f"{_ZONE}/rulesets/{{ruleset_id}}/versions/{{version}}"),
        ("DELETE", f"{_ZONE}/secondary_dns/incoming"),
        ("DELETE", f"{_ZONE}/secondary_dns/outgoing"),
    )
)
"""Routes that have an answer of which nothing is kept."""
_VIEWS: Final = tuple(f"{_ZONE}/{view}" for view in ("firewall/", "filters", "rate_limits"))
"""Below these are rulesets in the words of older products: what is answered is made of what was written."""


def answer(route: Route, result: Any) -> bytes:
    """The body of an answer whose status is 200; b"" where none is kept."""
    path = route.path
    if not path.startswith(_ZONES) or path.startswith(_VIEWS) or (route.method, path) in REWORDED:
        return b""
    if isinstance(result, Answer):
        is_plain = result.status == 200 and result.content_type == JSON_TYPE and not result.headers
        return result.body or b"" if is_plain else b""
    if isinstance(result, Download | envelope.Page):
        return b""
    return envelope.success(result)
