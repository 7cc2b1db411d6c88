"""The reference page of the fields that the edge fills.

Owns  the page's words around the facts.
Not   what a field means.
"""

from edgestead.edge.rules.fields import BODY_OCTETS_SEEN_MAX, KNOWN
from edgestead.language import FIELDS
from edgestead.language.fields import Field

_HEAD = f"""# Fields at the edge

<!-- Written by docs/generate.py; change the code instead. -->
Which [fields](fields.md) have a request's value at the edge, and which only their default, for the
reason that stands beside it. A rule that asks for one of the latter is taken and does what its default says.

Where a rule asks for a body, the edge holds up to {BODY_OCTETS_SEEN_MAX:,} bytes of it before it decides,
and that is what the fields show: of a form or a multipart body the parts that begin there, the last one as
far as it is there. What follows goes to the origin unseen by expressions (managed rules look at later parts,
too), so a rule that must not be passed by asks for more: `… or http.request.body.truncated`. Requests that no
rule looks into are not held.

## With a value

| Field | Type |
| --- | --- |
"""
_DEFAULTS = """
## With a default only

| Field | Type | Default | Why |
| --- | --- | --- | --- |
"""
# By the longest prefix of a field's name.
_REASONS = {
    "cf.api_gateway": "no schemas of APIs are kept",
    "cf.bot_management": "no programs are told from people, no lists of good ones are kept",
    "cf.client.bot": "no lists of good programs are kept",
    "cf.colo": "there is one location, and it has no name",
    "cf.edge.l4": "not asked of the kernel",
    "cf.hostname.metadata": "there are no custom host names",
    "cf.response": "the edge's own pages are told apart by `http.response.code` alone",
    "cf.threat_score": "no reputations of addresses are kept",
    "cf.timings": "not measured: no request asks for the time on its way",
    "cf.timings.client_quic_rtt_msec": "no HTTP/3",
    "cf.timings.worker_msec": "no programs run at the edge",
    "cf.tls_client_auth": "no client certificates are asked for",
    "cf.verified_bot_category": "no lists of good programs are kept",
    "cf.waf": "bodies are not searched for credentials or viruses; managed rules have a score of their own",
    "cf.waf.score": "needs a trained model; managed rules have a score of their own",
    "cf.worker": "no programs run at the edge",
    "http.request.headers.truncated": "never true: a head that is too large is refused",
    "ip.src": "needs a database of networks and places, which is not part of this",
}


def page() -> str:
    """docs/reference/edge-fields.md."""
    known = [field for field in FIELDS.values() if field.name in KNOWN]
    others = [field for field in FIELDS.values() if field.name not in KNOWN]
    return _HEAD + _rows(known) + _DEFAULTS + _rows(others, with_default=True)


def _rows(fields: list[Field], *, with_default: bool = False) -> str:
    lines = []
    for field in sorted(fields, key=lambda one: one.name):
        line = f"| `{field.name}` | `{field.type}` |".replace("Bytes", "String")
        lines.append(f"{line} {_default(field)} | {_reason(field)} |\n" if with_default else f"{line}\n")
    return "".join(lines)


def _reason(field: Field) -> str:
    """Raises KeyError: every field that is not filled says why."""
    name = field.name
    while name not in _REASONS and "." in name:
        name = name.rpartition(".")[0]
    return _REASONS[name]


def _default(field: Field) -> str:
    default = field.default
    if default is None:
        return "missing"
    if isinstance(default, bool):
        return f"`{str(default).lower()}`"
    return f"`{default}`" if isinstance(default, int) else '`""`'
