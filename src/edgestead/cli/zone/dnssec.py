"""`edgecli dns dnssec`: signing a zone, and what is to be done at the parent.

Owns  arguments, options and output; what is told where the finding at the parent is newer than the server's.
Not   signing; moving a zone from one status to the next, and what is next otherwise: the server says that.
"""

import ipaddress
from typing import Any, Final, Literal, NamedTuple

import click

from edgestead.cli.dry_run import DRY_RUN
from edgestead.cli.failure import Failed
from edgestead.cli.table import show_lines
from edgestead.cli.target import JSON, Command, Json, api, zone_first, zone_of

PARENT_SECONDS: Final = 5.0  # for one question, TCP included

Finding = Literal["ours", "others", "none", "unknown"]
_NEWER: Final[dict[tuple[str, Finding], str]] = {  # what the server has not seen, or does not ask for
    ("pending", "ours"): "The parent has it. The server sees that itself, and the status becomes active.",
    ("active", "none"): "The parent has the DS no longer: give it to the registrar again, or switch off.",
}
_FORGED: Final = (
    "The parent has a DS, but of none of this zone's keys: have the registrar add the DS shown here at once."
)
_BROKEN: Final[dict[tuple[str, Finding], str]] = {
    ("disabled", "others"): "The parent has a DS and the zone is not signed: have the registrar remove it.",
    ("pending", "others"): _FORGED,
    ("active", "others"): _FORGED,
}
_HINTS: Final = {"disabled": " `edgecli dns dnssec {zone} on` signs it."}  # behind the server's words


_SETTINGS: Final = {
    "multi_signer": "dnssec_multi_signer",
    "key_layout": "key_layout",
    "ksk_days": "ksk_lifetime_days",
    "zsk_days": "zsk_lifetime_days",
}


class Advice(NamedTuple):
    """What to do next; or, if the zone is broken for validating resolvers, why."""

    words: str
    is_broken: bool


ACTIONS = ("status", "on", "off", "roll")


class ActionLast(Command):
    """The first of the words may be missing and so may be the last, which says which one it is."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if "--help" not in args and "-h" not in args and not set(args) & set(ACTIONS):
            args = [*args, "status"]
        return super().parse_args(ctx, args)


@click.command("dnssec", cls=ActionLast, short_help="Sign a zone, end that, or show what is to be done.")
@zone_first
@click.argument("action", type=click.Choice(ACTIONS), metavar="[on|off|roll|status]")
@click.option(
    "--key-layout",
    type=click.Choice(["csk", "ksk-zsk"]),
    help="With `on`: one key that signs everything, or one for the keys and one for the zone. Default: csk.",
)
@click.option(
    "--ksk-days",
    type=int,
    metavar="DAYS",
    help="With `on`: replace the key that the parent knows after so many days. Default 0: only by `roll`.",
)
@click.option(
    "--zsk-days",
    type=int,
    metavar="DAYS",
    help="With `on`: replace the key that the parent does not know after so many days. Default: 90.",
)
@click.option(
    "--multi-signer/--no-multi-signer",
    default=None,
    help="With `on`: whether another provider signs the zone, too, whose DNSKEY records may then be added.",
)
@click.option(
    "--role",
    type=click.Choice(["csk", "ksk", "zsk"]),
    help="With `roll`: replace only the key of this role.",
)
@click.option(
    "--parent",
    metavar="ADDRESS[:PORT]",
    help="Ask this server for the DS: a resolver, or a name server of the parent. Default: the system's.",
)
@DRY_RUN
@JSON
def dnssec(
    zone: str | None,
    action: str,
    parent: str | None,
    role: str | None,
    as_json: bool,
    **options: str | int | bool | None,
) -> None:
    """Sign ZONE, end signing, replace its keys, or show its status, what the parent has, and what is next.

    The server takes each step only when no resolver can be misled by it: after `on` the DS may be given to
    the registrar from the time that is shown, after `off` signatures stay until the parent has had no DS
    for two days, and after `roll` an old key stays until the parent has had the DS of the new one for as
    long. Exits with 1 when the zone is broken for validating resolvers.

    \b
      edgecli dns dnssec example.com on
      edgecli dns dnssec example.com on --key-layout ksk-zsk --ksk-days 365
      edgecli dns dnssec example.com on --multi-signer
      edgecli dns dnssec example.com roll
      edgecli dns dnssec example.com
    """
    server = api()
    found = zone_of(server, zone)
    path = f"/zones/{found['id']}/dnssec"
    for option, value in {"role": role, **options}.items():
        wanted = "roll" if option == "role" else "on"
        if value is not None and action != wanted:
            raise click.UsageError(f"--{option.replace('_', '-')} goes with `{wanted}`")
    if action == "roll":
        server.call("POST", f"{path}/roll", json_body={} if role is None else {"role": role}, repeat=False)
    elif action != "status":
        settings = {_SETTINGS[option]: value for option, value in options.items() if value is not None}
        body = {"status": "active" if action == "on" else "disabled"} | settings
        server.call("PATCH", path, json_body=body)
    shown: Json = server.call("GET", path)["result"]
    there = _ask(found["name"], parent)
    finding = find(shown, there)
    advice = advise(found["name"], shown, finding)
    lines = [f"{found['name']}: {shown['status']}"]
    if shown["ds"]:
        lines.append(f"DS: {shown['ds']}")
        lines.append(f"DNSKEY: {shown['flags']} 3 {shown['algorithm']} {shown['public_key']}")
    if len(shown["keys"]) > 1:
        lines += [f"Key {one['key_tag']}: {one['role']}, {one['phase']}" for one in shown["keys"]]
    lines.append(_FOUND[finding] if shown["ds"] or finding != "others" else "Parent: has a DS.")
    if not advice.is_broken:
        lines.append(advice.words)
    shown = shown | {"parent": finding, "next": advice.words}
    show_lines(shown, *lines, as_json=as_json)
    if advice.is_broken:
        raise Failed(f"{found['name']}: {advice.words}")


_FOUND: Final[dict[Finding, str]] = {
    "ours": "Parent: has this DS.",
    "others": "Parent: has a DS, but not this one.",
    "none": "Parent: has no DS.",
    "unknown": "Parent: nobody could say whether it has a DS.",
}


def find(shown: Json, there: frozenset[str] | None) -> Finding:
    """Compare what the parent has, as text of DS records, with what it should have."""
    if there is None:
        return "unknown"
    if not there:
        return "none"
    ours = {_text(one["ds"].partition(" DS ")[2]) for one in shown["keys"] if one["ds"]}
    return "ours" if ours & there else "others"


def advise(zone: str, shown: Json, finding: Finding) -> Advice:
    """What an operator should know or do: the server's words, unless what was found now says otherwise."""
    status, words = shown["status"], str(shown["next"])
    if shown["is_bogus"] and finding in ("others", "unknown"):
        return Advice(words, is_broken=True)
    if not shown["ds"] and status != "disabled":  # its primary signs it, or its signatures are not there yet
        return Advice(words, is_broken=finding == "others" and status == "pending")
    if (status, finding) in _BROKEN:
        return Advice(_BROKEN[status, finding], is_broken=True)
    if (status, finding) in _NEWER:
        return Advice(_NEWER[status, finding], is_broken=False)
    return Advice(words + _HINTS.get(status, "").format(zone=zone), is_broken=False)


def _text(ds: str) -> str:
    tag, algorithm, kind, *digest = ds.split()
    return f"{tag} {algorithm} {kind} {''.join(digest).lower()}"


def _ask(zone: str, parent: str | None) -> frozenset[str] | None:
    """The DS records of a zone as text; None when nobody can say. Raises UsageError."""
    import dns.exception
    import dns.resolver

    try:
        resolver = dns.resolver.Resolver(configure=parent is None)
        if parent is not None:
            resolver.nameservers, resolver.port = _address(parent)
        resolver.lifetime = PARENT_SECONDS
        answer: Any = resolver.resolve(f"{zone}.", "DS", raise_on_no_answer=False)
    except dns.resolver.NXDOMAIN:
        return frozenset()
    except (dns.exception.DNSException, OSError):
        return None
    return frozenset(_text(record.to_text()) for record in answer.rrset or ())


def _address(text: str) -> tuple[list[str | Any], int]:
    """Raises UsageError."""
    host, _, port = text.rpartition(":") if text.count(":") == 1 or "]:" in text else (text, "", "53")
    try:
        address = ipaddress.ip_address(host.strip("[]"))
        number = int(port)
    except ValueError:
        raise click.UsageError(
            f"--parent {text}: expected an IP address, and a port behind a colon"
        ) from None
    return [str(address)], number
