"""What a rule looks at: its variables, selectors and exclusions, as a request's items.

Owns  selecting by key and pattern, counting, excluding; how an item is named.
Not   parsing a request (`collections`), transforming (`variants`).
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import re2

from edgestead.crs import Variable
from edgestead.waf.transaction import Pair

# Variables that rules themselves change while they run; all others are the request's or the response's.
STATE_VARIABLES = frozenset(
    """TX IP GLOBAL RESOURCE SESSION USER ENV GEO RULE HIGHEST_SEVERITY REQBODY_PROCESSOR MATCHED_VAR
    MATCHED_VARS MATCHED_VAR_NAME MATCHED_VARS_NAMES""".split()
)
KEYS_MAX = 1_024  # of which a pattern remembers whether it chooses them
_WORD = b"_-abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"


class Item(NamedTuple):
    variable: str
    key: bytes
    value: bytes

    @property
    def name(self) -> bytes:
        """``ARGS:id``, or ``REQUEST_URI`` for a single variable."""
        return self.variable.encode() + (b":" + self.key if self.key else b"")


_item = tuple.__new__  # half of what `Item(…)` costs, for the ten thousand values of an XML body


class Holder(Protocol):
    def pairs(self, variable: str) -> Sequence[Pair]:
        """All of a variable, in order."""

    def single(self, variable: str, key: bytes) -> bytes | None:
        """The value of a state variable's key, lower case."""

    def header(self, key: bytes) -> Sequence[bytes]:
        """The values of a request header, by its name in lower case."""

    def whole(self, target: "Target", hidden: Sequence["Target"]) -> list[Item]:
        """All items of a target without selector that are not hidden, made once where it does not change."""


class Target:
    """One variable of a rule. `key` is lower case."""

    __slots__ = (
        "_keys",
        "_shown",
        "at_start",
        "count",
        "key",
        "name",
        "pattern",
        "plain",
        "variable",
        "word",
    )

    def __init__(self, variable: Variable) -> None:
        self.variable = variable.name
        self.name = f"{variable.name}:{variable.selector}/{variable.pattern}"  # the same for the same target
        self._keys: dict[bytes, bool] = {}
        self.count = variable.count
        selector = self._shown = variable.selector.encode("utf-8", "surrogateescape")
        self.pattern: Any = _selector(selector) if variable.pattern else None
        # most patterns are words, to be met anywhere in the key, or at its start
        word = selector.removeprefix(b"^").lower()
        self.word = word if variable.pattern and not word.strip(_WORD) else None
        self.at_start = selector.startswith(b"^")
        self.key = b"" if variable.pattern else selector.lower()
        self.plain = not (selector or variable.count or variable.name in STATE_VARIABLES)

    def chooses(self, key: bytes) -> bool:
        if self.word is not None:
            return key.lower().startswith(self.word) if self.at_start else self.word in key.lower()
        if self.pattern is not None:
            return self._found(key)
        return not self.key or key.lower() == self.key

    def _found(self, key: bytes) -> bool:
        known = self._keys.get(key)
        if known is None:
            if len(self._keys) >= KEYS_MAX:
                self._keys.clear()
            known = self._keys[key] = self.pattern.search(key) is not None
        return known

    def select(self, holder: Holder) -> list[Item]:
        name = self.variable
        if self.key and name in STATE_VARIABLES:
            value = holder.single(name, self.key)
            found = [] if value is None else [Item(name, self.key, value)]
        elif self.key and name == "REQUEST_HEADERS":
            found = [Item(name, self._shown, value) for value in holder.header(self.key)]
        elif self.key or self.pattern is not None:
            found = [
                _item(Item, (name, key, value)) for key, value in holder.pairs(name) if self.chooses(key)
            ]
        else:
            found = [_item(Item, (name, key, value)) for key, value in holder.pairs(name)]
        return [Item("&" + name, self.key, b"%d" % len(found))] if self.count else found


def _selector(pattern: bytes) -> Any:
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.case_sensitive = False
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        raise ValueError(f"unusable selector {pattern!r}: {error}") from None


class TargetSet:
    """The targets of a rule link. `number` is the same for the same targets; `static` ones never change while
    rules run."""

    __slots__ = ("_hidden", "excluded", "included", "number", "static")

    def __init__(self, number: int, variables: Sequence[Variable]) -> None:
        self.number = number
        self.included = tuple(Target(variable) for variable in variables if not variable.excluded)
        self.excluded = tuple(Target(variable) for variable in variables if variable.excluded)
        self.static = all(target.variable not in STATE_VARIABLES for target in self.included)
        self._hidden = tuple(
            tuple(hidden for hidden in self.excluded if hidden.variable == target.variable)
            for target in self.included
        )

    def select(self, holder: Holder) -> list[Item]:
        """Once for each request where it is static; targets without a selector are shared between sets."""
        items: list[Item] = []
        for target, hidden in zip(self.included, self._hidden, strict=True):
            if target.plain:
                items += holder.whole(target, hidden)
            else:
                items += visible(target.select(holder), hidden)
        return items


def visible(items: list[Item], hidden: Sequence[Target]) -> list[Item]:
    """The items that no exclusion takes away."""
    if not hidden:
        return items
    return [item for item in items if not any(excludes(target, item) for target in hidden)]


def excludes(target: Target, item: Item) -> bool:
    return target.variable == item.variable and target.chooses(item.key)
