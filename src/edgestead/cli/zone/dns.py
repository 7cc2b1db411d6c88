"""`edgecli dns`: what the running DNS server answers and why, what it is asked, and whether a zone is sound.

Owns  arguments, options and output of the commands.
Not   any rule of DNS.
"""

import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from edgestead.cli.failure import Failed
from edgestead.cli.folder import data_dir, folder_options
from edgestead.cli.table import show_lines
from edgestead.cli.target import JSON, ZONE, Command, Json, api, pages, zone_of

if TYPE_CHECKING:
    from edgestead.server.dns.ask import Question, Reply

ROWS = click.option(
    "most", "-n", "--rows", metavar="N", type=click.IntRange(1, 1000), default=20, help="Lines."
)


@click.group(short_help="Ask the running DNS server what it answers, and check a zone.")
def dns() -> None:
    """Ask the running DNS server what it answers and why, what it is asked, and check a zone."""


@dns.command("query", cls=Command)
@click.argument("name")
@click.argument("kind", metavar="[TYPE]", default="A")
@folder_options
def query(name: str, kind: str, data_dir_given: str | None, config_file: Path | None) -> None:
    """Print what a DNS process of the running server answers to NAME and TYPE, without limits of size."""
    reply = _ask_one(data_dir(data_dir_given, config_file), _question(name, kind))
    _print_message(reply.message)


@dns.command("trace", cls=Command)
@click.argument("name")
@click.argument("kind", metavar="[TYPE]", default="A")
@folder_options
def trace(name: str, kind: str, data_dir_given: str | None, config_file: Path | None) -> None:
    """Print step by step why NAME and TYPE get their answer: record, alias, asterisk or delegation.

    Then come the answer, and the zone's records of that name: a proxied one is answered with the edge's
    addresses, a flattened one with those of its target.
    """
    reply = _ask_one(data_dir(data_dir_given, config_file), _question(name, kind))
    for number, step in enumerate(reply.steps, 1):
        click.echo(f"{number}. {step}")
    click.echo()
    _print_message(reply.message)
    for line in _records(name):
        click.echo(line)


@dns.command("top", cls=Command)
@ROWS
@folder_options
def top(most: int, data_dir_given: str | None, config_file: Path | None) -> None:
    """Print the names and types that are asked for most, with estimates of how often."""
    counts: Counter[tuple[Any, ...]] = Counter()
    for reply in _ask_all(data_dir(data_dir_given, config_file), "top", 1000):
        counts.update({(name, kind): count for name, kind, count in reply.rows})
    for (name, kind), count in counts.most_common(most):
        click.echo(f"{count:>10}  {_type(kind):<8} {name}")


@dns.command("counts", cls=Command)
@ROWS
@folder_options
def counts(most: int, data_dir_given: str | None, config_file: Path | None) -> None:
    """Print how many answers there were by zone, type and rcode, estimated while there is much to do."""
    found: Counter[tuple[Any, ...]] = Counter()
    for reply in _ask_all(data_dir(data_dir_given, config_file), "counts", 1000):
        found.update({tuple(row[:3]): row[3] for row in reply.rows})
    for (zone, kind, rcode), count in found.most_common(most):
        click.echo(f"{count:>10}  {_type(kind):<8} {_rcode(rcode):<9} {zone or '(no zone here)'}")


@dns.command("log", cls=Command)
@ROWS
@folder_options
def log(most: int, data_dir_given: str | None, config_file: Path | None) -> None:
    """Print the latest of a sample of queries; of clients only the network is kept."""
    rows = [
        row for reply in _ask_all(data_dir(data_dir_given, config_file), "log", most) for row in reply.rows
    ]
    for at, network, name, kind, rcode, truncated, octets in sorted(rows)[-most:]:
        clock = time.strftime("%H:%M:%S", time.gmtime(at))
        flag = "TC" if truncated else "  "
        click.echo(
            f"{clock}  {network:<18} {_type(kind):<8} {_rcode(rcode):<9} {flag} {octets:>5}  {name or '-'}"
        )


@dns.command("check", cls=Command)
@ZONE
@JSON
def check(zone: str, as_json: bool) -> None:
    """Look for mistakes in a zone's records: names that lead nowhere, and what SPF and DMARC do not allow.

    Exits with 1 when something is broken; hints alone exit with 0.
    """
    from edgestead.cli.zone.dns_check import findings

    server = api()
    found_zone = zone_of(server, zone)
    records = list(pages(server, f"/zones/{found_zone['id']}/dns_records", {}))
    found = findings(found_zone["name"], found_zone.get("name_servers") or [], records)
    lines = [f"{one.level:<7} {one.name}: {one.words}" for one in found]
    show_lines([one._asdict() for one in found], *lines, as_json=as_json)
    broken = sum(one.level == "broken" for one in found)
    if broken:
        raise Failed(f"{found_zone['name']}: {broken} broken, {len(found) - broken} to look at.")
    if not as_json:
        click.echo(f"{found_zone['name']}: {len(records)} records, {len(found)} to look at.")


def _question(name: str, kind: str) -> "Question":
    import dns.exception
    import dns.name
    import dns.rdatatype

    from edgestead.server.dns.ask import Question

    try:
        wire = dns.name.from_text(name).to_wire() or b""
        number = int(dns.rdatatype.from_text(kind))
    except (dns.exception.DNSException, ValueError) as error:
        raise click.UsageError(f"{name} {kind}: {error}") from None
    return Question("query", wire.hex(), number)


def _sockets(folder: Path) -> list[Path]:
    """Of the processes that answer; the one for TCP is the last. Raises Failed when there is no server."""
    from edgestead.server.errors import StartError
    from edgestead.server.folder import read_state

    try:
        state = read_state(folder)
    except StartError as error:
        raise Failed(str(error)) from None
    found = sorted(Path(state.runtime_dir).glob("dns-*.sock")) if state else []
    if not found:
        raise Failed(f"no server is running on the data folder {folder}")
    return found


def _ask_one(folder: Path, question: "Question") -> "Reply":
    return _asked(_sockets(folder)[-1], question)


def _ask_all(folder: Path, command: str, most: int) -> "list[Reply]":
    from edgestead.server.dns.ask import Question

    return [_asked(path, Question(command, most=most)) for path in _sockets(folder)]


def _asked(path: Path, question: "Question") -> "Reply":
    from edgestead.server.dns import ask as dns_ask
    from edgestead.server.errors import StartError

    try:
        return dns_ask.ask(path, question)
    except StartError as error:
        raise Failed(str(error)) from None


def _print_message(octets: bytes) -> None:
    import dns.message
    import dns.rcode

    message = dns.message.from_wire(octets)
    flags = " (authoritative)" if octets[2] & 0x04 else ""
    click.echo(f"{dns.rcode.to_text(message.rcode())}{flags}")
    for title, section in zip(("answer", "authority", "additional"), message.sections[1:], strict=True):
        for rrset in section:
            for line in str(rrset).splitlines():
                click.echo(f"  {title:<10} {line}")


def _records(name: str) -> list[str]:
    """What the API knows of a name, in words; a line that says so when it cannot be asked."""
    wanted = name.removesuffix(".").lower()
    try:
        server = api()
        zone = _zone_above(server, name)
        if zone is None:
            return []
        records = list(pages(server, f"/zones/{zone['id']}/dns_records", {"name": wanted}))
        settings = server.call("GET", f"/zones/{zone['id']}/dns_settings")["result"] if records else {}
    except Failed as failure:
        return ["", f"The records behind it cannot be shown: {failure.message}"]
    lines = [_record(record, zone["name"], settings) for record in records]
    return ["", f"records of {wanted} in zone {zone['name']}:", *lines] if records else []


def _zone_above(server: Any, name: str) -> Json | None:
    labels = name.removesuffix(".").lower().split(".")
    for first in range(len(labels) - 1):
        found = server.call("GET", "/zones", query={"name": ".".join(labels[first:])})["result"]
        if found:
            return dict(found[0])
    return None


def _record(record: Json, apex: str, settings: Json) -> str:
    line = f"  {record['type']:<6} {record.get('content', '')}"
    if record.get("proxied"):
        return line + "  (proxied: answered with the edge's addresses)"
    if record["type"] != "CNAME":
        return line
    reasons = {
        "it stands at the apex": record["name"] == apex,
        "the zone has flatten_all_cnames": settings.get("flatten_all_cnames"),
        "it has flatten_cname": (record.get("settings") or {}).get("flatten_cname"),
    }
    reason = next((reason for reason, holds in reasons.items() if holds), None)
    if reason is None:
        return line
    return line + f"  (flattened, because {reason}: answered with the addresses of {record['content']})"


def _type(number: int) -> str:
    import dns.rdatatype

    return dns.rdatatype.to_text(dns.rdatatype.RdataType.make(number)) if number else "-"


def _rcode(number: int) -> str:
    import dns.rcode

    return dns.rcode.to_text(dns.rcode.Rcode.make(number))
