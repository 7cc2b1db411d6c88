"""The stateful object that a command of `edgecli object` means.

Owns  the arguments CLASS and NAME, the option --id, the paths that they make, lists of several pages.
Not   what is done there. Imports click and the standard library only.
"""

import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

import click

from edgestead.cli.target import Json

if TYPE_CHECKING:
    from edgestead.cli.http import Api

F = TypeVar("F", bound=Callable[..., Any])
PAGE_ITEMS = 1_000
SLOW_SECONDS_MAX = 3_600  # a handler of an alarm has 15 minutes, a method has no limit, copies have gigabytes
BY_ID = click.option("by_id", "--id", is_flag=True, help="NAME is an object's id.")


def of_object(command: F) -> F:
    """The arguments CLASS and NAME, and --id."""
    decorated = click.argument("name", metavar="NAME")(BY_ID(command))
    return click.argument("class_name", metavar="CLASS")(decorated)


def objects_api(*, is_slow: bool = False) -> "Api":
    """A connection to the objects' address that the environment names. Raises Failed.

    `is_slow` is what runs code of an object, or copies one.
    """
    from edgestead.cli.http import SECONDS_MAX, Api
    from edgestead.cli.source import find_objects_source

    source = find_objects_source(os.environ)
    server = Api(source, answer_seconds=SLOW_SECONDS_MAX if is_slow else SECONDS_MAX)
    click.get_current_context().call_on_close(server.close)
    return server


def path_of(class_name: str, name: str, by_id: bool, operation: str = "") -> str:
    """The path of an operation on an object."""
    from edgestead.cli.http import segment

    root = "ids" if by_id else "objects"
    return f"/operate/{root}/{segment(class_name)}/{segment(name)}{operation and '/'}{operation}"


def objects(server: "Api", class_name: str | None) -> Iterator[Json]:
    """All objects, page after page, by class and id."""
    query: dict[str, object] = {"limit": PAGE_ITEMS}
    if class_name is not None:
        query["class"] = class_name
    while True:
        answer = server.call("GET", "/operate/objects", query=query)
        yield from answer["result"]
        query["cursor"] = answer["result_info"]["cursor"]
        if not query["cursor"]:
            return
