"""DNS over HTTPS (RFC 8484): a query as a request, its reply as the answer.

Owns  the path, what makes a request none, how long an answer may be kept.
Not   HTTP (`http1`, `http2`), TLS (`arrivals`), what is answered (`answer`).

What is wrong with a request is said in HTTP; what is wrong with a query that could be read, in DNS, with
status 200 (§4.2.1). A transfer is refused: it has no place in one message.
"""

import base64
import binascii
from collections.abc import Coroutine
from typing import Any, Final

from edgestead.dns import wire
from edgestead.dns.answer import Responder
from edgestead.dns.counters import Slot, Tally
from edgestead.dns.keyring import Keyring
from edgestead.dns.outcome import NOERROR, NXDOMAIN
from edgestead.dns.ring import octets_of
from edgestead.dns.settings import DnsSettings
from edgestead.dns.table import Table
from edgestead.dns.watch import Watch
from edgestead.http1.messages import BodyBroken, BodyTooLarge, Request, Response

PATH: Final = b"/dns-query"  # RFC 8484 §4.1 names it in every example, and clients assume it
MEDIA_TYPE: Final = b"application/dns-message"
QUERY_OCTETS_MIN: Final = 12  # a header, RFC 1035 §4.1.1
QUERY_OCTETS_MAX: Final = 4096
"""As over TCP; RFC 8484 §6 allows more."""

_ID: Final = 2
_COUNTS_AT: Final = 2
_NAME_AT: Final = 10
_RCODE: Final = 0x0F
_KIND_OCTETS: Final = 4
_RR_BODY_OCTETS: Final = 10
_LASTING: Final = (NOERROR, NXDOMAIN)
_NOT_FOR_URLS: Final = frozenset(b"=+/")  # RFC 4648 §5
_TEXT: Final = (b"content-type", b"text/plain; charset=utf-8")


class Https:
    """The handler of an `http1.server`, on the loop that applies changes as well."""

    def __init__(
        self, served: Table, tally: Tally, settings: DnsSettings, watch: Watch, keyring: Keyring
    ) -> None:
        self._table, self._counts, self._watch = served, tally.counts, watch
        self._client = b""
        self.responder = Responder(
            served, tally, settings, lambda _: self._client, udp=False, encrypted=True, keyring=keyring
        )

    def __call__(self, request: Request) -> Response | Coroutine[Any, Any, Response | None]:
        path, _, question = request.target.partition(b"?")
        if path != PATH:
            return refuse(404, "Queries go to /dns-query.")
        if request.method in ("GET", "HEAD"):
            query = _from_target(question)
            if query is None:
                return refuse(400, "A GET carries one query as dns=, in base64url without padding.")
            return self._answer(query, request.client)
        if request.method != "POST":
            answer = refuse(405, "Queries come by GET or POST.")
            answer.headers.append((b"allow", b"GET, HEAD, POST"))
            return answer
        if _media_type(request.header(b"content-type")) != MEDIA_TYPE:
            return refuse(415, "A POST carries one query as application/dns-message.")
        whole = request.body.taken_whole(QUERY_OCTETS_MAX)
        return self._answer_later(request) if whole is None else self._answer(whole, request.client)

    async def _answer_later(self, request: Request) -> Response | None:
        try:
            return self._answer(await request.body.read(QUERY_OCTETS_MAX), request.client)
        except BodyTooLarge:
            return refuse(413, f"A query has {QUERY_OCTETS_MAX} octets at most.")
        except BodyBroken:
            return None

    def _answer(self, message: bytes, client: str) -> Response:
        if not QUERY_OCTETS_MIN <= len(message) <= QUERY_OCTETS_MAX:
            return refuse(413 if len(message) > QUERY_OCTETS_MAX else 400, "This is no DNS query.")
        reply = self._reply(message[_ID:], octets_of(client))
        if reply is None:
            return refuse(400, "This is no DNS query.")
        kept = b"max-age=%d" % freshness_seconds(reply)
        headers = [(b"content-type", MEDIA_TYPE), (b"cache-control", kept)]
        return Response(200, headers, message[:_ID] + reply)

    def _reply(self, query: bytes, client: bytes) -> bytes | None:
        responder, counts = self.responder, self._counts
        self._client = client
        with self._table.lock:
            reply = responder.exact_of_now().get(query)
            counts[Slot.QUERIES] += 1
            counts[Slot.QUERIES_HTTPS] += 1
            if reply is not None:
                counts[Slot.CACHE_HITS] += 1
                counts[Slot.NOERROR] += 1
            else:
                try:
                    reply = responder.reply(query, 0)
                except Exception:
                    reply = responder.failed(query)
            shown = self._watch.due(1) if reply is not None else 0
            if reply is not None and shown:
                self._watch.see(reply, client, shown, self._table.view.zones)
        return reply


def refuse(status: int, reason: str, client: str = "") -> Response:
    """An answer without DNS."""
    return Response(status, [_TEXT], reason.encode() + b"\n")


def freshness_seconds(reply: bytes) -> int:
    """How long a reply of ours, without its ID, may be kept: as long as its first record to end (§5.1).

    Without an answer that is the SOA, whose TTL in a denial is that of the denial; a failure is not kept.
    """
    qd, an, ns = (int.from_bytes(reply[i : i + 2], "big") for i in range(_COUNTS_AT, _COUNTS_AT + 6, 2))
    if reply[1] & _RCODE not in _LASTING or not an + ns:
        return 0
    at = wire.skip_name(reply, _NAME_AT) + _KIND_OCTETS if qd else _NAME_AT
    least = None
    for _ in range(an or ns):
        at = wire.skip_name(reply, at)
        seconds = int.from_bytes(reply[at + 4 : at + 8], "big")
        least = seconds if least is None else min(least, seconds)
        at += _RR_BODY_OCTETS + int.from_bytes(reply[at + 8 : at + 10], "big")
    return least or 0


def _from_target(question: bytes) -> bytes | None:
    """The query of a GET; None for what is none."""
    found = [part[4:] for part in question.split(b"&") if part.startswith(b"dns=")]
    if len(found) != 1 or _NOT_FOR_URLS.intersection(found[0]):
        return None
    try:
        return base64.b64decode(found[0] + b"=" * (-len(found[0]) % 4), b"-_", validate=True)
    except binascii.Error:
        return None


def _media_type(value: bytes | None) -> bytes:
    return (value or b"").partition(b";")[0].strip().lower()
