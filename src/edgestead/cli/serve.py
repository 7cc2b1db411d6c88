"""`edgecli serve`: the flags, and nothing that happens after them.

Owns  turning the table of options into flags.
Asks  `config` for the settings, `server.supervisor` to run.
Tells the shell one line when the server cannot start.
Not   defaults and parsing: `config`.
"""

import os
import shlex
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from edgestead import config

if TYPE_CHECKING:
    from edgestead.server.ready import Ready


def _with_flags(command: click.Command) -> click.Command:
    """Give the command one flag for each option."""
    for option in config.OPTIONS:
        if option.flag:
            default = "" if option.switch else f" Default: {config.default_words(option)}."
            command.params.append(
                click.Option(
                    [f"--{option.key}"],
                    metavar=None if option.switch else option.metavar,
                    is_flag=option.switch,
                    default=None,
                    multiple=option.many,
                    help=f"{option.help}{default}".replace("`", ""),
                )
            )
    return command


@click.command(short_help="Run the server.")
@click.option(
    "--config",
    "config_file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="TOML file with settings.",
)
def serve(config_file: Path | None, **flags: Any) -> None:
    """Run the server in the foreground until SIGTERM or Ctrl-C.

    Prints the addresses when everything answers. A second signal ends it at once.
    """
    from edgestead.server.errors import StartError
    from edgestead.server.supervisor import supervise

    def announce(ready: "Ready") -> None:
        with suppress(OSError):  # whoever closed our stdout does not mean to end the server
            click.echo(f"API  {ready.api_base}\nDNS  {ready.dns} (UDP and TCP)")
            click.echo(f"HTTP http://{ready.http}")
            if ready.https:
                click.echo(f"HTTPS https://{ready.https}")
            if ready.objects:
                click.echo(f"Objects http://{ready.objects}/objects/")
            click.echo(f"Data {settings.data_dir}")
            click.echo("For a shell: " + _env_command(settings.data_dir))

    given = {name.replace("_", "-"): value for name, value in flags.items()}
    try:
        settings = config.load(given, config_file)
        code = supervise(settings, announce)
    except (config.ConfigError, StartError) as error:
        raise click.ClickException(str(error)) from None
    raise SystemExit(code)


def _env_command(data_dir: Path) -> str:
    """What prints this very server's addresses and credentials, whether or not edgecli is on the path."""
    beside = Path(sys.executable).with_name("edgecli")
    words = [str(beside) if beside.exists() else "edgecli", "env"]
    if data_dir != config.default_data_dir() or config.DATA_DIR_VARIABLE in os.environ:  # not in every shell
        words += ["--data-dir", str(data_dir)]
    return f'eval "$({shlex.join(words)})"'


_with_flags(serve)
