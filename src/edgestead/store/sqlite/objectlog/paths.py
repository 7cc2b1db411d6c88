"""Where everything of one objects process is, below its folder.

Owns  the names.
Asks  nobody.
Tells the log, and whoever copies or examines a folder.
Not   what the files hold; which folder a process has (`objects.layout`).
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


def keep_path(folder: str) -> str:
    """Whoever holds a lock on this file keeps the log's segments from going."""
    return f"{folder}/log/keep"


def data_path(folder: str, ref: ObjectRef) -> str:
    """Where the database of an object is."""
    return f"{folder}/data/{ref.class_name}/{ref.id[:2]}/{ref.id}.sqlite"


def own_path(path: str) -> str:
    """Beside that, the database of an object that is durable by itself: recovery never touches it."""
    return path.removesuffix(".sqlite") + ".own.sqlite"
