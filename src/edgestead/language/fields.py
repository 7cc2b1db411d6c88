"""Every field an expression can name: one row each.

Owns  name, type, direction, slot and default of each field; old names that still work.
Not   how a request yields a value.

A `slot` is the row's place in the table, for this process only. `default` is the value where nothing fills
the field: this platform computes no bot score, yet rules that mention one load and see a neutral value.
"""

import msgspec

from edgestead.language.phases import PHASES, Direction
from edgestead.language.types import BOOL, INT, IP, STRING, Type, Value, array, map_of

# What rate limits may count by and no expression can name; the edge takes the client's address for it.
VISITOR = "cf.unique_visitor_id"

_STRINGS = array(STRING)
_MULTI = map_of(_STRINGS)
_LISTS = array(_STRINGS)


class Field(msgspec.Struct, frozen=True):
    """A row of the table. Response fields exist in response phases only."""

    name: str
    type: Type
    slot: int
    direction: Direction
    default: Value | None


_REQUEST: dict[Type, str] = {
    STRING: """
        http.cookie http.host http.referer http.user_agent http.x_forwarded_for
        http.request.method http.request.version http.request.full_uri http.request.uri
        http.request.uri.path http.request.uri.path.extension http.request.uri.query
        raw.http.request.full_uri raw.http.request.uri raw.http.request.uri.path
        raw.http.request.uri.path.extension raw.http.request.uri.query
        http.request.body.raw http.request.body.mime
        ip.src.country ip.src.continent ip.src.city ip.src.region ip.src.region_code ip.src.postal_code
        ip.src.metro_code ip.src.lat ip.src.lon ip.src.timezone.name
        ip.src.subdivision_1_iso_code ip.src.subdivision_2_iso_code
        cf.zone.name cf.zone.plan cf.ray_id cf.colo.id cf.colo.name cf.colo.region cf.hostname.metadata
        cf.random_seed cf.worker.upstream_zone cf.verified_bot_category cf.waf.score.class
        cf.bot_management.ja3_hash cf.bot_management.ja4
        cf.tls_version cf.tls_cipher cf.tls_client_random cf.tls_ciphers_sha1
        cf.tls_client_extensions_sha1 cf.tls_client_extensions_sha1_le
        cf.tls_client_auth.cert_issuer_dn cf.tls_client_auth.cert_subject_dn
        cf.tls_client_auth.cert_issuer_dn_rfc2253 cf.tls_client_auth.cert_subject_dn_rfc2253
        cf.tls_client_auth.cert_issuer_dn_legacy cf.tls_client_auth.cert_subject_dn_legacy
        cf.tls_client_auth.cert_serial cf.tls_client_auth.cert_issuer_serial
        cf.tls_client_auth.cert_fingerprint_sha256 cf.tls_client_auth.cert_fingerprint_sha1
        cf.tls_client_auth.cert_not_before cf.tls_client_auth.cert_not_after
        cf.tls_client_auth.cert_ski cf.tls_client_auth.cert_issuer_ski
        cf.tls_client_auth.cert_rfc9440 cf.tls_client_auth.cert_chain_rfc9440
    """,
    INT: """
        http.request.timestamp.sec http.request.timestamp.msec http.request.body.size ip.src.asnum
        cf.edge.server_port cf.edge.l4.delivery_rate cf.threat_score cf.tls_client_hello_length
        cf.bot_management.score cf.waf.score cf.waf.score.sqli cf.waf.score.xss cf.waf.score.rce
        cf.waf.content_scan.num_obj cf.waf.content_scan.num_malicious_obj
        cf.timings.client_tcp_rtt_msec cf.timings.client_quic_rtt_msec
    """,
    BOOL: """
        ssl http.request.headers.truncated http.request.body.truncated ip.src.is_in_european_union
        cf.client.bot cf.edge.client_tcp
        cf.bot_management.verified_bot cf.bot_management.static_resource
        cf.bot_management.corporate_proxy cf.bot_management.signed_agent
        cf.bot_management.js_detection.passed
        cf.waf.auth_detected cf.waf.credential_check.password_leaked
        cf.waf.credential_check.username_leaked cf.waf.credential_check.username_and_password_leaked
        cf.waf.credential_check.username_password_similar
        cf.waf.content_scan.has_obj cf.waf.content_scan.has_malicious_obj cf.waf.content_scan.has_failed
        cf.tls_client_auth.cert_presented cf.tls_client_auth.cert_verified cf.tls_client_auth.cert_revoked
        cf.tls_client_auth.cert_rfc9440_too_large cf.tls_client_auth.cert_chain_rfc9440_too_large
        cf.api_gateway.auth_id_present cf.api_gateway.request_violates_schema
        cf.api_gateway.fallthrough_detected
    """,
    IP: "ip.src cf.edge.server_ip",
    _STRINGS: """
        http.request.uri.args.names http.request.uri.args.values
        raw.http.request.uri.args.names raw.http.request.uri.args.values
        http.request.headers.names http.request.headers.values
        http.request.body.form.names http.request.body.form.values http.request.body.multipart.values
        http.request.accepted_languages
        cf.waf.content_scan.obj_types cf.waf.content_scan.obj_results
    """,
    _LISTS: """
        http.request.body.multipart.names http.request.body.multipart.filenames
        http.request.body.multipart.content_types http.request.body.multipart.content_dispositions
        http.request.body.multipart.content_transfer_encodings
    """,
    array(INT): "cf.bot_management.detection_ids cf.waf.content_scan.obj_sizes",
    _MULTI: """
        http.request.uri.args raw.http.request.uri.args http.request.headers http.request.cookies
        http.request.body.form http.request.body.multipart
    """,
}
_RESPONSE: dict[Type, str] = {
    INT: """
        http.response.code cf.response.1xxx_code cf.timings.edge_msec cf.timings.origin_ttfb_msec
        cf.timings.worker_msec
    """,
    STRING: "http.response.content_type.media_type cf.response.error_type",
    _STRINGS: """
        http.response.headers.names http.response.headers.values
        raw.http.response.headers.names raw.http.response.headers.values
    """,
    _MULTI: "http.response.headers raw.http.response.headers",
}
# Headers with fields of their own are empty where absent: `http.user_agent eq ""` finds who sends none.
# Neutral values of what this platform does not compute: no threat seen, "not scored" (100), human (99).
_DEFAULTS: dict[str, Value] = {
    **dict.fromkeys(("http.cookie", "http.referer", "http.user_agent", "http.x_forwarded_for"), b""),
    "cf.threat_score": 0,
    "cf.waf.score": 100,
    "cf.waf.score.sqli": 100,
    "cf.waf.score.xss": 100,
    "cf.waf.score.rce": 100,
    "cf.bot_management.score": 99,
    "cf.waf.content_scan.num_obj": 0,
    "cf.waf.content_scan.num_malicious_obj": 0,
    "cf.worker.upstream_zone": b"",
}
# Old names of the v4 API that rules still use.
ALIASES: dict[str, str] = {
    "http.request.accept_languages": "http.request.accepted_languages",
    **{
        f"ip.geoip.{part}": f"ip.src.{part}"
        for part in (
            "asnum", "country", "continent", "is_in_european_union",
            "subdivision_1_iso_code", "subdivision_2_iso_code",
        )
    },
}  # fmt: skip


def _rows() -> dict[str, Field]:
    rows: dict[str, Field] = {}
    for direction, groups in ((Direction.REQUEST, _REQUEST), (Direction.RESPONSE, _RESPONSE)):
        for type_, names in groups.items():
            for name in names.split():
                default = _DEFAULTS.get(name, False if type_ == BOOL else None)
                rows[name] = Field(name, type_, len(rows), direction, default)
    return rows


FIELDS: dict[str, Field] = _rows()


def find(name: str, phase: str, *, with_response: bool = False) -> Field | None:
    """The field that a name means in a phase, by its own or an old name; None when there is none.

    `with_response` adds the response fields, as a rate limit's counting expression may use them.
    """
    field = FIELDS.get(ALIASES.get(name, name))
    direction = PHASES[phase]
    if field is None or direction is Direction.NETWORK:
        return None
    if field.direction is Direction.RESPONSE and direction is Direction.REQUEST and not with_response:
        return None
    return field
