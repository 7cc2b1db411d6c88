"""Zones of a name server that gives them away (AXFR).

Owns  the transfer.
Not   records (`zonefile`). Imports dnspython when it is called.
"""

from edgestead.cli.failure import Failed
from edgestead.cli.state.sources.gathered import Gathered
from edgestead.cli.state.sources.zonefile import add_zone

SECONDS_MAX = 60.0  # of one transfer
PORT = 53


def gather(place: str, found: Gathered) -> None:
    """`place` is HOST[:PORT]; the zones are those that were asked for. Raises Failed."""
    import socket

    import dns.exception
    import dns.query
    import dns.zone

    host, port = _address(place)
    for name in sorted(found.wanted):
        try:
            address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][4][0]
            messages = dns.query.xfr(str(address), name, port=port, lifetime=SECONDS_MAX, relativize=False)
            zone = dns.zone.from_xfr(messages, relativize=False)
        except (dns.exception.DNSException, OSError, EOFError) as error:
            reason = str(error) or type(error).__name__
            raise Failed(
                f"{place} does not give away {name}: {reason}.", "Does it allow transfers to here?"
            ) from None
        add_zone(found, name, zone.to_text(relativize=False), lambda line: f"@{place}, line {line}")


def _address(server: str) -> tuple[str, int]:
    host, colon, port = server.rpartition(":")
    if not colon or host.endswith(":") or not port.isdigit():
        return server.strip("[]"), PORT
    return host.strip("[]"), int(port)
