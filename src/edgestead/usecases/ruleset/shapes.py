"""Shapes of JSON values: small checks that are put together to tables.

Owns  the checks, and the words and pointers of their refusals.
Not   which action takes which members.

A check gets a decoded JSON value and the place where it stands. It returns the value that is stored, or
raises a RulesetRefused whose pointer is that place. Absent and false differ: what is absent is not stored. A
member that is null counts as absent.
"""

from collections.abc import Callable, Mapping
from typing import Any, NoReturn

import msgspec

from edgestead.model.refusals.ruleset import InvalidJson, UnknownField, ValueRefused

VALUE_SHOWN_CHARACTERS_MAX = 200  # of what a message quotes


class Place(msgspec.Struct, frozen=True):
    """Where a value stands: its JSON pointer (RFC 6901), and the phase of its ruleset."""

    phase: str
    pointer: str = ""

    def at(self, key: str | int) -> "Place":
        """The place of a member or item. A name too long to be one is cut: answers stay short."""
        token = str(key)[:VALUE_SHOWN_CHARACTERS_MAX].replace("~", "~0").replace("/", "~1")
        return Place(self.phase, f"{self.pointer}/{token}")

    @property
    def field(self) -> str:
        """The name of the innermost member; items of lists have none of their own."""
        for token in reversed(self.pointer.split("/")):
            if token and not token.isdigit():
                return token.replace("~1", "/").replace("~0", "~")
        return "body"

    def refuse(self, value: Any, reason: str) -> NoReturn:
        raise ValueRefused(value=shown(value), field=self.field, reason=reason, pointer=self.pointer)

    def mistyped(self, expected: str) -> NoReturn:
        raise InvalidJson(reason=f"expected {expected} for {self.field}", pointer=self.pointer)

    def missing(self, member: str) -> NoReturn:
        raise InvalidJson(
            reason=f"missing field {member!r}".replace("'", '"'), pointer=self.at(member).pointer
        )


Check = Callable[[Any, Place], Any]


def shown(value: Any) -> str:
    """A value as a refusal quotes it: text as it is, anything else as JSON, and not too long."""
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    limit = VALUE_SHOWN_CHARACTERS_MAX
    return text if len(text) <= limit else text[:limit] + "…"


def truth(value: Any, place: Place) -> bool:
    if not isinstance(value, bool):
        place.mistyped("true or false")
    return value


def only_true(value: Any, place: Place) -> bool:
    """For switches that only ever turn something off."""
    if truth(value, place) is False:
        place.refuse(value, "the only value is true")
    return True


def whole(low: int, high: int) -> Check:
    def check(value: Any, place: Place) -> int:
        if not isinstance(value, int) or isinstance(value, bool):
            place.mistyped("a whole number")
        if not low <= value <= high:
            place.refuse(value, f"it must be from {low} to {high}")
        return value

    return check


def text(characters_max: int, *, characters_min: int = 1, line: bool = True) -> Check:
    """`line` refuses control characters: what could end a header or split an answer."""

    def check(value: Any, place: Place) -> str:
        if not isinstance(value, str):
            place.mistyped("a string")
        if len(value) < characters_min:
            place.refuse(value, "it cannot be blank")
        if len(value) > characters_max:
            place.refuse(value, f"it is longer than {characters_max} characters")
        if line and not value.isprintable():
            place.refuse(value, "it holds a control character")
        return value

    return check


def choice(*values: str | int) -> Check:
    def check(value: Any, place: Place) -> Any:
        if isinstance(value, bool) or type(value) is not type(values[0]):
            place.mistyped("a string" if isinstance(values[0], str) else "a whole number")
        if value not in values:
            place.refuse(value, "it must be one of " + ", ".join(map(str, values)))
        return value

    return check


def each(item: Check, items_max: int, *, items_min: int = 0) -> Check:
    def check(value: Any, place: Place) -> list[Any]:
        if not isinstance(value, list):
            place.mistyped("a list")
        if not items_min <= len(value) <= items_max:
            place.refuse(len(value), f"it must have from {items_min} to {items_max} items")
        return [item(one, place.at(index)) for index, one in enumerate(value)]

    return check


def keyed(key: Check, item: Check, items_max: int) -> Check:
    """An object whose members are data: names and values have a check each."""

    def check(value: Any, place: Place) -> dict[str, Any]:
        _object(value, place)
        if not 0 < len(value) <= items_max:
            place.refuse(len(value), f"it must have from 1 to {items_max} members")
        return {key(name, place.at(name)): item(one, place.at(name)) for name, one in value.items()}

    return check


def members(
    optional: Mapping[str, Check] = {},
    *,
    required: Mapping[str, Check] = {},
    at_least_one: bool = False,
    exactly_one: tuple[str, ...] = (),
    excluded: tuple[tuple[str, str], ...] = (),
) -> Check:
    """An object with these members and no others.

    `at_least_one` refuses an empty object; of the names in `exactly_one` one must be there and only one;
    a pair in `excluded` cannot stand together. The answer keeps the order of the table, required ones first.
    """
    table = {**required, **optional}

    def check(value: Any, place: Place) -> dict[str, Any]:
        _object(value, place)
        for name in value:
            if name not in table:
                raise UnknownField(field=shown(name), pointer=place.at(name).pointer)
        present = {name for name, one in value.items() if one is not None}
        for name in required:
            if name not in present:
                place.missing(name)
        if at_least_one and not present:
            place.refuse(value, "it cannot be empty")
        if exactly_one and len(present.intersection(exactly_one)) != 1:
            place.refuse(value, "exactly one of " + ", ".join(exactly_one) + " is needed")
        for one, other in excluded:
            if one in present and other in present:
                place.at(one).refuse(value[one], f"it cannot stand beside {other}")
        return {name: table[name](value[name], place.at(name)) for name in table if name in present}

    return check


def nothing(value: Any, place: Place) -> dict[str, Any]:
    """An object without members, of actions that take no parameters."""
    found: dict[str, Any] = _EMPTY(value, place)
    return found


def _object(value: Any, place: Place) -> None:
    if not isinstance(value, dict):
        place.mistyped("an object")


_EMPTY = members()
