"""What of a configuration of another program will not carry over, or will differ at every look.

Owns  the programs that are known, and the table of rules.
Not   reading files (`cli.server.client_files`); how a finding is shown (`cli.server.doctor`).

A rule looks at one part and says whether it is about it. What no rule is about carries over.
"""

import re
from collections.abc import Callable, Iterator
from ipaddress import ip_address
from typing import Any, NamedTuple

from edgestead.cli.server import client_files
from edgestead.cli.server.client_files import Part

NOT, DIFFERS = "not", "differs"  # will not carry over; will show a difference at every look
PROFILES = ("spec", "clients")
_RULESETS = "Write it as rulesets, or rehearse it first: `edgecli serve --as-of 2025-06-14`."
_PROFILE = "Start the server with `--profile clients`"
_ENDED = {
    *("firewall_rule", "filter", "rate_limit", "waf_group", "waf_override", "waf_package", "waf_rule"),
}
_HERE = {
    *("zone", "record", "dns_record", "zone_setting", "zone_settings_override", "zone_dns_settings"),
    *("zone_dnssec", "zone_hold", "zone_subscription", "zone_lockdown", "user_agent_blocking_rule"),
    *("access_rule", "ruleset", "account", "account_member", "account_token", "account_dns_settings"),
    *("api_token", "workers_kv", "workers_kv_namespace", "custom_ssl", "certificate_pack"),
    *("universal_ssl_setting", "universal_ssl_settings"),
}
_OLDER_NAMES = {"record": "dns_record", "zone_settings_override": "zone_setting"}
_NAMES_OF_HOSTS = ("A", "AAAA", "CNAME")
_WEAK = re.compile(r"md5|sha1\b|sha-1\b|sha224|sha384", re.IGNORECASE)
_ADDRESS = "Give it the API's address: `edgecli env` prints EDGE_API_BASE."
_UPDATES = "Use dynamic updates: docs/how-to/dynamic-updates.md has the lines for it."


class Rule(NamedTuple):
    """`about` says what of a part it is about, "" for nothing. `spec_only`: not with `--profile clients`."""

    level: str
    about: Callable[[Part], str]
    reason: str
    next_step: str
    spec_only: bool = False


class Finding(NamedTuple):
    level: str
    place: str
    what: str
    reason: str
    next_step: str


class Client(NamedTuple):
    """A program: what it is for people, how its file is read, and its rules."""

    files: str
    parts: Callable[[str], Iterator[Part]]
    rules: tuple[Rule, ...]


class Examined(NamedTuple):
    """`parts` is how many were looked at, `found` is in the file's order."""

    parts: int
    found: list[Finding]


def examine(client: str, text: str, profile: str) -> Examined:
    """Raises ValueError, TypeError, KeyError, AttributeError: not a file of that."""
    known = CLIENTS[client]
    parts = list(known.parts(text))
    rules = [one for one in known.rules if not (one.spec_only and profile == "clients")]
    found = [
        Finding(rule.level, part.place, what, rule.reason, rule.next_step)
        for part in parts
        for rule in rules
        if (what := rule.about(part))
    ]
    return Examined(sum(part.kind != client_files.WHOLE for part in parts), found)


def _kind_ended(part: Part) -> str:
    return part.kind if part.kind in _ENDED else ""


def _kind_absent(part: Part) -> str:
    return "" if part.kind in _ENDED or part.kind in _HERE else part.kind


def _kind_older(part: Part) -> str:
    return part.kind if part.kind in _OLDER_NAMES else ""


def _record(part: Part, *types: str) -> bool:
    is_record = part.kind in ("dns_record", "record")
    return is_record and (not types or part.values.get("type") in types)


def _content(part: Part) -> str:
    return _text(part.values.get("content") or part.values.get("value"))


def _data(part: Part) -> dict[str, Any]:
    found = part.values.get("data")
    found = found[0] if isinstance(found, list) and found else found
    return found if isinstance(found, dict) else {}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _bare_text(part: Part) -> str:
    content = _content(part)
    is_bare = bool(content) and not content.startswith('"') and not _is_computed(content)
    return f"TXT {content[:40]}" if _record(part, "TXT") and is_bare else ""


def _is_computed(text: str) -> bool:
    return "${" in text


def _long_address(part: Part) -> str:
    if not _record(part, "AAAA") or _is_computed(_content(part)):
        return ""
    try:
        short = str(ip_address(_content(part)))
    except ValueError:
        return ""
    return "" if short == _content(part) else f"AAAA {_content(part)}, answered as {short}"


def _srv_priority(part: Part) -> str:
    has_both = part.values.get("priority") is not None or "priority" not in _data(part)
    return "" if not _record(part, "SRV") or has_both else "SRV without priority beside its data"


def _flags_as_text(part: Part) -> str:
    return "CAA with flags as text" if _record(part, "CAA") and _text(_data(part).get("flags")) else ""


def _capitals(part: Part) -> str:
    name = _text(part.values.get("name"))
    return f"name {name}" if _record(part) and name != name.lower() and not _is_computed(name) else ""


def _digit_label(part: Part) -> str:
    name = _text(part.values.get("name"))
    begins = any(label[:1].isdigit() for label in name.split("."))
    return f"name {name}" if _record(part, *_NAMES_OF_HOSTS) and begins else ""


def _type_unknown(part: Part) -> str:
    from edgestead.model.records import TYPES

    type_ = _text(part.values.get("type"))
    return type_ if _record(part) and type_ and type_ not in TYPES else ""


def _setting_unknown(part: Part) -> str:
    from edgestead.model.settings import SETTINGS

    name = _text(part.values.get("setting_id"))
    return name if part.kind == "zone_setting" and name and name not in SETTINGS else ""


def _member(*names: str) -> Callable[[Part], str]:
    return lambda part: part.kind if part.kind in names else ""


def _line(pattern: str) -> Callable[[Part], str]:
    form = re.compile(pattern)
    return lambda part: (
        part.values["text"][:80] if part.kind == "line" and form.search(part.values["text"]) else ""
    )


def _lacks(pattern: str, where: str, what: str) -> Callable[[Part], str]:
    """The whole file has `where` and lacks `pattern`."""
    wanted, needed = re.compile(where), re.compile(pattern)

    def about(part: Part) -> str:
        if part.kind != client_files.WHOLE or not wanted.search(part.values["text"]):
            return ""
        return "" if needed.search(part.values["text"]) else what

    return about


def _weak_key(part: Part) -> str:
    text = part.values["text"] if part.kind == "line" else ""
    return text[:80] if re.search("alg", text, re.IGNORECASE) and _WEAK.search(text) else ""


_SIGNED = Rule(
    NOT,
    _weak_key,
    "keys here are of HMAC-SHA256 or HMAC-SHA512",
    "Make a key with `edgecli dns key add`, and name its algorithm.",
)
CLIENTS: dict[str, Client] = {
    "terraform": Client(
        "HCL, a state, or what `terraform show -json` prints of a state or plan",
        client_files.terraform,
        (
            Rule(NOT, _kind_ended, "the product ended on 2025-06-15", _RULESETS),
            Rule(
                NOT,
                _kind_absent,
                "the product is not a part of this server",
                "Leave it with its provider: docs/differences.md lists what is not here.",
            ),
            Rule(
                DIFFERS,
                _kind_older,
                "the provider's version 5 has another name for it, and states of 4 are not read by it",
                "Move the configuration to version 5 first.",
            ),
            Rule(
                NOT,
                _type_unknown,
                "this server has no records of the type",
                "docs/reference/record-types.md lists those.",
            ),
            Rule(
                NOT,
                _setting_unknown,
                "the server has no such setting, and answers 1006",
                "Leave it out: docs/reference/settings.md has all.",
            ),
            Rule(
                DIFFERS,
                _bare_text,
                "TXT gets quotes in the default profile, and every plan takes them off again",
                f'{_PROFILE}, or write the quotes: "\\"…\\"".',
                spec_only=True,
            ),
            Rule(
                NOT,
                _digit_label,
                "names of addresses and aliases begin each label with a letter in the default profile (9000)",
                f"{_PROFILE}.",
                spec_only=True,
            ),
            Rule(
                DIFFERS,
                _srv_priority,
                "priority is answered beside the data, too, as by the hosted service",
                "Write `priority` in both places.",
            ),
            Rule(
                DIFFERS,
                _long_address,
                "addresses are answered in their short form, as by the hosted service",
                "Write the short form.",
            ),
            Rule(
                DIFFERS,
                _flags_as_text,
                "flags are answered as a number: an import differs",
                "Write the number without quotes.",
            ),
            Rule(
                DIFFERS,
                _capitals,
                "names are answered in small letters, as by the hosted service",
                "Write it in small letters.",
            ),
        ),
    ),
    "octodns": Client(
        "its configuration, or the YAML of a zone",
        client_files.lines,
        (
            Rule(
                DIFFERS,
                _line(r"class:\s*octodns_cloudflare"),
                "it knows the hosted service's address alone",
                "Use `class: octodns_edgestead.EdgesteadProvider`: docs/how-to/octodns.md.",
            ),
            Rule(
                NOT,
                _line(r"type:\s*(URLFWD|PAGE_RULE)\b"),
                "page rules are not a part of this server",
                "Write a redirect rule: docs/how-to/edge-rules.md.",
            ),
        ),
    ),
    "external-dns": Client(
        "a manifest, or a file with its arguments",
        client_files.lines,
        (
            Rule(
                NOT,
                _line(r"--cloudflare-(custom-hostnames|regional-services|region-key)"),
                "the product is not a part of this server",
                "Leave the argument out.",
            ),
            Rule(NOT, _line(r"--provider[= ]cloudflare"), "it has no argument for another address", _UPDATES),
            _SIGNED,
        ),
    ),
    "cert-manager": Client(
        "an issuer's manifest",
        client_files.lines,
        (
            Rule(NOT, _line(r"^-?\s*cloudflare:"), "its solver has no member for another address", _UPDATES),
            _SIGNED,
        ),
    ),
    "wrangler": Client(
        "wrangler.toml",
        client_files.toml,
        (
            Rule(
                NOT,
                _member("main", "routes", "route", "triggers", "assets", "site", "build", "workers_dev"),
                "scripts do not run here: only their key-value namespaces carry over",
                "`edgecli kv` takes the same file for values: docs/coming-from/wrangler.md.",
            ),
            Rule(
                NOT,
                _member("durable_objects", "migrations"),
                "classes of objects are in Python here",
                "docs/how-to/objects.md has the same calls.",
            ),
            Rule(
                NOT,
                _member(
                    *("r2_buckets", "d1_databases", "queues", "ai", "vectorize", "hyperdrive", "services"),
                    *("browser", "images", "workflows", "pipelines", "dispatch_namespaces", "send_email"),
                    *("analytics_engine_datasets", "mtls_certificates", "tail_consumers", "containers"),
                ),
                "the product is not a part of this server",
                "docs/differences.md lists what is not here.",
            ),
        ),
    ),
    "certbot": Client("the plugin's credentials file", client_files.lines, (_SIGNED,)),
    "lego": Client(
        "a file of its environment variables",
        client_files.lines,
        (
            Rule(
                NOT,
                _lacks(r"CLOUDFLARE_BASE_URL", r"\b(CF|CLOUDFLARE)_", "CLOUDFLARE_BASE_URL is missing"),
                "without it the hosted service is asked",
                _ADDRESS,
            ),
            _SIGNED,
        ),
    ),
    "fail2ban": Client(
        "the action's .local file",
        client_files.lines,
        (
            Rule(
                NOT,
                _lacks(r"_cf_api_url\s*=", r"\bcf(token|zone|user)\s*=", "_cf_api_url is missing"),
                "without it the hosted service is asked",
                "docs/how-to/edge-rules.md, fail2ban, has the file.",
            ),
        ),
    ),
}
