"""Stateful objects in a backup: copying their folders while they are used, and examining a copy.

Owns  which files are copied by whom, how long the logs are kept from shortening themselves.
Not   what the files hold.

A database's file is copied as it is, perhaps while it changes. What makes it whole is in the log, none of
whose segments goes meanwhile: the copy is what a crash would have left, and the next start does the rest.
"""

import fcntl
import http.client
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import msgspec

from edgestead.objects.runtime.stage import STAGE_FILE
from edgestead.server import credentials, files
from edgestead.server.backup import BackupError
from edgestead.server.folder import State, read_state
from edgestead.server.objects import apart
from edgestead.server.objects import layout as layout
from edgestead.server.objects.shared import locked
from edgestead.server.supervisor import admin
from edgestead.server.verifying import Fault
from edgestead.sqlite.copies import copy_file, faults
from edgestead.sqlite.objectlog import adoption
from edgestead.sqlite.objectlog.checking import check_folder
from edgestead.sqlite.objectlog.paths import keep_path, lock_path, log_folder
from edgestead.store.objectlog import own_path

FOLDER = "objects"
KEEP_SECONDS_MAX = 60.0  # until the log's own shortening, if it has begun, is over
ANSWER_SECONDS_MAX = 3_600.0  # of the processes, which copy gigabytes


def copy_objects(data_dir: Path) -> Callable[[Path], None]:
    """Copies the objects of a data folder into a backup, which `backup` makes durable.

    Raises BackupError, OSError.
    """

    def copy(target: Path) -> None:
        source = data_dir / FOLDER
        if not source.exists():
            return
        state = read_state(data_dir)
        if state is None or state.objects is None or not admin.is_served(state.admin_socket):
            with _resting(source):
                ignored = shutil.ignore_patterns("lock", "keep", "spool", STAGE_FILE)
                shutil.copytree(source, target / FOLDER, ignore=ignored, copy_function=_copy_file)
        else:
            _copy_used(data_dir, state, target / FOLDER)

    return copy


def adopt(folder: Path) -> None:
    """Make a copied folder one that may be used: its bookmarks are of a life of their own."""
    for one in layout.folders(folder):
        adoption.adopt(one)


def objects_faults(folder: Path) -> Iterator[Fault]:
    """What is wrong with the log of each process and with databases that are durable by themselves.

    Other databases are whole when the log is: `edgecli object verify` examines them. The log of a running
    server is its own business.
    """
    for one in layout.folders(folder):
        try:
            problems = check_folder(one)
        except BlockingIOError:
            continue
        for words in problems:
            yield Fault(FOLDER, words)
        for path in sorted(Path(one, "data").rglob(f"*{own_path('.sqlite')}")):
            for words in faults(path):
                yield Fault(f"{FOLDER}/{path.relative_to(folder)}", words)


@contextmanager
def _resting(source: Path) -> Iterator[None]:
    """No process uses the folder meanwhile. One that a server left, or that begins, does so for a moment."""
    os.close(files.open_private(source / "lock"))
    with locked(source / "lock"), ExitStack() as undo:
        for folder in layout.folders(source):
            if os.path.isdir(log_folder(folder)):
                undo.enter_context(_held(lock_path(folder), "an objects process still uses it"))
        yield


def _copy_used(data_dir: Path, state: State, target: Path) -> None:
    source = data_dir / FOLDER
    folders = layout.folders(source)
    target.mkdir(mode=0o700)
    copy_file(source / "layout.json", target / "layout.json")
    for name in apart.FILES:
        if (source / name).exists():
            copy_file(source / name, target / name)
    with ExitStack() as undo:
        for folder in folders:
            # While it is held no process writes down what would no longer fit databases that are copied.
            undo.enter_context(_held(keep_path(folder), "another backup?"))
        for folder in folders:
            _copy_databases(Path(folder), target / Path(folder).relative_to(source))
        for copied in _ask_for_copies(data_dir, state):
            undo.callback(shutil.rmtree, copied, ignore_errors=True)
            owner = next((one for one in folders if Path(copied).is_relative_to(one)), None)
            if owner is None:
                raise BackupError(f"the objects processes copied to {copied}, which is not theirs")
            shutil.copytree(
                copied,
                target / Path(owner).relative_to(source),
                copy_function=_copy_file,
                dirs_exist_ok=True,
            )


def _copy_file(source: str, target: str) -> None:
    copy_file(Path(source), Path(target))


@contextmanager
def _held(path: str, by_whom: str) -> Iterator[None]:
    """The lock of a file, after waiting for who has it. Raises BackupError."""
    descriptor = files.open_private(Path(path))
    try:
        end = time.monotonic() + KEEP_SECONDS_MAX
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > end:
                    raise BackupError(f"{path} is held by somebody else: {by_whom}") from None
                time.sleep(0.01)
        yield
    finally:
        os.close(descriptor)


def _copy_databases(source: Path, target: Path) -> None:
    """The files as they are. A database that goes while it is copied is not needed."""
    own = own_path(".sqlite")
    for path in source.glob("data/*/*/*.sqlite"):
        if path.name.endswith(own):
            continue
        copy = target / path.relative_to(source)
        copy.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            copy_file(path, copy)
        except FileNotFoundError:
            continue


def _ask_for_copies(data_dir: Path, state: State) -> list[str]:
    assert state.objects is not None
    connection = http.client.HTTPConnection(state.objects, timeout=ANSWER_SECONDS_MAX)
    token = credentials.load_or_make(data_dir).api_token
    try:
        connection.request("POST", "/operate/backup", headers={"Authorization": f"Bearer {token}"})
        answer = connection.getresponse()
        body = json.loads(answer.read())
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise BackupError(f"the objects at {state.objects} do not answer: {error}") from None
    finally:
        connection.close()
    if answer.status != 200:
        raise BackupError(f"the objects cannot be copied: {body['errors'][0]['message']}")
    return msgspec.convert(body["result"], list[str])
