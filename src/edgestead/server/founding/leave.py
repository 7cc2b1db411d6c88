"""`cluster export` and `cluster backup`: an ordinary backup of what a cluster keeps.

Owns  its parts, and that the control data in it is as new as the log was when the command began.
Not   bringing it back: `edgecli restore` makes a data folder of it.

The control data is copied from this node's own copy, whose node therefore has to run. Key-values are read key
by key, and objects one by one, while others write them: each is as it was at one moment of the command.
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from edgestead.server import backup, event_copies, stores
from edgestead.server.backup import BackupError, Manifest
from edgestead.server.folder import EVENTS
from edgestead.server.founding import objects, values
from edgestead.server.founding.found import not_copied
from edgestead.server.founding.look import SELECT_HEAD
from edgestead.server.founding.node import ControlNode
from edgestead.sqlite.connection import open_reader
from edgestead.sqlite.copies import copy_database
from edgestead.sqlite.logged import position_of
from edgestead.store.objectlog import LogError

CAUGHT_UP_SECONDS_MAX = 20.0  # of the wait until this node has applied the log
LOOK_SECONDS = 0.1


class Exported(NamedTuple):
    manifest: Manifest
    objects: int


def export(node: ControlNode, target: Path, advance: Callable[[int, int], None]) -> Exported:
    """Make the backup `target`.

    Raises BackupError, apsw.Error, OSError, Unavailable, as `Link.rows`; then `target` is not there.
    """
    if target.exists():
        raise BackupError(f"{target} exists already; name a folder that is not there")
    try:
        with backup.begun(target) as part:
            _wait_until_caught_up(node)
            copy_database(
                node.folder / backup.CONTROL, part / backup.CONTROL, lambda octets: advance(octets, 0)
            )
            _copy_values(node, part, advance)
            count = objects.take_out(node.link, node.cluster.generation, part, advance)
            event_copies.copy_events(node.folder / EVENTS, part / EVENTS, lambda octets: advance(octets, 0))
            for name in backup.SECRETS:
                backup.copy_secret(node.folder / name, part / name)
            return Exported(backup.finish(part, target), count)
    except LogError as error:
        raise BackupError(not_copied(error)) from error


def _wait_until_caught_up(node: ControlNode) -> None:
    """Raises BackupError."""
    ((wanted, _),) = node.link.rows(SELECT_HEAD)
    path, ends_s = node.folder / backup.CONTROL, time.monotonic() + CAUGHT_UP_SECONDS_MAX
    while True:
        if path.exists():
            db = open_reader(path)
            try:
                if position_of(db).sequence >= wanted:
                    return
            finally:
                db.close()
        if time.monotonic() > ends_s:
            raise BackupError(
                f"{node.folder} is behind the cluster: start the node {node.name}, or run this on another one"
            )
        time.sleep(LOOK_SECONDS)


def _copy_values(node: ControlNode, part: Path, advance: Callable[[int, int], None]) -> None:
    theirs = stores.open_cluster_kv(node.link.dsn, bucket=node.bucket)
    ours = stores.open_kv(part)
    try:
        values.copy(theirs, ours, int(time.time()), advance)
    finally:
        ours.close()
        theirs.close()
