"""A zone as DNS serves it, as a zone file: what `edgecli zone export --served` prints.

Owns  transferring it from the running DNS server, and leaving out what its signer made.
Not   what is served: DNS says. Imports dnspython when it is called.
"""

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from edgestead.cli.failure import Failed
from edgestead.cli.source import default_data_dir, local_server

if TYPE_CHECKING:
    from dns.zone import Zone

ADDRESS_VARIABLE = "EDGE_DNS_ADDR"  # HOST:PORT, as `edgecli env` prints it
SECONDS_MAX = 60.0  # of one transfer
_ANY_ADDRESS = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]", "::": "::1"}
_SIGNATURES = ("RRSIG", "NSEC", "NSEC3", "NSEC3PARAM")
_KEYS = ("DNSKEY", "CDS", "CDNSKEY", "ZONEMD")  # of the apex: its signer's; ZONEMD is about what was signed


def zone_file(name: str, key: str | None, *, unsigned: bool) -> Iterator[bytes]:
    """The lines, ends included. `key` is the name of a TSIG key of the account. Raises Failed."""
    zone = _transferred(name, key)
    if unsigned:
        _take_signatures_off(zone)
    yield f"$ORIGIN {zone.origin}\n".encode()
    for owner in sorted(zone.nodes, key=lambda owner: (owner != zone.origin, owner)):
        rdatasets = sorted(
            zone.nodes[owner].rdatasets, key=lambda one: (one.rdtype != 6, one.rdtype, one.covers)
        )
        for rdataset in rdatasets:
            yield rdataset.to_text(owner, relativize=False).encode() + b"\n"


def _transferred(name: str, key: str | None) -> "Zone":
    import dns.exception
    import dns.query
    import dns.zone

    host, port = _address()
    signed = _signed_with(key) if key is not None else {}
    try:
        messages = dns.query.xfr(host, name, port=port, lifetime=SECONDS_MAX, relativize=False, **signed)
        return dns.zone.from_xfr(messages, relativize=False)
    except OSError as error:
        raise Failed(
            f"The DNS server at {host} port {port} cannot be reached: {error.strerror or error}.",
            f"{ADDRESS_VARIABLE} says where it is; `edgecli status` shows whether it runs.",
        ) from None
    except (dns.exception.DNSException, EOFError) as error:
        reason = str(error) or type(error).__name__
        raise Failed(
            f"The DNS server at {host} port {port} does not transfer {name} to here: {reason}.",
            "It does for who has a key: `edgecli dns key add NAME` makes one, and --key NAME uses it.",
        ) from None


def _signed_with(key: str) -> dict[str, Any]:
    import dns.name
    import dns.tsigkeyring

    from edgestead.cli.zone.dns_key import one_key

    found = one_key(key, None)
    if found["sealed"] or not found["transfer"]:
        raise Failed(
            f"The TSIG key {found['name']} transfers no zone.",
            "`edgecli dns key add NAME` makes one that does.",
        )
    ring = dns.tsigkeyring.from_text({found["name"]: found["secret"]})
    return {"keyring": ring, "keyname": found["name"], "keyalgorithm": dns.name.from_text(found["algo"])}


def _address() -> tuple[str, int]:
    """Of the DNS server: the environment's, or that of the server on this machine. Raises Failed."""
    text = os.environ.get(ADDRESS_VARIABLE) or _local()
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdigit():
        raise Failed(f"{ADDRESS_VARIABLE}: {text!r} is no HOST:PORT.")
    return _ANY_ADDRESS.get(host, host).strip("[]"), int(port)


def _local() -> str:
    found = local_server(default_data_dir(os.environ), "dns")
    if found is None:
        raise Failed(
            f"{ADDRESS_VARIABLE} does not say where DNS answers, and no server runs on this machine.",
            'eval "$(edgecli env)" sets it where the server runs.',
        )
    return found.api_base


def _take_signatures_off(zone: "Zone") -> None:
    import dns.rdatatype

    gone = {dns.rdatatype.from_text(text) for text in _SIGNATURES}
    of_apex = gone | {dns.rdatatype.from_text(text) for text in _KEYS}
    for owner in list(zone.nodes):
        kinds = of_apex if owner == zone.origin else gone
        kept = [one for one in zone.nodes[owner].rdatasets if one.rdtype not in kinds]
        zone.nodes[owner].rdatasets = kept
        if not kept:
            del zone.nodes[owner]
