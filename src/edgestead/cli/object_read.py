"""`edgecli object list|info|export|verify`: what changes nothing.

Owns  arguments, options and output of the four commands.
Asks  `cli.object_target` for the server.
Tells the shell; 1 when something is found damaged.
Not   what is damage: the server says. Imports click and the standard library only.
"""

import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import click

from edgestead.cli.failure import Failed, counted
from edgestead.cli.moments import when
from edgestead.cli.object_target import objects, objects_api, of_object, path_of
from edgestead.cli.table import echo_members, echo_table, words
from edgestead.cli.target import JSON, Command, Json

if TYPE_CHECKING:
    from edgestead.cli.http import Api

CLASS = click.argument("class_name", metavar="[CLASS]", required=False)
_HEADS = ("class", "name", "position", "alarm", "in memory", "id")


@click.command("list", cls=Command)
@CLASS
@JSON
def list_objects(class_name: str | None, as_json: bool) -> None:
    """List objects that have stored something, of one CLASS or of all.

    position counts an object's commits; alarm is when it wakes up. Objects sleep until they are called: "in
    memory" says which are awake.

    \b
      edgecli object list
      edgecli object list Booking --json | jq -r '.[].name'
    """
    found = objects(objects_api(), class_name)
    if as_json:
        from edgestead.cli.output import echo_array

        echo_array(found)
        return
    echo_table(_HEADS, map(_row, found))


def _row(one: Json) -> tuple[object, ...]:
    return (one["class"], one["name"], one["position"], when(one["alarm"]), one["in_memory"], one["id"])


@click.command("info", cls=Command)
@of_object
@JSON
def info(class_name: str, name: str, by_id: bool, as_json: bool) -> None:
    """Show facts of one object: its storage, size, tables, alarm, and the calls that wait.

    \b
      edgecli object info Booking friday
      edgecli object info Booking "$id" --id
    """
    found = objects_api().call("GET", path_of(class_name, name, by_id))["result"]
    if as_json:
        from edgestead.cli.output import echo_object

        echo_object(found.items())
        return
    shown = found | {"alarm": when(found["alarm"])}
    echo_members((member.replace("_", " "), value) for member, value in shown.items())


@click.command("export", cls=Command)
@of_object
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--force", is_flag=True, help="Replace FILE if it is there.")
def export(class_name: str, name: str, by_id: bool, file: Path, force: bool) -> None:
    """Save what an object has committed as a plain SQLite file, while it goes on; - is standard output.

    FILE is there whole or not at all. Keys are in the table _edge_kv. The server makes a copy first, and
    refuses when its disk has no room for one.

    \b
      edgecli object export Booking friday friday.sqlite
      sqlite3 friday.sqlite 'SELECT count(*) FROM seats'
    """
    to_stdout = str(file) == "-"
    if not to_stdout and not force and file.exists():
        raise Failed(f"{file} is there already; --force replaces it.")
    server = objects_api()
    chunks = server.chunks(server.request("GET", path_of(class_name, name, by_id, "export")))
    if to_stdout:
        for chunk in chunks:
            sys.stdout.buffer.write(chunk)
        return
    aside = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        with aside.open("xb") as target:
            length = _write(target, chunks)
            os.fsync(target.fileno())
        aside.replace(file)
    finally:
        aside.unlink(missing_ok=True)
    click.echo(f"{file}: {counted(length, 'byte')}.")


def _write(target: BinaryIO, chunks: Iterable[bytes]) -> int:
    length = 0
    for chunk in chunks:
        length += target.write(chunk)
    return length


@click.command("verify", cls=Command)
@CLASS
@click.argument("name", metavar="[NAME]", required=False)
@click.option("by_id", "--id", is_flag=True, help="NAME is an object's id.")
@JSON
def verify(class_name: str | None, name: str | None, by_id: bool, as_json: bool) -> None:
    """Check every page, index, row and record of one object, of all of a CLASS, or of all.

    Ends with 1 when something is damaged, or cannot be checked. Objects go on meanwhile; each is checked in
    a copy, for which the server's disk needs room.

    \b
      edgecli object verify
      edgecli object verify Booking friday
    """
    server = objects_api()
    verdicts = list(_verdicts(server, class_name, name, by_id, show=not as_json))
    if as_json:
        from edgestead.cli.output import echo_array

        echo_array(verdicts)
    damaged = sum(bool(verdict["problems"]) for verdict in verdicts)
    if not as_json:
        click.echo(f"{counted(len(verdicts), 'object')} checked, {damaged} damaged.")
    if damaged:
        sys.exit(1)


def _verdicts(
    server: "Api", class_name: str | None, name: str | None, by_id: bool, *, show: bool
) -> Iterator[Json]:
    if class_name is not None and name is not None:
        meant = [(class_name, name, path_of(class_name, name, by_id, "verify"))]
    else:
        meant = [
            (one["class"], one["name"] or one["id"], path_of(one["class"], one["id"], True, "verify"))
            for one in objects(server, class_name)
        ]
    from edgestead.cli.http import Refused

    for of_class, called, path in meant:
        try:
            verdict = server.call("POST", path)["result"]
        except Refused as refusal:
            if len(meant) == 1 or refusal.status not in (422, 503):
                raise
            verdict = {"pages": 0, "keys": 0, "problems": [f"not checked: {refusal.messages[0]}"]}
        if show:
            for problem in verdict["problems"]:
                click.echo(f"{of_class} {words(called)}: {words(problem)}")
        yield {"class": of_class, "object": called, **verdict}
