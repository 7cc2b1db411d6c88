"""`edgecli doctor`: what an operator should know of the machine and of the server that runs on it.

Owns  the examinations, and how their findings read.
Not   one zone's records (`edgecli dns check ZONE`).
"""

import contextlib
import itertools
import os
import resource
import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

import click

from edgestead.cli.failure import Failed, counted
from edgestead.cli.folder import data_dir, folder_options
from edgestead.cli.server import doctor_machine
from edgestead.cli.server.doctor_machine import BROKEN, FINE, WARNING, Finding
from edgestead.cli.target import JSON, Command, Json, pages

if TYPE_CHECKING:
    from edgestead.cli.http import Api
    from edgestead.server.folder import State

ZONES_EXAMINED_MAX = 1_000
DESCRIPTORS_MIN = 4_096  # the API alone takes 2,048 connections, DNS over TCP 1,000
FREE_BYTES_MIN = 1 << 30
DNS_PORT = 53
RECORDS_EXAMINED_MAX = 100  # of one zone
_ADDRESS_TYPES = {"A", "AAAA", "CNAME"}
_QUARANTINED = "edge_objects_quarantined{"
_TLS_SETTINGS = ("http2", "http3")


class Patient(NamedTuple):
    """`root` speaks to the paths beside the API: readiness and metrics."""

    state: "State"
    server: "Api"
    root: "Api"


@click.command(cls=Command, short_help="Examine this machine and the server that runs on it.")
@folder_options
@JSON
def doctor(data_dir_given: str | None, config_file: Path | None, as_json: bool) -> None:
    """Examine this machine and the server that runs on it; say what is wrong and what to do.

    Ends with 1 when something is broken. Warnings are things that work, and will surprise somebody.
    """
    found = list(_examine(data_dir(data_dir_given, config_file)))
    if as_json:
        import json

        click.echo(json.dumps([one._asdict() for one in found], indent=2))
    else:
        for one in found:
            click.echo(f"{one.level:<8}{one.words}" + (f"\n        {one.more}" if one.more else ""))
    if any(one.level == BROKEN for one in found):
        raise SystemExit(1)


def _examine(folder: Path) -> Iterator[Finding]:
    yield from _machine(folder)
    patient = _patient(folder)
    if patient is None:
        yield Finding(
            BROKEN,
            f"no server runs on the data folder {folder}",
            "Start one with `edgecli serve`; --data-dir DIR or EDGE_DATA_DIR names another folder.",
        )
        return
    yield from _elsewhere(patient)
    for look in EXAMINATIONS:
        try:
            found = list(look(patient))
        except Failed as failure:
            found = [Finding(WARNING, f"could not be examined: {_first_line(failure)}")]
        yield from found
        if any(one.level == BROKEN for one in found):
            return  # the next ones would only fail on the same


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
    base = urlsplit(source.api_base)
    root = source._replace(api_base=f"{base.scheme}://{base.netloc}")
    patient = Patient(state, Api(source), Api(root))
    click.get_current_context().call_on_close(patient.server.close)
    click.get_current_context().call_on_close(patient.root.close)
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


def _machine(folder: Path) -> Iterator[Finding]:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if 0 <= hard < DESCRIPTORS_MIN:
        yield Finding(
            WARNING,
            f"a process may open {hard} files: fewer than the connections that the server allows",
            f"Raise the limit (ulimit -Hn, LimitNOFILE=) to {DESCRIPTORS_MIN} or more.",
        )
    there = next(one for one in (folder, *folder.parents) if one.exists())
    free = shutil.disk_usage(there).free
    if free < FREE_BYTES_MIN:
        yield Finding(
            WARNING, f"{free >> 20} MiB are free where the data is", "Writes are refused on a full disk."
        )
    else:
        yield Finding(FINE, f"{free >> 30} GiB are free where the data is")
    yield from doctor_machine.clock()


def _readiness(patient: Patient) -> Iterator[Finding]:
    try:
        patient.server.call("GET", "/zones", query={"per_page": 1}, repeat=False)
    except Failed as failure:
        yield Finding(BROKEN, "the API does not answer these credentials", _first_line(failure))
        return
    try:
        patient.root.request("GET", "/health/ready", repeat=False).read()
    except Failed as failure:
        yield Finding(BROKEN, "the server is not ready", failure.format_message())
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
    """HTTPS records without a listener behind them, and zones without a record."""
    zones = list(itertools.islice(pages(patient.server, "/zones", {}), ZONES_EXAMINED_MAX + 1))
    examined = zones[:ZONES_EXAMINED_MAX]
    for zone in examined:
        if patient.state.https is None:
            yield from _https(patient, zone)
        yield from _addresses(patient, zone)
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


def _flattening(patient: Patient) -> Iterator[Finding]:
    """Targets that the resolver never found."""
    text = patient.root.request("GET", "/metrics").read().decode()
    levels = dict(line.rpartition(" ")[::2] for line in text.splitlines())
    unknown = int(levels.get('edge_flattening_targets_unknown{process="control"}', 0))
    if unknown:
        yield Finding(
            WARNING,
            f"{unknown} targets of flattened aliases were never resolved: their names are answered SERVFAIL",
            "The server's log names one a minute. Does the resolver answer (--resolver)?",
        )


def _quarantine(patient: Patient) -> Iterator[Finding]:
    """Objects that ended their process."""
    text = patient.root.request("GET", "/metrics").read().decode()
    counts = (line.rpartition(" ")[2] for line in text.splitlines() if line.startswith(_QUARANTINED))
    held = sum(map(int, counts))
    if held:
        yield Finding(
            BROKEN,
            f"{counted(held, 'stateful object')} in quarantine: three processes ended while each of them ran",
            "`edgecli object list` shows them, `object info` says why, `object release` lets one run again.",
        )


def _rules(patient: Patient) -> Iterator[Finding]:
    for account in patient.server.call("GET", "/accounts")["result"][:1]:
        rulesets = patient.server.call("GET", f"/accounts/{account['id']}/rulesets")["result"]
        if not any(one["kind"] == "managed" for one in rulesets):
            yield Finding(
                WARNING,
                "there is no managed OWASP ruleset",
                "Install the package modsecurity-crs, or give a release with --crs PATH, and start again.",
            )
        else:
            yield from doctor_machine.detectors()


def _as_bound(host: str, reached: str) -> str:
    """HOST:PORT of the socket: a wildcard hears everybody, though a client here reaches it on loopback."""
    shown = f"[{host}]" if ":" in host else host
    return f"{shown}:{reached.rpartition(':')[2]}" if host else reached


def _listening(patient: Patient) -> Iterator[Finding]:
    api = _as_bound(patient.state.api_host, urlsplit(patient.state.api_base).netloc)
    yield from doctor_machine.api_address(api)
    if patient.state.https is not None and patient.state.tls_dir is not None:
        yield from doctor_machine.certificates(Path(patient.state.tls_dir), datetime.now(UTC))


EXAMINATIONS: tuple[Callable[[Patient], Iterator[Finding]], ...] = (
    _readiness,
    _quarantine,
    _dns,
    _zones,
    _flattening,
    _rules,
    _listening,
)
