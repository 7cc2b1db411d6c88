"""`edgecli doctor`: what an operator should know of the machine and of the server that runs on it.

Owns  the examinations, and how their findings read.
Not   one zone's records (`edgecli dns check ZONE`).
"""

import contextlib
import difflib
import itertools
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from edgestead.cli.failure import Failed, counted
from edgestead.cli.folder import data_dir, folder_options
from edgestead.cli.table import show_lines
from edgestead.cli.target import JSON, Command, Json, pages

if TYPE_CHECKING:
    from edgestead.cli.http import Api
    from edgestead.health import rows, setup
    from edgestead.server.folder import State

ZONES_EXAMINED_MAX = 1_000
RECORDS_EXAMINED_MAX = 100  # of one zone
BROKEN, WARNING, FINE = "broken", "warning", "fine"
_LEVELS = {"ok": FINE, "warn": WARNING, "fail": BROKEN}


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
        parts, found = client_rules.examine(client, octets.decode(), profile)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OSError) as error:
        reason = f"it has no {error}" if isinstance(error, KeyError) else error
        wanted = f"{file} cannot be read as {known[client].files}: {reason}"
        raise click.BadParameter(wanted, param_hint="FILE") from None
    if not parts:
        empty = f"Nothing in {file} could be looked at. It should be {known[client].files}."
        raise click.BadParameter(empty, param_hint="FILE")
    lines = [f"{one.level:<8}{one.place}: {one.what}: {one.reason}\n        {one.next_step}" for one in found]
    looked_at = f"{parts} parts" if parts > 1 else "one part"
    none = f"Nothing in {file} that is known to stay behind or to differ; looked at {looked_at}."
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


def _told(found: "Iterable[rows.Finding]") -> Iterator[Finding]:
    """What the server's dashboard says, too."""
    for one in found:
        yield Finding(_LEVELS[one.state], one.message, one.next_step)


def _machine() -> Iterator[Finding]:
    from edgestead.health.setup import of_machine
    from edgestead.server.health import machine

    yield from _told(of_machine(machine.machine()))


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
    from edgestead.health.setup import of_dns
    from edgestead.server.health import machine

    yield from _told(of_dns(machine.listening(patient.state)))


def _zones(patient: Patient) -> Iterator[Finding]:
    from edgestead.health.setup import of_zone

    zones = list(itertools.islice(pages(patient.server, "/zones", {}), ZONES_EXAMINED_MAX + 1))
    examined = zones[:ZONES_EXAMINED_MAX]
    for zone in examined:
        yield from _told(of_zone(_zone(patient, zone)))
    first = "the first " if len(zones) > len(examined) else ""
    more = "" if not examined else "; `edgecli dns check ZONE` looks at one's records"
    were = "was" if len(examined) == 1 else "were"
    yield Finding(FINE, f"{first}{counted(len(examined), 'zone')} {were} examined{more}")


def _zone(patient: Patient, zone: Json) -> "setup.Zone":
    """A zone with many records is taken to have an address among them."""
    from edgestead.health import setup

    def ask(path: str, **query: object) -> Any:
        return patient.server.call("GET", f"/zones/{zone['id']}/{path}", query=query)["result"]

    records = ask("dns_records", per_page=RECORDS_EXAMINED_MAX)
    addresses = [one for one in records if one["type"] in setup.ADDRESS_TYPES]
    settings = ask("settings") if patient.state.https is None else []
    dnssec = ask("dnssec")
    return setup.Zone(
        zone["name"],
        bool(records),
        bool(addresses) or len(records) >= RECORDS_EXAMINED_MAX,
        [one["id"] for one in settings if one["id"] in setup.TLS_SETTINGS and one["value"] == "on"],
        zone["id"],
        dnssec["next"] if dnssec["is_bogus"] else None,
    )


def _listening(patient: Patient) -> Iterator[Finding]:
    from edgestead.health.setup import of_api
    from edgestead.server.health import machine

    yield from _told(of_api(machine.listening(patient.state).api))


EXAMINATIONS: tuple[Callable[[Patient], Iterator[Finding]], ...] = (
    _health,
    _api,
    _dns,
    _zones,
    _listening,
)
