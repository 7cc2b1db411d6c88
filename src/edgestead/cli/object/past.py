"""`edgecli object bookmark|timeline|restore|undo|alarm`: an object's past, and its alarm.

Owns  arguments, options and output of the five commands.
Not   which moments are kept: the server says. Imports click and the standard library only.
"""

import re
from collections.abc import Iterable

import click

from edgestead.cli.dry_run import DRY_RUN
from edgestead.cli.failure import Failed, confirmed
from edgestead.cli.object.target import objects_api, of_object, path_of
from edgestead.cli.table import show_lines, show_one
from edgestead.cli.target import JSON, YES, Command, Json

_ASK = "Times are like 2026-11-21T10:30:00Z, or 90s, 10m, 3h, 2d ago."
_BOOKMARK = re.compile("[0-9a-f]{8}-[0-9a-f]{8}-[0-9a-f]{16}-[0-9a-f]{8}")
AT = click.option("--at", metavar="TIME", help=f"The object as it was then. {_ASK}")


@click.command("bookmark", cls=Command)
@of_object
@AT
@JSON
def bookmark(class_name: str, name: str, by_id: bool, at: str | None, as_json: bool) -> None:
    """Print the bookmark of an object as it is now, or was at a TIME. It is kept for 30 days.

    Objects of both backends have bookmarks. `timeline` lists what there is to go back to.

    \b
      before=$(edgecli object bookmark Booking friday)
      edgecli object bookmark Booking friday --at 2h
    """
    from edgestead.cli.object.moments import ago_ms

    query = {} if at is None else {"time": ago_ms(at)}
    found = objects_api().call("GET", path_of(class_name, name, by_id, "bookmark"), query=query)["result"]
    show_lines(found, found["bookmark"], as_json=as_json)


@click.command("timeline", cls=Command)
@of_object
@click.option("--since", metavar="TIME", help=f"Not what was before. {_ASK}")
@click.option("--until", metavar="TIME", help="Not what came after.")
@click.option("--limit", metavar="N", type=click.IntRange(1, 1_000), default=40, show_default=True)
@JSON
def timeline(
    class_name: str,
    name: str,
    by_id: bool,
    since: str | None,
    until: str | None,
    limit: int,
    as_json: bool,
) -> None:
    """Show the moments that an object can be taken back to, newest first, and what each of them takes.

    * is a moment whose bookmark was handed out, and which is kept for 30 days; < is where a restore had the
    object back. Of what is older than a day some moments are left out.

    \b
      edgecli object timeline Booking friday
      edgecli object timeline Booking friday --since 3h --until 1h
    """
    from edgestead.cli.object.moments import ago_ms, picture

    bounds = {"since": since, "until": until}
    query: dict[str, object] = {word: ago_ms(text) for word, text in bounds.items() if text is not None}
    path = path_of(class_name, name, by_id, "timeline")
    found = objects_api().call("GET", path, query={**query, "limit": limit})["result"]
    show_lines(found, *picture(found), as_json=as_json)


@click.command("restore", cls=Command)
@of_object
@click.argument("to", metavar="[BOOKMARK]", required=False)
@AT
@YES
@DRY_RUN
@JSON
def restore(
    class_name: str, name: str, by_id: bool, to: str | None, at: str | None, yes: bool, as_json: bool
) -> None:
    """Take an object back to a BOOKMARK, or to what it was --at a TIME: keys, tables and alarm.

    Asks first. What the object is doing is broken off. Prints the bookmark that undoes it, as `undo` does:
    nothing is lost by going back.

    \b
      edgecli object restore Booking friday "$before"
      edgecli object restore Booking friday --at 10m
    """
    from edgestead.cli.object.moments import ago_ms

    if (to is None) == (at is None):
        raise click.UsageError("Give a BOOKMARK, or --at TIME.")
    if to is not None and not _BOOKMARK.fullmatch(to):
        raise Failed(
            f"{to!r} is no bookmark: one is 8-8-16-8 hexadecimal digits, as `object bookmark` prints it.",
            "`--at TIME` takes the object back to what it was then: --at 10m, --at 2026-11-21T10:30:00Z.",
        )
    body: dict[str, object] = {"bookmark": to} if at is None else {"time": ago_ms(at)}
    _change(class_name, name, by_id, "restore", body, f"to {to or at}", yes=yes, as_json=as_json)


@click.command("undo", cls=Command)
@of_object
@YES
@DRY_RUN
@JSON
def undo(class_name: str, name: str, by_id: bool, yes: bool, as_json: bool) -> None:
    """Take back the last restore of an object, and print the bookmark that undoes that.

    A second undo takes back the first one, so the object is as after the restore again.

    \b
      edgecli object undo Booking friday
    """
    _change(class_name, name, by_id, "undo", None, "to before its last restore", yes=yes, as_json=as_json)


def _change(
    class_name: str,
    name: str,
    by_id: bool,
    operation: str,
    body: dict[str, object] | None,
    words: str,
    *,
    yes: bool,
    as_json: bool,
) -> None:
    question = f"Take {class_name} {name} back {words}?"
    if not confirmed(question, yes=yes, verb="restore", quiet=as_json):
        return
    path = path_of(class_name, name, by_id, operation)
    result = objects_api(is_slow=True).call("POST", path, json_body=body, repeat=False)["result"]
    click.echo(f"{class_name} {name} is back. This undoes it:", err=True)
    show_lines(result, result["undo"], as_json=as_json)


@click.command("alarm", cls=Command)
@of_object
@click.argument("time", metavar="[TIME]", required=False)
@click.option("--delete", "delete", is_flag=True, help="Delete the alarm.")
@click.option("--run", "run", is_flag=True, help="Run its handler now, and wait for its end.")
@DRY_RUN
@JSON
def alarm(
    class_name: str, name: str, by_id: bool, time: str | None, delete: bool, run: bool, as_json: bool
) -> None:
    """Show when an object's alarm is due; or set it to a TIME, delete it, or run it.

    TIME is like 2026-11-21T10:30:00Z, or 90s, 10m, 3h, 2d from now. An alarm that fails is run again, up to
    six times; retries counts them.

    \b
      edgecli object alarm Booking friday
      edgecli object alarm Booking friday 10m
      edgecli object alarm Booking friday --run
    """
    from edgestead.cli.object.moments import ahead_ms

    if (time is not None) + delete + run > 1:
        raise click.UsageError("Give a TIME, --delete or --run, and only one of them.")
    server = objects_api(is_slow=run)
    path = path_of(class_name, name, by_id, "alarm")
    if run:
        if not server.call("POST", path, repeat=False)["result"]["ran"]:
            raise Failed(f"{class_name} {name} has no alarm.")
        found = server.call("GET", path)["result"]
    elif delete:
        found = server.call("DELETE", path)["result"]
    elif time is not None:
        found = server.call("PUT", path, json_body={"time": ahead_ms(time)})["result"]
    else:
        found = server.call("GET", path)["result"]
    show_one(found, _members, as_json=as_json)


def _members(found: Json) -> Iterable[tuple[str, object]]:
    from edgestead.cli.object.moments import when

    return (found | {"time": when(found["time"])}).items()
