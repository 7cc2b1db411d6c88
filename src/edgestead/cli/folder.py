"""How a command finds the data folder, and the server that runs on it.

Owns  the options `--data-dir` and `--config` of commands other than `serve`.
Not   what they do there.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

_FILE = click.Path(path_type=Path)


def folder_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that `data_dir` takes."""
    command = click.option(
        "--config", "config_file", metavar="FILE", type=_FILE, help="The server's TOML file."
    )(command)
    return click.option("--data-dir", "data_dir_given", metavar="DIR", help="The server's data folder.")(
        command
    )


def data_dir(given: str | None, config_file: Path | None) -> Path:
    """The folder of the server that would be started with the same two options."""
    from edgestead import config

    try:
        return config.load({"data-dir": given}, config_file).data_dir
    except config.ConfigError as error:
        raise click.ClickException(str(error)) from None
