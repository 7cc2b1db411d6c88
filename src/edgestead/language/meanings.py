"""What each field means, in a few words, for people who write expressions.

Owns  the words, by name or by the beginning of names.
Not   types and defaults (`language.fields`).
"""

from typing import Final

_MEANINGS: Final = {
    "cf.api_gateway": "of schemas of APIs; none are kept",
    "cf.bot_management": "whether a program asks; neutral here",
    "cf.client.bot": "whether a known good program asks; neutral here",
    "cf.colo": "the place that answers",
    "cf.edge.client_tcp": "whether the client uses TCP",
    "cf.edge.l4": "of the connection",
    "cf.edge.server_ip": "the address that the client connected to",
    "cf.edge.server_port": "the port that the client connected to",
    "cf.hostname.metadata": "of the host name",
    "cf.random_seed": "random bytes, others for each request",
    "cf.ray_id": "the number of the request, as answers and events have it",
    "cf.response": "of the platform's own answers",
    "cf.threat_score": "the reputation of the client; neutral here",
    "cf.timings": "how long parts of the exchange took",
    "cf.tls": "of the client's TLS connection",
    "cf.tls_cipher": "the cipher of the connection",
    "cf.tls_client_auth": "of the client's certificate",
    "cf.tls_version": "the version of TLS, such as TLSv1.3",
    "cf.verified_bot_category": "what kind of known program asks; neutral here",
    "cf.waf": "of checks of bodies and passwords; neutral here",
    "cf.waf.score": "how likely an attack is, by a model; neutral here",
    "cf.worker": "the zone of the program that asks",
    "cf.zone.name": "the name of the zone",
    "cf.zone.plan": "the plan of the zone",
    "http.cookie": "the whole Cookie header",
    "http.host": "the host name that was asked for",
    "http.referer": "the Referer header: the page that led here",
    "http.request.accepted_languages": "languages of the Accept-Language header, the preferred first",
    "http.request.body": "of the request's body",
    "http.request.body.form": "fields of a form, by name",
    "http.request.body.form.names": "names of a form's fields",
    "http.request.body.form.values": "values of a form's fields",
    "http.request.body.mime": "the type of the body, as it says",
    "http.request.body.multipart": "parts of a multipart body, by name",
    "http.request.body.raw": "the body as it came",
    "http.request.body.size": "the length of the body in bytes",
    "http.request.body.truncated": "whether the body is longer than what is looked at",
    "http.request.cookies": "cookies, by name",
    "http.request.full_uri": "scheme, host, path and query",
    "http.request.headers": "headers, by name in lower case",
    "http.request.headers.names": "names of the headers, in lower case",
    "http.request.headers.truncated": "whether there are more headers than are looked at",
    "http.request.headers.values": "values of the headers",
    "http.request.method": "GET, POST and so on",
    "http.request.timestamp.msec": "milliseconds within the second of the request",
    "http.request.timestamp.sec": "seconds since 1970 when the request came",
    "http.request.uri": "path and query",
    "http.request.uri.args": "arguments of the query, by name",
    "http.request.uri.args.names": "names of the query's arguments",
    "http.request.uri.args.values": "values of the query's arguments",
    "http.request.uri.path": "the path, in its normal spelling",
    "http.request.uri.path.extension": "what follows the last dot of the path, in lower case",
    "http.request.uri.query": "the query, without its question mark",
    "http.request.version": "the version of HTTP, such as HTTP/1.1",
    "http.response": "of the answer",
    "http.response.code": "the status of the answer",
    "http.response.content_type.media_type": "the type of the answer's body",
    "http.response.headers": "headers of the answer, by name in lower case",
    "http.user_agent": "the User-Agent header: which program asks",
    "http.x_forwarded_for": "the X-Forwarded-For header as it came",
    "ip.src": "the address of the client, behind trusted proxies",
    "ip.src.": "where the client is; needs a source of geographical data",
    "ssl": "whether the client uses TLS",
}
_RAW: Final = "raw."


def meaning_of(name: str) -> str:
    """The words of a field, or of the longest beginning of its name; "" without any.

    >>> meaning_of("raw.http.request.uri")
    'path and query, as it came'
    """
    if name.startswith(_RAW):
        words = meaning_of(name.removeprefix(_RAW))
        return f"{words}, as it came" if words else ""
    found = max((known for known in _MEANINGS if name.startswith(known)), key=len, default="")
    return _MEANINGS.get(found, "")
