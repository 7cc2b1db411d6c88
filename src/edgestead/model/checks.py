"""What a value from outside may be: one small class for each kind of value.

Owns  the checks that settings of zones and of the server share, and the wording of each in the reference.
Not   which setting has which check; where a value stands, and which refusal its caller makes of the reason.

`read` takes a value as JSON, TOML or a flag has it, and returns what is stored. It raises InvalidValue with
the reason. Numbers may come as text, as in every body of the API and on every command line.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from edgestead.model.names import InvalidValue

TEXT_ITEMS_MAX = 64  # more than there are cipher suites
TEXT_CHARACTERS_MAX = 128  # of one of them
_DIGITS_MAX = 10


class Check(Protocol):
    @property
    def wording(self) -> str:
        """For the reference, in Markdown."""
        ...

    def read(self, value: Any, present: Any = None) -> Any:
        """`present` is the value that there is, for checks that keep a part of it. Raises InvalidValue."""
        ...


class Choice(NamedTuple):
    """One of some words."""

    choices: Sequence[str]

    @property
    def wording(self) -> str:
        return ", ".join(f"`{choice}`" for choice in self.choices)

    def read(self, value: Any, present: Any = None) -> str:
        if not isinstance(value, str) or value not in self.choices:
            raise InvalidValue("expected one of " + ", ".join(self.choices))
        return value


class Listed(NamedTuple):
    """One of some whole numbers."""

    numbers: Sequence[int]

    @property
    def wording(self) -> str:
        return ", ".join(map(str, self.numbers))

    def read(self, value: Any, present: Any = None) -> int:
        number = _whole(value)
        if number is None or number not in self.numbers:
            raise InvalidValue("expected one of " + self.wording)
        return number


class Between(NamedTuple):
    """A whole number within bounds, both included."""

    lowest: int
    highest: int
    takes_fractions: bool = True  # 3.0, which JSON does not tell from 3, and TOML does

    @property
    def wording(self) -> str:
        return f"{self.lowest} to {self.highest}"

    def read(self, value: Any, present: Any = None) -> int:
        number = None if isinstance(value, float) and not self.takes_fractions else _whole(value)
        if number is None or not self.lowest <= number <= self.highest:
            raise InvalidValue(f"expected a whole number from {self.lowest} to {self.highest}")
        return number


class Flag:
    """True or false."""

    wording = "`true`, `false`"

    def read(self, value: Any, present: Any = None) -> bool:
        if isinstance(value, bool):
            return value
        if value in ("true", "false"):
            return bool(value == "true")
        raise InvalidValue("expected true or false")


class Texts:
    """A list of short texts."""

    wording = f"an array of at most {TEXT_ITEMS_MAX} strings"

    def read(self, value: Any, present: Any = None) -> list[str]:
        if not isinstance(value, list) or len(value) > TEXT_ITEMS_MAX:
            raise InvalidValue(f"expected {self.wording}")
        for text in value:
            _short(text)
        return value


class Text:
    """One short text, or null."""

    wording = f"a string of at most {TEXT_CHARACTERS_MAX} characters, or null"

    def read(self, value: Any, present: Any = None) -> str | None:
        return None if value is None else _short(value)


class Line(NamedTuple):
    """One text of bounded length, which may be empty."""

    characters_max: int

    @property
    def wording(self) -> str:
        return f"a string of at most {self.characters_max} characters"

    def read(self, value: Any, present: Any = None) -> str:
        if not isinstance(value, str) or len(value) > self.characters_max:
            raise InvalidValue(f"expected text of at most {self.characters_max} characters")
        return value


class Members(NamedTuple):
    """An object. At least one of its members is sent, and those that are not stay as they are."""

    checks: Mapping[str, Check]

    @property
    def wording(self) -> str:
        return "; ".join(f"`{name}`: {check.wording}" for name, check in self.checks.items())

    def read(self, value: Any, present: Any = None) -> dict[str, Any]:
        if not isinstance(value, dict) or not value.keys() & self.checks.keys():
            raise InvalidValue("expected an object with at least one of " + ", ".join(self.checks))
        return {
            name: check.read(value[name], present[name]) if name in value else present[name]
            for name, check in self.checks.items()
        }


def _whole(value: Any) -> int | None:
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= _DIGITS_MAX:
        return int(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _short(value: Any) -> str:
    if not isinstance(value, str) or len(value) > TEXT_CHARACTERS_MAX:
        raise InvalidValue(f"expected text of at most {TEXT_CHARACTERS_MAX} characters")
    return value
