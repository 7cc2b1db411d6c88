"""`edgecli object quarantine list|release`: what is not run because it ended processes.

Owns  the group and its two commands.
Not   who is held (`objects.runtime.quarantine`). Imports click and the standard library only.
"""

import click

from edgestead.cli.dry_run import DRY_RUN
from edgestead.cli.object.target import BY_ID, objects_api, path_of
from edgestead.cli.table import show_lines, show_list
from edgestead.cli.target import JSON, Command, Json

_HEADS = ("class", "name", "why")


@click.group("quarantine")
def quarantine() -> None:
    """Show and release what is not run: objects whose code ended three processes, and classes with many such.

    \b
      edgecli object quarantine list
      edgecli object quarantine release Booking friday
      edgecli object quarantine release Booking
    """


@quarantine.command("list", cls=Command, short_help="List what is not run, and why.")
@JSON
def list_quarantine(as_json: bool) -> None:
    """List classes, then objects, each with the reason and the next step.

    \b
      edgecli object quarantine list --json | jq -r '.[].class'
    """
    found = objects_api().call("GET", "/operate/quarantine")["result"]
    show_list(found, _HEADS, _row, as_json=as_json)


def _row(one: Json) -> tuple[object, ...]:
    return (one["class"], one["name"] or one["id"] or "(all)", one["reason"])


@quarantine.command("release", cls=Command, short_help="Let a class or an object run again.")
@click.argument("class_name", metavar="CLASS")
@click.argument("name", metavar="[NAME]", required=False)
@BY_ID
@DRY_RUN
@JSON
def release_quarantine(class_name: str, name: str | None, by_id: bool, as_json: bool) -> None:
    """Let the object NAME of CLASS run again, or without a NAME the class itself.

    `edgecli object release` is the same command.

    What an object did when its processes ended is in `info`. If that was its alarm, delete or move it first;
    if it was a call, the clients that made it will repeat it. Objects that are in quarantine themselves stay
    there when their class is released.

    \b
      edgecli object info Booking friday
      edgecli object alarm Booking friday --delete
      edgecli object quarantine release Booking
      edgecli object release Booking friday
    """
    from edgestead.cli.http import segment

    path = f"/operate/quarantine/{segment(class_name)}"
    if name is not None:
        path = path_of(class_name, name, by_id, "quarantine")
    done = objects_api().call("DELETE", path)["result"]
    what = f"Class {class_name}" if name is None else f"{class_name} {name}"
    state = "may run again" if done["released"] else "was not in quarantine"
    show_lines(done, f"{what} {state}.", as_json=as_json)
