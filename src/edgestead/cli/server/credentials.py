"""`edgecli credentials rotate|reset`: a new key and token for the first user.

Owns  choosing between the running server and the resting folder.
Not   printing secrets.
"""

from pathlib import Path

import click

from edgestead.cli.failure import Failed, confirmed
from edgestead.cli.folder import data_dir, folder_options
from edgestead.cli.table import show_lines
from edgestead.cli.target import JSON, YES, Command


@click.group(short_help="Renew the key and token in the data folder.")
def credentials() -> None:
    """Renew the API key and token that the server made at its first start.

    With a running server the old ones stop working at once; otherwise from the next start on.
    """


@credentials.command(cls=Command, short_help="New key and token; other tokens stay.")
@folder_options
@YES
@JSON
def rotate(data_dir_given: str | None, config_file: Path | None, yes: bool, as_json: bool) -> None:
    """Renew the key and the first token. Tokens that were made over the API stay valid.

    \b
      edgecli credentials rotate --yes
    """
    question = "The first user's key and token stop working at once. Renew them?"
    _renew(data_dir(data_dir_given, config_file), "rotate", question, yes=yes, as_json=as_json)


@credentials.command(cls=Command, short_help="New key and token; every other token is revoked.")
@folder_options
@YES
@JSON
def reset(data_dir_given: str | None, config_file: Path | None, yes: bool, as_json: bool) -> None:
    """Renew the key and the first token, and revoke every other token.

    \b
      edgecli credentials reset --yes
    """
    question = "Every token of every program stops working at once. Revoke all of them?"
    _renew(data_dir(data_dir_given, config_file), "reset", question, yes=yes, as_json=as_json)


def _renew(folder: Path, command: str, question: str, *, yes: bool, as_json: bool) -> None:
    from edgestead.server.errors import StartError
    from edgestead.server.supervisor import renewal

    if not confirmed(question, yes=yes, verb="revoke", quiet=as_json):
        return
    try:
        renewal.renew(folder, command)
    except StartError as error:
        raise Failed(f"{error}.", "`edgecli serve` starts one; --data-dir says where its data is.") from None
    kept = folder / "credentials.json"
    show_lines({"file": str(kept)}, f"New credentials are in {kept}", as_json=as_json)
