"""Short words for the phases that people write rules for.

Owns  the table of words.
Not   which phases there are: the server says.
"""

PHASES = {
    "redirect": "http_request_dynamic_redirect",
    "transform": "http_request_transform",
    "origin": "http_request_origin",
    "custom": "http_request_firewall_custom",
    "ratelimit": "http_ratelimit",
    "managed": "http_request_firewall_managed",
    "request-headers": "http_request_late_transform",
    "response-headers": "http_response_headers_transform",
    "compression": "http_response_compression",
}
"""In the order of evaluation (docs/reference/rulesets.md)."""
WORDS = {name: word for word, name in PHASES.items()}


def full_name(phase: str) -> str:
    return PHASES.get(phase, phase)


def word_of(phase: str) -> str:
    return WORDS.get(phase, phase)
