"""`edgecli doctor`: what an operator should know of the machine and of the server that runs on it.

Owns  the examinations, and how their findings read.
Not   one zone's records (`edgecli dns check ZONE`).
"""

import contextlib
import itertools
import os
import resource
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

import click

from edgestead.cli.failure import Failed, counted
from edgestead.cli.folder import data_dir, folder_options
from edgestead.cli.server import doctor_machine
from edgestead.cli.server.doctor_machine import BROKEN, FINE, WARNING, Finding
from edgestead.cli.table import show_lines
from edgestead.cli.target import JSON, Command, Json, pages

if TYPE_CHECKING:
    from edgestead.cli.http import Api
    from edgestead.server.folder import State

ZONES_EXAMINED_MAX = 1_000
DESCRIPTORS_MIN = 4_096  # the API alone takes 2,048 connections, DNS over TCP 1,000
DNS_PORT = 53
RECORDS_EXAMINED_MAX = 100  # of one zone
_ADDRESS_TYPES = {"A", "AAAA", "CNAME"}
_LEVELS = {"ok": FINE, "warn": WARNING, "fail": BROKEN}
_TLS_SETTINGS = ("http2", "http3")


class Patient(NamedTuple):
    state: "State"
    server: "Api"


@click.command(cls=Command, short_help="Examine this machine and the server that runs on it.")
@folder_options
@JSON
def doctor(data_dir_given: str | None, config_file: Path | None, as_json: bool) -> None:
    """Examine this machine and the server that runs on it; say what is wrong and what to do.

    Ends with 1 when something is broken. Warnings are things that work, and will surprise somebody.

    \b
      edgecli doctor
    """
    found = list(_examine(data_dir(data_dir_given, config_file)))
    lines = [f"{one.level:<8}{one.words}" + (f"\n        {one.more}" if one.more else "") for one in found]
    show_lines([one._asdict() for one in found], *lines, as_json=as_json)
    if any(one.level == BROKEN for one in found):
        raise SystemExit(1)


def _examine(folder: Path) -> Iterator[Finding]:
    yield from _machine()
    patient = _patient(folder)
    if patient is None:
        yield from _without_server(folder)
        return
    yield from _elsewhere(patient)
    for look in EXAMINATIONS:
        try:
            found = list(look(patient))
        except Failed as failure:
            found = [Finding(WARNING, f"could not be examined: {_first_line(failure)}")]
        yield from found
        if look is _api and any(one.level == BROKEN for one in found):
            return  # the next ones would only fail on the same


def _without_server(folder: Path) -> Iterator[Finding]:
    from edgestead.server.health.asking import lost_writes

    yield Finding(
        BROKEN,
        f"no server runs on the data folder {folder}",
        "Start one with `edgecli serve`; --data-dir DIR or EDGE_DATA_DIR names another folder.",
    )
    if lost := lost_writes(folder):
        yield Finding(BROKEN, lost, "operate.md, When the server says that writes are lost, has the way on.")


def _patient(folder: Path) -> Patient | None:
    """The server on this folder, whatever other one the environment may name."""
    from edgestead.cli.http import Api
    from edgestead.cli.source import find_source, local_server
    from edgestead.server.folder import read_state
    from edgestead.server.supervisor import admin

    state = read_state(folder)
    if not state or not admin.is_served(state.admin_socket):
        return None
    source = None
    with contextlib.suppress(Failed):
        source = find_source(os.environ)
    if source is None or source.api_base.rstrip("/") != state.api_base:
        source = local_server(folder)
    if source is None:
        raise Failed(f"The credentials in {folder} cannot be read.", "Run this as the server's owner.")
    patient = Patient(state, Api(source))
    click.get_current_context().call_on_close(patient.server.close)
    return patient


def _elsewhere(patient: Patient) -> Iterator[Finding]:
    """Other commands ask whom the environment names."""
    from edgestead.cli.source import OUR_VARIABLES

    named = next((os.environ[name] for name in OUR_VARIABLES.address if os.environ.get(name)), None)
    if named is not None and named.rstrip("/") != patient.state.api_base:
        yield Finding(
            WARNING,
            f"the environment names another server: {named}",
            f"`edgecli env` prints the variables of this one, {patient.state.api_base}.",
        )


def _first_line(failure: Failed) -> str:
    return str(failure).splitlines()[0]


def _machine() -> Iterator[Finding]:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if 0 <= hard < DESCRIPTORS_MIN:
        yield Finding(
            WARNING,
            f"a process may open {hard} files: fewer than the connections that the server allows",
            f"Raise the limit (ulimit -Hn, LimitNOFILE=) to {DESCRIPTORS_MIN} or more.",
        )
    yield from doctor_machine.clock()


def _health(patient: Patient) -> Iterator[Finding]:
    """The rows that /health/ready and /metrics show, too."""
    from edgestead.server.health.asking import rows_of_control

    rows = rows_of_control(patient.state.admin_socket)
    if rows is None:
        yield Finding(BROKEN, "control does not answer", "The server's log says why.", check="control")
    for row in rows or ():
        yield Finding(_LEVELS[row.state], row.message, row.next_step, row.check, row.subject, row.since_us)


def _api(patient: Patient) -> Iterator[Finding]:
    try:
        patient.server.call("GET", "/zones", query={"per_page": 1}, repeat=False)
    except Failed as failure:
        yield Finding(BROKEN, "the API does not answer these credentials", _first_line(failure))
        return
    yield Finding(FINE, f"the API answers at {patient.state.api_base}")


def _dns(patient: Patient) -> Iterator[Finding]:
    port = int(patient.state.dns.rpartition(":")[2])
    if port != DNS_PORT:
        yield Finding(
            WARNING,
            f"DNS listens on port {port}: resolvers ask port {DNS_PORT} only",
            f"`edgecli serve --dns ADDRESS:{DNS_PORT}` once it is meant for others.",
        )
    else:
        yield Finding(FINE, f"DNS answers at {patient.state.dns}")
    state = patient.state
    yield from doctor_machine.public_dns(
        _as_bound(state.dns_host, state.dns), state.dns_rate, state.dns_identity, state.nameserver_addresses
    )


def _zones(patient: Patient) -> Iterator[Finding]:
    """HTTPS records without a listener behind them, zones without a record or with a DS of another key."""
    zones = list(itertools.islice(pages(patient.server, "/zones", {}), ZONES_EXAMINED_MAX + 1))
    examined = zones[:ZONES_EXAMINED_MAX]
    for zone in examined:
        if patient.state.https is None:
            yield from _https(patient, zone)
        yield from _addresses(patient, zone)
        yield from _dnssec(patient, zone)
    first = "the first " if len(zones) > len(examined) else ""
    more = "" if not examined else "; `edgecli dns check ZONE` looks at one's records"
    were = "was" if len(examined) == 1 else "were"
    yield Finding(FINE, f"{first}{counted(len(examined), 'zone')} {were} examined{more}")


def _addresses(patient: Patient, zone: Json) -> Iterator[Finding]:
    """A zone with many records is taken to have an address among them."""
    name = zone["name"]
    records = patient.server.call(
        "GET", f"/zones/{zone['id']}/dns_records", query={"per_page": RECORDS_EXAMINED_MAX}
    )["result"]
    if not records:
        yield Finding(WARNING, f"{name} has no record", f"`edgecli record create {name} …` adds one.")
    elif len(records) < RECORDS_EXAMINED_MAX and not any(one["type"] in _ADDRESS_TYPES for one in records):
        yield Finding(
            WARNING,
            f"{name} has no address: no name of it leads to a machine",
            f"`edgecli record create {name} @ A …` adds one.",
        )


def _dnssec(patient: Patient, zone: Json) -> Iterator[Finding]:
    shown = patient.server.call("GET", f"/zones/{zone['id']}/dnssec")["result"]
    if shown["is_bogus"]:
        yield Finding(BROKEN, f"{zone['name']}: the parent has a DS of none of its keys", shown["next"])


def _https(patient: Patient, zone: Json) -> Iterator[Finding]:
    if patient.state.https is not None:
        return
    settings = patient.server.call("GET", f"/zones/{zone['id']}/settings")["result"]
    on = [one["id"] for one in settings if one["id"] in _TLS_SETTINGS and one["value"] == "on"]
    if on:
        yield Finding(
            WARNING,
            f"{zone['name']}: {' and '.join(on)} is on, so HTTPS records of proxied names invite browsers"
            " to TLS, and there is no --https listener",
            f"Turn it off: PATCH /zones/{zone['id']}/settings/{on[0]}, value off.",
        )


def _as_bound(host: str, reached: str) -> str:
    """HOST:PORT of the socket: a wildcard hears everybody, though a client here reaches it on loopback."""
    shown = f"[{host}]" if ":" in host else host
    return f"{shown}:{reached.rpartition(':')[2]}" if host else reached


def _listening(patient: Patient) -> Iterator[Finding]:
    api = _as_bound(patient.state.api_host, urlsplit(patient.state.api_base).netloc)
    yield from doctor_machine.api_address(api)


EXAMINATIONS: tuple[Callable[[Patient], Iterator[Finding]], ...] = (
    _health,
    _api,
    _dns,
    _zones,
    _listening,
)
