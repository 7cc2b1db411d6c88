"""What `edgecli doctor` looks at without asking the server: clock and addresses.

Owns  these examinations, and what a finding is.
Not   the server's API.
"""

import ctypes
from collections.abc import Iterator, Sequence
from ipaddress import ip_address
from typing import NamedTuple

BROKEN, WARNING, FINE = "broken", "warning", "fine"
_TIMEX_BYTES = 1_024  # more than struct timex has on any machine
_TIME_ERROR = 5  # adjtimex(2): nobody keeps the clock right


class Finding(NamedTuple):
    """`level` is BROKEN, WARNING or FINE; `more` says what to do, empty when there is nothing to do.

    One of the server's health has `check`, `subject` and `since_us` of its row.
    """

    level: str
    words: str
    more: str = ""
    check: str = ""
    subject: str = ""
    since_us: int = 0


def clock() -> Iterator[Finding]:
    """Whether something keeps the clock right: signatures, tokens and alarms go by it."""
    adjtimex = getattr(ctypes.CDLL(None), "adjtimex", None)
    if adjtimex is not None and adjtimex(ctypes.create_string_buffer(_TIMEX_BYTES)) == _TIME_ERROR:
        yield Finding(
            WARNING,
            "nothing keeps this machine's clock right",
            "Certificates, tokens and alarms go by it. Run a time service (systemd-timesyncd, chrony).",
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
