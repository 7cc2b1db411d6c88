"""What a line of the access log may hold, by name, and its forms.

Owns  the names, for the configuration and the edge, and what each means.
Not   where the edge finds them (`edge.access.lines`).
"""

from typing import Final

FORMS: Final = ("json", "common", "combined")
FIELDS: Final = {
    "time": "when the answer was complete, RFC 3339 in UTC",
    "ray": "the request's id, as the client and the origin see it",
    "client": "the address that counts: behind a trusted proxy, its client's",
    "peer": "who was connected",
    "zone": "the zone's name; empty where no zone was found",
    "host": "who was asked for",
    "method": "the request's method",
    "target": "path and query as they were sent; values of secret names are hidden",
    "version": "`HTTP/1.1`, `HTTP/2`",
    "scheme": "`http` or `https`",
    "status": "the answer's; 499 where the client left before there was one",
    "bytes": "of the answer's body, as they were handed on to the client's connection",
    "milliseconds": "from the request's head to the answer's last byte",
    "referer": "the header `Referer`, secrets hidden",
    "user_agent": "the header `User-Agent`",
    "trace_id": "of the header `traceparent`, which origins get as it came",
    "tls_version": "`TLSv1.3`; empty without TLS",
    "tls_cipher": "OpenSSL's name of the cipher",
}
USUAL: Final = tuple(name for name in FIELDS if name not in ("peer", "tls_version", "tls_cipher"))
