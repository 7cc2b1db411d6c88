"""`edgecli dns`: what the running DNS server answers and why, what it is asked, and whether a zone is sound.

Owns  arguments, options and output of the commands.
Not   any rule of DNS.
"""

import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from edgestead.cli.failure import Failed
from edgestead.cli.folder import data_dir, folder_options
from edgestead.cli.table import show_lines
from edgestead.cli.target import JSON, Command, Json, api, whole_list, zone_first, zone_of
from edgestead.cli.zone.catalog import catalog
from edgestead.cli.zone.dns_key import key
from edgestead.cli.zone.dnssec import dnssec
from edgestead.cli.zone.followed import COMMANDS as OF_FOLLOWED
from edgestead.cli.zone.secondary import secondary
from edgestead.cli.zone.zonemd import zonemd

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
@JSON
def query(name: str, kind: str, data_dir_given: str | None, config_file: Path | None, as_json: bool) -> None:
    """Print what a DNS process of the running server answers to NAME and TYPE, without limits of size.

    \b
      edgecli dns query www.example.com AAAA
    """
    reply = _ask_one(data_dir(data_dir_given, config_file), _question(name, kind))
    show_lines(_message(reply.message), *_message_lines(reply.message), as_json=as_json)


@dns.command("trace", cls=Command)
@click.argument("name")
@click.argument("kind", metavar="[TYPE]", default="A")
@folder_options
@JSON
def trace(name: str, kind: str, data_dir_given: str | None, config_file: Path | None, as_json: bool) -> None:
    """Print step by step why NAME and TYPE get their answer: record, alias, asterisk or delegation.

    Then come the answer, and the zone's records of that name: a proxied one is answered with the edge's
    addresses, a flattened one with those of its target.

    \b
      edgecli dns trace www.example.com
    """
    reply = _ask_one(data_dir(data_dir_given, config_file), _question(name, kind))
    records = _records(name)
    found = {
        "steps": reply.steps,
        "answer": _message(reply.message),
        "records": [one for one in records if one],
    }
    steps = (f"{number}. {step}" for number, step in enumerate(reply.steps, 1))
    show_lines(found, *steps, "", *_message_lines(reply.message), *records, as_json=as_json)


@dns.command("top", cls=Command)
@ROWS
@folder_options
@JSON
def top(most: int, data_dir_given: str | None, config_file: Path | None, as_json: bool) -> None:
    """Print the names and types that are asked for most, with estimates of how often.

    \b
      edgecli dns top --rows 10
    """
    counts: Counter[tuple[Any, ...]] = Counter()
    for reply in _ask_all(data_dir(data_dir_given, config_file), "top", 1000):
        counts.update({(name, kind): count for name, kind, count in reply.rows})
    found = [
        {"name": name, "type": _type(kind), "queries": count}
        for (name, kind), count in counts.most_common(most)
    ]
    lines = (f"{one['queries']:>10}  {one['type']:<8} {one['name']}" for one in found)
    show_lines(found, *lines, as_json=as_json)


@dns.command("counts", cls=Command)
@ROWS
@folder_options
@JSON
def counts(most: int, data_dir_given: str | None, config_file: Path | None, as_json: bool) -> None:
    """Print how many answers there were by zone, type and rcode, estimated while there is much to do.

    \b
      edgecli dns counts --rows 10
    """
    found: Counter[tuple[Any, ...]] = Counter()
    for reply in _ask_all(data_dir(data_dir_given, config_file), "counts", 1000):
        found.update({tuple(row[:3]): row[3] for row in reply.rows})
    rows = [
        {"zone": zone or None, "type": _type(kind), "rcode": _rcode(rcode), "answers": count}
        for (zone, kind, rcode), count in found.most_common(most)
    ]
    lines = (
        f"{one['answers']:>10}  {one['type']:<8} {one['rcode']:<9} {one['zone'] or '(no zone here)'}"
        for one in rows
    )
    show_lines(rows, *lines, as_json=as_json)


@dns.command("log", cls=Command)
@ROWS
@folder_options
@JSON
def log(most: int, data_dir_given: str | None, config_file: Path | None, as_json: bool) -> None:
    """Print the latest of a sample of queries; of clients only the network is kept.

    \b
      edgecli dns log --rows 50
    """
    rows = [
        row for reply in _ask_all(data_dir(data_dir_given, config_file), "log", most) for row in reply.rows
    ]
    members = ("at", "network", "name", "type", "rcode", "truncated", "bytes")
    found = [
        dict(zip(members, (*row[:3], _type(row[3]), _rcode(row[4]), *row[5:]), strict=True))
        for row in sorted(rows)[-most:]
    ]
    show_lines(found, *map(_log_line, found), as_json=as_json)


def _log_line(one: Json) -> str:
    clock = time.strftime("%H:%M:%S", time.gmtime(one["at"]))
    flag = "TC" if one["truncated"] else "  "
    facts = f"{one['network']:<18} {one['type']:<8} {one['rcode']:<9} {flag} {one['bytes']:>5}"
    return f"{clock}  {facts}  {one['name'] or '-'}"


@dns.command("check", cls=Command)
@zone_first
@JSON
def check(zone: str | None, as_json: bool) -> None:
    """Look for mistakes in a zone's records: names that lead nowhere, and what SPF and DMARC do not allow.

    Exits with 1 when something is broken; hints alone exit with 0.

    \b
      edgecli dns check example.com
    """
    from edgestead.cli.zone.dns_check import findings

    server = api()
    found_zone = zone_of(server, zone)
    records = whole_list(server, f"/zones/{found_zone['id']}/dns_records", {})
    found = findings(found_zone["name"], found_zone.get("name_servers") or [], records)
    lines = [f"{one.level:<7} {one.name}: {one.words}" for one in found]
    show_lines([one._asdict() for one in found], *lines, as_json=as_json)
    broken = sum(one.level == "broken" for one in found)
    if broken:
        raise Failed(f"{found_zone['name']}: {broken} broken, {len(found) - broken} to look at.")
    if not as_json:
        click.echo(f"{found_zone['name']}: {len(records)} records, {len(found)} to look at.")


dns.add_command(dnssec)
dns.add_command(zonemd)
dns.add_command(catalog)
dns.add_command(secondary)
dns.add_command(key)


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
        raise Failed(f"No server is running on the data folder {folder}.", "`edgecli serve` starts one.")
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


_SECTIONS = ("answer", "authority", "additional")


def _message(octets: bytes) -> Json:
    """A DNS message: its rcode, and each section as lines of a zone file."""
    import dns.message
    import dns.rcode

    message = dns.message.from_wire(octets)
    sections = {
        title: [line for rrset in section for line in str(rrset).splitlines()]
        for title, section in zip(_SECTIONS, message.sections[1:], strict=True)
    }
    rcode = dns.rcode.to_text(message.rcode())
    return {"rcode": rcode, "authoritative": bool(octets[2] & 0x04), **sections}


def _message_lines(octets: bytes) -> Iterator[str]:
    found = _message(octets)
    yield found["rcode"] + (" (authoritative)" if found["authoritative"] else "")
    for title in _SECTIONS:
        for line in found[title]:
            yield f"  {title:<10} {line}"


def _records(name: str) -> list[str]:
    """What the API knows of a name, in words; a line that says so when it cannot be asked."""
    wanted = name.removesuffix(".").lower()
    try:
        server = api()
        zone = _zone_above(server, name)
        if zone is None:
            return []
        records = whole_list(server, f"/zones/{zone['id']}/dns_records", {"name": wanted})
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


for _command in OF_FOLLOWED:
    catalog.add_command(_command)
