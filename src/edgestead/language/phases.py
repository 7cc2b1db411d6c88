"""The phases of rules, as far as expressions care.

Owns  which phases exist, in order of execution, and whether a phase sees requests, responses or packets.
Not   which actions a phase allows (`usecases`).
"""

from enum import StrEnum


class Direction(StrEnum):
    REQUEST = "request"
    RESPONSE = "response"
    NETWORK = "network"


_NAMES = {
    Direction.REQUEST: (
        "ddos_l7",
        "http_request_sanitize",
        "http_request_dynamic_redirect",
        "http_request_transform",
        "http_config_settings",
        "http_request_origin",
        "http_request_firewall_custom",
        "http_ratelimit",
        "http_request_firewall_managed",
        "http_request_sbfm",
        "http_request_redirect",
        "http_request_late_transform",
        "http_request_cache_settings",
    ),
    Direction.RESPONSE: (
        "http_custom_errors",
        "http_response_headers_transform",
        "http_response_cache_settings",
        "http_response_compression",
        "http_response_firewall_managed",
        "http_log_custom_fields",
    ),
    Direction.NETWORK: (
        "ddos_l4",
        "magic_transit",
        "magic_transit_managed",
        "magic_transit_ids_managed",
        "magic_transit_ratelimit",
    ),
}

PHASES: dict[str, Direction] = {name: direction for direction, names in _NAMES.items() for name in names}
