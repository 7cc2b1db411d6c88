"""`edgecli backup|restore|verify`: copies of everything that a server keeps, and whether it is whole.

Owns  arguments, options and output of the three commands.
Not   copying.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from edgestead.cli.failure import Failed, counted
from edgestead.cli.folder import data_dir, folder_options
from edgestead.cli.progress import Progress
from edgestead.cli.table import show_lines
from edgestead.cli.target import JSON, Command

_FOLDERS = "`edgecli backup BACKUP` makes a backup of a data folder, and `edgecli serve` a data folder."
_TARGET = click.argument("target", metavar="BACKUP", type=click.Path(path_type=Path))


@click.command(cls=Command)
@_TARGET
@click.option(
    "--with-keys", is_flag=True, help="Also seal.key and cluster.key, which open the other keys in it."
)
@folder_options
@JSON
def backup(
    target: Path, with_keys: bool, data_dir_given: str | None, config_file: Path | None, as_json: bool
) -> None:
    """Copy everything that a server keeps into the new folder BACKUP, while the server runs.

    What was answered before the command began is in it. The folder holds secrets (the first user's key,
    hashes of tokens, keys of clearances): keep it as you keep them. Configuration, certificates and classes
    of objects lie elsewhere and are not in it; seal.key, which opens the keys of signed zones and
    TSIG keys, and cluster.key, by which machines without control go on following a restored server, have
    to be kept in another place.

    \b
      edgecli backup /backups/$(date +%F)
    """
    from edgestead.server import backup as backups
    from edgestead.server import seal
    from edgestead.server.objects.backup import copy_objects

    folder = data_dir(data_dir_given, config_file)
    with _plainly():
        total_bytes = backups.bytes_to_copy(folder)
        with Progress("Copying", "MiB", total_bytes) as progress, _noted(folder, target):
            manifest = backups.backup(
                folder,
                target,
                lambda bytes_: progress.advance(bytes_, 0),
                copy_objects(folder),
                with_keys=with_keys,
            )
    taken = backups.bytes_taken(target)
    show_lines(
        {"backup": str(target), "files": len(manifest.files), "bytes": taken},
        f"{target}: {counted(len(manifest.files), 'file')}, {taken} bytes on the disk.",
        as_json=as_json,
    )
    if not with_keys and (folder / backups.KEYS[1]).exists():
        click.echo(
            f"{backups.KEYS[1]} is not in it: without that file machines without control have to join again.",
            err=True,
        )
    if not with_keys and (folder / seal.FILE_NAME).exists():
        click.echo(
            f"{seal.FILE_NAME} is not in it: without that file signed zones cannot be changed, and TSIG keys"
            " not be used.",
            err=True,
        )
    click.echo(f"`edgecli verify {target}` examines it, `edgecli restore {target}` brings it back.", err=True)


@click.command(cls=Command)
@_TARGET
@folder_options
@JSON
def restore(target: Path, data_dir_given: str | None, config_file: Path | None, as_json: bool) -> None:
    """Make a data folder of BACKUP. The folder must not hold data, and no server may run on it.

    Its zones get serials that secondaries take for new, and bookmarks of objects from after the backup are
    told as unknown. Start the server as ever afterwards.

    \b
      edgecli restore /backups/2026-11-20 --data-dir /var/lib/edgestead
    """
    from edgestead.server import backup as backups
    from edgestead.server.objects.backup import adopt

    folder = data_dir(data_dir_given, config_file)
    with _plainly():
        total_bytes = sum(kept.length for kept in backups.read_manifest(target).files)
        with Progress("Restoring", "MiB", total_bytes) as progress:
            backups.restore(target, folder, lambda bytes_: progress.advance(bytes_, 0), adopt)
    show_lines(
        {"data_dir": str(folder), "backup": str(target)},
        f"{folder} is as {target} was. Start it with `edgecli serve --data-dir {folder}`.",
        as_json=as_json,
    )


@click.command(cls=Command)
@click.argument("target", metavar="[FOLDER]", type=click.Path(path_type=Path), required=False)
@folder_options
@JSON
def verify(target: Path | None, data_dir_given: str | None, config_file: Path | None, as_json: bool) -> None:
    """Examine every database, file, checksum and count of a data folder or a backup; a server may run on it.

    Without FOLDER it is the server's data folder. Ends with 1 when something is not whole.

    \b
      edgecli verify /backups/2026-11-20
    """
    from edgestead.server.objects.backup import objects_faults
    from edgestead.server.verifying import verify as examine

    folder = target or data_dir(data_dir_given, config_file)
    with _plainly():
        found = list(examine(folder, objects_faults))
    lines = [f"{fault.where}: {fault.words}" for fault in found] or [f"{folder} is whole."]
    show_lines([fault._asdict() for fault in found], *lines, as_json=as_json)
    if found:
        raise SystemExit(1)


@contextmanager
def _noted(folder: Path, target: Path) -> Iterator[None]:
    """How it ends is noted for the server's health; an operator who stops it is no failure."""
    from edgestead.server.health.backup_note import note

    try:
        yield
    except Exception as error:
        note(folder, target, time.time_ns() // 1_000, f"{target}: {error}")
        raise
    note(folder, target, time.time_ns() // 1_000)


@contextmanager
def _plainly() -> Iterator[None]:
    import apsw

    from edgestead.server.backup import BackupError
    from edgestead.server.errors import StartError

    try:
        yield
    except (BackupError, StartError) as error:
        raise Failed(f"{error}.", _FOLDERS) from None
    except apsw.Error as error:
        raise Failed(f"A database cannot be read: {error}") from None
