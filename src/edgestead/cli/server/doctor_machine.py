"""What `edgecli doctor` looks at without asking the server: clock, detectors, certificates, addresses.

Owns  these examinations, and what a finding is.
Not   the server's API.
"""

import ctypes
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import NamedTuple

BROKEN, WARNING, FINE = "broken", "warning", "fine"
CERTIFICATES_EXAMINED_MAX = 1_000
ENDS_SOON = timedelta(days=21)
_TIMEX_BYTES = 1_024  # more than struct timex has on any machine
_TIME_ERROR = 5  # adjtimex(2): nobody keeps the clock right


class Finding(NamedTuple):
    """`level` is BROKEN, WARNING or FINE; `more` says what to do, empty when there is nothing to do."""

    level: str
    words: str
    more: str = ""


def clock() -> Iterator[Finding]:
    """Whether something keeps the clock right: signatures, tokens and alarms go by it."""
    adjtimex = getattr(ctypes.CDLL(None), "adjtimex", None)
    if adjtimex is not None and adjtimex(ctypes.create_string_buffer(_TIMEX_BYTES)) == _TIME_ERROR:
        yield Finding(
            WARNING,
            "nothing keeps this machine's clock right",
            "Certificates, tokens and alarms go by it. Run a time service (systemd-timesyncd, chrony).",
        )


def detectors() -> Iterator[Finding]:
    """What the managed ruleset leans on: without libinjection most SQL injections pass at level 1."""
    from edgestead.waf.plan import scan
    from edgestead.waf.terms import libinjection

    if libinjection.state():
        yield Finding(
            BROKEN,
            "the managed ruleset detects no SQL injection and no script injection: libinjection is missing",
            f"apt install {libinjection.PACKAGE}, or pip install {libinjection.WHEEL}; then start again.",
        )
    if scan.state():
        yield Finding(
            WARNING,
            f"each managed rule looks at each request by itself: {scan.state()}",
            "Verdicts are the same, an inspection costs up to half as much again. x86-64 with Python 3.11 to"
            " 3.13 has it.",
        )


def api_address(address: str) -> Iterator[Finding]:
    """`address` is HOST:PORT. Credentials of others would cross the net in clear."""
    host = address.rpartition(":")[0].strip("[]")
    if not ip_address(host).is_loopback:
        yield Finding(
            WARNING,
            f"the API listens at {address} without TLS: credentials cross the network in clear",
            "Leave it on loopback, or put a TLS proxy before it.",
        )


def public_dns(
    address: str, rate: int, identity: str, nameserver_addresses: Sequence[str]
) -> Iterator[Finding]:
    """`address` is HOST:PORT where DNS answers. What a laptop can do without, beyond loopback."""
    host = ip_address(address.rpartition(":")[0].strip("[]"))
    if host.is_loopback:
        return
    if not rate:
        yield Finding(
            WARNING,
            f"DNS answers at {address} without a limit of rates: forged queries aim its answers at others",
            "`edgecli serve --dns-rate 100`, say, is answers of one kind for one network in a second.",
        )
    if not identity:
        yield Finding(
            WARNING,
            f"DNS answers at {address} without an identity (NSID): of several servers nobody can tell which",
            "`edgecli serve --dns-identity NAME` gives it one.",
        )
    if not nameserver_addresses:
        yield Finding(
            WARNING,
            f"DNS listens at every address ({address}), so it does not answer the names of its name servers",
            "`edgecli serve --nameserver-address IP` says where they are.",
        )


def certificates(folder: Path, now: datetime) -> Iterator[Finding]:
    """Those that the edge serves: what cannot be read, has ended, or ends soon."""
    from edgestead.edge.http.certificates import pair_of

    try:
        entries = sorted(folder.iterdir())[:CERTIFICATES_EXAMINED_MAX]
    except OSError as error:
        yield Finding(BROKEN, f"the folder of certificates {folder} cannot be read: {error.strerror}")
        return
    chains = [pair[0] for entry in entries if (pair := pair_of(entry)) and all(one.exists() for one in pair)]
    if not chains:
        yield Finding(
            WARNING, f"{folder} holds no certificate", "`edgecli tls dev NAME` makes one for development."
        )
    for chain in chains:
        yield from _certificate(chain, now)


def _certificate(chain: Path, now: datetime) -> Iterator[Finding]:
    from cryptography import x509

    from edgestead.edge.http.certificates import FILE_BYTES_MAX

    try:
        with chain.open("rb") as stream:
            ends = x509.load_pem_x509_certificate(stream.read(FILE_BYTES_MAX)).not_valid_after_utc
    except (OSError, ValueError):
        yield Finding(WARNING, f"{chain} holds no certificate that can be read")
        return
    if ends <= now:
        yield Finding(BROKEN, f"the certificate {chain} ended on {_day(ends)}", "Put a new one in its place.")
    elif ends - now < ENDS_SOON:
        yield Finding(
            WARNING,
            f"the certificate {chain} ends on {_day(ends)}",
            "The edge takes up a new one without a restart.",
        )


def _day(moment: datetime) -> str:
    return moment.astimezone(UTC).date().isoformat()
