"""`edgecli object adopt|accept-loss`: a data folder that was copied, or brought back, or lost a part.

Owns  the commands' options and words.
Not   copying folders.
"""

from pathlib import Path

import click

from edgestead.cli.failure import Failed, counted
from edgestead.cli.folder import data_dir, folder_options
from edgestead.cli.table import show_lines
from edgestead.cli.target import JSON, Command


@click.command("adopt", cls=Command)
@folder_options
@JSON
def adopt(data_dir_given: str | None, config_file: Path | None, as_json: bool) -> None:
    """Make the objects of a data folder that was copied a folder of their own, before its first start.

    Two copies of one folder would go on with the same bookmarks, and each would mean two things; so a copy is
    not opened until it is adopted. Bookmarks of everything that it holds stay good. Never start the original
    again beside it.

    \b
      edgecli object adopt --data-dir copy
    """
    import apsw

    from edgestead.server.objects import layout as layout

    folder = data_dir(data_dir_given, config_file)
    try:
        adopted = layout.adopt(folder / "objects")
    except BlockingIOError:
        raise Failed(f"A server runs on {folder}: stop it first.") from None
    except apsw.Error as error:
        raise Failed(f"{folder} cannot be adopted: {error}") from None
    if not adopted:
        raise Failed(f"There are no objects in {folder}.")
    found = {"data_dir": str(folder), "adopted": adopted}
    show_lines(found, f"{folder}: adopted {counted(adopted, 'log')} of objects.", as_json=as_json)


@click.command("accept-loss", cls=Command)
@folder_options
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@JSON
def accept_loss(data_dir_given: str | None, config_file: Path | None, yes: bool, as_json: bool) -> None:
    """Go on with logs of objects that end before what had been acknowledged.

    A server does not start on such a folder: a disk or a program has cut off, or emptied, the end of a
    segment. A backup is better, if there is one. What is gone stays gone: objects begin again where their
    log ends, bookmarks of what is lost are refused. Databases of objects may have pages of what is lost: look
    at them with `edgecli object verify` after the start.

    \b
      edgecli object accept-loss --data-dir DIR
    """
    import apsw

    from edgestead.server.objects import layout as layout
    from edgestead.store.objectlog import LogError

    folder = data_dir(data_dir_given, config_file)
    if not yes:
        click.confirm(f"Go on without what the logs of {folder} lost?", abort=True, err=True)
    try:
        lost = layout.accept_losses(folder / "objects")
    except BlockingIOError:
        raise Failed(f"A server runs on {folder}: stop it first.") from None
    except (LogError, apsw.Error, OSError) as error:
        raise Failed(f"{folder}: {error}") from None
    lines = [f"Accepted: {words}." for words in lost]
    none = f"{folder}: no log ends before what was acknowledged."
    show_lines({"accepted": list(lost)}, *(lines or [none]), as_json=as_json)
