"""The data folder: one server at a time, and where that server is.

Owns  `DIR/lock`, `DIR/server.json`, `DIR/runtime`, the private folder of the Unix sockets, and that there are
      folders `DIR/dns` for the files of DNS processes and `DIR/events` for those of the edge.
Asks  `server.files`.
Tells the supervisor that the folder is its own, and `edgecli` where the running server listens.
Not   the databases and files that other rooms keep in the folder.

The lock is an flock on an open file description: children that write data inherit the descriptor, so the
folder stays taken until the last of them is gone, even when the supervisor was killed.
"""

import fcntl
import os
import secrets
import tempfile
from pathlib import Path

import msgspec

from edgestead.config import WORKERS_MAX
from edgestead.server import files
from edgestead.server.errors import StartError
from edgestead.server.holders import process_words

EVENTS = "events"
_SOCKET_CHARACTERS_MAX = len(f"requests-{WORKERS_MAX - 1}.sock")
_RUNTIME_PREFIX = "edgestead-"
_UNIX_PATH_OCTETS_MAX = 107  # sockaddr_un.sun_path, less its NUL


class State(msgspec.Struct, frozen=True, kw_only=True):
    """`DIR/server.json`: what a command has to know of the running server. Holds no secret."""

    pid: int
    runtime_dir: str
    api_base: str
    dns: str
    http: str | None
    https: str | None
    objects: str | None
    tls_dir: str | None = None

    @property
    def admin_socket(self) -> Path:
        return Path(self.runtime_dir, "admin.sock")


class DataFolder:
    """A locked data folder. Raises StartError when another process has it, or when it cannot be used."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.lock_fd = files.open_private(path / "lock")
        except OSError as error:
            raise StartError(f"data folder {path} cannot be used: {error.strerror}") from None
        try:
            fcntl.flock(self.lock_fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(self.lock_fd, 20).decode("ascii", "replace").strip()
            os.close(self.lock_fd)
            words = process_words(int(holder)) if holder.isdigit() else "another process"
            raise StartError(f"data folder {path} is in use by {words}") from None
        os.ftruncate(self.lock_fd, 0)
        os.pwrite(self.lock_fd, f"{os.getpid()}\n".encode(), 0)

    def make_runtime_dir(self) -> Path:
        """A fresh 0700 folder with a path short enough for sockets; what a killed server left is removed.

        Its name is written down before it exists, so that no moment of a start can leave it behind for good.
        """
        noted = self.path / "runtime"
        if noted.exists():
            remove_runtime_dir(Path(os.fsdecode(noted.read_bytes()[:_UNIX_PATH_OCTETS_MAX])))
        base = os.environ.get("XDG_RUNTIME_DIR", "")
        if not os.access(base, os.W_OK) or len(base) > _UNIX_PATH_OCTETS_MAX // 2:
            base = tempfile.gettempdir()
        made = Path(base, _RUNTIME_PREFIX + secrets.token_hex(8))
        if len(os.fsencode(made)) + 1 + _SOCKET_CHARACTERS_MAX > _UNIX_PATH_OCTETS_MAX:
            raise StartError(f"{base} is too long a path for Unix sockets; set TMPDIR to a shorter one")
        files.replace_private(noted, os.fsencode(made))
        try:
            made.mkdir(mode=0o700)
        except OSError as error:
            raise StartError(f"{base} cannot hold the server's sockets: {error.strerror}") from None
        return made

    def open_warm(self) -> int:
        """A descriptor of `DIR/dns`: all that a DNS process ever gets to see of the data folder."""
        return self._open_inner("dns")

    def open_events(self) -> int:
        """A descriptor of `DIR/events`, the same for the edge processes."""
        return self._open_inner(EVENTS)

    def _open_inner(self, name: str) -> int:
        path = self.path / name
        try:
            path.mkdir(mode=0o700, exist_ok=True)
            return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise StartError(f"folder {path} cannot be used: {error.strerror}") from None

    def write_state(self, state: State) -> None:
        files.replace_private(self.path / "server.json", msgspec.json.encode(state))

    def close(self) -> None:
        """Give the folder back. The pid in the lock goes first: nobody must read it from a free folder."""
        for told in ("server.json", "runtime"):
            (self.path / told).unlink(missing_ok=True)
        os.ftruncate(self.lock_fd, 0)
        os.close(self.lock_fd)


def remove_runtime_dir(path: Path) -> None:
    """Remove the sockets and the folder; leave alone whatever is not ours."""
    if not path.name.startswith(_RUNTIME_PREFIX):
        return
    try:
        for found in path.iterdir():
            if found.is_socket():
                found.unlink()
        path.rmdir()
    except OSError:
        return  # a stranger's file is in it, or the system cleaned up before us


def read_state(data_dir: Path) -> State | None:
    """What the server that last got ready here wrote, or None. It may be dead: ask its admin socket."""
    try:
        content = files.read_private(data_dir / "server.json")
        return msgspec.json.decode(content, type=State) if content else None
    except (OSError, ValueError):
        return None
