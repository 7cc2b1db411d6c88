"""What the columns of a SQL statement are called, and rows as mappings.

Owns  the function that turns a row into a dict, made once for each set of names.
Not   which columns a statement has (`sql`).
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import msgspec

from edgestead.objects import limits

Row = dict[str, Any]


class Columns(msgspec.Struct, frozen=True):
    """`mapping(row)` is the dict of a row; of columns with one name the last one wins."""

    names: tuple[str, ...]
    mapping: Callable[[tuple[Any, ...]], Row]


@lru_cache(limits.SPLITS_MAX)
def columns(names: tuple[str, ...]) -> Columns:
    """The columns of these names.

    `dict(zip(names, row))` would look each name up and take three times as long: a tenth of a small
    statement, two fifths of a large result.
    """
    items = ", ".join(f"{name!r}: row[{place}]" for place, name in enumerate(names))
    return Columns(names, eval(f"lambda row: {{{items}}}"))  # only literals of str, and places
