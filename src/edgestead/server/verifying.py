"""Whether everything that a data folder, or a backup, holds is whole.

Owns  which examinations there are, and the invariants that no schema holds.
Not   mending anything.
"""

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import apsw
import msgspec

from edgestead.model import served
from edgestead.server import backup
from edgestead.sqlite import witness
from edgestead.sqlite.connection import open_reader
from edgestead.sqlite.copies import faults
from edgestead.sqlite.kv_copies import blob_faults
from edgestead.sqlite.witness import WritesLost

FAULTS_MAX = 20  # told of one invariant


class Fault(NamedTuple):
    """`where` is a file of the folder."""

    where: str
    words: str


class _Invariant(NamedTuple):
    """A query whose rows are faults; each row's columns fill `words`."""

    words: str
    query: str


_INVARIANTS = (
    _Invariant(
        "zone {} has {} records and counts {}",
        "select z.name, count(r.id), z.record_count from zones z left join records r on r.zone_id = z.id"
        " group by z.id having count(r.id) <> z.record_count",
    ),
    _Invariant(
        "record {} is of a zone that is not there",
        "select id from records where zone_id not in (select id from zones)"
        " and zone_id not in (select id from deleted_zones)",
    ),
    _Invariant(
        "zone {} is of an account that is not there",
        "select name from zones where account_id not in (select id from accounts)",
    ),
    _Invariant(
        "zone {} is not in the change feed",
        "select name from zones where id not in (select scope from feed_state where kind = 'zone')",
    ),
    _Invariant(
        "the change feed serves {}, which is no zone",
        "select distinct scope from feed_state where kind = 'zone' and scope not in (select id from zones)",
    ),
    _Invariant(
        "change {} of the feed is missing",
        "select o.sequence + 1 from outbox o where not exists (select 1 from outbox n"
        " where n.sequence = o.sequence + 1) and o.sequence < (select max(sequence) from outbox)",
    ),
)
_DOCUMENTS: dict[str, Callable[[bytes], object]] = {
    served.KIND_ZONE: served.decode_zone,
    served.KIND_NAME: served.decode_name,
}


def verify(folder: Path, objects: Callable[[Path], Iterator[Fault]]) -> Iterator[Fault]:
    """Everything that is wrong with a data folder or a backup, in use or not. `objects` examines theirs.

    Raises BackupError when it is neither.
    """
    if (folder / backup.MANIFEST).exists():
        manifest = backup.read_manifest(folder)
        for words in backup.manifest_faults(folder, manifest, lambda _: None):
            yield Fault(backup.MANIFEST, words)
    elif not (folder / backup.CONTROL).exists():
        raise backup.BackupError(f"{folder} is neither a data folder nor a backup")
    for name in (backup.CONTROL, backup.KV):
        if (folder / name).exists():
            yield from _lost_writes(folder / name)
            for words in faults(folder / name):
                yield Fault(name, words)
    yield from _control_faults(folder / backup.CONTROL)
    if (folder / backup.KV).exists():
        for words in blob_faults(folder):
            yield Fault(backup.KV, words)
    if (folder / "objects").exists():
        yield from objects(folder / "objects")


def _lost_writes(path: Path) -> Iterator[Fault]:
    try:
        noted = witness.read_file(path)  # first: a server that runs notes on
        if any(noted):
            with closing(open_reader(path)) as db:
                witness.check(path, noted, db)
    except WritesLost as lost:
        yield Fault(path.name, str(lost))
    except (apsw.Error, OSError) as error:
        yield Fault(path.name, f"what it lost cannot be said: {error}")


def _control_faults(path: Path) -> Iterator[Fault]:
    try:
        db = open_reader(path)
        db.execute("BEGIN")  # one moment for all queries
        for invariant in _INVARIANTS:
            for row in db.execute(f"{invariant.query} limit {FAULTS_MAX}"):
                yield Fault(backup.CONTROL, invariant.words.format(*row))
        for scope, kind, key, document in db.execute("select scope, kind, key, doc from feed_state"):
            if not _is_readable(kind, document):
                yield Fault(backup.CONTROL, f"{kind} {key} of {scope} in the change feed cannot be read")
    except apsw.Error as error:
        yield Fault(backup.CONTROL, f"it cannot be read: {error}")


def _is_readable(kind: str, document: bytes) -> bool:
    try:
        if kind in _DOCUMENTS:
            _DOCUMENTS[kind](document)
    except msgspec.DecodeError:
        return False
    return True
