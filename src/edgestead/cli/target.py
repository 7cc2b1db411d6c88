"""The server, and the zone, that a command of `edgecli` means.

Owns  how a zone is found by name or id, lists of several pages, the option --json.
Not   what is done there. Imports click and the standard library only.
"""

import itertools
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeVar

import click

from edgestead.cli.failure import Failed, no_traceback

if TYPE_CHECKING:
    from edgestead.cli.http import Api

Json = dict[str, Any]

JSON = click.option("as_json", "--json", is_flag=True, help="Print JSON, as the API answers it.")
ALREADY_JSON = click.option("--json", is_flag=True, expose_value=False, help="It is JSON anyway.")
YES = click.option("yes", "-y", "--yes", is_flag=True, help="Do not ask.")
ID_DIGITS = 32
PAGE_ITEMS = 1_000
NO_PRIMARIES = 9605  # the code of a secondary zone that was never told of any
READS_MAX = 4  # of a list that is changed while it is read

_FIRST_WORD = "edgestead.zone"

F = TypeVar("F", bound=Callable[..., Any])


def _keep_first_word(ctx: click.Context, _parameter: click.Parameter, words: tuple[str, ...]) -> None:
    if len(words) > 1:
        raise click.UsageError(
            f"Too many words: {' '.join(words)} are before the rest, and one zone can be named there."
            " Quote what holds blanks.",
            ctx,
        )
    ctx.meta[_FIRST_WORD] = words[0] if words else None


def _prefer_first_word(ctx: click.Context, _parameter: click.Parameter, value: str | None) -> str | None:
    named: str | None = ctx.meta.get(_FIRST_WORD)
    if named is None:
        return value
    if ctx.get_parameter_source("zone") is click.core.ParameterSource.COMMANDLINE:
        raise click.UsageError(f"The zone is named twice: {named}, and --zone {value}.", ctx)
    return named


ZONE = click.option(
    "--zone",
    metavar="ZONE",
    envvar="EDGE_ZONE",
    callback=_prefer_first_word,
    help="Name or id of the zone; EDGE_ZONE says it for all commands. Not needed while there is only one.",
)


def zone_first(command: F) -> F:
    """The option --zone, which may also be said as the first word; the function gets `zone`."""
    # The rest of the words is shared out first, so the first may be missing; eager, so --zone sees it.
    word = click.argument(
        "first_word", metavar="[ZONE]", nargs=-1, is_eager=True, expose_value=False, callback=_keep_first_word
    )
    return word(ZONE(command))


class Command(click.Command):
    """A command that never shows a traceback, and whose refusals say where its help is."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        with _named(ctx):
            return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        with _named(ctx), no_traceback():
            return super().invoke(ctx)


@contextmanager
def _named(ctx: click.Context) -> Iterator[None]:
    """Wrong usage names its command, which click leaves out where its parser has none, in plain words."""
    try:
        yield
    except click.UsageError as error:
        error.ctx = error.ctx or ctx
        if (
            isinstance(error, click.BadParameter)
            and error.param
            and (said := _plain(error, error.param.type))
        ):
            raise click.BadParameter(said, error.ctx, error.param, error.param_hint) from None
        raise


def _plain(error: click.BadParameter, kind: click.ParamType[Any]) -> str | None:
    """In place of click's `'x' is not a valid integer range.` and `0 is not in the range 1<=x<=9.`"""
    value, _, fault = error.message.rpartition(" is not ")
    if not fault.startswith(("a valid integer", "a valid float", "in the range ")):
        return None
    number = "a whole number" if isinstance(kind, click.types.IntParamType) else "a number"
    return f"{value} is not {number}{_bounds(kind)}."


def _bounds(kind: click.ParamType[Any]) -> str:
    """None of our ranges is open, or without its least number."""
    if not isinstance(kind, click.IntRange | click.FloatRange):
        return ""
    return f" of at least {kind.min}" if kind.max is None else f" from {kind.min} to {kind.max}"


def api() -> "Api":
    """A connection to the server that the environment names. Raises Failed."""
    from edgestead.cli.http import Api
    from edgestead.cli.source import find_source

    server = Api(find_source(os.environ))
    click.get_current_context().call_on_close(server.close)
    return server


def is_id(text: str) -> bool:
    """32 hex digits; no name of a zone or record is that, because each has a dot or is shorter."""
    return len(text) == ID_DIGITS and set(text) <= set("0123456789abcdef")


def zone_of(server: "Api", zone: str | None) -> Json:
    """A zone by its name or id, or the only one there is. Raises Failed."""
    if zone is None:
        return _only_zone(server)
    if is_id(zone):
        found: Json = server.call("GET", f"/zones/{zone}")["result"]
        return found
    zones = server.call("GET", "/zones", query={"name": zone.removesuffix(".")})["result"]
    if len(zones) == 1:
        return dict(zones[0])
    raise Failed(
        f"There is no zone {zone}, or these credentials do not see it.",
        "`edgecli zone list` shows those they see.",
    )


def _only_zone(server: "Api") -> Json:
    zones: list[Json] = server.call("GET", "/zones", query={"per_page": 5})["result"]
    if len(zones) == 1:
        return zones[0]
    if not zones:
        raise Failed(
            "There is no zone yet, or these credentials see none.", "`edgecli zone create NAME` makes one."
        )
    names = ", ".join(found["name"] for found in zones)
    raise Failed(f"There are several zones ({names} …).", "Choose one with --zone or EDGE_ZONE.")


def cursor_pages(server: "Api", path: str) -> Iterator[Json]:
    """The items of a list whose pages are found by a cursor: rulesets have one."""
    query: dict[str, object] = {}
    while True:
        answer = server.call("GET", path, query=query)
        yield from answer["result"]
        after = ((answer.get("result_info") or {}).get("cursors") or {}).get("after")
        if not after:
            return
        query = {"cursor": after}


class ListChanged(Failed):
    """Something went from a list between two of its pages."""


def whole_list(server: "Api", path: str, query: Mapping[str, object]) -> list[Json]:
    """The items of a list, of which none is left out. Raises ListChanged: also when it was read again."""
    for _ in range(READS_MAX - 1):
        with suppress(ListChanged):
            return list(pages(server, path, query))
    return list(pages(server, path, query))


def pages(server: "Api", path: str, query: Mapping[str, object], *, grows: bool = False) -> Iterator[Json]:
    """The items of a list, page after page; no more than one is kept.

    Pages are counted from the list's beginning. Behind an item that came, the next page begins with what the
    last one ended with: that is left out. Behind one that went, another is in no page; raises ListChanged for
    that, and where more came than a page has, unless the list `grows` at its end only. The list's length
    tells; it does not where one went and one came between the same two pages.
    """
    last: list[Json] = []
    read = 0
    count: int | None = None
    for number in itertools.count(1):
        answer = server.call("GET", path, query={"per_page": PAGE_ITEMS, **query, "page": number})
        items, info = answer["result"], answer.get("result_info") or {}
        before, count = count, info.get("total_count")
        came = 0 if before is None or count is None else count - before
        if came < 0 or (came > len(last) and not grows):
            raise ListChanged(f"{path} was changed while it was read.", "Run it again.")
        known = [_identity(one) for one in last] if came else []
        yield from (one for one in items if _identity(one) not in known)
        last, read = items, read + len(items)
        if not items or _is_read(info, number, read):
            return


def _identity(item: Json) -> object:
    return item.get("id", item)


def _is_read(info: Json, pages_read: int, items_read: int) -> bool:
    """Whether these were all. A server may give smaller pages than it was asked for, or not count any."""
    if (total := info.get("total_pages")) is not None:
        return pages_read >= int(total)
    return items_read >= int(info.get("total_count") or 0)
