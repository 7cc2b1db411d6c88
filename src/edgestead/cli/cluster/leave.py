"""`edgecli cluster export|backup`.

Owns  arguments and output.
Not   copying (`server.founding.leave`).
"""

from pathlib import Path

import click

from edgestead.cli.cluster.shared import CONFIG, FOLDER, opened
from edgestead.cli.failure import counted
from edgestead.cli.progress import Progress
from edgestead.cli.table import show_lines
from edgestead.cli.target import JSON, Command

_TARGET = click.argument("target", metavar="BACKUP", type=click.Path(path_type=Path))


@click.command(cls=Command)
@_TARGET
@FOLDER
@CONFIG
@JSON
def export(target: Path, folder: Path, config_file: Path | None, as_json: bool) -> None:
    """Copy everything into the new folder BACKUP, and say how to go on with one machine.

    The node of --cluster has to run. What was acknowledged before the command began is in the copy. To leave
    the cluster with everything, let no client write from before then on, and no alarm: stop the other nodes,
    and start this one again without objects first.

    \b
      edgecli cluster export /backups/leaving --cluster /var/lib/edgestead-node
    """
    _copy(target, folder, config_file, as_json=as_json)
    if not as_json:
        click.echo(
            "To go on with one machine, when every node of the cluster is stopped:\n"
            f"  edgecli restore {target} --data-dir /var/lib/edgestead\n"
            f"  install -m 600 {folder}/seal.key /var/lib/edgestead/   # opens keys of signed zones\n"
            "  edgecli serve --data-dir /var/lib/edgestead\n"
            "What objects wrote behind their copy, called or by alarms, is not in it.",
            err=True,
        )


@click.command(cls=Command)
@_TARGET
@FOLDER
@CONFIG
@JSON
def backup(target: Path, folder: Path, config_file: Path | None, as_json: bool) -> None:
    """Copy everything into the new folder BACKUP, as `edgecli backup` of one machine.

    The database's own backup (with its write-ahead log, to any moment) is the one to rely on; this one can be
    read without PostgreSQL. seal.key and cluster.key are not in it: keep them elsewhere.

    \b
      edgecli cluster backup /backups/$(date +%F) --cluster /var/lib/edgestead-node
    """
    _copy(target, folder, config_file, as_json=as_json)


def _copy(target: Path, folder: Path, config_file: Path | None, *, as_json: bool) -> None:
    from edgestead.server import backup as backups
    from edgestead.server.founding import leave

    with opened(folder, config_file) as node, Progress("Copying", "keys and objects", 0) as progress:
        manifest, objects = leave.export(node, target, progress.advance)
    taken = backups.bytes_taken(target)
    show_lines(
        {"backup": str(target), "files": len(manifest.files), "bytes": taken, "objects": objects},
        f"{target}: {counted(len(manifest.files), 'file')}, {taken} bytes on the disk.",
        as_json=as_json,
    )
