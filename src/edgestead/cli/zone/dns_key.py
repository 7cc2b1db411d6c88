"""`edgecli dns key`: the TSIG keys of an account.

Owns  arguments, options and output; the lines that other name servers want of a key.
Not   what a key may do: the server decides.
"""

from typing import TYPE_CHECKING, Final, TextIO

import click

from edgestead.cli.dry_run import DRY_RUN
from edgestead.cli.failure import Failed, confirmed, warn
from edgestead.cli.table import show_lines, show_list
from edgestead.cli.target import JSON, YES, Command, Json, api
from edgestead.cli.zone.catalog import ACCOUNT

if TYPE_CHECKING:
    from edgestead.cli.http import Api

_LINES: Final = {
    "NSD": 'key:\n  name: "{name}"\n  algorithm: {algorithm}\n  secret: "{secret}"',
    "Knot": "key:\n  - id: {name}\n    algorithm: {algorithm}\n    secret: {secret}",
    "BIND": 'key "{name}" {{\n  algorithm {algorithm};\n  secret "{secret}";\n}};',
}
_SEALED: Final = "Put seal.key back into the data folder, or remove the key and add it anew."
_SECRET_OCTETS_MAX: Final = 4_096  # of a file: one line of Base64


@click.group("key", short_help="Make, list and remove TSIG keys.")
def key() -> None:
    """Make, list and remove TSIG keys: secrets by which other name servers and clients prove who they are."""


@key.command("add", cls=Command)
@click.argument("name")
@click.option(
    "algorithm",
    "--algorithm",
    type=click.Choice(["hmac-sha256", "hmac-sha512"]),
    default="hmac-sha256",
    show_default=True,
)
@click.option(
    "secret_file",
    "--secret-file",
    metavar="FILE",
    type=click.File(),
    help="Take the secret from there, in Base64; - is the standard input. Default: a new one.",
)
@click.option("no_transfer", "--no-transfer", is_flag=True, help="Let it transfer no zone.")
@click.option("update", "--update", is_flag=True, help="Let it change records by dynamic updates.")
@click.option(
    "token_id",
    "--token",
    metavar="ID",
    help="With --update: as far as this token may. Default: the caller's.",
)
@click.option(
    "update_names",
    "--name",
    metavar="NAME",
    multiple=True,
    help="With --update: this name, or *.NAME for those below. May be repeated. Default: all.",
)
@click.option(
    "update_types",
    "--type",
    metavar="TYPE",
    multiple=True,
    help="With --update: records of this type. May be repeated. Default: all.",
)
@ACCOUNT
@DRY_RUN
@JSON
def add(
    name: str,
    algorithm: str,
    secret_file: TextIO | None,
    no_transfer: bool,
    update: bool,
    token_id: str | None,
    update_names: tuple[str, ...],
    update_types: tuple[str, ...],
    account: str | None,
    as_json: bool,
) -> None:
    """Make the TSIG key NAME, and print it as NSD, Knot and BIND want it in their configuration.

    Who has it may transfer all zones of the account. Both ends have to call it by the same name. With
    --update it changes records (RFC 2136) in the account's zones, as far as the token may that is behind it.

    \b
      edgecli dns key add xfr.example.com
      edgecli dns key add certbot.example.com --no-transfer --update --name '*.example.com' --type TXT
    """
    body: Json = {"name": name, "algo": algorithm, "transfer": not no_transfer}
    if update:
        body["update"] = {"names": list(update_names), "types": list(update_types)}
        body["update"] |= {"token_id": token_id} if token_id else {}
    elif token_id or update_names or update_types:
        raise click.UsageError("--token, --name and --type go with --update")
    if secret_file is not None:
        body["secret"] = str(secret_file.read(_SECRET_OCTETS_MAX)).strip()
    server = api()
    made: Json = server.call("POST", _path(server, account), json_body=body, repeat=False)["result"]
    show_lines(made, *_lines(made), as_json=as_json)


@key.command("list", cls=Command)
@ACCOUNT
@JSON
def list_keys(account: str | None, as_json: bool) -> None:
    """List the account's TSIG keys, without their secrets; with --json these are there.

    \b
      edgecli dns key list
    """
    heads = ("NAME", "ALGORITHM", "TRANSFER", "UPDATE", "ID")
    found = _all(account)
    show_list(found, heads, _row, as_json=as_json)
    for one in found:
        if one["sealed"]:
            warn(f"{one['name']} cannot be opened. {_SEALED}")


def _row(one: Json) -> tuple[object, ...]:
    return one["name"], one["algo"], one["transfer"], one["update"] is not None, one["id"]


@key.command("show", cls=Command)
@click.argument("name")
@ACCOUNT
@JSON
def show_key(name: str, account: str | None, as_json: bool) -> None:
    """Print the TSIG key NAME once more as NSD, Knot and BIND want it.

    \b
      edgecli dns key show xfr.example.com
    """
    found = one_key(name, account)
    if found["sealed"]:
        raise Failed(f"The TSIG key {found['name']} cannot be opened.", _SEALED)
    show_lines(found, *_lines(found), as_json=as_json)


@key.command("remove", cls=Command)
@click.argument("name")
@ACCOUNT
@YES
@DRY_RUN
@JSON
def remove(name: str, account: str | None, yes: bool, as_json: bool) -> None:
    """Remove the TSIG key NAME, after a y/n question: nothing that it signs is believed any more.

    \b
      edgecli dns key remove xfr.example.com --dry-run
    """
    found = one_key(name, account)
    server = api()
    if confirmed(f"Remove the TSIG key {found['name']}?", yes=yes, verb="remove", quiet=as_json):
        server.call("DELETE", f"{_path(server, account)}/{found['id']}", repeat=False)
        show_lines({"id": found["id"]}, f"{found['name']} is removed.", as_json=as_json)


def _all(account: str | None) -> list[Json]:
    server = api()
    found: list[Json] = server.call("GET", _path(server, account))["result"]
    return found


def _path(server: "Api", account: str | None) -> str:
    from edgestead.cli.http import account_of

    return f"/accounts/{account_of(server, account)}/secondary_dns/tsigs"


def one_key(name: str, account: str | None) -> Json:
    """The account's key by its name or id. Raises Failed."""
    wanted = name.lower().removesuffix(".") + "."
    for one in _all(account):
        if wanted in (one["name"], f"{one['id']}."):
            return one
    raise Failed(f"There is no TSIG key {name}.", "`edgecli dns key list` shows those that there are.")


def _lines(made: Json) -> list[str]:
    fields = {
        "name": made["name"].removesuffix("."),
        "algorithm": made["algo"].removesuffix("."),
        "secret": made["secret"],
    }
    return [f"# {program}\n{text.format(**fields)}\n" for program, text in _LINES.items()]
