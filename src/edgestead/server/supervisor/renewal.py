"""Renewing the first account's credentials, with and without a running server.

Owns  the two commands, and what happens when the server comes or goes meanwhile.
Not   storing hashes: control does, now or at its next start.
"""

from pathlib import Path

from edgestead.config import CLUSTER_FILE
from edgestead.server import credentials
from edgestead.server.errors import StartError
from edgestead.server.folder import DataFolder, read_state
from edgestead.server.supervisor import admin

REVOKES_OTHERS = {"rotate": False, "reset": True}


def renew(data_dir: Path, command: str) -> None:
    """Carry out a command of REVOKES_OTHERS. Raises StartError when nothing was renewed."""
    state = read_state(data_dir)
    if state is not None:
        try:
            admin.ask(state.admin_socket, command)
            return
        except (ConnectionError, FileNotFoundError):
            pass  # that server is gone: the folder's lock says whether another one came
    renew_file(data_dir, command)


def renew_file(data_dir: Path, command: str) -> None:
    """Renew the file of a folder that no server uses. Raises StartError when one does, and for a node's."""
    if not (data_dir / credentials.FILE_NAME).exists():
        raise StartError(f"data folder {data_dir} has no credentials yet: start the server once")
    if (data_dir / CLUSTER_FILE).exists():
        raise StartError(
            f"{data_dir} is a node of a cluster, whose database says who is let in, and it does not run:"
            " start it first, or renew them at another node"
        )
    folder = DataFolder(data_dir)
    try:
        kept = credentials.load_or_make(data_dir)
        # A reset that no server has met yet must not be forgotten by a rotation after it.
        revoke = kept.revoke_others or REVOKES_OTHERS[command]
        credentials.write(data_dir, credentials.renewed(kept, revoke_others=revoke))
    finally:
        folder.close()
