"""`edgecli object call|sql|delete`: what may change an object.

Owns  arguments, options and output of the three commands; how words of a shell become values.
Not   what a method does. Imports click and the standard library only.
"""

import json
from typing import Any

import click

from edgestead.cli.dry_run import DRY_RUN
from edgestead.cli.failure import Failed, confirmed, counted, warn
from edgestead.cli.object.target import objects_api, of_object, path_of
from edgestead.cli.table import echo_table, show, show_lines
from edgestead.cli.target import ALREADY_JSON, JSON, YES, Command, Json


@click.command("call", cls=Command)
@of_object
@click.argument("method", metavar="METHOD")
@click.argument("arguments", metavar="[ARGUMENT]...", nargs=-1)
@click.option("named", "-k", "--keyword", metavar="NAME=VALUE", multiple=True, help="A keyword argument.")
@ALREADY_JSON
def call(
    class_name: str, name: str, by_id: bool, method: str, arguments: tuple[str, ...], named: tuple[str, ...]
) -> None:
    """Call METHOD of an object, and print its result as JSON.

    An ARGUMENT or VALUE that is JSON is that value: 5 is a number, true, null, [1] and {"a": 1} are what they
    are. Everything else is text, and '"5"' is the text 5. What the method raises is an error, and ends with
    1. Needs the permission Objects Invoke.

    \b
      edgecli object call Booking friday hold 1A ann
      edgecli object call Booking friday hold 1B bob -k seconds=600
    """
    body = {"args": [_value(text) for text in arguments], "kwargs": dict(map(_named, named))}
    path = path_of(class_name, name, by_id, "call") + f"?method={_segment(method)}"
    result = objects_api(is_slow=True).call("POST", path, json_body=body, repeat=False)["result"]
    click.echo(json.dumps(result, indent=2, ensure_ascii=False))


@click.command("sql", cls=Command)
@of_object
@click.argument("query", metavar="QUERY")
@click.argument("bindings", metavar="[BINDING]...", nargs=-1)
@click.option("--write", is_flag=True, help="QUERY may write: all of it happens, or nothing.")
@JSON
def sql(
    class_name: str,
    name: str,
    by_id: bool,
    query: str,
    bindings: tuple[str, ...],
    write: bool,
    as_json: bool,
) -> None:
    """Run QUERY on an object's database, and print the rows of its last statement.

    Each ? of it stands for a BINDING, which is read as by `call`. Without --write nothing can be changed.
    A query holds its objects process up, so it may take four seconds; export a copy for more.

    \b
      edgecli object sql Booking friday 'SELECT * FROM seats'
      edgecli object sql Booking friday --write 'DELETE FROM seats WHERE seat = ?' 1A
    """
    body = {"query": query, "bindings": [_value(text) for text in bindings]}
    path = path_of(class_name, name, by_id, "sql-write" if write else "sql")
    found = objects_api().call("POST", path, json_body=body, repeat=not write)["result"]
    show(found, lambda: _echo_rows(found), as_json=as_json)
    if found["truncated"]:
        warn(f"There are more rows than these {len(found['rows'])}.")
    if write and not as_json:
        click.echo(f"{counted(found['rows_written'], 'row')} written.", err=True)


@click.command("delete", cls=Command)
@of_object
@YES
@DRY_RUN
@JSON
def delete(class_name: str, name: str, by_id: bool, yes: bool, as_json: bool) -> None:
    """Delete keys, tables and the alarm of an object, after a y/n question.

    The object is reset, and begins anew when it is called. `restore` takes that back like any mistake.

    \b
      edgecli object delete Booking friday
      edgecli object restore Booking friday --at 5m
    """
    server = objects_api()
    path = path_of(class_name, name, by_id)
    found = server.call("GET", path)["result"]
    if confirmed(f"Delete everything that {found['class']} {name} has stored?", yes=yes, quiet=as_json):
        server.call("DELETE", path, repeat=False)
        show_lines(found, f"Deleted {found['class']} {name}.", as_json=as_json)


def _value(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=_no_json)
    except (ValueError, RecursionError):
        return text


def _no_json(word: str) -> Any:
    raise ValueError(word)  # NaN and Infinity are text


def _named(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not name.isidentifier() or not equals:
        raise Failed(f"--keyword takes NAME=VALUE, not {text!r}.")
    return name, _value(value)


def _segment(text: str) -> str:
    from edgestead.cli.http import segment

    return segment(text)


def _echo_rows(found: Json) -> None:
    if found["columns"]:
        echo_table(found["columns"], ([_cell(value) for value in row] for row in found["rows"]))


def _cell(value: Any) -> object:
    if isinstance(value, dict):  # how the answer has what JSON has not
        return value.get("real") or f"base64:{value.get('base64')}"
    return value
