"""`edgecli setting`: what a zone is set to.

Owns  arguments, options and output of the three commands; a value as people type it.
Not   which values are right: the server says. Imports click and the standard library only.
"""

import json
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

import click

from edgestead.cli.dry_run import DRY_RUN
from edgestead.cli.failure import Failed
from edgestead.cli.rule.target import JSON, ZONE, Command, Target, zone_target
from edgestead.cli.table import show_lines, show_list
from edgestead.cli.target import Json

_HEADS = ("setting", "value", "may be changed", "changed")


@click.group(short_help="Show and set what a zone is set to.")
def setting() -> None:
    """Show and set what a zone is set to. docs/reference/settings.md says what each does."""


@setting.command("list", cls=Command)
@ZONE
@JSON
def list_settings(zone: str | None, as_json: bool) -> None:
    """List all settings of a zone with their values.

    \b
      edgecli setting list --zone example.com --json
    """
    show_list(_all(zone_target(zone)).values(), _HEADS, _row, as_json=as_json)


@setting.command("get", cls=Command)
@click.argument("name", metavar="NAME")
@ZONE
@JSON
def get(name: str, zone: str | None, as_json: bool) -> None:
    """Print the value of one setting.

    \b
      edgecli setting get ssl --zone example.com
    """
    found = _find(_all(zone_target(zone)), name)
    show_lines(found, _text(found["value"]), as_json=as_json)


@setting.command("set", cls=Command)
@click.argument("pairs", metavar="NAME=VALUE...", nargs=-1, required=True)
@ZONE
@DRY_RUN
@JSON
def set_values(pairs: tuple[str, ...], zone: str | None, as_json: bool) -> None:
    """Set some settings of a zone, all of them or none.

    VALUE is a word, a number, or JSON. The server warns of a setting that is stored only.

    \b
    Examples:
      edgecli setting set always_use_https=on ssl=strict
      edgecli setting set 'security_header={"strict_transport_security": {"enabled": true, "max_age": 86400}}'
    """
    target = zone_target(zone)
    known = _all(target)
    items = []
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals:
            raise click.BadParameter(f"{pair!r} is not like NAME=VALUE.", param_hint="NAME=VALUE")
        items.append({"id": name, "value": _value(text, _find(known, name)["value"])})
    path = target.path.removesuffix("/rulesets") + "/settings"
    answered = target.api.call("PATCH", path, json_body={"items": items})["result"]
    now = {one["id"]: one for one in answered}
    changed = [now[item["id"]] for item in items]
    lines = [f"{target.name}: {one['id']} is {_text(one['value'])}." for one in changed]
    show_lines(changed, *lines, as_json=as_json)


def _all(target: Target) -> dict[str, Json]:
    path = target.path.removesuffix("/rulesets") + "/settings"
    return {one["id"]: one for one in target.api.call("GET", path)["result"]}


def _find(known: Mapping[str, Json], name: str) -> Json:
    if name in known:
        return known[name]
    near = get_close_matches(name, known, n=3)
    more = f"Did you mean {' or '.join(near)}?" if near else "`edgecli setting list` shows all of them."
    raise Failed(f"There is no setting {name}.", more)


def _value(text: str, now: object) -> Any:
    """Text where the setting is text (`1.2` of `min_tls_version`); else JSON where it can be."""
    if isinstance(now, str):
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _row(found: Json) -> tuple[object, ...]:
    return (found["id"], _text(found["value"]), found["editable"], found["modified_on"])
