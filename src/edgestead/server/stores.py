"""Opening each store by its implementation: the one place that chooses it.

Owns  which implementation there is, where its files are in a data folder.
Not   who may use the folder; when a store is closed.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import apsw

from edgestead.s3.bodies import Bucket, S3Bodies
from edgestead.sqlite.control import SqliteControlStore
from edgestead.sqlite.kv import SqliteKvStore
from edgestead.sqlite.objectlog.local import KEEPING, SEGMENT_BYTES, LocalObjectLog
from edgestead.sqlite.witness import WritesLost
from edgestead.store.files import Files
from edgestead.store.history.thinning import Keeping
from edgestead.store.kv import Allowance
from edgestead.store.migrations import Doing, Migration, SchemaError, quiet
from edgestead.store.runner import Runner
from edgestead.tables.schema import MIGRATIONS

if TYPE_CHECKING:
    from edgestead.postgres.kv import PostgresKvStore

CONTROL_NAME = "control.db"
RELAY_MIGRATIONS = (
    Migration(
        1,
        "relay",
        # Where the file stands in the feed of control. `leased_s` is when the node last had a lease.
        """
        CREATE TABLE relay (
          one integer PRIMARY KEY,
          feed_id text NOT NULL,
          sequence integer NOT NULL,
          leased_s integer NOT NULL
        );
        """,
    ),
    Migration(
        2,
        "kinds",
        # What was asked for when the file was made. A release that wants more of the feed has to ask anew.
        "ALTER TABLE relay ADD COLUMN kinds text NOT NULL DEFAULT ''",
    ),
)
FAULTS = (SchemaError, WritesLost, apsw.Error)
CANNOT_OPEN = (*FAULTS, OSError)


def open_control(
    folder: Path, *, ahead: bool = False, synced: bool = True, doing: Doing = quiet
) -> SqliteControlStore:
    """Control's data. With `ahead` small writes succeed on a full disk, too. Without `synced` nothing is
    durable: for tests. `doing` is called as long as an upgrade makes progress. Raises CANNOT_OPEN.
    """
    return SqliteControlStore(folder / CONTROL_NAME, MIGRATIONS, ahead=ahead, synced=synced, doing=doing)


def open_relay(path: Path) -> SqliteControlStore:
    """What a relay keeps of one group's documents, which control has, too. Raises CANNOT_OPEN."""
    return SqliteControlStore(path, RELAY_MIGRATIONS, is_copy=True)


def open_kv(
    folder: Path,
    *,
    ahead: bool = False,
    synced: bool = True,
    allowance: Callable[[str], Allowance] | None = None,
    doing: Doing = quiet,
) -> SqliteKvStore:
    """The key-values. `ahead` and `doing` as above. Raises CANNOT_OPEN."""
    return SqliteKvStore(folder, ahead=ahead, synced=synced, allowance=allowance, doing=doing)


def open_cluster_kv(
    dsn: str,
    *,
    spool_dir: Path | None = None,
    allowance: Callable[[str], Allowance] | None = None,
    place: Callable[[], int | None] = lambda: None,
    bucket: Bucket | None = None,
) -> "PostgresKvStore":
    """The key-values of a cluster; parameters as there. Nothing is connected to before the first use.

    New large values go to the `bucket`, if there is one. Raises OSError: its client library is missing.
    """
    # A tenth of what control imports, for nobody who has no cluster.
    from edgestead.postgres.kv import PostgresKvStore

    return PostgresKvStore(
        dsn,
        spool_dir=None if spool_dir is None else os.fspath(spool_dir),
        bodies=None if bucket is None else S3Bodies(bucket),
        allowance=allowance,
        place=place,
    )


class HasBucket(Protocol):
    """Settings of a node: as it is started, or as a command reads them."""

    @property
    def cluster_s3(self) -> str | None: ...
    @property
    def cluster_s3_region(self) -> str: ...
    @property
    def cluster_s3_credentials(self) -> str | Path | None: ...


def bucket_of(node: HasBucket) -> Bucket | None:
    """Where the node's cluster has large values; None: in its database."""
    if node.cluster_s3 is None:
        return None
    credentials = node.cluster_s3_credentials
    return Bucket(
        node.cluster_s3, node.cluster_s3_region, None if credentials is None else os.fspath(credentials)
    )


def open_objects(
    folder: str,
    *,
    files: Files,
    runner: Callable[[str], Runner],
    now_us: Callable[[], int],
    random: Callable[[int], bytes],
    fatal: Callable[[BaseException], None],
    clock: Callable[[], float] | None = None,
    vfs: str = "",
    segment_bytes: int = SEGMENT_BYTES,
    keeping: Keeping = KEEPING,
    doing: Doing = quiet,
) -> LocalObjectLog:
    """The objects of one process; `runner(name)` makes a place for slow work. Raises as `LocalObjectLog`."""
    return LocalObjectLog(
        folder,
        files=files,
        commits=runner("object-log"),
        upkeep=runner("object-upkeep"),
        past=runner("object-past"),
        now_us=now_us,
        clock=clock,
        random=random,
        fatal=fatal,
        vfs=vfs,
        segment_bytes=segment_bytes,
        keeping=keeping,
        doing=doing,
    )
