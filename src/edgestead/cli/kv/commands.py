"""`edgecli kv`: its three groups, and their old spelling with a colon.

Owns  the groups' names.
Not   the commands. Imports click and the standard library only.
"""

from typing import Any

import click

from edgestead.cli.failure import warn
from edgestead.cli.lazy import Lazy, LazyGroup

GROUPS = {
    "namespace": "Create, list, rename and delete namespaces.",
    "key": "Put, get, list and delete single keys.",
    "bulk": "Put, get and delete many keys from a file.",
}


class ColonGroup(LazyGroup):
    """`edgecli kv:key …`, as it was written before 3.60.0. It goes away in a future major version."""

    def invoke(self, ctx: click.Context) -> Any:
        old = ctx.info_name or ""
        new = old.replace(":", " ", 1)
        warn(f"`edgecli {old}` is deprecated and will be removed in a future version. Use `edgecli {new}`.")
        return super().invoke(ctx)


def _table(group: str, commands: dict[str, str]) -> dict[str, Lazy]:
    module = f"edgestead.cli.kv.{group}"
    return {name: Lazy(module, f"{group}_{name}", summary) for name, summary in commands.items()}


COMMANDS = {
    "namespace": _table(
        "namespace",
        {
            "create": "Create a namespace.",
            "list": "List the account's namespaces.",
            "rename": "Give a namespace another title.",
            "delete": "Delete a namespace with all its keys.",
        },
    ),
    "key": _table(
        "key",
        {
            "put": "Write one key.",
            "list": "List keys.",
            "get": "Print one value.",
            "delete": "Delete one key.",
        },
    ),
    "bulk": _table(
        "bulk",
        {
            "put": "Write the pairs of a JSON file.",
            "get": "Print the values of the keys of a JSON file.",
            "delete": "Delete the keys of a JSON file.",
            "export": "Print a whole namespace as a JSON file.",
        },
    ),
}


def _groups(cls: type[LazyGroup], prefix: str = "") -> dict[str, click.Command]:
    return {
        prefix + name: cls(prefix + name, help=summary, table=COMMANDS[name])
        for name, summary in GROUPS.items()
    }


kv = click.Group("kv", commands=_groups(LazyGroup), help="Read and write the key-value store.")
kv_namespace, kv_key, kv_bulk = _groups(ColonGroup, "kv:").values()
