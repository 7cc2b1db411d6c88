"""Names of TLS cipher suites, and which of them ended.

Owns  telling a draft of ChaCha20-Poly1305 from the suites that were registered, however they are spelled.
Not   which suites TLS offers here.
"""

from typing import Any

from edgestead.model.checks import Texts
from edgestead.model.names import InvalidValue

# RFC 7905 §2 and RFC 8446 §B.4 without TLS_ and _SHA256, as IANA and as OpenSSL write them.
_KEY_EXCHANGES = ("ECDHE-RSA", "ECDHE-ECDSA", "DHE-RSA", "PSK", "ECDHE-PSK", "DHE-PSK", "RSA-PSK")
_CHACHA20 = frozenset(
    prefix + "CHACHA20-POLY1305"
    for prefix in (
        *("", "AEAD-"),
        *(f"{name}-" for name in _KEY_EXCHANGES),
        *(f"{name}-WITH-" for name in _KEY_EXCHANGES),
    )
)
_TO_NAMES = str.maketrans("_[]|:,", "-     ")
_DRAFT_NUMBERS = frozenset(("CC13", "CC14", "CC15"))  # what the drafts of 2013 used, unregistered


class Ciphers(Texts):
    """Names of TLS 1.2 cipher suites, but no draft of ChaCha20-Poly1305 (spec "Deprecations", 2023-07-01).

    The drafts have no registered names: a name with ChaCha20 in it must be one of RFC 7905, in the spelling
    of IANA or of OpenSSL, and a number must not be one of theirs.
    """

    wording = f"{Texts.wording}; no draft of ChaCha20-Poly1305"

    def read(self, value: Any, present: Any = None) -> list[str]:
        texts = super().read(value, present)
        for text in texts:
            if is_draft_chacha20(text):
                raise InvalidValue(f"{text} is a draft suite of 2013, which ended on 2023-07-01")
        return texts


def is_draft_chacha20(text: str) -> bool:
    """Text may be a group of equal preference, `[A|B]`."""
    for name in text.upper().translate(_TO_NAMES).split():
        if name.removeprefix("0X") in _DRAFT_NUMBERS:
            return True
        if "CHACHA20" in name and name.removeprefix("TLS-").removesuffix("-SHA256") not in _CHACHA20:
            return True
    return False
