"""`edgecli credentials rotate|reset`: a new key and token for the first user.

Owns  choosing between the running server and the resting folder.
Asks  the running server through its admin socket; `server.credentials` when there is none.
Tells the operator where the new ones are.
Not   printing secrets.
"""

from pathlib import Path

import click

from edgestead.cli.folder import data_dir, folder_options


@click.group(short_help="Renew the key and token in the data folder.")
def credentials() -> None:
    """Renew the API key and token that the server made at its first start.

    With a running server the old ones stop working at once; otherwise from the next start on.
    """


@credentials.command(short_help="New key and token; other tokens stay.")
@folder_options
def rotate(data_dir_given: str | None, config_file: Path | None) -> None:
    """Renew the key and the first token. Tokens that were made over the API stay valid."""
    _renew(data_dir(data_dir_given, config_file), "rotate")


@credentials.command(short_help="New key and token; every other token is revoked.")
@folder_options
def reset(data_dir_given: str | None, config_file: Path | None) -> None:
    """Renew the key and the first token, and revoke every other token."""
    _renew(data_dir(data_dir_given, config_file), "reset")


def _renew(folder: Path, command: str) -> None:
    from edgestead.server import renewal
    from edgestead.server.errors import StartError

    try:
        renewal.renew(folder, command)
    except StartError as error:
        raise click.ClickException(str(error)) from None
    click.echo(f"New credentials are in {folder / 'credentials.json'}")
