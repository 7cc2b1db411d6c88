"""Information about the server in class CHAOS (RFC 4892), as configured.

Owns  the four names and their answers.
Not   NSID, the better way to the same information (`edns`).
"""

from typing import Final

from edgestead.dns import wire
from edgestead.dns.outcome import AA, NOT_ALLOWED, Outcome
from edgestead.dns.settings import DnsSettings

CLASS: Final = b"\0\x03"
_TXT: Final = b"\0\x10"
_ANY: Final = b"\0\xff"
_VERSION_NAMES: Final = (b"\7version\4bind\0", b"\7version\6server\0")
_IDENTITY_NAMES: Final = (b"\x08hostname\4bind\0", b"\2id\6server\0")


class Chaos:
    """Outcomes of class CHAOS. Information that is not configured, and every other name, is REFUSED."""

    def __init__(self, settings: DnsSettings) -> None:
        texts = dict.fromkeys(_VERSION_NAMES, settings.version) | dict.fromkeys(
            _IDENTITY_NAMES, settings.identity
        )
        self._outcomes = {name: _told(text) for name, text in texts.items() if text}

    def outcome(self, name: bytes, kind: bytes) -> Outcome:
        if kind not in (_TXT, _ANY):
            return NOT_ALLOWED
        return self._outcomes.get(name, NOT_ALLOWED)


def _told(text: bytes) -> Outcome:
    rdata = bytes((len(text),)) + text
    head = wire.QUESTION_OWNER.to_bytes(2, "big") + _TXT + CLASS + bytes(4)
    return Outcome(AA, head + len(rdata).to_bytes(2, "big") + rdata, (1, 0, 0))
