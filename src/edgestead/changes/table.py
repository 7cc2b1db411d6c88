"""The dated rows of the specification, newest first.

Owns  every date, subject, endpoint and replacement of "Deprecations" in the specification.
Not   answers, headers, error messages.

Code asks `changed(subject, as_of)`; an unknown subject is a KeyError, so that a typing mistake cannot
silently choose the old behaviour.
"""

from collections.abc import Iterator
from datetime import date

from edgestead.changes.model import Change, Endpoint, Kind

OLDEST = date(2020, 4, 1)  # the day before the first row
NEWEST = date(2025, 6, 16)  # the day after the last one


def _routes(*lines: str) -> tuple[Endpoint, ...]:
    """`"GET POST /zones/{zone_id}/x"` is two endpoints."""

    def expand() -> Iterator[Endpoint]:
        for line in lines:
            *methods, path = line.split()
            yield from (Endpoint(method, path) for method in methods)

    return tuple(expand())


_RECORDS = _routes(
    "GET POST /zones/{zone_id}/dns_records",
    "GET PATCH PUT /zones/{zone_id}/dns_records/{dns_record_id}",
)
_PHASES = "/zones/{zone_id}/rulesets/phases"
_SETTINGS = _routes("GET PATCH /zones/{zone_id}/settings")
_WAF = "/zones/{zone_id}/firewall/waf"
_PACKAGE = f"{_WAF}/packages/{{package_id}}"
_ORGANIZATION = "/organizations/{organization_identifier}"


def _setting(name: str, methods: str = "GET PATCH") -> tuple[Endpoint, ...]:
    return _routes(f"{methods} /zones/{{zone_id}}/settings/{name}")


CHANGES: tuple[Change, ...] = (
    Change(
        subject="firewall-rules",
        day=date(2025, 6, 15),
        kind=Kind.ENDPOINT,
        removed=True,
        title="Firewall rules and filters",
        replacement="custom rules of the ruleset engine (phase http_request_firewall_custom)",
        endpoints=_routes(
            "GET POST PATCH PUT DELETE /zones/{zone_id}/firewall/rules",
            "GET PATCH PUT DELETE /zones/{zone_id}/firewall/rules/{rule_id}",
            "GET POST PUT DELETE /zones/{zone_id}/filters",
            "GET PUT DELETE /zones/{zone_id}/filters/{filter_id}",
        ),
        successor=f"{_PHASES}/http_request_firewall_custom/entrypoint",
        earlier="the routes answer: firewall rules are custom rules under the same ids, and a filter that"
        " stands alone is a custom rule that is switched off.",
    ),
    Change(
        subject="waf-packages",
        day=date(2025, 6, 15),
        kind=Kind.ENDPOINT,
        removed=True,
        title="Previous managed-rules APIs",
        replacement="managed rulesets (phase http_request_firewall_managed)",
        endpoints=_routes(
            f"GET {_WAF}/packages",
            f"GET PATCH {_PACKAGE}",
            f"GET {_PACKAGE}/groups",
            f"GET PATCH {_PACKAGE}/groups/{{group_id}}",
            f"GET {_PACKAGE}/rules",
            f"GET PATCH {_PACKAGE}/rules/{{rule_id}}",
            f"GET POST {_WAF}/overrides",
            f"GET PUT DELETE {_WAF}/overrides/{{override_id}}",
        ),
        successor=f"{_PHASES}/http_request_firewall_managed/entrypoint",
        earlier="the routes answer: the managed ruleset is the package, its categories are the groups, and"
        " modes are overrides of the rule that executes it. An override by page is a rule that skips rules of"
        " the managed ruleset; it disables rules and groups, other actions are 400.",
    ),
    Change(
        subject="rate-limits",
        day=date(2025, 6, 15),
        kind=Kind.ENDPOINT,
        removed=True,
        title="Previous rate limiting",
        replacement="rate limiting rules of the ruleset engine (phase http_ratelimit)",
        endpoints=_routes(
            "GET POST /zones/{zone_id}/rate_limits",
            "GET PUT DELETE /zones/{zone_id}/rate_limits/{rate_limit_id}",
        ),
        successor=f"{_PHASES}/http_ratelimit/entrypoint",
        earlier="the routes answer: rate limits are rate limiting rules under the same ids.",
    ),
    Change(
        subject="setting-cname-flattening",
        day=date(2025, 3, 21),
        kind=Kind.SETTING,
        title="Zone setting cname_flattening",
        replacement="the DNS setting flatten_all_cnames",
        endpoints=_setting("cname_flattening"),
        affected=_SETTINGS,
        setting="cname_flattening",
        successor="/zones/{zone_id}/dns_settings",
        note="It is another view of `flatten_all_cnames`: `on` is true, `off` and `apex` are false and read"
        " `apex`. Both are one stored value, so a change of either is seen in the other at once.",
    ),
    Change(
        subject="account-nameserver-settings",
        day=date(2025, 3, 14),
        kind=Kind.FIELD,
        title="Account settings default_nameservers and use_account_custom_ns_by_default",
        replacement="the DNS setting zone_defaults.nameservers.type",
        affected=_routes("GET POST /accounts", "GET PUT /accounts/{account_id}"),
        successor="/accounts/{account_id}/dns_settings",
        members=("settings/default_nameservers", "settings/use_account_custom_ns_by_default"),
        note="Both are still taken and answered; they and `zone_defaults.nameservers.type` are one stored"
        " value. `use_account_custom_ns_by_default` is true while that is `custom.account`. Where both are"
        " sent, `default_nameservers` counts. `POST /accounts` is refused at every date: the first start"
        " makes the account.",
    ),
    Change(
        subject="record-zone-fields",
        day=date(2024, 11, 30),
        kind=Kind.FIELD,
        title="zone_id and zone_name in each DNS record",
        replacement="GET /zones/{zone_id}",
        affected=_RECORDS,
        members=("zone_id", "zone_name"),
        note="Answers have neither; requests may go on carrying them.",
    ),
    Change(
        subject="dns-error-chain",
        day=date(2024, 10, 1),
        kind=Kind.FIELD,
        title="Error chains for DNS validation errors",
        replacement="errors themselves, where the root cause stands",
        affected=_routes("POST /zones/{zone_id}/dns_records"),
        note="Until the day what is wrong with a new record stands in the `error_chain` of an error 1004.",
    ),
    Change(
        subject="dns-settings-endpoints",
        day=date(2024, 9, 13),
        kind=Kind.ALIAS,
        title="Dedicated DNS settings endpoints",
        replacement="the DNS settings multi_provider and secondary_overrides",
        endpoints=_routes(
            "GET PATCH /zones/{zone_id}/dns_settings/use_apex_ns",
            "GET PATCH /zones/{zone_id}/dns_settings/secondary_overrides",
        ),
        successor="/zones/{zone_id}/dns_settings",
        note="The routes go on answering: `use_apex_ns` is another view of `multi_provider`. Each is one"
        " stored value with the DNS setting, so a change of either is seen in the other at once.",
    ),
    Change(
        subject="setting-brotli",
        day=date(2024, 8, 15),
        kind=Kind.SETTING,
        title="Brotli setting",
        replacement="compression rules, where the compression of every zone must be overridden",
        endpoints=_setting("brotli"),
        affected=_SETTINGS,
        setting="brotli",
        note="It reads `on`; a PATCH is taken and changes nothing.",
    ),
    Change(
        subject="setting-minify",
        day=date(2024, 8, 5),
        kind=Kind.SETTING,
        title="Auto Minify",
        endpoints=_setting("minify"),
        affected=_SETTINGS,
        setting="minify",
        removed=True,
    ),
    Change(
        subject="record-locked",
        day=date(2024, 7, 14),
        kind=Kind.FIELD,
        title="DNS record field locked",
        affected=_RECORDS,
        members=("locked",),
        note="Until the day answers say `false`. Requests may go on carrying it: it is"
        " ignored at every date.",
    ),
    Change(
        subject="setting-mobile-redirect",
        day=date(2024, 6, 30),
        kind=Kind.SETTING,
        title="Mobile redirect",
        replacement="single redirects (phase http_request_dynamic_redirect)",
        endpoints=_setting("mobile_redirect"),
        affected=_SETTINGS,
        setting="mobile_redirect",
        removed=True,
        successor=f"{_PHASES}/http_request_dynamic_redirect/entrypoint",
    ),
    Change(
        subject="setting-server-side-exclude",
        day=date(2024, 6, 14),
        kind=Kind.SETTING,
        title="Server-side excludes",
        endpoints=_setting("server_side_exclude"),
        affected=_SETTINGS,
        setting="server_side_exclude",
        note="It is stored and answered, and reads `off` where nobody set it; nothing is done with it.",
    ),
    Change(
        subject="srv-data-members",
        day=date(2024, 5, 31),
        kind=Kind.FIELD,
        title="SRV data.service, data.proto and data.name",
        replacement="the record's own name",
        affected=_RECORDS,
        members=("data/service", "data/proto", "data/name"),
        note="Until the day they are answered, and taken instead of the record's own name. Since then one"
        " that is sent is refused with 9102; under `--profile clients` it is ignored.",
    ),
    Change(
        subject="setting-privacy-pass",
        day=date(2024, 3, 31),
        kind=Kind.SETTING,
        title="Legacy anonymous-token zone setting",
        endpoints=_setting("privacy_pass", "GET POST"),
        affected=_SETTINGS,
        setting="privacy_pass",
        removed=True,
        note="The specification names GET and POST; PATCH works like POST until the day.",
    ),
    Change(
        subject="tunnels",
        day=date(2024, 2, 4),
        kind=Kind.ENDPOINT,
        removed=True,
        title="Legacy tunnel API",
        replacement="the current tunnel API",
        endpoints=_routes(
            "GET POST /accounts/{account_id}/tunnels",
            "GET DELETE /accounts/{account_id}/tunnels/{tunnel_id}",
        ),
    ),
    Change(
        subject="draft-chacha20",
        day=date(2023, 7, 1),
        kind=Kind.TRANSPORT,
        title="Legacy draft ChaCha20 TLS 1.2 cipher suites",
        replacement="the standard ChaCha20-Poly1305 suites",
        note="The platform never let a caller choose them, and no date brings them back: the zone setting"
        " `ciphers` refuses them by name and by number.",
    ),
    Change(
        subject="transfer-encoding-with-content-length",
        day=date(2023, 7, 1),
        kind=Kind.TRANSPORT,
        title="Transfer-Encoding with Content-Length",
        replacement="one of the two headers",
        note="Such a request is declined with 400 (code 1400) and its connection closed at every date, also"
        " an earlier one: two readings of one request are how a second one is smuggled past a proxy.",
    ),
    Change(
        subject="billing",
        day=date(2023, 6, 6),
        kind=Kind.ENDPOINT,
        removed=True,
        title="Billing profile and history",
        endpoints=_routes(
            "GET /accounts/{account_id}/billing/profile",
            "GET /user/billing/profile",
            "GET /user/billing/history",
        ),
    ),
    Change(
        subject="notification-email",
        day=date(2023, 4, 3),
        kind=Kind.FIELD,
        title="Load balancing field notification_email",
        replacement="the centralized notification service",
        members=("notification_email",),
        note="There are no load balancers here, so nothing takes or answers the field at any date.",
    ),
    Change(
        subject="access-bookmarks",
        day=date(2023, 3, 19),
        kind=Kind.ENDPOINT,
        removed=True,
        title="Access bookmark applications",
        replacement="access applications of type bookmark",
        endpoints=_routes(
            "GET /accounts/{account_id}/access/bookmarks",
            "GET POST PUT DELETE /accounts/{account_id}/access/bookmarks/{uuid}",
        ),
    ),
    Change(
        subject="script-monitor",
        day=date(2022, 10, 11),
        kind=Kind.ENDPOINT,
        removed=True,
        title="Page Shield routes",
        replacement="the same path with page_shield in place of script_monitor",
        endpoints=_routes(
            "GET POST PUT PATCH DELETE /zones/{zone_id}/script_monitor",
            "GET POST PUT PATCH DELETE /zones/{zone_id}/script_monitor/{path*}",
        ),
        moved=("/script_monitor", "/page_shield"),
        note="The specification names every route that contains `script_monitor`, and no method.",
    ),
    Change(
        subject="images-direct-upload",
        day=date(2022, 7, 1),
        kind=Kind.ENDPOINT,
        removed=True,
        title="Images direct upload v1",
        replacement="version 2 of the same path",
        endpoints=_routes("POST /accounts/{account_id}/images/v1/direct_upload"),
        moved=("/images/v1/", "/images/v2/"),
    ),
    Change(
        subject="zone-analytics",
        day=date(2021, 3, 1),
        kind=Kind.ENDPOINT,
        removed=True,
        title="Zone analytics",
        replacement="the GraphQL analytics API",
        endpoints=_routes(
            "GET /zones/{zone_id}/analytics/dashboard",
            "GET /zones/{zone_id}/analytics/colos",
        ),
    ),
    Change(
        subject="organizations",
        day=date(2020, 4, 2),
        kind=Kind.ENDPOINT,
        removed=True,
        title="Organizations",
        replacement="the accounts API",
        endpoints=_routes(
            f"GET PATCH {_ORGANIZATION}",
            f"GET POST {_ORGANIZATION}/invites",
            f"GET PATCH DELETE {_ORGANIZATION}/invites/{{identifier}}",
            f"GET {_ORGANIZATION}/members",
            f"GET PATCH DELETE {_ORGANIZATION}/members/{{identifier}}",
            f"GET {_ORGANIZATION}/roles",
            f"GET {_ORGANIZATION}/roles/{{identifier}}",
            f"GET {_ORGANIZATION}/audit_logs",
            f"GET POST {_ORGANIZATION}/accelerators",
            f"GET PATCH DELETE {_ORGANIZATION}/accelerators/{{identifier}}",
            f"GET {_ORGANIZATION}/accelerators/{{identifier}}/zones",
        ),
        successor="/accounts",
    ),
)

_DAYS = {change.subject: change.day for change in CHANGES}
_BY_PATH = {endpoint.path: change for change in CHANGES for endpoint in change.endpoints}


def changed(subject: str, as_of: date) -> bool:
    """Whether the new behaviour holds on `as_of` (that day included). Raises KeyError for an unknown
    subject.
    """
    return as_of >= _DAYS[subject]


def ending(path: str) -> Change | None:
    """The row that ended or replaced a whole path, whatever the method; None for a path without one."""
    return _BY_PATH.get(path)
