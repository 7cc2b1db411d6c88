"""The secrets of DNS processes on a machine without control: how they come there, and are in no file.

Owns  their form in the memory that the machine's relay writes; looking whether they came.
Not   the frame (`server.framed`); what they open (`dns.keyring`), or prove (`dns.cookies`).
"""

import threading
import time
from typing import Final

import msgspec

from edgestead.dns.keyring import Keyring
from edgestead.server import framed

OCTETS_MAX: Final = 4_096  # of all of them, some 80 octets; more is not read
LOOK_SECONDS: Final = 0.5


class DnsSecrets(msgspec.Struct, frozen=True, array_like=True):
    """`tsig` opens the keys that the feed has; `cookies` as in `dns.settings`. Empty where there is none."""

    tsig: bytes = b""
    cookies: bytes = b""

    def __repr__(self) -> str:
        return "DnsSecrets(...)"


encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(DnsSecrets).decode


class SecretReader:
    """What came last. `follow` a keyring for the life of the process."""

    def __init__(self, fd: int) -> None:
        self._reader = framed.Reader(fd, OCTETS_MAX)
        self.secrets = DnsSecrets()
        self.look()

    def look(self) -> bool:
        """Whether others came. About 1 µs."""
        content = self._reader.changed()
        if content is None:
            return False
        self.secrets = _decode(content)
        return True

    def follow(self, keyring: Keyring) -> None:
        keyring.cookie_secret = self.secrets.cookies or None
        threading.Thread(target=self._follow, args=(keyring,), name="secrets", daemon=True).start()

    def _follow(self, keyring: Keyring) -> None:
        while True:
            time.sleep(LOOK_SECONDS)
            if self.look():
                keyring.open()
                keyring.cookie_secret = self.secrets.cookies or None
