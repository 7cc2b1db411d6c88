"""Groups whose commands are imported only when they are called.

Owns  `Lazy` rows and `LazyGroup`.
Not   what the commands are. Imports click and the standard library only.
"""

import importlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import click

# What people type out of habit from other programs, and what it is called here.
HABITS = (
    frozenset({"add", "create", "invite", "make", "new"}),
    frozenset({"change", "edit", "set", "update"}),
    frozenset({"delete", "del", "drop", "remove", "rm"}),
    frozenset({"list", "ls", "status"}),
    frozenset({"cat", "get", "show", "view"}),
)


class Lazy(NamedTuple):
    """Where a command lives. `summary` is its line in the group's help, so that help imports nothing."""

    module: str
    attribute: str
    summary: str


class LazyGroup(click.Group):
    """A group that knows its commands' names and summaries before it has imported them."""

    def __init__(
        self, *args: Any, table: Mapping[str, Lazy], unlisted: Mapping[str, Lazy] | None = None, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.table = table
        self.unlisted = unlisted or {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        found = self.table.get(cmd_name) or self.unlisted.get(cmd_name)
        if found is None:
            return None
        command = getattr(importlib.import_module(found.module), found.attribute)
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click's, which looks for names like the unknown one among the commands that it has imported."""
        try:
            return super().resolve_command(ctx, args)
        except click.NoSuchCommand as unknown:
            if args[0] in ("help", "version") and ctx.parent is None:
                raise click.UsageError(f"{unknown.message} Did you mean '--{args[0]}'?", ctx) from None
            meant = next((name for name in self.table if _is_habit(args[0], name)), args[0])
            raise click.NoSuchCommand(meant, unknown.message, self.table, ctx) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, command.summary) for name, command in self.table.items()])


def _is_habit(word: str, name: str) -> bool:
    return any(word in words and name in words for words in HABITS)
