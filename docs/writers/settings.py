"""The reference page of zone settings and DNS settings, written from their tables.

Owns  the page's words around the facts.
Not   what a setting may be or does.
"""

from collections.abc import Iterator

import msgspec

from edgestead.changes import CHANGES
from edgestead.model.settings import (
    ACCOUNT_TYPES,
    DNS_SETTINGS,
    NS_SET,
    SETTINGS,
    SOA,
    SOA_TIMES,
    VENDOR_IDS,
    ZONE_TYPES,
    Setting,
)
from edgestead.usecases.serving.facts import StoredSoa

_DAYS = {change.subject: change.day for change in CHANGES}
_HEAD = """# Settings

<!-- Written by docs/generate.py; change the code instead. -->

What is *stored only* is checked, kept and answered, and changes nothing that this release serves: there is no
cache yet, and other parts have no counterpart here. The answer to a PATCH says so in `messages`.
"""
_ZONE_HEAD = """
## Zone settings

`GET` and `PATCH /zones/{zone_id}/settings`, and `…/settings/{setting}` for one. A PATCH of several changes
all of them or none. An unknown name is 1006, a bad value 1007, a setting that cannot be changed 1057.
"""
_DNS_HEAD = """
## DNS settings

`GET` and `PATCH /zones/{zone_id}/dns_settings`; the same members below `zone_defaults` in
`/accounts/{account_id}/dns_settings` are what new zones get. A PATCH keeps what it does not name, also inside
of `nameservers` and `soa`; true and false are JSON's, no text. Beside `zone_defaults`, `enforce_dns_only`
(default false) has all zones of the account serve proxied records as they are written; where they have more
than 500 records in all, zone by zone a little later.
`internal_dns` is not answered, and its `reference_zone_id` is refused: there are no internal zones.
"""
_AFTER = {
    "removed": "not known any more",
    "fixed": "always `{late}`; a PATCH is accepted and changes nothing",
    "idle": "stored only, `{late}` where it was never set",
}


def page() -> str:
    """docs/reference/settings.md: every setting with its values, default, and what it does."""
    lines = [_HEAD, _ZONE_HEAD]
    for row in SETTINGS.values():
        lines += [f"### {row.id}\n", *_zone_lines(row), ""]
    lines.append(_DNS_HEAD)
    for name in DNS_SETTINGS:
        lines += [f"### {name}\n", *_dns_lines(name), ""]
    return "\n".join(lines)


def _zone_lines(row: Setting) -> Iterator[str]:
    yield f"- values: {row.check.wording}"
    yield f"- default: `{_json(row.default)}`"
    vendor = next((vendor for vendor, own in VENDOR_IDS.items() if own == row.id), None)
    if vendor:
        yield f"- spelling: `{vendor}` is read too, and answered under `--profile clients`"
    if row.alias:
        yield f"- spelling: `{row.alias}` is read in place of `value`, and answered beside it"
    if row.read_only:
        yield "- cannot be changed"
    if row.plan:
        yield f"- can be changed on the plan `{row.plan}`"
    if row.after:
        what = _AFTER[row.after].format(late=row.late_default)
        yield f"- since {_DAYS[row.subject]}: {what}"
    yield f"- effect: {row.effect or 'stored only'}"


def _dns_lines(name: str) -> Iterator[str]:
    row = DNS_SETTINGS[name]
    if name == SOA:
        yield "- `mname`, `rname`: a name, or null for the server's choice (the first name server, and"
        yield "  `hostmaster` in its domain)"
        for member, check in SOA_TIMES.items():
            yield f"- `{member}`: {check.wording} seconds, default {getattr(StoredSoa(), member)}"
        yield "- `retry` ≤ `refresh` ≤ `expire`"
    elif name == "nameservers":
        yield f"- `type`: {', '.join(f'`{one}`' for one in ZONE_TYPES)}"
        yield f"- `type` of an account's defaults: {', '.join(f'`{one}`' for one in ACCOUNT_TYPES)}"
        yield f"- `ns_set`: {NS_SET.wording}"
        yield "- spelling: `cloudflare.…` is read too, and answered under `--profile clients`"
        yield f"- default: `{_json(row.default)}`"
    else:
        yield f"- values: {row.check.wording}"
        yield f"- default: `{_json(row.default)}`"
    if name == "zone_mode":
        yield "- others than `standard` need the plan `enterprise`"
    yield f"- effect: {row.effect or 'stored only'}"


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
