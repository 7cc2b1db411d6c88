"""The keys of clearances in memory that edge processes share: how a new key reaches them while they run.

Owns  `KeyWriter` and `FedKeys` of the supervisor, `KeyReader` of an edge process: the keys, newest first, as
      MessagePack.
Not   the file of the keys; the frame around them (`server.framed`); signing.
"""

import logging
import os
import secrets
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import msgspec

from edgestead.edge.tools.clearance import KEY_OCTETS, Key
from edgestead.model.seldom import Seldom
from edgestead.server import framed
from edgestead.server.edge import challenge_keys
from edgestead.server.errors import StartError

MEMORY_OCTETS = 4_096  # a key takes 50; 14 of them are kept
LOOK_SECONDS_MAX = 3_600.0  # the clock of the wall may be set meanwhile
RETRY_SECONDS = 1.0  # meanwhile clearances hold that were given under credentials that do not
FAILED_LINE_SECONDS = 60.0

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(tuple[Key, ...]).decode
_log = logging.getLogger("edgestead.server")


class KeyWriter:
    """`now_s` is Unix time. In a cluster the keys are shared: its leader makes what is due, and the folder
    has it then. Raises StartError, as `challenge_keys.load_or_make` does.
    """

    def __init__(
        self, data_dir: Path, now_s: Callable[[], float], undo: ExitStack, *, is_shared: bool = False
    ) -> None:
        self._data_dir = data_dir
        self._now_s = now_s
        self._makes_due = not is_shared
        self.fd = os.memfd_create("edgestead-challenge-keys", os.MFD_CLOEXEC)
        undo.callback(os.close, self.fd)
        os.ftruncate(self.fd, MEMORY_OCTETS)
        self._failed = Seldom(FAILED_LINE_SECONDS)
        self._kept = challenge_keys.load_or_make(data_dir, int(now_s()), makes_due=self._makes_due)
        self._write()

    def credentials_changed(self) -> float:
        """Renewed credentials make the keys void, or the folder has others. Returns as `renew`."""
        self._kept = self._kept._replace(due_s=0)  # also for the next look, if this one fails
        return self.renew()

    def renew(self) -> float:
        """Make the key that is due, if one is. Returns in how many seconds to look again.

        A file that cannot be used now changes nothing: the keys that are there go on; the operator is told.
        """
        now_s = int(self._now_s())
        if self._kept.due_s <= now_s:
            try:
                self._kept = challenge_keys.load_or_make(self._data_dir, now_s, makes_due=self._makes_due)
            except StartError as error:
                if self._failed.happened():
                    _log.error("no new key for clearances was made, the old ones go on: %s", error)
                return RETRY_SECONDS
            self._write()
            _log.info("clearances are signed with a new key from now on")
        return min(LOOK_SECONDS_MAX, max(1.0, self._kept.due_s - now_s))

    def _write(self) -> None:
        content = _encode(self._kept.keys)
        if len(content) > MEMORY_OCTETS - framed.HEAD_OCTETS:
            raise StartError(f"{challenge_keys.FILE_NAME} holds too many keys")
        framed.write(self.fd, content)


class FedKeys:
    """As `KeyWriter`, on a machine without control: the keys come from there, and are in no file. Until they
    have come clearances are signed with one that nobody else has.
    """

    def __init__(self, undo: ExitStack) -> None:
        self.fd = os.memfd_create("edgestead-challenge-keys", os.MFD_CLOEXEC)
        undo.callback(os.close, self.fd)
        own = Key(secrets.token_hex(challenge_keys.ID_OCTETS), secrets.token_bytes(KEY_OCTETS), None)
        framed.write(self.fd, _encode((own,)))

    def credentials_changed(self) -> float:
        """None are here."""
        return LOOK_SECONDS_MAX

    def renew(self) -> float:
        return LOOK_SECONDS_MAX


class KeyReader:
    """One process's look at the memory. Not thread-safe."""

    def __init__(self, fd: int) -> None:
        self._reader = framed.Reader(fd, MEMORY_OCTETS)

    def changed(self) -> tuple[Key, ...] | None:
        """The keys, when they are others than at the last call; None otherwise. About 1 µs."""
        content = self._reader.changed()
        return None if content is None else _decode(content)
