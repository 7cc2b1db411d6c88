"""What every command of `edgecli kv` takes, and how its booleans may be written.

Owns  the shared options, `Switch`, and the command class that understands its spellings.
Not   what is done with it (`cli.kv.namespace_target`). Imports click and the standard library only.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import click

from edgestead.cli.target import Command

_WORDS = {"true": True, "false": False}

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


class Where(NamedTuple):
    """The options that say which namespace is meant, and where it is."""

    binding: str | None
    namespace_id: str | None
    env: str | None
    preview: bool | None
    config: str | None
    local: bool = False
    persist_to: str | None = None

    def as_options(self) -> list[str]:
        """The same again, for a command line that the user is shown."""
        words: list[str] = []
        for name in ("binding", "namespace_id", "env", "config", "persist_to"):
            value = getattr(self, name)
            if value is not None:
                words += [f"--{name.replace('_', '-')}", value]
        if self.preview is not None:
            words.append("--preview" if self.preview else "--no-preview")
        return words + (["--local"] if self.local else [])


class Switch(click.Option):
    """A boolean: `--x`, `--no-x`, `--x true|false`, `--x=true|false`."""

    def __init__(self, names: list[str], **kwargs: Any) -> None:
        variable, long, *others = names
        self.off = f"--no-{long[2:]}"
        super().__init__([variable, f"{long}/{self.off}", *others], **kwargs)


class KvCommand(Command):
    """A command whose switches take a value when one follows."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, self._plain(ctx, args))
        except click.NoSuchOption as error:
            if not any(isinstance(parameter, click.Argument) for parameter in self.params):
                raise
            told = f"{error.message} An argument that begins with - stands behind --, at the end."
            raise click.NoSuchOption(error.option_name, told, error.possibilities, ctx) from None

    def _plain(self, ctx: click.Context, args: list[str]) -> list[str]:
        """The arguments with every switch spelled as click knows it."""
        switches = {
            name: option for option in self.params if isinstance(option, Switch) for name in option.opts
        }
        with_value = {
            name
            for option in self.params
            if isinstance(option, click.Option) and not option.is_flag
            for name in option.opts
        }
        plain: list[str] = []
        at = 0
        while at < len(args):
            name, equals, value = args[at].partition("=")
            after = args[at + 1] if at + 1 < len(args) else None
            taken = 1
            if args[at] == "--":
                return plain + args[at:]
            if name not in switches:
                # The value of another option is nobody's switch, whatever it looks like.
                taken = 2 if args[at] in with_value else 1
                plain += args[at : at + taken]
            elif equals:
                if value not in _WORDS:
                    raise click.BadOptionUsage(name, f"{name} takes true or false, not {value!r}.", ctx)
                plain.append(name if _WORDS[value] else switches[name].off)
            else:
                taken = 2 if after in _WORDS else 1
                plain.append(switches[name].off if after == "false" else name)
            at += taken
        return plain


def switch(variable: str, *names: str, help: str, default: bool | None = False) -> Decorator:
    return click.option(variable, *names, cls=Switch, help=help, default=default)


ENV_OPTIONS: tuple[Decorator, ...] = (
    click.option("-e", "--env", metavar="ENV", help="Environment of the configuration file."),
    click.option(
        "-c",
        "--config",
        metavar="FILE",
        type=click.Path(),
        help="Configuration file, instead of the nearest one.",
    ),
)
YES = switch("yes", "--yes", "-y", "--force", "-f", "--skip-confirmation", help="Delete without asking.")
_NAMESPACE_OPTIONS: tuple[Decorator, ...] = (
    click.option("--binding", metavar="BINDING", help="Namespace by its binding in the configuration file."),
    click.option("--namespace-id", metavar="ID", help="Namespace by its id."),
    *ENV_OPTIONS,
    switch("preview", "--preview", help="The binding's preview_id, not its id.", default=None),
)
_LOCAL_OPTIONS: tuple[Decorator, ...] = (
    switch("local", "--local", help="A store in the project's folder, without a server."),
    switch("remote", "--remote", help="The server's store. This is the default.", default=None),
    click.option(
        "--persist-to",
        metavar="DIR",
        type=click.Path(file_okay=False),
        help="Folder of the local store, from the current folder.",
    ),
)


def _options(fields: tuple[Decorator, ...], build: Callable[[dict[str, Any]], Where]) -> Decorator:
    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(command)
        def with_where(**values: Any) -> Any:
            return command(where=build(values), **values)

        call: Callable[..., Any] = with_where
        for option in reversed(fields):
            call = option(call)
        return call

    return decorate


def _namespace(values: dict[str, Any]) -> Where:
    """Take the shared options out of `values`. Raises UsageError unless exactly one names the namespace."""
    where = Where(
        **{name: values.pop(name) for name in ("binding", "namespace_id", "env", "preview", "config")}
    )
    if (where.binding is None) == (where.namespace_id is None):
        raise click.UsageError("Exactly one of --binding and --namespace-id is needed.")
    for option, value in (("--binding", where.binding), ("--namespace-id", where.namespace_id)):
        if value is not None and not value:  # a variable of the shell that is not set
            raise click.UsageError(f"{option} is empty.")
    return where


def _namespace_and_place(values: dict[str, Any]) -> Where:
    local, remote, persist_to = values.pop("local"), values.pop("remote"), values.pop("persist_to")
    if local and remote:
        raise click.UsageError("--local and --remote exclude each other.")
    if persist_to is not None and not local:
        raise click.UsageError("--persist-to says where the local store is: it needs --local.")
    return _namespace(values)._replace(local=local, persist_to=persist_to)


NAMESPACE = _options(_NAMESPACE_OPTIONS, _namespace)
NAMESPACE_AND_PLACE = _options((*_NAMESPACE_OPTIONS, *_LOCAL_OPTIONS), _namespace_and_place)
