"""The actions of rules and what each takes as parameters.

Owns  the table of actions.
Not   which phase takes which action (`usecases.ruleset.phases`); whether what an action names exists
      (`usecases.ruleset.references`); doing it (the edge).

Source: contract "Rulesets" §3 and §4.
"""

from typing import Any, NamedTuple

from edgestead.language import PHASES, Direction
from edgestead.model.edge import OWN_HEADERS
from edgestead.model.ids import is_id
from edgestead.usecases.limits import (
    HEADER_VALUE_CHARACTERS_MAX,
    HEADERS_PER_RULE_MAX,
    OVERRIDE_ITEMS_MAX,
    RESPONSE_CHARACTERS_MAX,
    SETTING_ITEMS_MAX,
    URL_CHARACTERS_MAX,
)
from edgestead.usecases.ruleset.expressions import value_expression
from edgestead.usecases.ruleset.phases import CHALLENGES
from edgestead.usecases.ruleset.shapes import (
    Check,
    Place,
    choice,
    each,
    keyed,
    members,
    nothing,
    only_true,
    text,
    truth,
    whole,
)

LATEST = "latest"
# What acts on a request by itself; an override may give each of these to a rule or a whole ruleset.
OVERRIDE_ACTIONS = ("block", *CHALLENGES, "log")
SECONDS_MAX = 31_536_000  # a year: the longest time that caching speaks of
_NAME = text(256)
_TOKEN = frozenset("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
# A rule that sets one of these could make one message into two (RFC 9112 §6), or send it to another host.
_FRAMING = frozenset(
    (
        *("connection", "content-length", "expect", "host", "keep-alive", "proxy-authorization"),
        *("proxy-connection", "te", "trailer", "transfer-encoding", "upgrade"),
    )
)


class Action(NamedTuple):
    """`parameters` None: the action takes none. `needed`: it makes no sense without.

    `terminates`: no later rule of the phase is asked, so nothing else in it can act on the request.
    """

    name: str
    parameters: Check
    needed: bool = False
    terminates: bool = False


def identifier(value: Any, place: Place) -> str:
    if not isinstance(value, str):
        place.mistyped("a string")
    if not is_id(value):
        place.refuse(value, "it must be 32 lower-case hexadecimal digits")
    return value


def header_name(value: Any, place: Place) -> str:
    name: str = _NAME(value, place)
    if not _TOKEN.issuperset(name):
        place.refuse(value, "it is not the name of a header")
    if name.lower() in _FRAMING:
        place.refuse(value, "this header frames or routes the message and cannot be changed")
    if name.lower() in OWN_HEADERS:
        place.refuse(value, "this header is the edge's own word on who asks and cannot be changed")
    return name


def _content_type(value: Any, place: Place) -> str:
    words: str = text(100)(value, place)
    if not words.isascii() or "/" not in words:
        place.refuse(value, "it must be a media type such as text/html")
    return words


def _version(value: Any, place: Place) -> str:
    words: str = text(18)(value, place)  # so that it is 64 bits
    if words != LATEST and not (words.isascii() and words.isdigit()):
        place.refuse(value, f"it must be {LATEST} or a number")
    return words


def _url(value: Any, place: Place) -> str:
    words: str = text(URL_CHARACTERS_MAX)(value, place)
    if not words.lower().startswith(("http://", "https://", "/")) or " " in words:
        place.refuse(value, "it must be an http or https URL, or a path that begins with /")
    return words


def _path(value: Any, place: Place) -> str:
    words: str = text(URL_CHARACTERS_MAX)(value, place)
    if not words.startswith("/"):
        place.refuse(value, "it must begin with /")
    return words


def _host(value: Any, place: Place) -> str:
    words: str = text(253)(value, place)
    if not words.isascii() or any(octet in words for octet in " /@?#\\"):
        place.refuse(value, "it must be a host name")
    return words


def _value_or_expression(value: Check) -> Check:
    return members({"value": value, "expression": value_expression}, exactly_one=("value", "expression"))


def _header_change(value: Any, place: Place) -> dict[str, Any]:
    change: dict[str, Any] = _HEADER_CHANGE(value, place)
    sources = change.keys() & {"value", "expression"}
    if change["operation"] == "remove" and sources:
        place.refuse(change["operation"], "remove takes neither value nor expression")
    if change["operation"] != "remove" and len(sources) != 1:
        place.refuse(change["operation"], "exactly one of value, expression is needed")
    return change


_HEADER_CHANGE = members(
    {"value": text(HEADER_VALUE_CHARACTERS_MAX, characters_min=0), "expression": value_expression},
    required={"operation": choice("add", "set", "remove")},
)


def _execute(value: Any, place: Place) -> dict[str, Any]:
    """`version` is answered even when it was not sent."""
    found: dict[str, Any] = _EXECUTE(value, place)
    found.setdefault("version", LATEST)
    return {name: found[name] for name in ("id", "version", "overrides", "matched_data") if name in found}


def _rewrite(value: Any, place: Place) -> dict[str, Any]:
    found: dict[str, Any] = _REWRITE(value, place)
    if "uri" in found and PHASES[place.phase] is Direction.RESPONSE:
        place.at("uri").refuse(found["uri"], "there is no URI left to rewrite in a response phase")
    return found


def _status_ttl(value: Any, place: Place) -> dict[str, Any]:
    found: dict[str, Any] = _STATUS_TTL(value, place)
    codes = found.get("status_code_range", {})
    if codes.get("from", 100) > codes.get("to", 999):
        place.at("status_code_range").refuse(codes, "from is larger than to")
    return found


_NOT_OF_MANAGED = "sensitivity_level"  # a member of DDoS rulesets, of which there is none: never advised
_SENSITIVITY = choice("default", "medium", "low", "eoff")
_OVERRIDE = {"action": choice(*OVERRIDE_ACTIONS), "enabled": truth, _NOT_OF_MANAGED: _SENSITIVITY}
_THRESHOLD = whole(1, 1_000_000)  # the sum of all increments of a rule set stays far below


def _override_item(key: str, check: Check, more: dict[str, Check]) -> Check:
    """One item of `categories` or `rules`: what it is about, and at least one thing that it changes."""
    shape = members({**_OVERRIDE, **more}, required={key: check})

    def item(value: Any, place: Place) -> dict[str, Any]:
        found: dict[str, Any] = shape(value, place)
        if len(found) == 1:
            names = [name for name in (*_OVERRIDE, *more) if name != _NOT_OF_MANAGED]
            place.refuse(found[key], "it overrides nothing: " + ", ".join(names) + " are missing")
        return found

    return item


_EXECUTE = members(
    {
        "version": _version,
        "overrides": members(
            {
                **_OVERRIDE,
                "categories": each(_override_item("category", text(64), {}), OVERRIDE_ITEMS_MAX),
                "rules": each(
                    _override_item("id", identifier, {"score_threshold": _THRESHOLD}), OVERRIDE_ITEMS_MAX
                ),
            },
            at_least_one=True,
        ),
        "matched_data": members(required={"public_key": text(256)}),
    },
    required={"id": identifier},
)
_SKIP = members(
    {
        "ruleset": choice("current"),
        "rulesets": each(identifier, OVERRIDE_ITEMS_MAX, items_min=1),
        "rules": keyed(identifier, each(identifier, OVERRIDE_ITEMS_MAX, items_min=1), OVERRIDE_ITEMS_MAX),
        "phase": choice("current"),
        "phases": each(choice(*PHASES), len(PHASES), items_min=1),
        "products": each(
            choice("bic", "hot", "rateLimit", "securityLevel", "uaBlock", "waf", "zoneLockdown"),
            SETTING_ITEMS_MAX,
            items_min=1,
        ),
    },
    at_least_one=True,
    excluded=(("rulesets", "ruleset"), ("rulesets", "phases"), ("rulesets", "rules")),
)
_BLOCK = members(
    {
        "response": members(
            required={
                "status_code": whole(400, 499),
                "content": text(RESPONSE_CHARACTERS_MAX, characters_min=0, line=False),
                "content_type": _content_type,
            }
        )
    }
)
_REDIRECT = members(
    {
        "from_value": members(
            {"status_code": choice(301, 302, 303, 307, 308), "preserve_query_string": truth},
            required={"target_url": _value_or_expression(_url)},
        ),
        "from_list": members(required={"name": text(50), "key": value_expression}),
    },
    exactly_one=("from_value", "from_list"),
)
_REWRITE = members(
    {
        "uri": members(
            {
                "path": _value_or_expression(_path),
                "query": _value_or_expression(text(URL_CHARACTERS_MAX, characters_min=0)),
                "origin": truth,
            },
            at_least_one=True,
        ),
        "headers": keyed(header_name, _header_change, HEADERS_PER_RULE_MAX),
    },
    at_least_one=True,
)
_ROUTE = members(
    {
        "host_header": _host,
        "origin": members({"host": _host, "port": whole(1, 65_535)}, at_least_one=True),
        "sni": members(required={"value": _host}),
    },
    at_least_one=True,
)
_SET_CONFIG = members(
    {
        **dict.fromkeys(
            (
                "automatic_https_rewrites",
                "bic",
                "content_converter",
                "email_obfuscation",
                "fonts",
                "hotlink_protection",
                "mirage",
                "opportunistic_encryption",
                "redirects_for_ai_training",
                "rocket_loader",
                "server_side_excludes",
                "sxg",
            ),
            truth,
        ),
        **dict.fromkeys(
            ("disable_apps", "disable_pay_per_crawl", "disable_railgun", "disable_rum", "disable_zaraz"),
            only_true,
        ),
        "autominify": members({"css": truth, "html": truth, "js": truth}),
        "polish": choice("off", "lossless", "lossy", "webp"),
        "request_body_buffering": choice("none", "standard", "full"),
        "response_body_buffering": choice("none", "standard"),
        "security_level": choice("off", "essentially_off", "low", "medium", "high", "under_attack"),
        "ssl": choice("off", "flexible", "full", "strict", "origin_pull"),
    },
    at_least_one=True,
)
_NAMES = each(_NAME, SETTING_ITEMS_MAX)
_SECONDS = whole(0, SECONDS_MAX)
_STATUS = whole(100, 999)
_STATUS_TTL = members(
    {
        "status_code": _STATUS,
        "status_code_range": members({"from": _STATUS, "to": _STATUS}, at_least_one=True),
    },
    required={"value": whole(-1, SECONDS_MAX)},
    exactly_one=("status_code", "status_code_range"),
)
_QUERY_ARGUMENTS = members({"all": only_true, "list": _NAMES}, exactly_one=("all", "list"))
_CUSTOM_KEY = members(
    {
        "cookie": members({"check_presence": _NAMES, "include": _NAMES}),
        "header": members(
            {
                "check_presence": _NAMES,
                "contains": keyed(_NAME, _NAMES, SETTING_ITEMS_MAX),
                "exclude_origin": truth,
                "include": _NAMES,
            }
        ),
        "host": members({"resolved": truth}),
        "query_string": members(
            {"exclude": _QUERY_ARGUMENTS, "include": _QUERY_ARGUMENTS}, excluded=(("exclude", "include"),)
        ),
        "user": members({"device_type": truth, "geo": truth, "lang": truth}),
    }
)
_SET_CACHE_SETTINGS = members(
    {
        "additional_cacheable_ports": each(whole(1, 65_535), SETTING_ITEMS_MAX),
        "browser_ttl": members(
            {"default": _SECONDS},
            required={"mode": choice("respect_origin", "bypass_by_default", "override_origin", "bypass")},
        ),
        "cache": truth,
        "cache_key": members(
            {
                "cache_by_device_type": truth,
                "cache_deception_armor": truth,
                "custom_key": _CUSTOM_KEY,
                "ignore_query_strings_order": truth,
            }
        ),
        "cache_reserve": members(
            {"eligible": truth, "enabled": truth, "minimum_file_size": whole(0, 1 << 50)},
            exactly_one=("eligible", "enabled"),
        ),
        "edge_ttl": members(
            {"default": _SECONDS, "status_code_ttl": each(_status_ttl, SETTING_ITEMS_MAX)},
            required={"mode": choice("respect_origin", "bypass_by_default", "override_origin")},
        ),
        "origin_cache_control": truth,
        "origin_error_page_passthru": truth,
        "read_timeout": whole(1, SECONDS_MAX),
        "respect_strong_etags": truth,
        "serve_stale": members({"disable_stale_while_updating": truth}),
        "strip_etags": truth,
        "strip_last_modified": truth,
        "strip_set_cookie": truth,
    },
    at_least_one=True,
)
_COMPRESS = members(
    required={
        "algorithms": each(
            members(required={"name": choice("none", "auto", "default", "gzip", "brotli", "zstd")}),
            SETTING_ITEMS_MAX,
            items_min=1,
        )
    }
)
_SERVE_ERROR = members(
    {
        "content": text(RESPONSE_CHARACTERS_MAX, line=False),
        "asset_name": _NAME,
        "content_type": _content_type,
        "status_code": whole(400, 999),
    },
    exactly_one=("content", "asset_name"),
)
_FIELDS = each(members(required={"name": _NAME}), SETTING_ITEMS_MAX)
_FIELDS_OR_ALL = each(members({"preserve_duplicates": truth}, required={"name": _NAME}), SETTING_ITEMS_MAX)
_LOG_CUSTOM_FIELD = members(
    {
        "cookie_fields": _FIELDS,
        "raw_response_fields": _FIELDS_OR_ALL,
        "request_fields": _FIELDS,
        "response_fields": _FIELDS_OR_ALL,
        "transformed_request_fields": _FIELDS,
    },
    at_least_one=True,
)

_ROWS = (
    Action("block", _BLOCK, terminates=True),
    *(Action(name, nothing, terminates=True) for name in CHALLENGES),
    Action("log", nothing),
    Action("skip", _SKIP, needed=True),
    Action("execute", _execute, needed=True),
    Action("redirect", _REDIRECT, needed=True, terminates=True),
    Action("rewrite", _rewrite, needed=True),
    Action("route", _ROUTE, needed=True),
    Action("set_config", _SET_CONFIG, needed=True),
    Action("set_cache_settings", _SET_CACHE_SETTINGS, needed=True),
    Action("compress_response", _COMPRESS, needed=True),
    Action("serve_error", _SERVE_ERROR, needed=True, terminates=True),
    Action("log_custom_field", _LOG_CUSTOM_FIELD, needed=True),
)
TABLE: dict[str, Action] = {row.name: row for row in _ROWS}
# Known, and only used in the platform's own rulesets.
MANAGED_ONLY = frozenset(("score", "ddos_dynamic", "force_connection_close"))
