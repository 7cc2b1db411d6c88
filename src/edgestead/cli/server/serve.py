"""`edgecli serve`: the flags, and nothing that happens after them.

Owns  turning the table of options into flags.
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
from edgestead.cli.failure import Failed
from edgestead.cli.target import Command

if TYPE_CHECKING:
    from edgestead.server.supervisor.ready import Ready


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


@click.command(cls=Command, short_help="Run the server.")
@click.option(
    "--config",
    "config_file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="TOML file with settings.",
)
@click.option("--quiet", is_flag=True, help="Only print warnings and errors: no addresses, no requests.")
def serve(config_file: Path | None, quiet: bool, **flags: Any) -> None:
    """Run the server in the foreground until SIGTERM or Ctrl-C.

    Prints the addresses when everything answers. A second signal ends it at once. The log is for people on a
    terminal, and JSON lines elsewhere.

    \b
      edgecli serve --data-dir /var/lib/edgestead --dns 0.0.0.0:53 --api 127.0.0.1:8787
      edgecli serve --config /etc/edgestead/edgestead.toml
      edgecli serve --join TOKEN --data-dir DIR
      edgecli serve --cluster DIR
    """
    from edgestead.server.entrance import loading
    from edgestead.server.errors import StartError

    with loading():
        from edgestead.server.supervisor.main import supervise

    def announce(ready: "Ready") -> None:
        if quiet:
            return
        with suppress(OSError):  # whoever closed our stdout does not mean to end the server
            if ready.api_base:
                click.echo(f"API  {ready.api_base}")
            click.echo(f"DNS  {ready.dns} (UDP and TCP)")
            click.echo(f"HTTP http://{ready.http}")
            if ready.https:
                click.echo(f"HTTPS https://{ready.https}")
            if ready.objects:
                click.echo(f"Objects http://{ready.objects}/objects/")
            click.echo(f"Data {settings.data_dir}")
            if ready.api_base:
                click.echo("For a shell: " + _env_command(settings.data_dir))

    given = {name.replace("_", "-"): value for name, value in flags.items()}
    if quiet and given["log-level"] is None:
        given["log-level"] = "warning"
    try:
        settings = config.load(given, config_file)
        if settings.join is not None:
            settings = config.load(_joined(settings, given), config_file)
        code = supervise(settings, announce)
    except config.ConfigError as error:
        raise click.UsageError(str(error)) from None
    except StartError as error:
        raise Failed(str(error)) from None
    if not quiet and code == 0 and sys.stdout.isatty():
        click.echo("Ended. Everything that was acknowledged is kept in the data folder.")
    raise SystemExit(code)


def _joined(settings: config.Config, given: dict[str, Any]) -> dict[str, Any]:
    """Become a node; returns the flags that run it. Raises StartError."""
    from edgestead import __version__
    from edgestead.server.errors import StartError
    from edgestead.server.nodes import join
    from edgestead.server.nodes.identity import NotANode
    from edgestead.server.nodes.invites import Refused

    assert settings.join is not None
    address = str(settings.cluster_advertise or "")
    try:
        member = join.become(settings.join, settings.data_dir, address=address, release=__version__)
    except (Refused, NotANode, OSError) as error:
        raise StartError(str(error)) from None
    roles = ", ".join(sorted(member.peer.roles))
    click.echo(f"Node {member.peer.name} ({roles}) of cluster {member.peer.cluster}", err=True)
    return given | {"join": None, "cluster": str(settings.data_dir)}


def _env_command(data_dir: Path) -> str:
    """What prints this very server's addresses and credentials, whether or not edgecli is on the path."""
    beside = Path(sys.executable).with_name("edgecli")
    words = [str(beside) if beside.exists() else "edgecli", "env"]
    if data_dir != config.default_data_dir() or config.DATA_DIR_VARIABLE in os.environ:  # not in every shell
        words += ["--data-dir", str(data_dir)]
    return f'eval "$({shlex.join(words)})"'


_with_flags(serve)
