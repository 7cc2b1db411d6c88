"""Statements made of a row type: its fields are the table's columns, in their order.

Owns  the parts of a statement that name every column, and the values that go with them.
Not   any table; conditions and orders.

So a column that is added to a row stands in one place, and no statement can have its values in another order
than its columns.
"""

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any


def names(row: type[Any], table: str = "") -> str:
    """`a, b, c`; of an alias `z`: `z.a, z.b, z.c`."""
    return ", ".join(f"{table}.{field}" if table else field for field in row._fields)


def insert(table: str, row: type[Any], *, before: Sequence[str] = ()) -> str:
    """Takes the row itself, behind values for the columns `before`."""
    columns = (*before, *row._fields)
    return f"insert into {table} ({', '.join(columns)}) values ({', '.join('?' * len(columns))})"


def update(table: str, row: type[Any], fixed: Sequence[str]) -> str:
    """Every column but the `fixed` ones, by id. Takes `changing(row, fixed)` of a row."""
    changed = ", ".join(f"{field} = ?" for field in row._fields if field not in fixed)
    return f"update {table} set {changed} where id = ?"


def changing(row: type[Any], fixed: Sequence[str]) -> Callable[[Any], tuple[Any, ...]]:
    """The values that `update` takes of a row: those of its columns, then its id."""
    fields = [field for field in row._fields if field not in fixed]
    return itemgetter(*(row._fields.index(field) for field in (*fields, "id")))
