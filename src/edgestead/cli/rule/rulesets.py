"""`edgecli ruleset`: list and print rulesets, and check a file of rules without applying it.

Owns  arguments, options and output of the three commands.
Not   what is right: `check` asks the server by a dry run. Imports click and the standard library only.
"""

import json
from operator import itemgetter
from typing import Any, BinaryIO

import click

from edgestead.cli.failure import Failed
from edgestead.cli.files import read_opened
from edgestead.cli.rule.target import JSON, ZONE, Command, Target, account_target, zone_target
from edgestead.cli.table import show_lines, show_list
from edgestead.cli.target import ALREADY_JSON, cursor_pages

FILE_BYTES_MAX = 1 << 20  # what the API takes
ACCOUNT = click.option("--account", is_flag=True, help="The account's rulesets, not a zone's.")
# Members of an answer that a request does not take.
_ANSWERED = ("id", "version", "last_updated", "source")
_KINDS = ("zone", "root", "custom")
_COLUMNS = ("id", "kind", "phase", "version", "name")


@click.group(short_help="List, print and check rulesets.")
def ruleset() -> None:
    """List, print and check rulesets."""


@ruleset.command("list", cls=Command)
@ZONE
@ACCOUNT
@JSON
def list_rulesets(zone: str | None, account: bool, as_json: bool) -> None:
    """Print the rulesets of a zone, with those of the account that it may execute.

    \b
      edgecli ruleset list --zone example.com
    """
    target = _target(zone, account)
    found = list(cursor_pages(target.api, target.path))
    show_list(found, _COLUMNS, itemgetter(*_COLUMNS), as_json=as_json)


@ruleset.command("get", cls=Command)
@click.argument("which", metavar="ID|PHASE")
@ZONE
@ACCOUNT
@click.option("--version", metavar="N", help="An older version.")
@ALREADY_JSON
def get(which: str, zone: str | None, account: bool, version: str | None) -> None:
    """Print a ruleset with its rules as JSON: by its id, or the entry point of a phase.

    \b
      edgecli ruleset get http_request_firewall_custom --zone example.com
    """
    from edgestead.cli.http import segment
    from edgestead.cli.output import echo_object

    target = _target(zone, account)
    path = target.entrypoint(which) if "_" in which else f"{target.path}/{segment(which)}"
    if version is not None:
        path += f"/versions/{segment(version)}"
    echo_object(target.api.call("GET", path)["result"].items())


@ruleset.command("check", cls=Command)
@click.argument("file", metavar="FILE", type=click.File("rb"))
@ZONE
@ACCOUNT
@click.option("--phase", metavar="PHASE", help="The rules' phase, when FILE does not name it.")
@JSON
def check(file: BinaryIO, zone: str | None, account: bool, phase: str | None, as_json: bool) -> None:
    """Ask the server whether it would take the rules in FILE. Nothing is changed.

    FILE is JSON: an object with `rules`, as the API takes and answers it, or the list of rules alone; - is
    standard input. Every rule that is wrong is printed with its place in FILE, and every ruleset, rule and
    category that a rule names and that does not exist, up to 20 mistakes.

    \b
      edgecli ruleset check rules.json --phase http_request_firewall_custom
    """
    from edgestead.cli.http import Refused

    name = str(getattr(file, "name", "<stdin>"))
    body = _read(file, name)
    phase = phase or body.get("phase")
    if not isinstance(phase, str):
        raise Failed(f"{name} does not name a phase.", "Say which with --phase.")
    if account and body.get("kind") == "zone":
        raise Failed(f"{name} is a zone's ruleset.", "Leave out --account.")
    target = _target(zone, account or body.get("kind") in ("root", "custom"))
    try:
        _dry_run(target, body, phase)
    except Refused as refusal:
        if refusal.status != 400:
            raise
        if as_json:
            show_lines({"phase": phase, "mistakes": refusal.errors}, as_json=True)
        for error in refusal.errors:
            click.echo(_words(error), err=True)
        raise Failed(f"{name}: {_count(len(refusal.errors), 'mistake')}.") from None
    rules = len(body.get("rules") or ())
    line = f"{name}: {_count(rules, 'rule')}, no mistake (phase {phase})."
    show_lines({"phase": phase, "mistakes": []}, line, as_json=as_json)


def _target(zone: str | None, account: bool) -> Target:
    if zone is not None and account:
        raise click.UsageError("--zone and --account exclude each other.")
    return account_target() if account else zone_target(zone)


def _read(file: BinaryIO, name: str) -> dict[str, Any]:
    """What a file of rules says, in the shape of a request."""
    content = read_opened(file, name, FILE_BYTES_MAX)
    try:
        value = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise Failed(f"{name} is not JSON: {error}.") from None
    if isinstance(value, dict) and isinstance(value.get("result"), dict):
        value = value["result"]  # an answer of the API, saved as it came
    if isinstance(value, list):
        value = {"rules": value}
    if not isinstance(value, dict):
        raise Failed(f"{name} is neither an object nor a list of rules.")
    if value.get("kind") not in (None, *_KINDS):
        raise Failed(f"{name}: kind is not one of {', '.join(_KINDS)}; nobody can write such a ruleset.")
    return {member: one for member, one in value.items() if member not in _ANSWERED}


def _dry_run(target: Target, body: dict[str, Any], phase: str) -> None:
    query = {"dry_run": "true"}
    if body.get("kind") == "custom":
        target.api.call("POST", target.path, query=query, json_body={"name": "check", "phase": phase, **body})
        return
    # The name of an entry point that is there already is no mistake of the file.
    rest = {name: member for name, member in body.items() if name not in ("kind", "phase", "name")}
    target.api.call("PUT", target.entrypoint(phase), query=query, json_body=rest)


def _words(error: dict[str, Any]) -> str:
    source = error.get("source")
    pointer = source.get("pointer") if isinstance(source, dict) else ""
    words = f"{pointer}: " if pointer else ""  # "" is the body as a whole, and "/" a member without a name
    words += f"{error.get('message')} [code: {error.get('code')}]"
    return "\n  ".join(words.splitlines())


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}" + ("" if number == 1 else "s")
