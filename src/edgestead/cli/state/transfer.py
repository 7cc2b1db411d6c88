"""Zones of a name server that gives them away, as a document.

Owns  the transfer, and records as the API would show them.
Not   comparing. Imports dnspython when it is called.
"""

from collections.abc import Collection
from typing import Any

from edgestead.cli.failure import Failed
from edgestead.cli.state.document import Json, record_form

SECONDS_MAX = 60.0  # of one transfer
PORT = 53


def transferred(server: str, zones: Collection[str]) -> Json:
    """Raises Failed."""
    import socket

    import dns.exception
    import dns.query
    import dns.zone

    host, port = _address(server)
    found = {}
    for name in zones:
        try:
            address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][4][0]
            made = dns.zone.from_xfr(
                dns.query.xfr(str(address), name, port=port, lifetime=SECONDS_MAX, relativize=False),
                relativize=False,
            )
        except (dns.exception.DNSException, OSError, EOFError) as error:
            reason = str(error) or type(error).__name__
            raise Failed(
                f"{server} does not give away {name}: {reason}.", "Does it allow transfers to here?"
            ) from None
        found[name] = {"records": [record_form(one, name) for one in _records(made, name)]}
    return {"zones": found}


def _address(server: str) -> tuple[str, int]:
    host, colon, port = server.rpartition(":")
    if not colon or host.endswith(":") or not port.isdigit():
        return server.strip("[]"), PORT
    return host.strip("[]"), int(port)


def _records(zone: Any, apex: str) -> list[Json]:
    import dns.rdatatype

    found = []
    for name, ttl, rdata in zone.iterate_rdatas():
        owner, type_ = name.to_text(omit_final_dot=True), dns.rdatatype.to_text(rdata.rdtype)
        if type_ == "SOA" or (type_ == "NS" and owner == apex):
            continue
        record: Json = {"name": owner, "type": type_, "ttl": ttl}
        if type_ == "MX":
            record |= {"priority": rdata.preference, "content": rdata.exchange.to_text(omit_final_dot=True)}
        else:
            record["content"] = (
                rdata.to_text().removesuffix(".") if type_ in ("CNAME", "NS", "PTR") else rdata.to_text()
            )
        found.append(record)
    return found
