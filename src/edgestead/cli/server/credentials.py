"""`edgecli credentials rotate|reset`: a new key and token for the first user.

Owns  choosing between the running server and the resting folder.
Not   printing secrets.
"""

from pathlib import Path

import click

from edgestead.cli.failure import confirmed
from edgestead.cli.folder import data_dir, folder_options
from edgestead.cli.target import YES


@click.group(short_help="Renew the key and token in the data folder.")
def credentials() -> None:
    """Renew the API key and token that the server made at its first start.

    With a running server the old ones stop working at once; otherwise from the next start on.
    """


@credentials.command(short_help="New key and token; other tokens stay.")
@folder_options
@YES
def rotate(data_dir_given: str | None, config_file: Path | None, yes: bool) -> None:
    """Renew the key and the first token. Tokens that were made over the API stay valid."""
    question = "The first user's key and token stop working at once. Renew them?"
    _renew(data_dir(data_dir_given, config_file), "rotate", question, yes=yes)


@credentials.command(short_help="New key and token; every other token is revoked.")
@folder_options
@YES
def reset(data_dir_given: str | None, config_file: Path | None, yes: bool) -> None:
    """Renew the key and the first token, and revoke every other token."""
    question = "Every token of every program stops working at once. Revoke all of them?"
    _renew(data_dir(data_dir_given, config_file), "reset", question, yes=yes)


def _renew(folder: Path, command: str, question: str, *, yes: bool) -> None:
    from edgestead.server.errors import StartError
    from edgestead.server.supervisor import renewal

    if not confirmed(question, yes=yes, verb="revoke"):
        return
    try:
        renewal.renew(folder, command)
    except StartError as error:
        raise click.ClickException(str(error)) from None
    click.echo(f"New credentials are in {folder / 'credentials.json'}")
