"""Proofs that a zone is ours: what an authority asks for (RFC 8555 §8.3 and §8.4, RFC 8737).

Owns  how they are kept; their names and RRsets, and how they stand beside what users have there.
Not   which proofs there are (`usecases.certificate.orders`).

A proof is served like a record, signed where the zone is, and is in no list, export or history. Beside TXT
records of users it is one more; a CNAME at its name gives way to it for the minutes that a proof takes.
Where DNS is elsewhere, the edge shows them: a page by its host and token, a certificate by its host.
"""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from edgestead.model.records import TYPES
from edgestead.model.served import ServedRRset

LABEL: Final = "_acme-challenge"
TTL_SECONDS: Final = 60
TXT, HTTP, TLS_ALPN = "txt", "http", "tls-alpn"
_TXT, _CNAME = TYPES["TXT"].number, TYPES["CNAME"].number


class Proof(NamedTuple):
    """`token` is the page's name, empty for other methods."""

    method: str
    host: str
    token: str
    value: str


def kept_as(proof: Proof) -> str:
    """The name that its row has: of the record, or what no record can be called."""
    if proof.method == TXT:
        return name_of(proof.host)
    return f"{proof.method}/{proof.host}/{proof.token}"


def at_the_edge(name: str, value: str) -> Proof | None:
    """The proof of a row; None for a record."""
    method, _, rest = name.partition("/")
    host, _, token = rest.partition("/")
    return Proof(method, host, token, value) if host else None


def name_of(host: str) -> str:
    """Where the proof for a host, or for all names below one, is looked for."""
    return f"{LABEL}.{host.removeprefix('*.')}"


def is_name(name: str) -> bool:
    return name.startswith(f"{LABEL}.")


def beside(plain: Iterable[ServedRRset], values: Sequence[str]) -> tuple[ServedRRset, ...]:
    """What a name serves with proofs."""
    others = [rrset for rrset in plain if not rrset.is_mark and rrset.type != _CNAME]
    there = [rrset for rrset in others if rrset.type == _TXT]
    rdatas = {bytes((len(value),)) + value.encode() for value in values}
    rdatas.update(rdata for rrset in there for rdata in rrset.rdatas)
    ttl_seconds = min([TTL_SECONDS, *(rrset.ttl_seconds for rrset in there)])
    txt = ServedRRset(_TXT, ttl_seconds, tuple(sorted(rdatas)))
    kept = [rrset for rrset in others if rrset.type != _TXT]
    return tuple(sorted([*kept, txt], key=lambda rrset: rrset.type))
