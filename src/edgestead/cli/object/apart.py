"""`edgecli object apart list|release`: classes that ended processes, and so have one of their own.

Owns  the group and its two commands.
Not   when a class is apart (`objects.runtime.containment`). Imports click and the standard library only.
"""

import time

import click

from edgestead.cli.dry_run import DRY_RUN
from edgestead.cli.object.target import objects_api
from edgestead.cli.table import show_lines, show_list
from edgestead.cli.target import JSON, Command, Json

_HEADS = ("class", "state", "ends", "first", "last")


@click.group("apart")
def apart() -> None:
    """Show classes whose code ended a process that others share, and let one go back.

    Such a class gets a process of its own, with less of the processors, until it was quiet for an hour.

    \b
      edgecli object apart list
      edgecli object apart release Booking
    """


@apart.command("list", cls=Command, short_help="List classes that ended processes others share.")
@JSON
def list_apart(as_json: bool) -> None:
    """List classes, with the number of their ends, and when the first and the newest were.

    One that is `suspected` ended a process by a signal, which may have come from outside.

    \b
      edgecli object apart list --json | jq -r '.[].class'
    """
    show_list(objects_api().call("GET", "/operate/apart")["result"], _HEADS, _row, as_json=as_json)


def _row(one: Json) -> tuple[object, ...]:
    return (one["class"], one["state"], one["ends"], _time(one["since"]), _time(one["last"]))


def _time(milliseconds: int) -> str:
    if not milliseconds:
        return "(released)"
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(milliseconds / 1_000))


@apart.command("release", cls=Command, short_help="Let a class share processes with others again.")
@click.argument("class_name", metavar="CLASS")
@DRY_RUN
@JSON
def release_apart(class_name: str, as_json: bool) -> None:
    """Let CLASS share processes with others again, as soon as none of its objects is in its own.

    Mend first what it did: the next time puts it apart again.

    \b
      edgecli object apart release Booking
    """
    from edgestead.cli.http import segment

    done = objects_api().call("DELETE", f"/operate/apart/{segment(class_name)}")["result"]
    state = "goes back" if done["released"] else "is not apart"
    show_lines(done, f"Class {class_name} {state}.", as_json=as_json)
