"""`edgecli object list|stats|info|where|export|verify`: what changes nothing.

Owns  arguments, options and output of the six commands.
Not   what is damage: the server says. Imports click and the standard library only.
"""

import sys
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import IO, TYPE_CHECKING

import click

from edgestead.cli import files
from edgestead.cli.failure import Failed, counted
from edgestead.cli.object.moments import when
from edgestead.cli.object.target import objects, objects_api, of_object, path_of
from edgestead.cli.table import show, show_lines, show_list, show_one, words
from edgestead.cli.target import JSON, Command, Json

if TYPE_CHECKING:
    from edgestead.cli.http import Api

CLASS = click.argument("class_name", metavar="[CLASS]", required=False)
PAGE_OBJECTS = 500  # of one request: some tenths of a second where they are small
_VERDICT = ("pages", "keys", "problems")
_STATS = ("class", "cpu", "state")
_HEADS = ("class", "name", "position", "alarm", "state", "id")


@click.command("list", cls=Command)
@CLASS
@JSON
def list_objects(class_name: str | None, as_json: bool) -> None:
    """List objects that have stored something, of one CLASS or of all.

    position counts an object's commits; alarm is when it wakes up. Objects sleep until they are called: state
    says which are in memory, and which are in quarantine because their code ended its process three times.

    \b
      edgecli object list
      edgecli object list Booking --json | jq -r '.[].name'
    """
    show_list(objects(objects_api(), class_name), _HEADS, _row, as_json=as_json)


def _row(one: Json) -> tuple[object, ...]:
    state = "quarantine" if one["quarantine"] else "in memory" if one["in_memory"] else "asleep"
    return (one["class"], one["name"], one["position"], when(one["alarm"]), state, one["id"])


@click.command("stats", cls=Command)
@JSON
def stats(as_json: bool) -> None:
    """Show what the code of each class took of the processors since its processes began.

    cpu is in milliseconds. `object list --json` has the same of each object in memory.

    \b
      edgecli object stats
    """
    show_list(objects_api().call("GET", "/operate/classes")["result"], _STATS, _of_class, as_json=as_json)


def _of_class(one: Json) -> tuple[object, ...]:
    state = "not loaded" if one["storage"] is None else "quarantine" if one["quarantine"] else "loaded"
    return (one["name"], one["cpu_ms"], state)


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
    show_one(found, _members, as_json=as_json)


def _members(found: Json) -> Iterator[tuple[str, object]]:
    for member, value in (found | {"alarm": when(found["alarm"])}).items():
        yield member.replace("_", " "), value


@click.command("where", cls=Command)
@of_object
@JSON
def where(class_name: str, name: str, by_id: bool, as_json: bool) -> None:
    """Show which process runs an object when it is called, and on which node of a cluster.

    Any node knows, whether the object has stored something or not, and nothing is woken up. It may move a
    moment later: when a machine comes, goes or drains.

    \b
      edgecli object where Booking friday
    """
    show_one(
        objects_api().call("GET", path_of(class_name, name, by_id, "where"))["result"],
        _there,
        as_json=as_json,
    )


def _there(found: Json) -> Iterator[tuple[str, object]]:
    yield "id", found["id"]
    if found["node"] is not None:
        yield "node", found["node"]
        if found["region"]:
            yield "region", found["region"]
        yield "slot", found["slot"]
    yield "process", f"objects-{found['process']}"


@click.command("export", cls=Command)
@of_object
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--force", is_flag=True, help="Replace FILE if it is there.")
@JSON
def export(class_name: str, name: str, by_id: bool, file: Path, force: bool, as_json: bool) -> None:
    """Save what an object has committed, while it goes on; - is standard output.

    FILE is a plain SQLite file with keys in the table _edge_kv, encoded; or, when it ends in .json, a
    document with keys, tables and rows, which docs/how-to/move-out.md describes. It is there whole or not at
    all. The server makes a copy first, and refuses when its disk has no room for one.

    \b
      edgecli object export Booking friday friday.sqlite
      sqlite3 friday.sqlite 'SELECT count(*) FROM seats'
      edgecli object export Booking friday friday.json
    """
    if file != files.STDOUT and not force and file.exists():
        raise Failed(f"{file} is there already; --force replaces it.")
    server = objects_api(is_slow=True)
    path = path_of(class_name, name, by_id)
    chunks = server.chunks(server.request("GET", f"{path}/export"))
    if file.suffix == ".json":
        chunks = _document(server, path, file.absolute().parent, chunks)
    with closing(chunks), files.written(file) as target:
        length = _write(target, chunks)
    if file == files.STDOUT:
        return
    found = {"file": str(file), "bytes": length}
    show_lines(found, f"{file}: {counted(length, 'byte')}.", as_json=as_json)


def _document(
    server: "Api", path: str, folder: Path, chunks: Iterable[bytes]
) -> Generator[bytes, None, None]:
    """The object as JSON, by way of a copy in a file."""
    import tempfile

    from edgestead.cli.object.written import document

    with tempfile.NamedTemporaryFile(prefix=".edgecli.", suffix=".sqlite", dir=folder) as copy:
        _write(copy.file, chunks)
        copy.flush()
        yield from document(Path(copy.name), server.call("GET", path)["result"])


def _write(target: IO[bytes], chunks: Iterable[bytes]) -> int:
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
    """Check every page, index, row and record of one object, of all of a CLASS, or of all; and the log.

    Ends with 1 when something is damaged, or cannot be checked. Objects go on meanwhile; one of more than
    4 MiB is checked in a copy, for which the server's disk needs room.

    \b
      edgecli object verify
      edgecli object verify Booking friday
    """
    server = objects_api(is_slow=True)
    tally = _Tally()
    verdicts = tally.tallied(_verdicts(server, class_name, name, by_id))
    show(verdicts, lambda: _echo_verdicts(verdicts, tally), as_json=as_json)
    if tally.damaged:
        sys.exit(1)


class _Tally:
    """What was found, while it is printed: there may be millions of objects."""

    def __init__(self) -> None:
        self.objects = self.damaged = 0

    def tallied(self, verdicts: Iterable[Json]) -> Iterator[Json]:
        for verdict in verdicts:
            self.objects += 1
            self.damaged += bool(verdict["problems"])
            yield verdict


def _echo_verdicts(verdicts: Iterable[Json], tally: _Tally) -> None:
    for verdict in verdicts:
        for problem in verdict["problems"]:
            click.echo(f"{verdict['class']} {words(verdict['object'])}: {words(problem)}")
    click.echo(f"{counted(tally.objects, 'object')} checked, {tally.damaged} damaged.")


def _verdicts(server: "Api", class_name: str | None, name: str | None, by_id: bool) -> Iterator[Json]:
    if class_name is not None and name is not None:
        verdict = server.call("POST", path_of(class_name, name, by_id, "verify"))["result"]
        found: Iterable[Json] = [{"class": class_name, "name": name, "id": name, **verdict}]
    else:
        found = _all_verdicts(server, class_name)
    for one in found:
        yield {
            "class": one["class"],
            "object": one["name"] or one["id"],
            **{key: one[key] for key in _VERDICT},
        }


def _all_verdicts(server: "Api", class_name: str | None) -> Iterator[Json]:
    """Page after page: the server looks at hundreds of objects for each request."""
    from edgestead.cli.progress import Progress

    query: dict[str, object] = {"limit": PAGE_OBJECTS} | ({"class": class_name} if class_name else {})
    with Progress("verifying", "object", 0) as progress:
        while True:
            answer = server.call("POST", "/operate/verify", query=query)
            info = answer["result_info"]
            if info["log_problems"]:
                yield {
                    "class": "",
                    "name": "the log",
                    "pages": 0,
                    "keys": 0,
                    "problems": info["log_problems"],
                }
            yield from answer["result"]
            progress.advance(0, len(answer["result"]))
            query["cursor"] = info["cursor"]
            if not info["cursor"]:
                return
