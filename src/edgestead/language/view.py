"""What an expression sees of a request.

Owns  the protocol between compiled expressions and whoever holds a request, and a lazy implementation.
Not   how a request yields a field: the holder passes a loader per field.

A view is subscripted with a slot and answers the value, or None where it is missing. Values must be of the
field's type (`types` says in which form) and already cut.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Generic, Protocol, TypeVar

from edgestead.language.fields import ALIASES, FIELDS
from edgestead.language.types import Value, clip

R = TypeVar("R")
Loader = Callable[[R], Value | None]


class View(Protocol):
    def __getitem__(self, slot: int, /) -> Value | None: ...


def loader_table(loaders: Mapping[str, Loader[R]]) -> tuple[Loader[R], ...]:
    """One loader per slot, from loaders by field name; a field without one always has its default.

    Raises: KeyError for a name that is no field.
    """
    table: list[Loader[R]] = [_constant(field.default) for field in FIELDS.values()]
    for name, load in loaders.items():
        table[FIELDS[name].slot] = load
    return tuple(table)


def _constant(value: Value | None) -> Loader[object]:
    return lambda _: value


class LazyView(dict[int, Value | None], Generic[R]):
    """A view that loads a field when it is first asked for, cuts it, and keeps it.

    A dict, so that the second look at a field costs one hash look-up and no Python call.
    """

    def __init__(self, request: R, table: Sequence[Loader[R]]) -> None:
        self._request = request
        self._table = table

    def __missing__(self, slot: int) -> Value | None:
        value = self[slot] = clip(self._table[slot](self._request))
        return value


def fixed_view(values: Mapping[str, Value | None]) -> View:
    """A view of given values by field name (old names too); every other field has its default.

    Raises: KeyError for a name that is no field.
    """
    view = {field.slot: field.default for field in FIELDS.values()}
    for name, value in values.items():
        view[FIELDS[ALIASES.get(name, name)].slot] = clip(value)
    return view
