"""What works, and will surprise somebody: the machine, the addresses, a zone.

Owns  these examinations of facts, for `edgecli doctor` and the dashboard.
Not   gathering facts (`server.health.machine`); what is not well while it runs (`health.checks`).
"""

from collections.abc import Iterator, Sequence
from ipaddress import ip_address
from typing import NamedTuple

from edgestead.health.rows import Finding

DESCRIPTORS_MIN = 4_096  # the API alone takes 2,048 connections, DNS over TCP 1,000
DNS_PORT = 53
ADDRESS_TYPES = ("A", "AAAA", "CNAME")
TLS_SETTINGS = ("http2", "http3")


class Machine(NamedTuple):
    """`files_max` is what a process may open, -1 without a limit."""

    files_max: int
    clock_is_kept: bool


class Listening(NamedTuple):
    """`api` and `dns` are HOST:PORT as they were bound."""

    api: str
    dns: str
    dns_rate: int = 0
    dns_identity: str = ""
    nameserver_addresses: Sequence[str] = ()


class Setup(NamedTuple):
    machine: Machine
    listening: Listening
    has_tls: bool


class Zone(NamedTuple):
    """None is unknown. `tls_settings` are those that are on, where nothing listens for TLS."""

    name: str
    has_records: bool | None = None
    has_address: bool | None = None
    tls_settings: Sequence[str] = ()
    id: str = ""
    wrong_ds: str | None = None


def of_machine(machine: Machine) -> Iterator[Finding]:
    if 0 <= machine.files_max < DESCRIPTORS_MIN:
        yield Finding(
            "warn",
            f"a process may open {machine.files_max} files: fewer than the connections that the server"
            " allows",
            f"Raise the limit (ulimit -Hn, LimitNOFILE=) to {DESCRIPTORS_MIN} or more.",
        )
    if not machine.clock_is_kept:  # signatures, tokens and alarms go by it
        yield Finding(
            "warn",
            "nothing keeps this machine's clock right",
            "Certificates, tokens and alarms go by it. Run a time service (systemd-timesyncd, chrony).",
        )


def of_setup(setup: Setup) -> Iterator[Finding]:
    yield from of_machine(setup.machine)
    yield from of_dns(setup.listening)
    yield from of_api(setup.listening.api)


def of_dns(listening: Listening) -> Iterator[Finding]:
    """What a laptop can do without, and a name server for others cannot."""
    port = int(listening.dns.rpartition(":")[2])
    if port != DNS_PORT:
        yield Finding(
            "warn",
            f"DNS listens on port {port}: resolvers ask port {DNS_PORT} only",
            f"`edgecli serve --dns ADDRESS:{DNS_PORT}` once it is meant for others.",
        )
    else:
        yield Finding("ok", f"DNS answers at {listening.dns}")
    if _is_loopback(listening.dns):
        return
    if not listening.dns_rate:
        yield Finding(
            "warn",
            f"DNS answers at {listening.dns} without a limit of rates: forged queries aim its answers at"
            " others",
            "`edgecli serve --dns-rate 100`, say, is answers of one kind for one network in a second.",
        )
    if not listening.dns_identity:
        yield Finding(
            "warn",
            f"DNS answers at {listening.dns} without an identity (NSID): of several servers nobody can tell"
            " which",
            '`dns-identity = "NAME"` in the configuration file gives it one.',
        )
    if not listening.nameserver_addresses:
        yield Finding(
            "warn",
            f"DNS listens at every address ({listening.dns}), so it does not answer the names of its name"
            " servers",
            "`edgecli serve --nameserver-address IP` says where they are.",
        )


def of_api(address: str) -> Iterator[Finding]:
    """Credentials of others would cross the net in clear."""
    if not _is_loopback(address):
        yield Finding(
            "warn",
            f"the API listens at {address} without TLS: credentials cross the network in clear",
            "Leave it on loopback, or put a TLS proxy before it.",
        )


def _is_loopback(address: str) -> bool:
    return ip_address(address.rpartition(":")[0].strip("[]")).is_loopback


def of_zone(zone: Zone) -> Iterator[Finding]:
    """HTTPS records without a listener behind them, no record or no address, a DS of another key."""
    name = zone.name
    if zone.tls_settings:
        yield Finding(
            "warn",
            f"{name}: {' and '.join(zone.tls_settings)} is on, so HTTPS records of proxied names invite"
            " browsers to TLS, and there is no --https listener",
            f"Turn it off: PATCH /zones/{zone.id}/settings/{zone.tls_settings[0]}, value off.",
            name,
        )
    if zone.has_records is False:
        yield Finding("warn", f"{name} has no record", f"`edgecli record create {name} …` adds one.", name)
    elif zone.has_address is False:
        yield Finding(
            "warn",
            f"{name} has no address: no name of it leads to a machine",
            f"`edgecli record create {name} @ A …` adds one.",
            name,
        )
    if zone.wrong_ds is not None:
        yield Finding("fail", f"{name}: the parent has a DS of none of its keys", zone.wrong_ds, name)
