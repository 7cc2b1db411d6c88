"""The data folder: one server at a time, and where that server is.

Owns  `DIR/lock`, `DIR/server.json`, `DIR/runtime`, the private folder of the Unix sockets, and that there are
      folders `DIR/dns` for the files of DNS processes and `DIR/events` for those of the edge.
Not   the databases and files that other rooms keep in the folder.

The lock is an flock on an open file description: children that write data inherit the descriptor, so the
folder stays taken until the last of them is gone, even when the supervisor was killed.
"""

import fcntl
import logging
import os
import secrets
import tempfile
import time
from pathlib import Path

import msgspec

from edgestead.config import WORKERS_MAX
from edgestead.model.refusals import NO_SPACE_ERRNOS
from edgestead.server import files, runtime
from edgestead.server.errors import StartError
from edgestead.server.space import FILES_MIN, make_room, measure
from edgestead.server.supervisor.holders import is_alive, process_words
from edgestead.sqlite.witness import path_of

EVENTS = "events"
RESTORING = "restoring"  # a restore has begun and not ended
MOVED = "moved-into-a-cluster"  # what is here is of the past: it says which cluster has it
CONTROL = "control.db"
_SOCKET_CHARACTERS_MAX = len(f"requests-{WORKERS_MAX - 1}.sock")
_UNIX_PATH_OCTETS_MAX = 107  # sockaddr_un.sun_path, less its NUL
_NOTE_OCTETS_MAX = _UNIX_PATH_OCTETS_MAX + len("\n") + 20  # the digits of an inode
_COPIED = (
    "data folder {} is a copy of one whose server was running, or had been killed: `edgecli verify` says"
    " whether it is whole. `edgecli backup` makes copies that are"
)
_log = logging.getLogger("edgestead.server")


class State(msgspec.Struct, frozen=True, kw_only=True):
    """`DIR/server.json`: what a command has to know of the running server. Holds no secret."""

    pid: int
    runtime_dir: str
    api_base: str
    dns: str
    http: str | None
    https: str | None
    objects: str | None
    dot: str | None = None
    doh: str | None = None
    tls_dir: str | None = None
    api_host: str = ""  # as it was bound: `api_base` and `dns` name an address that a client reaches
    dns_host: str = ""
    dns_rate: int = 0
    dns_identity: str = ""
    nameserver_addresses: tuple[str, ...] = ()
    lock_inode: int = 0  # of the folder that it was written in

    @property
    def admin_socket(self) -> Path:
        return Path(self.runtime_dir, "admin.sock")

    @property
    def alerts_socket(self) -> Path:
        return Path(self.runtime_dir, "alerts.sock")


class InUse(StartError):
    """Another process has the data folder."""


class DataFolder:
    """A locked data folder. Raises InUse; another StartError when it cannot be used."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            files.make_folder(path)
            self.lock_fd = files.open_private(path / "lock")
        except OSError as error:
            raise _not_usable(path, error) from None
        self.runtime_fd: int | None = None
        if not _lock(self.lock_fd):
            holder = os.read(self.lock_fd, 20).decode("ascii", "replace").strip()
            os.close(self.lock_fd)
            words = process_words(int(holder)) if holder.isdigit() else "another process"
            raise InUse(f"data folder {path} is in use by {words}") from None
        make_room(path)
        try:
            os.ftruncate(self.lock_fd, 0)
            os.pwrite(self.lock_fd, f"{os.getpid()}\n".encode(), 0)
        except OSError as error:
            os.close(self.lock_fd)
            raise _not_usable(path, error) from None

    @property
    def is_ours(self) -> bool:
        """Whether the folder is still at its path, and the one that was locked."""
        return same_file(self.path / "lock", os.fstat(self.lock_fd))

    @property
    def _inode(self) -> int:
        """What tells this folder from a copy of it. No device: it may have another number tomorrow."""
        return os.fstat(self.lock_fd).st_ino

    def make_runtime_dir(self) -> Path:
        """A fresh 0700 folder with a path short enough for sockets; what killed servers left is removed.

        Every process of this server is to inherit `runtime_fd`, so that others see whether one still lives.
        Its name is written down before it exists, so that no moment of a start can leave it behind for good.
        """
        noted = self.path / "runtime"
        if noted.exists():
            left, _, inode = noted.read_bytes()[:_NOTE_OCTETS_MAX].partition(b"\n")
            if inode in (b"", b"%d" % self._inode):
                self._clear(Path(os.fsdecode(left)))
            else:
                _log.warning("%s", _COPIED.format(self.path))
        base = os.environ.get("XDG_RUNTIME_DIR", "")
        if not os.access(base, os.W_OK) or len(base) > _UNIX_PATH_OCTETS_MAX // 2:
            base = tempfile.gettempdir()
        runtime.sweep(Path(base))
        made = Path(base, runtime.PREFIX + secrets.token_hex(8))
        if len(os.fsencode(made)) + 1 + _SOCKET_CHARACTERS_MAX > _UNIX_PATH_OCTETS_MAX:
            raise StartError(f"{base} is too long a path for Unix sockets; set TMPDIR to a shorter one")
        try:
            files.replace_private(noted, b"%s\n%d" % (os.fsencode(made), self._inode))
        except OSError as error:
            raise _not_usable(self.path, error) from None
        try:
            made.mkdir(mode=0o700)
            self.runtime_fd = runtime.hold(made)
        except OSError as error:
            raise StartError(f"{base} cannot hold the server's sockets: {error.strerror}") from None
        return made

    def _clear(self, left: Path) -> None:
        """Of a server that was killed: its last processes still have the ports, for a moment."""
        if not runtime.wait_until_left(left):
            raise StartError(f"processes of a server that was killed still run, with sockets in {left}")
        runtime.remove(left)

    def open_warm(self) -> int:
        """A descriptor of `DIR/dns`: all that a DNS process ever gets to see of the data folder."""
        return self._open_inner("dns")

    def open_witness(self) -> int:
        """A descriptor to read the witness of control.db from; it says nothing where there is none."""
        flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW
        try:
            return os.open(path_of(self.path / CONTROL), flags)
        except OSError:
            return os.open(os.devnull, flags)

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
        """Raises StartError."""
        try:
            ours = msgspec.structs.replace(state, lock_inode=self._inode)
            files.replace_private(self.path / "server.json", msgspec.json.encode(ours))
        except OSError as error:
            raise _not_usable(self.path, error) from None

    def close(self) -> None:
        """Give the folder back. The pid in the lock goes first: nobody must read it from a free folder."""
        if self.is_ours:  # else another server may have a folder of its own there
            for told in ("server.json", "runtime"):
                (self.path / told).unlink(missing_ok=True)
        os.ftruncate(self.lock_fd, 0)
        os.close(self.lock_fd)
        if self.runtime_fd is not None:
            os.close(self.runtime_fd)


def _lock(fd: int) -> bool:
    """Take the lock, whose text is its holder's pid. A holder that is dead left orphans, soon to follow."""
    for _ in range(round(runtime.ORPHANS_SECONDS_MAX / runtime.LOOK_SECONDS)):
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(fd, 20, 0).strip()
            if not holder.isdigit() or is_alive(int(holder)):
                return False
            time.sleep(runtime.LOOK_SECONDS)
        else:
            return True
    return False


def same_file(path: Path, known: os.stat_result) -> bool:
    """Whether the file at a path is still the one that was opened: same device, same inode."""
    try:
        found = path.stat()
    except OSError:
        return False
    return os.path.samestat(found, known)


def moved_into(folder: Path) -> str:
    """The cluster that has what is in a folder, "" when none has."""
    return (files.read_private(folder / MOVED) or b"").decode("ascii", "replace").strip()


def moved_words(folder: Path) -> str:
    return (
        f"data folder {folder} was moved into the cluster {moved_into(folder)}, which has newer data since:"
        f" start a node of it with `edgecli serve --cluster`. To go on with what was here then, remove"
        f" {folder / MOVED}"
    )


def lost_words(folder: Path, name: str) -> str:
    return f"data folder {folder} was removed or replaced: its {name} is another one"


def _not_usable(path: Path, error: OSError) -> StartError:
    words = f"data folder {path} cannot be used: {error.strerror}"
    if error.errno in NO_SPACE_ERRNOS:
        words += f"; {_what_is_short(path)} to start"
    return StartError(words)


def _what_is_short(path: Path) -> str:
    if measure(path).files < FILES_MIN:
        return f"it has no inode left: delete files on the disk, {FILES_MIN} are enough"
    return "its reserve is used up, too: make room on the disk, a few MiB are enough"


def read_state(data_dir: Path) -> State | None:
    """What the server that last got ready here wrote, or None. It may be dead: ask its admin socket.

    None also in a copy of a running server's folder: what it says is that server's, and no command meant it.
    """
    try:
        content = files.read_private(data_dir / "server.json")
        state = msgspec.json.decode(content, type=State) if content else None
        if state is not None and state.lock_inode not in (0, (data_dir / "lock").stat().st_ino):
            return None
        return state
    except (OSError, ValueError):
        return None
