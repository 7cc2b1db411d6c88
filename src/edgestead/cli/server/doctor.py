"""`edgecli doctor`: what an operator should know of the machine and of the server that runs on it.

Owns  the examinations, and how their findings read.
Not   one zone's records (`edgecli dns check ZONE`).
"""

import contextlib
import difflib
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
@click.option("--client", metavar="NAME", help="Examine FILE, a configuration of this program, instead.")
@click.option(
    "--profile",
    type=click.Choice(("spec", "clients")),
    default="spec",
    show_default=True,
    help="With --client: the server's profile.",
)
@click.argument("file", required=False, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@JSON
def doctor(
    data_dir_given: str | None,
    config_file: Path | None,
    client: str | None,
    profile: str,
    file: Path | None,
    as_json: bool,
) -> None:
    """Examine this machine and the server that runs on it; say what is wrong and what to do.

    Ends with 1 when something is broken. Warnings are things that work, and will surprise somebody.

    With --client, say what of another program's configuration FILE will not carry over to this server, or
    will show a difference at every look, and end with 1 when there is something. No server is asked. NAME is
    terraform, octodns, external-dns, cert-manager, wrangler, certbot, lego or fail2ban.

    \b
      edgecli doctor
      edgecli doctor --client terraform terraform.tfstate --profile clients
    """
    if client is not None or file is not None:
        _examine_client(client, file, profile, as_json=as_json)
        return
    found = list(_examine(data_dir(data_dir_given, config_file)))
    lines = [f"{one.level:<8}{one.words}" + (f"\n        {one.more}" if one.more else "") for one in found]
    show_lines([one._asdict() for one in found], *lines, as_json=as_json)
    if any(one.level == BROKEN for one in found):
        raise SystemExit(1)


def _examine_client(client: str | None, file: Path | None, profile: str, *, as_json: bool) -> None:
    from edgestead.cli.server import client_files, client_rules

    known = client_rules.CLIENTS
    if client is None or file is None:
        raise click.UsageError("A program and its file belong together: edgecli doctor --client NAME FILE.")
    if client not in known:
        near = difflib.get_close_matches(client, known, 1)
        meant = f" Did you mean {near[0]}?" if near else ""
        hint = f"{client!r} is not known; known are {', '.join(known)}.{meant}"
        raise click.BadParameter(hint, param_hint="--client")
    try:
        with file.open("rb") as opened:
            octets = opened.read(client_files.TEXT_BYTES_MAX + 1)
        if len(octets) > client_files.TEXT_BYTES_MAX:
            raise ValueError(f"it is larger than {client_files.TEXT_BYTES_MAX >> 20} MiB")
        found = client_rules.examine(client, octets.decode(), profile)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OSError) as error:
        wanted = f"{file} cannot be read as {known[client].files}: {error}"
        raise click.BadParameter(wanted, param_hint="FILE") from None
    lines = [f"{one.level:<8}{one.place}: {one.what}: {one.reason}\n        {one.next_step}" for one in found]
    none = f"Nothing in {file} that is known to stay behind or to differ."
    show_lines([one._asdict() for one in found], *(lines or [none]), as_json=as_json)
    if found:
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
