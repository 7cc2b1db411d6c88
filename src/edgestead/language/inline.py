"""Many filters as one function.

Owns  the Python source that a list of filters becomes.
Asks  `compiler` for what has no short source, `fields`, `patterns` and `sets`.
Tells whoever runs the same list of filters for every request.
Not   what a condition means: `compiler` defines it, and tests hold this module to it.

A closure for each comparison costs more than the comparison. So the usual conditions on plain fields are
written out as Python, in one generator for the whole list; everything else in it calls its closure. The
source holds slots and names only: whatever the author of an expression wrote is a constant beside it.

Loading a field through a view costs more than comparing it, too. Whoever holds requests may say in Python how
some fields are read (`Shortcuts`).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from . import patterns
from .compiler import Filter, _Compiler, no_lists
from .errors import FilterError
from .fields import FIELDS
from .functions import FUNCTIONS
from .sets import item_set
from .tree import (
    Call,
    Compare,
    Condition,
    Constant,
    Field,
    Index,
    Literal,
    Logic,
    Matches,
    Not,
    OneOf,
    Quantifier,
    Truth,
    Wildcard,
)
from .view import View

DEPTH_MAX = 20  # of what is written out; Python's parser takes a few hundred

T = TypeVar("T")
_COMPARED = {"==": "{0} == {1}", "!=": "{0} != {1}"}
_METHODS = {"starts_with": "startswith", "ends_with": "endswith"}


class Shortcuts(NamedTuple):
    """Python expressions of `r`, the `request` of a view, by name of the field.

    `values` answer what the view would; `keys` have the keys of a map, and are asked with `in`.
    """

    values: Mapping[str, str] = {}
    keys: Mapping[str, str] = {}


_NONE = Shortcuts()


def matching(
    filters: Sequence[Filter], marks: Sequence[T], short: Shortcuts = _NONE
) -> Callable[[View], Iterator[T]]:
    """A function of a view that yields the mark of each filter that holds, in order, as they are asked for.

    With `short` the view has to have a `request`. Cost about 50 µs for each filter.
    """
    writer = _Writer(short)
    lines = [
        f" if {writer.filter(one)}: yield {writer.constant(mark)}"
        for one, mark in zip(filters, marks, strict=True)
    ]
    begin = [" r = v.request"] if short is not _NONE else []
    end = [" return", " yield"]  # a generator without filters, too
    source = "\n".join(("def run(v):", *begin, *lines, *end))
    exec(compile(source, "<filters>", "exec"), writer.names)
    run: Callable[[View], Iterator[T]] = writer.names["run"]
    return run


class _Writer:
    def __init__(self, short: Shortcuts) -> None:
        self.short = short
        self.names: dict[str, Any] = {}

    def constant(self, value: Any) -> str:
        name = f"c{len(self.names)}"
        self.names[name] = value
        return name

    def filter(self, one: Filter) -> str:
        try:
            return self.condition(one.tree, one.text, 0)
        except FilterError:  # it names a list, which only its own closure knows
            return f"{self.constant(one.run)}(v)"

    def condition(self, node: Condition, text: str, depth: int) -> str:
        match node:
            case _ if depth == DEPTH_MAX:
                pass
            case Constant(flag):
                return str(flag)
            case Not(item):
                return f"(not {self.condition(item, text, depth + 1)})"
            case Logic("and" | "or" as op, items):
                return "(" + f" {op} ".join(self.condition(one, text, depth + 1) for one in items) + ")"
            case Compare(Field(name), op, literal) if op in _COMPARED:
                return "(" + _COMPARED[op].format(self.value(name), self.constant(literal)) + ")"
            case Compare(Field(name), "contains", literal):
                return self.present(name, f"x.find({self.constant(literal)}) >= 0")  # `in`: twice the time
            case OneOf(Field(name), items):
                return f"({self.value(name)} in {self.constant(item_set(items))})"
            case Matches(Field(name), pattern):
                return self.present(name, f"{self.constant(patterns.regex_test(pattern))}(x)")
            case Wildcard(Field(name), glob, strict):
                return self.present(name, f"{self.constant(patterns.wildcard_test(glob, strict=strict))}(x)")
            case Truth(Field(name)):
                return f"({self.value(name)} is True)"
            case Truth(Call(function, (Field(name), Literal(literal)))) if function in _METHODS:
                return self.present(name, f"x.{_METHODS[function]}({self.constant(literal)})")
        return self.closure(node, text)

    def closure(self, node: Condition, text: str) -> str:
        call = f"{self.constant(_Compiler(text, no_lists).condition(node))}(v)"
        name, key = _needed_key(node)
        keys = self.short.keys.get(name)
        return call if keys is None else f"({self.constant(key)} in {keys} and {call})"

    def value(self, name: str) -> str:
        return self.short.values.get(name) or f"v[{FIELDS[name].slot}]"

    def present(self, name: str, test: str) -> str:
        """A test of a field's value, false where it is missing."""
        return f"((x := {self.value(name)}) is not None and {test})"


def _needed_key(node: Condition) -> tuple[str, bytes]:
    """(field, key) of a map without which the condition does not hold; empty where there is none.

    What is missing makes every comparison false but `!=`, and `any` and `all` of each.
    """
    if isinstance(node, Quantifier):
        node = node.item
    elif isinstance(node, Compare) and node.op == "!=":
        return "", b""
    value = getattr(node, "value", None)
    while isinstance(value, Call) and not FUNCTIONS[value.function].keeps_missing:
        value = value.args[0]
    match value:
        case Index(Field(name), (bytes() as key, *_)):
            return name, key
    return "", b""
