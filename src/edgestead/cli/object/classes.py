"""`edgecli objects`: what helps to write classes.

Owns  the group and its command.
Not   running objects: `edgecli serve --objects`.
"""

from pathlib import Path

import click

from edgestead import config
from edgestead.cli.failure import Failed
from edgestead.cli.target import Command


@click.group()
def objects() -> None:
    """Help with writing classes of stateful objects."""


@objects.command("types", cls=Command)
@click.argument("sources", metavar="PATH...", nargs=-1, required=True)
@click.option(
    "--config",
    "config_file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="TOML file whose [objects.bindings] are described too.",
)
def types(sources: tuple[str, ...], config_file: Path | None) -> None:
    """Print a module with the types of `self.env`, for type checkers and editors.

    Imports the classes of each PATH: FILE.py, a folder of such files, or a module.

    \b
      edgecli objects types booking.py
    """
    from edgestead.objects.runtime.loader import LoadError, load
    from edgestead.objects.types import module_text

    try:
        bindings = [name for name, _ in config.load({}, config_file).objects_bindings]
        click.echo(module_text(load(sources), bindings), nl=False)
    except (config.ConfigError, LoadError) as error:
        raise Failed(f"{error}.", "`edgecli objects types --help` says what it reads.") from None
