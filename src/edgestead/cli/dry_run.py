"""The option --dry-run of commands that change something over the API.

Owns  the option, and what is printed instead of the first request that would change something.
Not   what is right. Commands whose server can check a change without making it ask it (`cli.rule`).
      Imports click and the standard library only.
"""

import json
from typing import Any, NoReturn

import click

_KEY = "edgestead.dry_run"
READS = frozenset({"GET", "HEAD"})
BODY_CHARACTERS_MAX = 4_000


def _note(ctx: click.Context, _parameter: click.Parameter, value: bool) -> None:
    ctx.meta[_KEY] = value


DRY_RUN = click.option(
    "--dry-run",
    is_flag=True,
    expose_value=False,
    callback=_note,
    help="Print the request that would be sent, and change nothing.",
)


def is_dry_run() -> bool:
    """Whether the command that runs was told to change nothing."""
    ctx = click.get_current_context(silent=True)
    return ctx is not None and bool(ctx.meta.get(_KEY))


def tell_unsent(method: str, path: str, content: bytes) -> NoReturn:
    """Print a request that is not sent, and end the command with 0."""
    as_json = click.get_current_context().params.get("as_json")
    body = _json_of(content)
    if as_json:
        found = {"method": method, "path": path, "body": body}
        click.echo(json.dumps(found, indent=2, ensure_ascii=False))
    else:
        text = "" if body is None else f"\n{json.dumps(body, ensure_ascii=False)[:BODY_CHARACTERS_MAX]}"
        click.echo(f"Would send {method} {path}{text}\nNothing is changed.")
    raise click.exceptions.Exit(0)


def _json_of(content: bytes) -> Any:
    """A body as JSON; of one that is a form only its length is told."""
    if not content:
        return None
    try:
        return json.loads(content)
    except ValueError:
        return f"{len(content)} bytes"
