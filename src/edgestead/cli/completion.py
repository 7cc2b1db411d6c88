"""`edgecli completion`: the script that lets a shell complete commands and options.

Owns  the list of shells.
Not   installing it.
"""

import click

SHELLS = ("bash", "zsh", "fish")
VARIABLE = "_EDGECLI_COMPLETE"  # click's own name for it


@click.command(short_help="Print the script that completes commands in a shell.")
@click.argument("shell", type=click.Choice(SHELLS))
def completion(shell: str) -> None:
    """Print the completion script of SHELL. For bash and zsh: eval "$(edgecli completion bash)"."""
    from click.shell_completion import get_completion_class

    from edgestead.cli.main import cli

    found = get_completion_class(shell)
    assert found is not None
    click.echo(found(cli, {}, "edgecli", VARIABLE).source())
