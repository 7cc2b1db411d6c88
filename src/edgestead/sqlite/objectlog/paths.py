"""The files of one objects process, below its folder.

Owns  the names.
Not   what the files hold; which folder a process has (`server.objects.layout`).
"""

from edgestead.store.objectlog import ObjectRef


def log_folder(folder: str) -> str:
    return f"{folder}/log"


def data_folder(folder: str) -> str:
    return f"{folder}/data"


def catalogue_path(folder: str) -> str:
    return f"{folder}/log/catalogue.db"


def history_path(folder: str) -> str:
    return f"{folder}/log/history.db"


def mark_path(folder: str) -> str:
    return f"{folder}/log/mark"


def lock_path(folder: str) -> str:
    """The process that has the log open holds the lock of this file."""
    return f"{folder}/log/lock"


def keep_path(folder: str) -> str:
    """While this file is locked, no segment of the log is removed, and no base is written down."""
    return f"{folder}/log/keep"


def data_path(folder: str, ref: ObjectRef) -> str:
    """Where the database of an object is."""
    return f"{folder}/data/{ref.class_name}/{ref.id[:2]}/{ref.id}.sqlite"
