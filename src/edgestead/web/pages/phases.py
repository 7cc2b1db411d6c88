"""The phases of rules, and what one zone has in them.

Owns  their words, reading a zone's rules of all of them, changing one rule without losing what it says.
Not   a page.
"""

from typing import NamedTuple

from edgestead.web.asker import Json, Refused
from edgestead.web.visit import Visit

PHASES = {
    "http_request_dynamic_redirect": "Redirects",
    "http_request_transform": "Rewrites of the URL",
    "http_request_origin": "Choice of the origin",
    "http_request_firewall_custom": "Custom rules",
    "http_ratelimit": "Rate limits",
    "http_request_firewall_managed": "Managed rules",
    "http_request_late_transform": "Request headers",
    "http_response_headers_transform": "Response headers",
}
"""In the order of evaluation (docs/reference/rulesets.md)."""
CUSTOM, MANAGED = "http_request_firewall_custom", "http_request_firewall_managed"


class Phase(NamedTuple):
    """`entry` is the zone's entry point, None where it has none."""

    phase: str
    words: str
    entry: Json | None

    @property
    def rules(self) -> list[Json]:
        return (self.entry or {}).get("rules") or []


def words_of(phase: str) -> str:
    return PHASES.get(phase, phase)


async def all_phases(visit: Visit, zone: Json) -> list[Phase]:
    return [Phase(phase, words, await entry_of(visit, zone, phase)) for phase, words in PHASES.items()]


async def entry_of(visit: Visit, zone: Json, phase: str) -> Json | None:
    try:
        found: Json = await visit.api.result(f"/zones/{zone['id']}/rulesets/phases/{phase}/entrypoint")
    except Refused as refused:
        if refused.status == 404:
            return None
        raise
    return found
