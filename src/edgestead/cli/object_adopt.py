"""`edgecli object adopt`: a data folder that was copied, or brought back from a backup.

Owns  the command's options and words.
Asks  `objects.layout`, in this process: no server may run on the folder.
Tells the shell.
Not   copying folders.
"""

from pathlib import Path

import click

from edgestead.cli.failure import Failed, counted
from edgestead.cli.folder import data_dir, folder_options
from edgestead.cli.target import Command


@click.command("adopt", cls=Command)
@folder_options
def adopt(data_dir_given: str | None, config_file: Path | None) -> None:
    """Make the objects of a data folder that was copied a folder of their own, before its first start.

    Two copies of one folder would go on with the same bookmarks, and each would mean two things; so a copy is
    not opened until it is adopted. Bookmarks of everything that it holds stay good. Never start the original
    again beside it.

    \b
      edgecli object adopt --data-dir copy
    """
    import apsw

    from edgestead.objects import layout

    folder = data_dir(data_dir_given, config_file)
    try:
        adopted = layout.adopt(folder / "objects")
    except BlockingIOError:
        raise Failed(f"A server runs on {folder}: stop it first.") from None
    except apsw.Error as error:
        raise Failed(f"{folder} cannot be adopted: {error}") from None
    if not adopted:
        raise Failed(f"There are no objects in {folder}.")
    click.echo(f"{folder}: adopted {counted(adopted, 'log')} of objects.")
