"""The settings of a zone, and its DNS settings: one row each.

Owns  every setting's name, default, values, plan and effect, and the subject of the change that ended it.
Not   values that were set (`tables.settings`); what a date, a plan or a profile makes of a row
      (`usecases.zone.settings`, `usecases.zone.dns_settings`).

Defaults and values are the contract's "Zone settings" and "DNS settings". An empty `effect` means: stored and
answered, no more.
"""

from typing import Any, Literal, NamedTuple

from edgestead.model.checks import Between, Check, Choice, Flag, Line, Listed, Members, Text, Texts
from edgestead.model.ciphers import Ciphers

CHALLENGE_SECONDS_MAX = 31_536_000  # contract: a year is the longest `challenge_ttl`
DEVELOPMENT_SECONDS = 10_800  # contract: on lasts three hours
ACME_VALIDATION = "acme_validation"
CNAME_FLATTENING = "cname_flattening"
DEVELOPMENT_MODE = "development_mode"

LIST_CHARACTERS_MAX = 4_096  # ours: of a list in one text, 16 names of full length
H2_STREAMS_MAX = 1_000  # ours: ten times the default
WAF_BODY_BYTES_MAX = 131_072  # ours: what the edge holds of a body that is inspected
WAF_ARGUMENTS_MAX = 5_000  # ours: five times the default; the work of one request is limited besides

_ON_OFF = Choice(("on", "off"))
_FLAG = Flag()
_WEEK = (72_000, 86_400, 172_800, 259_200, 345_600, 432_000, 518_400, 604_800)
_DAYS = (
    *(72_000, 86_400, 172_800, 259_200, 345_600, 432_000),
    *(691_200, 1_382_400, 2_073_600, 2_678_400, 5_356_800, 16_070_400, 31_536_000),
)
_APO = {
    "enabled": False,
    "cf": False,
    "wordpress": False,
    "wp_plugin": False,
    "hostnames": [],
    "cache_by_device_type": False,
}
_APO_MEMBERS = {name: Texts() if default == [] else _FLAG for name, default in _APO.items()}
_HSTS = {
    "enabled": False,
    "max_age": 0,
    "include_subdomains": False,
    "preload": False,
    "nosniff": False,
}
FLATTENING = {
    "off": "apex",
    "apex": "apex",
    "on": "on",
    "flatten_none": "apex",
    "flatten_at_root": "apex",
    "flatten_all": "on",
}
"""What may be sent as `cname_flattening`, and what it is in our spelling."""


class Setting(NamedTuple):
    """One row.

    `plan` is the plan it needs to be changed, empty for every plan; `read_only` none. `alias` is a second
    name of `value`, which clients send and read in its place. `subject` names the dated change that ended
    it, and `after` what is left then: `removed`, not known any more; `fixed`, always `late_default`; `idle`,
    stored as before, `late_default` when never set.
    """

    id: str
    default: Any
    check: Check = _ON_OFF
    effect: str = ""
    plan: str = ""
    read_only: bool = False
    alias: Literal["", "enabled"] = ""
    subject: str = ""
    after: Literal["", "removed", "fixed", "idle"] = ""
    late_default: Any = None


_ROWS = (
    Setting("0rtt", "off"),
    Setting(
        ACME_VALIDATION,
        "txt",
        Choice(("txt", "http", "tls-alpn")),
        effect="of this server alone: how an authority sees that the zone's names lead here. `txt` is a"
        " record of the zone; where its DNS is elsewhere, `http` is a page at port 80, `tls-alpn` a handshake"
        " at port 443, for each proxied name but no wildcard",
    ),
    Setting("advanced_ddos", "on", read_only=True),
    Setting(
        "aegis",
        {"enabled": False, "pool_id": None},
        Members({"enabled": _FLAG, "pool_id": Text()}),
    ),
    Setting("always_online", "on"),
    Setting(
        "always_use_https",
        "off",
        effect="the edge redirects plain requests to https",
    ),
    Setting(
        "ambiguous_paths",
        "auto",
        Choice(("auto", "refuse", "normalise", "pass")),
        effect="of this server alone: what the edge does with paths that hold an escaped slash or backslash,"
        " a backslash, `;`, `%00` or `%u`. `refuse` answers 400; `normalise` asks the origin for the path in"
        " its normal spelling, with slashes for escaped ones and without `;` and what follows it in a"
        " segment; `pass` sends what came; `auto` refuses where a custom rule, a rate limit or a rule of the"
        " managed phase looks at paths, and passes elsewhere",
    ),
    Setting("automatic_https_rewrites", "on"),
    Setting("automatic_platform_optimization", _APO, Members(_APO_MEMBERS)),
    Setting("brotli", "off", subject="setting-brotli", after="fixed", late_default="on"),
    Setting(
        "browser_cache_ttl",
        14_400,
        Listed(
            (0, 30, 60, 120, 300, 1200, 1800, 3600, 7200, 10800, 14400, 18000, 28800, 43200, 57600, *_DAYS)
        ),
    ),
    Setting("browser_check", "on"),
    Setting("cache_level", "aggressive", Choice(("aggressive", "basic", "simplified"))),
    Setting(
        "challenge_ttl",
        1_800,
        Listed(
            (
                *(300, 900, 1800, 2700, 3600, 7200, 10800, 14400, 28800, 57600, 86400, 604800, 2592000),
                CHALLENGE_SECONDS_MAX,
            )
        ),
        effect="seconds that a passed challenge holds; made shorter, it asks those anew who have longer left",
    ),
    Setting("china_network_enabled", "off"),
    Setting(
        "ciphers",
        [],
        Ciphers(),
        effect="ciphers of TLS 1.2 at the edge, by OpenSSL's names; none means modern ones with forward"
        " secrecy",
    ),
    Setting(
        CNAME_FLATTENING,
        "apex",
        Choice(tuple(FLATTENING)),
        effect="another view of the DNS setting `flatten_all_cnames`: `on` is true, the others are false and"
        " read `apex`",
    ),
    Setting(
        "compression",
        "careful",
        Choice(("off", "careful", "on")),
        effect="of this server alone: whether the edge compresses answers with zstd, brotli or gzip, as the"
        " client accepts them and rules of the phase `http_response_compression` say. `careful` leaves alone"
        " what answers a request with a cookie or `Authorization`, unless the browser says that a page of the"
        " same origin asked: else a foreign page could learn a secret from the length (BREACH)",
    ),
    Setting("content_converter", "off"),
    Setting(
        DEVELOPMENT_MODE,
        "off",
        effect="`on` ends by itself after three hours; the zone's `development_mode` counts the seconds",
    ),
    Setting("early_hints", "off"),
    Setting(
        "edge_cache_ttl",
        7_200,
        Listed((30, 60, 300, 1200, 1800, 3600, 7200, 10800, 14400, 18000, 28800, 43200, 57600, *_WEEK)),
    ),
    Setting("email_obfuscation", "on"),
    Setting("fonts", "off"),
    Setting("h2_prioritization", "off", Choice(("on", "off", "custom"))),
    Setting("hotlink_protection", "off"),
    Setting(
        "http2",
        "off",
        effect="the edge speaks HTTP/2 over TLS; proxied names answer HTTPS records that offer it",
    ),
    Setting("http3", "off", effect="proxied names answer HTTPS records that offer HTTP/3"),
    Setting("image_resizing", "off", Choice(("on", "off", "open"))),
    Setting("ip_geolocation", "on"),
    Setting("ipv6", "on", effect="`off`: proxied names have no AAAA record; the edge goes on to listen"),
    Setting("log_to_edge", "on"),
    Setting("long_lived_grpc", "off"),
    Setting(
        "max_upload",
        100,
        Listed((100, 200, 500)),
        effect="megabytes of a request's body that the edge takes",
    ),
    Setting(
        "min_tls_version",
        "1.0",
        Choice(("1.0", "1.1", "1.2", "1.3")),
        effect="at the edge; `1.0` and `1.1` mean 1.2, which is the least there is",
    ),
    Setting(
        "minify",
        {"css": "off", "html": "off", "js": "off"},
        Members({"css": _ON_OFF, "html": _ON_OFF, "js": _ON_OFF}),
        subject="setting-minify",
        after="removed",
    ),
    Setting("mirage", "off"),
    Setting(
        "mobile_redirect",
        {"status": "off", "mobile_subdomain": None, "strip_uri": False},
        Members({"status": _ON_OFF, "mobile_subdomain": Text(), "strip_uri": _FLAG}),
        subject="setting-mobile-redirect",
        after="removed",
    ),
    Setting("nel", {"enabled": False}, Members({"enabled": _FLAG})),
    Setting("opportunistic_encryption", "on"),
    Setting("opportunistic_onion", "off"),
    Setting("orange_to_orange", "off"),
    Setting("origin_error_page_pass_thru", "off"),
    Setting(
        "origin_h2_max_streams",
        100,
        Between(1, H2_STREAMS_MAX),
        effect="requests at a time on one connection of HTTP/2 to an origin, as far as that takes so many",
    ),
    Setting(
        "origin_h2c",
        "off",
        effect="of this server alone: origins that are asked without TLS are asked in HTTP/2, which they have"
        " to know (h2c by prior knowledge)",
    ),
    Setting(
        "origin_max_http_version",
        "2",
        Choice(("1", "2")),
        effect="`2`: origins that are asked over TLS are offered HTTP/2 and choose; `1`: they are not",
    ),
    Setting("polish", "off", Choice(("off", "lossless", "lossy"))),
    Setting("pq_keyex", "off"),
    Setting("pre_render", "off"),
    Setting("prefetch_preload", "off"),
    Setting("privacy_pass", "on", subject="setting-privacy-pass", after="removed"),
    Setting(
        "proxy_read_timeout",
        100,
        Between(1, 6_000),
        plan="enterprise",
        effect="seconds that the edge waits for an origin's answer to begin",
    ),
    Setting("pseudo_ipv4", "off", Choice(("off", "add_header", "overwrite_header"))),
    Setting("redirects_for_ai_training", "off"),
    Setting("replace_insecure_js", "off"),
    Setting("response_buffering", "off"),
    Setting("rocket_loader", "off"),
    Setting("search_for_agents", "off"),
    Setting(
        "security_header",
        {"strict_transport_security": _HSTS},
        Members(
            {
                "strict_transport_security": Members(
                    {
                        "enabled": _FLAG,
                        "max_age": Between(0, 31_536_000),
                        "include_subdomains": _FLAG,
                        "preload": _FLAG,
                        "nosniff": _FLAG,
                    }
                )
            }
        ),
        effect="answers over TLS ask browsers to come over TLS only (HSTS) and, with `nosniff`, to guess no"
        " types",
    ),
    Setting(
        "security_level",
        "medium",
        Choice(("off", "essentially_off", "low", "medium", "high", "under_attack")),
        effect="`under_attack` challenges everybody; the others change nothing",
    ),
    Setting(
        "server_side_exclude",
        "on",
        subject="setting-server-side-exclude",
        after="idle",
        late_default="off",
    ),
    Setting("sha1_support", "off"),
    Setting("sort_query_string_for_cache", "off"),
    Setting(
        "ssl",
        "off",
        Choice(("off", "flexible", "full", "strict", "origin_pull")),
        effect="how the edge asks origins for those who came over TLS: `off` and `flexible` in plain text,"
        " `full` over TLS with any certificate, `strict` and `origin_pull` with a valid one; who came without"
        " TLS is passed on without",
    ),
    Setting("ssl_recommender", False, _FLAG, alias="enabled"),
    Setting("tls_1_2_only", "off"),
    Setting("tls_1_3", "off", Choice(("on", "off", "zrt"))),
    Setting("tls_client_auth", "on"),
    Setting("transformations", "off", Choice(("on", "off", "open"))),
    Setting("transformations_allowed_origins", "*", Line(LIST_CHARACTERS_MAX)),
    Setting("true_client_ip_header", "off"),
    Setting("visitor_ip", "on"),
    Setting("waf", "off"),
    Setting(
        "waf_arguments",
        1_000,
        Between(1, WAF_ARGUMENTS_MAX),
        effect="of this server alone: how many arguments of query and body managed rules inspect; a request"
        " with more is refused",
    ),
    Setting(
        "waf_body_bytes",
        WAF_BODY_BYTES_MAX,
        Between(1_024, WAF_BODY_BYTES_MAX),
        effect="of this server alone: how many bytes of a body managed rules inspect, without files",
    ),
    Setting(
        "waf_body_rest",
        "refuse",
        Choice(("refuse", "pass")),
        effect="of this server alone: what becomes of a form, JSON or XML body that is larger than what is"
        " inspected. `pass` has its beginning inspected, lets the rest by, and says so in an event",
    ),
    Setting(
        "waf_packed_bodies",
        "refuse",
        Choice(("refuse", "unpack", "pass")),
        effect="of this server alone: what becomes of a form, JSON, XML or multipart body with a"
        " Content-Encoding. `unpack` has gzip, deflate, br and zstd inspected as they are without it, up to"
        " `waf_body_bytes`; `pass` lets it by uninspected, and says so in an event",
    ),
    Setting("webmcp_enabled", "off"),
    Setting("webmcp_packs", "", Line(LIST_CHARACTERS_MAX)),
    Setting("webp", "off"),
    Setting(
        "websockets",
        "off",
        effect="the edge passes on requests to upgrade to WebSocket",
    ),
)
SETTINGS: dict[str, Setting] = {row.id: row for row in _ROWS}

# The original vendor's spelling: read in both profiles, answered by `clients`.
VENDOR_IDS = {"log_to_cloudflare": "log_to_edge"}

CUSTOM_ACCOUNT = "custom.account"
CUSTOM_ZONE = "custom.zone"
STANDARD = "edge.standard"
NAMESERVERS = "nameservers"
SOA = "soa"
ZONE_TYPES = (STANDARD, "edge.advanced", CUSTOM_ACCOUNT, "custom.tenant", CUSTOM_ZONE)
ACCOUNT_TYPES = (STANDARD, "edge.standard.random", "edge.advanced", CUSTOM_ACCOUNT, "custom.tenant")
NS_SET = Between(1, 5)
SOA_TIMES: dict[str, Check] = {
    "refresh": Between(600, 86_400),
    "retry": Between(600, 3_600),
    "expire": Between(86_400, 2_419_200),
    "min_ttl": Between(60, 86_400),
    "ttl": Between(300, 86_400),
}


class DnsSetting(NamedTuple):
    """One row. `effect` empty means: stored and answered, nothing more; so are the values of `idle`."""

    default: Any
    check: Check
    effect: str = ""
    idle: tuple[str, ...] = ()

    def is_idle(self, value: Any) -> bool:
        return not self.effect or value in self.idle


DNS_SETTINGS: dict[str, DnsSetting] = {
    "flatten_all_cnames": DnsSetting(
        False,
        Flag(),
        "every CNAME answers its target's addresses; false flattens the apex, and records that ask for it",
    ),
    "foundation_dns": DnsSetting(False, Flag()),
    "multi_provider": DnsSetting(
        False, Flag(), "NS records at the apex are served beside the zone's own name servers"
    ),
    NAMESERVERS: DnsSetting(
        {"type": STANDARD, "ns_set": 1},
        Choice(ZONE_TYPES),
        "the NS set of the apex, and the first name in the SOA. `edge.*` and `custom.tenant` are the server's"
        " own (`--nameserver`), `custom.account` the account's custom name servers of set `ns_set`,"
        " `custom.zone` the zone's `vanity_name_servers`",
    ),
    "ns_ttl": DnsSetting(86_400, Between(30, 86_400), "the TTL of the apex's NS records"),
    "secondary_overrides": DnsSetting(False, Flag()),
    SOA: DnsSetting(None, Choice(()), "the zone's SOA record; its serial is the server's"),
    "zone_mode": DnsSetting(
        "standard",
        Choice(("standard", "cdn_only", "dns_only")),
        "`dns_only` serves proxied records as they are written; `cdn_only` is stored only",
        idle=("cdn_only",),
    ),
}
