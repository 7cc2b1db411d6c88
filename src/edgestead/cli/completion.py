"""`edgecli completion`: the script that lets a shell complete commands and options.

Owns  the list of shells.
Not   installing it.
"""

import click

from edgestead.cli.target import Command

SHELLS = ("bash", "zsh", "fish")
VARIABLE = "_EDGECLI_COMPLETE"  # click's own name for it


@click.command(cls=Command, short_help="Print the script that completes commands in a shell.")
@click.argument("shell", type=click.Choice(SHELLS))
def completion(shell: str) -> None:
    """Print the completion script of SHELL: bash, zsh or fish.

    \b
      eval "$(edgecli completion bash)"
      edgecli completion fish > ~/.config/fish/completions/edgecli.fish
    """
    from click.shell_completion import get_completion_class

    from edgestead.cli.main import cli

    found = get_completion_class(shell)
    assert found is not None
    click.echo(found(cli, {}, "edgecli", VARIABLE).source())
