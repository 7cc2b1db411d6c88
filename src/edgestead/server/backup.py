"""Backups of a data folder, made while its server runs, and bringing them back.

Owns  what belongs to a backup, its manifest, the order of copying.
Not   examining contents (`server.verifying`); a schedule; where backups are kept.

    BACKUP/manifest.json     what there is, with length and SHA-256; written last: without it it is no backup
    BACKUP/control.db        accounts, zones, records, rulesets, the change feed
    BACKUP/kv.db, kv-blobs/  the key-value store
    BACKUP/objects/          stateful objects, if there are any
    BACKUP/events/           what the edge decided
    BACKUP/cluster/          machines without control: their list, and what is sealed with cluster.key
    BACKUP/credentials.json, challenge-keys.json
                             the first user's key and token; what clearances of visitors are signed with
    BACKUP/seal.key, cluster/cluster.key
                             where they are asked for

Each store is as it was at one moment, control's first: what is there of a namespace that was made between two
moments is swept after a restore. What DNS keeps for a quick start and the compiled managed rules are not in
it: they are made anew.
"""

import fcntl
import hashlib
import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from edgestead import __version__
from edgestead.server import credentials, event_copies, files
from edgestead.server.edge import challenge_keys
from edgestead.server.folder import EVENTS, RESTORING, DataFolder, same_file
from edgestead.server.nodes.registry import FILE_BYTES_MAX as NODES_BYTES_MAX
from edgestead.sqlite import witness
from edgestead.sqlite.connection import sync_folder
from edgestead.sqlite.control import SqliteControlStore
from edgestead.sqlite.copies import Advance, copy_database
from edgestead.sqlite.kv_copies import bytes_of_store, copy_store
from edgestead.sqlite.objectlog.files import LocalFiles
from edgestead.tables import schema
from edgestead.usecases import restored

MANIFEST = "manifest.json"
CONTROL, KV = "control.db", "kv.db"
SECRETS = (credentials.FILE_NAME, challenge_keys.FILE_NAME)
CLUSTER = "cluster"
NODES, VAULT = f"{CLUSTER}/nodes.json", f"{CLUSTER}/vault"
KEYS = ("seal.key", f"{CLUSTER}/cluster.key")  # what is sealed in a backup opens with these
FORMAT = 1
_CONTENTS = (
    *(CONTROL, f"{CONTROL}-wal", f"{CONTROL}-shm", KV, f"{KV}-wal", f"{KV}-shm", "kv-blobs"),
    *("objects", *SECRETS, EVENTS, "dns", NODES, VAULT),
    *(f"{CONTROL}{witness.SUFFIX}", f"{KV}{witness.SUFFIX}"),
)
_CHUNK_BYTES = 1 << 20
STAT_BLOCK_BYTES = 512  # of st_blocks, whatever the file system's blocks are (POSIX, sys_stat.h)


class BackupError(Exception):
    """A backup cannot be made or brought back; the message says why, in one line."""


class Kept(msgspec.Struct, frozen=True):
    """One file of a backup, by its path within it."""

    path: str
    length: int
    sha256: str


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    format: int
    version: str
    made_us: int
    files: tuple[Kept, ...]


def bytes_to_copy(folder: Path) -> int:
    """About how much a backup of a data folder is. Raises BackupError."""
    _check_is_data(folder)
    values = bytes_of_store(folder) if (folder / KV).exists() else 0
    return (folder / CONTROL).stat().st_size + values + event_copies.bytes_of_events(folder / EVENTS)


def backup(
    folder: Path,
    target: Path,
    advance: Advance,
    objects: Callable[[Path], None],
    *,
    with_keys: bool = False,
) -> Manifest:
    """Copy the data folder into `target`, which is made; its server may run. `objects` copies theirs.

    Until it is whole it has another name, so a backup that was cut short is never taken for one.
    Raises BackupError, apsw.Error, OSError; then `target` is not there.
    """
    _check_is_data(folder)
    if target.exists():
        raise BackupError(f"{target} exists already; name a folder that is not there")
    with begun(target) as part:
        copy_database(folder / CONTROL, part / CONTROL, advance)
        if (folder / KV).exists():
            copy_store(folder, part, advance)
        objects(part)
        event_copies.copy_events(folder / EVENTS, part / EVENTS, advance)
        for name in SECRETS:
            copy_secret(folder / name, part / name)
        _copy_nodes(folder, part)
        for name in KEYS if with_keys else ():
            copy_secret(folder / name, part / name)
        return finish(part, target)


@contextmanager
def begun(target: Path) -> Iterator[Path]:
    """A folder that is to become the backup `target`, in place of a half one. An error removes it.

    Raises BackupError while another process makes the same one, OSError.
    """
    part = target.with_name(f".{target.name}.part")
    if part.exists():
        with _locked(part):
            shutil.rmtree(part, ignore_errors=True)
    part.mkdir(mode=0o700, parents=True)
    with _locked(part):
        try:
            yield part
        except BaseException:
            shutil.rmtree(part, ignore_errors=True)
            raise


@contextmanager
def _locked(part: Path) -> Iterator[None]:
    """Raises BackupError, OSError."""
    descriptor = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        if not _is_ours(descriptor, part):
            raise BackupError(f"{part} is being made into a backup by another process")
        yield
    finally:
        os.close(descriptor)


def _is_ours(descriptor: int, part: Path) -> bool:
    """Whether nobody else has the folder, nor had it and made another one in its place before we got it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        pass  # a file system of another machine may have no locks
    return same_file(part, os.fstat(descriptor))


def _copy_nodes(folder: Path, part: Path) -> None:
    """Of a server that is its own cluster. The key of its identity is not needed: it makes another one."""
    if not (folder / NODES).exists():
        return
    (part / VAULT).mkdir(mode=0o700, parents=True)
    names = sorted(path.name for path in (folder / VAULT).glob("*.sealed"))
    copy_secret(folder / NODES, part / NODES, NODES_BYTES_MAX)
    for name in (f"{VAULT}/{one}" for one in names):
        copy_secret(folder / name, part / name)  # an invitation may be used meanwhile


def finish(part: Path, target: Path) -> Manifest:
    """Make a backup of a folder that has everything but the manifest; durable when it returns."""
    _make_private(part)
    LocalFiles().sync_tree(str(part))
    made_us = time.time_ns() // 1_000
    manifest = Manifest(
        format=FORMAT, version=__version__, made_us=made_us, files=tuple(map(_kept(part), _files(part)))
    )
    _write_durably(part / MANIFEST, msgspec.json.format(msgspec.json.encode(manifest)))
    part.rename(target)
    sync_folder(target.parent)
    return manifest


def restore(source: Path, folder: Path, advance: Advance, adopt_objects: Callable[[Path], None]) -> Manifest:
    """Make a data folder of a backup; `folder` must not hold one, and no server may run on it.

    Each file is compared with the manifest while it is copied. The database is marked, so that the next start
    gives zones serials that secondaries take for new. A restore that was cut short is known by a file, and
    done again from the start. Raises BackupError, StartError, apsw.Error, OSError.
    """
    manifest = read_manifest(source)
    contents = (*_CONTENTS, *(kept.path for kept in manifest.files if kept.path in KEYS))
    _check_is_empty(folder, contents)  # before it is touched
    locked = DataFolder(folder)
    try:
        _check_is_empty(folder, contents)  # another restore, or a server, may have ended meanwhile
        files.replace_private(folder / RESTORING, b"")
        _remove_contents(folder, contents)
        for kept in manifest.files:
            _bring_back(source, folder, kept, advance)
        if (folder / "objects").exists():
            adopt_objects(folder / "objects")
        store = SqliteControlStore(folder / CONTROL, schema.MIGRATIONS)
        try:
            store.write(lambda tx: restored.mark(tx, time.time_ns() // 1_000)).result()
        finally:
            store.close()
        files.give_all_to_owner(folder)
        (folder / RESTORING).unlink()
        sync_folder(folder)
    finally:
        locked.close()
    return manifest


def _check_is_empty(folder: Path, contents: Iterable[str]) -> None:
    if not (folder / RESTORING).exists() and any((folder / name).exists() for name in contents):
        raise BackupError(f"{folder} holds data already; restore into another folder, or move it away")


def read_manifest(source: Path) -> Manifest:
    """Raises BackupError for what is no backup, or one of a newer version."""
    try:
        manifest = msgspec.json.decode((source / MANIFEST).read_bytes(), type=Manifest)
    except FileNotFoundError:
        raise BackupError(f"{source} is no backup: it has no {MANIFEST}") from None
    except msgspec.DecodeError as error:
        raise BackupError(f"{source / MANIFEST} cannot be read: {error}") from None
    if manifest.format > FORMAT:
        raise BackupError(f"{source} was made by version {manifest.version}, which is newer than this one")
    return manifest


def bytes_taken(folder: Path) -> int:
    """What the files of a folder take of the disk: logs of objects have holes."""
    return sum(path.stat().st_blocks * STAT_BLOCK_BYTES for path in _files(folder))


def manifest_faults(source: Path, manifest: Manifest, advance: Advance) -> Iterator[str]:
    """Files of a backup that are not what was written."""
    for kept in manifest.files:
        path = _within(source, kept)
        try:
            same = path.stat().st_size == kept.length and _digest(path) == kept.sha256
        except OSError as error:
            yield f"{kept.path} cannot be read: {error.strerror}"
        else:
            if not same:
                yield f"{kept.path} is not what was written"
        advance(kept.length)


def _check_is_data(folder: Path) -> None:
    if not (folder / CONTROL).exists():
        raise BackupError(f"{folder} is no data folder: it has no {CONTROL}")


def copy_secret(source: Path, target: Path, bytes_max: int = files.PRIVATE_FILE_BYTES_MAX) -> None:
    try:
        content = files.read_private(source, bytes_max)
    except ValueError as error:
        raise BackupError(str(error)) from None
    if content is not None:
        files.replace_private(target, content)


def _make_private(folder: Path) -> None:
    """Whoever copies a backup on takes its files' modes along, and not those of the folders above it."""
    for path in folder.rglob("*"):
        path.chmod(0o700 if path.is_dir() else 0o600)


def _files(folder: Path) -> Iterable[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def _kept(folder: Path) -> Callable[[Path], Kept]:
    return lambda path: Kept(str(path.relative_to(folder)), path.stat().st_size, _digest(path))


def _within(source: Path, kept: Kept) -> Path:
    path = source / kept.path
    if not path.resolve().is_relative_to(source.resolve()):
        raise BackupError(f"{source / MANIFEST} names a file outside of the backup")
    return path


def _bring_back(source: Path, folder: Path, kept: Kept, advance: Advance) -> None:
    target = folder / kept.path
    _make_folder(target.parent, folder)
    sha256 = hashlib.sha256()
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    with _within(source, kept).open("rb") as theirs, os.fdopen(os.open(target, flags, 0o600), "wb") as ours:
        while chunk := theirs.read(_CHUNK_BYTES):
            sha256.update(chunk)
            ours.write(chunk)
            advance(len(chunk))
        ours.flush()
        os.fsync(ours.fileno())
    if sha256.hexdigest() != kept.sha256:
        raise BackupError(f"{source / kept.path} is not what was written; another backup may be whole")
    sync_folder(target.parent)


def _make_folder(path: Path, top: Path) -> None:
    """With those above it, up to `top`, which is there. Each is private, and its name durable."""
    if path != top and not path.is_dir():
        _make_folder(path.parent, top)
        path.mkdir(mode=0o700)
        sync_folder(path.parent)


def _remove_contents(folder: Path, names: Iterable[str]) -> None:
    for name in names:
        path = folder / name
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _write_durably(path: Path, content: bytes) -> None:
    with path.open("xb") as file:
        os.fchmod(file.fileno(), 0o600)
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    sync_folder(path.parent)
