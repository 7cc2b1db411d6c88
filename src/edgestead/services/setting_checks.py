"""What a setting's value may be: one small class for each kind of value.

Owns  the checks, and the words in which the reference says them.
Asks  nobody.
Tells `services.zone_settings_table` and `services.zone_settings`.
Not   which setting has which check.

`read` takes a value as it came from JSON and the present one, and returns what is stored. It raises
InvalidValue with the reason. Numbers may come as text, as in every body of this API.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from edgestead.model.names import InvalidValue

TEXT_ITEMS_MAX = 64  # more than there are cipher suites
TEXT_CHARACTERS_MAX = 128  # of one of them
_DIGITS_MAX = 10

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


class Check(Protocol):
    @property
    def words(self) -> str:
        """For the reference, in Markdown."""
        ...

    def read(self, value: Any, present: Any) -> Any:
        """Raises InvalidValue."""
        ...


class Choice(NamedTuple):
    """One of some words."""

    choices: Sequence[str]

    @property
    def words(self) -> str:
        return ", ".join(f"`{choice}`" for choice in self.choices)

    def read(self, value: Any, present: Any) -> str:
        if not isinstance(value, str) or value not in self.choices:
            raise InvalidValue("expected one of " + ", ".join(self.choices))
        return value


class Listed(NamedTuple):
    """One of some whole numbers."""

    numbers: Sequence[int]

    @property
    def words(self) -> str:
        return ", ".join(map(str, self.numbers))

    def read(self, value: Any, present: Any) -> int:
        number = _whole(value)
        if number not in self.numbers:
            raise InvalidValue("expected one of " + self.words)
        return number


class Between(NamedTuple):
    """A whole number within bounds, both included."""

    lowest: int
    highest: int

    @property
    def words(self) -> str:
        return f"{self.lowest} to {self.highest}"

    def read(self, value: Any, present: Any) -> int:
        number = _whole(value)
        if not self.lowest <= number <= self.highest:
            raise InvalidValue(f"expected a whole number from {self.lowest} to {self.highest}")
        return number


class Flag:
    """True or false."""

    words = "`true`, `false`"

    def read(self, value: Any, present: Any) -> bool:
        if isinstance(value, bool):
            return value
        if value in ("true", "false"):
            return bool(value == "true")
        raise InvalidValue("expected true or false")


class Texts:
    """A list of short texts."""

    words = f"an array of at most {TEXT_ITEMS_MAX} strings"

    def read(self, value: Any, present: Any) -> list[str]:
        if not isinstance(value, list) or len(value) > TEXT_ITEMS_MAX:
            raise InvalidValue(f"expected {self.words}")
        for text in value:
            _short(text)
        return value


class Ciphers(Texts):
    """Names of TLS 1.2 cipher suites, but no draft of ChaCha20-Poly1305 (spec "Deprecations", 2023-07-01).

    The drafts have no registered names: a name with ChaCha20 in it must be one of RFC 7905, in the spelling
    of IANA or of OpenSSL, and a number must not be one of theirs.
    """

    words = f"{Texts.words}; no draft of ChaCha20-Poly1305"

    def read(self, value: Any, present: Any) -> list[str]:
        texts = super().read(value, present)
        for text in texts:
            if is_draft_chacha20(text):
                raise InvalidValue(f"{text} is a draft suite of 2013, which ended on 2023-07-01")
        return texts


class Text:
    """One short text, or null."""

    words = f"a string of at most {TEXT_CHARACTERS_MAX} characters, or null"

    def read(self, value: Any, present: Any) -> str | None:
        return None if value is None else _short(value)


class Members(NamedTuple):
    """An object. At least one of its members is sent, and those that are not stay as they are."""

    checks: Mapping[str, Check]

    @property
    def words(self) -> str:
        return "; ".join(f"`{name}`: {check.words}" for name, check in self.checks.items())

    def read(self, value: Any, present: Any) -> dict[str, Any]:
        if not isinstance(value, dict) or not value.keys() & self.checks.keys():
            raise InvalidValue("expected an object with at least one of " + ", ".join(self.checks))
        return {
            name: check.read(value[name], present[name]) if name in value else present[name]
            for name, check in self.checks.items()
        }


def is_draft_chacha20(text: str) -> bool:
    """Text may be a group of equal preference, `[A|B]`."""
    for name in text.upper().translate(_TO_NAMES).split():
        if name.removeprefix("0X") in _DRAFT_NUMBERS:
            return True
        if "CHACHA20" in name and name.removeprefix("TLS-").removesuffix("-SHA256") not in _CHACHA20:
            return True
    return False


def _whole(value: Any) -> int:
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= _DIGITS_MAX:
        return int(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        raise InvalidValue("expected a whole number")
    return value


def _short(value: Any) -> str:
    if not isinstance(value, str) or len(value) > TEXT_CHARACTERS_MAX:
        raise InvalidValue(f"expected text of at most {TEXT_CHARACTERS_MAX} characters")
    return value
