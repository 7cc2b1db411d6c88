"""Where a cluster keeps what only its control nodes may read: the authority's key, invitations, shared keys.

Owns  the interface, and the vault of an embedded server: sealed files in a folder.
Not   what lies in it. The vault of a cluster is a table of its database.

Everything in it is sealed with the cluster's key and bound to its name, so that a copy of the folder or of
the table tells nothing, and nothing opens in another's place.
"""

import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final, Protocol

from edgestead.model import sealing
from edgestead.server import files

Change = Callable[[bytes], bytes]
_NAME: Final = re.compile(r"[a-z0-9-]{1,80}")


class Vault(Protocol):
    """Blocks. Raises OSError where the place cannot be read or written, ValueError for another key."""

    def read(self, name: str) -> bytes | None: ...

    def write(self, name: str, content: bytes) -> None:
        """Durable when it returns; replaces what was there."""
        ...

    def change(self, name: str, to: Change) -> bytes | None:
        """Put what `to` makes of it in its place, and return that; None where nothing is.

        Nobody changes it in between: `to` may be called again, with what is there then. What it raises leaves
        the place as it is.
        """
        ...

    def names(self, beginning: str) -> list[str]:
        """Of what lies in it, those that begin so."""
        ...

    def remove(self, name: str) -> None:
        """Nothing need be there."""
        ...


class FileVault:
    """A folder of sealed files, of which one process at a time writes, by one vault."""

    def __init__(self, folder: Path, secret: bytes) -> None:
        self._folder, self._secret = folder, secret
        self._door = threading.Lock()

    def read(self, name: str) -> bytes | None:
        sealed = files.read_private(self._path(name))
        return None if sealed is None else sealing.unseal(self._secret, sealed, name.encode())

    def write(self, name: str, content: bytes) -> None:
        self._folder.mkdir(mode=0o700, exist_ok=True)
        files.replace_private(self._path(name), sealing.seal(self._secret, content, name.encode()))

    def change(self, name: str, to: Change) -> bytes | None:
        with self._door:
            before = self.read(name)
            if before is None:
                return None
            after = to(before)
            if after != before:
                self.write(name, after)
            return after

    def names(self, beginning: str) -> list[str]:
        try:
            found = [path.name.removesuffix(".sealed") for path in self._folder.iterdir()]
        except FileNotFoundError:  # nothing was ever written
            return []
        return [name for name in found if name.startswith(beginning) and _NAME.fullmatch(name)]

    def remove(self, name: str) -> None:
        with self._door:
            self._path(name).unlink(missing_ok=True)

    def _path(self, name: str) -> Path:
        if not _NAME.fullmatch(name):
            raise ValueError(f"not the name of a secret: {name!r}")
        return self._folder / f"{name}.sealed"
