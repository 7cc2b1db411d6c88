"""Whether the log of a folder that nobody uses is whole: its books, and every record of its segments.

Owns  the examination.
Asks  `recovery` to read as a start would; SQLite for the books.
Tells `server.objects_backup`.
Not   databases of objects, which a start makes whole from here.
"""

from pathlib import Path

import apsw

from edgestead.store.objectlog import LogError
from edgestead.store.sqlite.copies import faults, faults_of
from edgestead.store.sqlite.objectlog.catalogue import Catalogue
from edgestead.store.sqlite.objectlog.files import Files, LocalFiles
from edgestead.store.sqlite.objectlog.paths import catalogue_path, history_path
from edgestead.store.sqlite.objectlog.recovery import recover


def check_folder(folder: str) -> list[str]:
    """What is wrong, in words. Changes no file. Raises BlockingIOError when a process has it open."""
    files = LocalFiles()
    lock = files.lock(f"{folder}/log/lock") if files.exists(f"{folder}/log/lock") else None
    try:
        return [*_check_log(folder, files), *_check_history(folder)]
    except (OSError, apsw.Error) as error:
        return [f"{folder}: {error}"]
    finally:
        if lock is not None:
            lock.close()


def _check_log(folder: str, files: Files) -> list[str]:
    path = catalogue_path(folder)
    catalogue = Catalogue(path, "", b"", 0, only_read=True)
    found = [f"{path}: {words}" for words in faults_of(catalogue.connection)]
    try:
        recover(files, f"{folder}/log", catalogue)
    except LogError as error:
        found.append(str(error))
    finally:
        catalogue.close()
    return found


def _check_history(folder: str) -> list[str]:
    path = history_path(folder)
    return [f"{path}: {words}" for words in faults(Path(path))]
