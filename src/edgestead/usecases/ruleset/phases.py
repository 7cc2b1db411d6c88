"""Which rulesets a phase can have, and which actions their rules can take.

Owns  the table of phases.
Not   the actions' parameters (`usecases.ruleset.actions`); which phases the edge enforces.

Source: contract "Rulesets" §3; docs/reference/rulesets.md.
"""

from typing import Literal, NamedTuple

from edgestead.language import PHASES

Kind = Literal["managed", "custom", "root", "zone"]

MANAGED_PHASE = "http_request_firewall_managed"
RATE_LIMIT_PHASE = "http_ratelimit"
EXECUTE, SKIP = "execute", "skip"
CHALLENGES = ("managed_challenge", "js_challenge", "challenge")


class Phase(NamedTuple):
    """The actions that each kind of ruleset may use; none means that there is no such ruleset."""

    name: str
    zone: frozenset[str]
    root: frozenset[str]
    custom: frozenset[str]

    def actions(self, kind: str) -> frozenset[str]:
        return {"zone": self.zone, "root": self.root, "custom": self.custom}.get(kind, frozenset())


def _phase(name: str, *zone: str, root: tuple[str, ...] = (EXECUTE,), custom: tuple[str, ...] = ()) -> Phase:
    return Phase(name, frozenset(zone), frozenset(root), frozenset(custom))


_FIREWALL = ("block", *CHALLENGES, "log", SKIP)
_NETWORK = ("block", "log", SKIP)
_REDIRECTS = ("redirect",)
_ROWS = (
    _phase("ddos_l4"),
    _phase("magic_transit", root=(EXECUTE, *_NETWORK), custom=_NETWORK),
    _phase("magic_transit_managed"),
    _phase("magic_transit_ids_managed"),
    _phase("magic_transit_ratelimit", root=(EXECUTE, "block", "log")),
    _phase("ddos_l7", EXECUTE),
    _phase("http_request_sanitize", EXECUTE),
    _phase("http_request_dynamic_redirect", *_REDIRECTS, root=_REDIRECTS),
    _phase("http_request_transform", "rewrite", root=(EXECUTE, "rewrite"), custom=("rewrite",)),
    _phase("http_config_settings", "set_config", root=("set_config",)),
    _phase("http_request_origin", "route", root=("route",)),
    _phase(
        "http_request_firewall_custom", *_FIREWALL, EXECUTE, root=(EXECUTE, SKIP), custom=_FIREWALL
    ),
    _phase(RATE_LIMIT_PHASE, *_FIREWALL, EXECUTE, root=(EXECUTE, SKIP), custom=_FIREWALL),
    _phase(MANAGED_PHASE, EXECUTE, SKIP, root=(EXECUTE, SKIP), custom=(*_FIREWALL, EXECUTE)),
    _phase("http_request_sbfm", EXECUTE, SKIP),
    _phase("http_request_redirect", *_REDIRECTS, root=_REDIRECTS),
    _phase("http_request_late_transform", "rewrite", root=(EXECUTE, "rewrite"), custom=("rewrite",)),
    _phase("http_request_cache_settings", "set_cache_settings", root=("set_cache_settings",)),
    _phase("http_custom_errors", "serve_error", root=("serve_error",)),
    _phase("http_response_headers_transform", "rewrite", root=(EXECUTE, "rewrite"), custom=("rewrite",)),
    _phase("http_response_cache_settings", "set_cache_settings", root=("set_cache_settings",)),
    _phase("http_response_compression", "compress_response", root=()),
    _phase("http_response_firewall_managed", EXECUTE, SKIP, root=(EXECUTE, SKIP), custom=_FIREWALL),
    _phase("http_log_custom_fields", "log_custom_field", root=()),
)  # fmt: skip

TABLE: dict[str, Phase] = {row.name: row for row in _ROWS}
ORDER: dict[str, int] = {name: number for number, name in enumerate(PHASES)}

assert TABLE.keys() == PHASES.keys()
