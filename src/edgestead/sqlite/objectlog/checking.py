"""The integrity check of a log that is not in use: its databases, and every record of its segments.

Owns  the check.
Not   databases of objects, which a start repairs from the log.
"""

from pathlib import Path

import apsw

from edgestead.sqlite.copies import faults, faults_of
from edgestead.sqlite.objectlog import history
from edgestead.sqlite.objectlog.archive import Durable
from edgestead.sqlite.objectlog.catalogue import Catalogue
from edgestead.sqlite.objectlog.files import LocalFiles
from edgestead.sqlite.objectlog.format import BLOCK_BYTES
from edgestead.sqlite.objectlog.paths import catalogue_path, history_path
from edgestead.sqlite.objectlog.recovery import read_segments, recover
from edgestead.sqlite.objectlog.watermark import NOWHERE, missed, read_mark
from edgestead.store.files import Files
from edgestead.store.objectlog import LogError


def check_folder(folder: str) -> list[str]:
    """The faults, as text. Changes no file. Raises BlockingIOError when a process has it open."""
    files = LocalFiles()
    lock = files.lock(f"{folder}/log/lock") if files.exists(f"{folder}/log/lock") else None
    try:
        return [*_check_log(folder, files), *_check_history(folder)]
    except LogError as error:
        return [str(error)]
    except (OSError, apsw.Error) as error:
        return [f"{folder}: {error}"]
    finally:
        if lock is not None:
            lock.close()


def check_durable(files: Files, folder: str, folder_id: bytes, segments: list[Durable]) -> list[str]:
    """The faults in the records of an open log, up to where its segments are durable."""
    rows = [segment.row for segment in segments]
    ends: dict[int, int] = {}
    try:
        for row, record in read_segments(files, folder, folder_id, rows):
            ends[row.generation] = record.end
    except (LogError, OSError) as error:
        return [str(error)]
    return [
        f"segment {folder}/{segment.row.slot} can be read to byte {end}, and is written to {segment.upto}"
        for segment in segments
        if not segment.sealed and (end := ends.get(segment.row.generation, BLOCK_BYTES)) < segment.upto
    ]


def _check_log(folder: str, files: Files) -> list[str]:
    path = catalogue_path(folder)
    catalogue = Catalogue(path, "", None, only_read=True)
    found = [f"{path}: {words}" for words in faults_of(catalogue.connection)]
    mark = read_mark(files, folder, catalogue.folder_id)
    known = catalogue.identity()
    is_original = (known.device, known.inode) == files.identity(f"{folder}/log")  # a copy needs no mark
    if mark is None and is_original and catalogue.marked_life == known.life:
        found.append(missed(folder))
    try:
        recover(files, f"{folder}/log", catalogue, mark or NOWHERE)
    except LogError as error:
        found.append(str(error))
    finally:
        catalogue.close()
    return found


def _check_history(folder: str) -> list[str]:
    path = history_path(folder)
    if not history.has_any(path):
        aside = f"{path}.before-loss"
        where = f"was put aside, to {aside}," if Path(aside).exists() else "is gone"
        return [f"{path}: what was kept of the past {where}; the next start begins it anew"]
    found = [f"{path}: {words}" for words in faults(Path(path))]
    if not found:
        history.check_schema(path)
    return found
