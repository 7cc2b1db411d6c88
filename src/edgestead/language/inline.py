"""Many filters as one function.

Owns  the Python source that a list of filters becomes.
Not   what a condition means: `compiler` defines it, and tests hold this module to it.

A closure for each comparison costs more than the comparison. So the usual conditions on plain fields are
written out as Python, in one function for the whole list; everything else in it calls its closure. The source
holds slots and names only: whatever the author of an expression wrote is a constant beside it.

Nearly every request meets no condition. So all of them are asked as one first, and only where one holds a
generator goes through them one by one.

Loading a field through a view costs more than comparing it, too, and so does making the view. Whoever holds
requests may say in Python how some fields are read (`Shortcuts`); each of those is read once, before the
conditions, and the view is asked for only by a condition on another field.
"""

from bisect import bisect_right
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from edgestead.language import patterns
from edgestead.language.compiler import Filter, _Compiler, no_lists
from edgestead.language.errors import FilterError
from edgestead.language.fields import FIELDS
from edgestead.language.functions import FUNCTIONS
from edgestead.language.sets import Ranges, item_set
from edgestead.language.tree import (
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

DEPTH_MAX = 20  # of what is written out; Python's parser takes a few hundred

T = TypeVar("T")
R = TypeVar("R")
_COMPARED = {"==": "{0} == {1}", "!=": "{0} != {1}"}
_METHODS = {"starts_with": "startswith", "ends_with": "endswith"}


class Shortcuts(NamedTuple):
    """Python expressions of `r`, a request. They may use `names`.

    `view` is what answers for all other fields; `values` answer what it would, by name of the field, and cost
    little; `keys` have the keys of a map, and are asked with `in`.
    """

    view: str = "r"
    values: Mapping[str, str] = {}
    keys: Mapping[str, str] = {}
    names: Mapping[str, Any] = {}


_NONE = Shortcuts()  # the request is its own view
_SOURCE = """
def each(r):
{loads}
{yields}
 return
 yield
def run(r):
{loads}
 return then(r, each(r)) if {any} else None
"""


def matching(
    filters: Sequence[Filter],
    marks: Sequence[T],
    then: Callable[[Any, Iterator[T]], R],
    short: Shortcuts = _NONE,
) -> Callable[[Any], R | None]:
    """A function of a request: what `then` makes of the request and the marks of the filters that hold, in
    order; None where none of them does. Behind the first that holds, a filter is looked at in its turn.

    Without `short` the request is a view. Cost about 70 µs for each filter.
    """
    writer = _Writer(short)
    writer.names["then"] = then
    tests = [writer.filter(one) for one in filters]
    yields = [f" if {test}: yield {writer.constant(mark)}" for test, mark in zip(tests, marks, strict=True)]
    source = _SOURCE.format(
        loads="\n".join(f" {local} = {load}" for local, load in writer.loads.items()),
        yields="\n".join(yields),
        any=" or ".join(tests) or "False",
    )
    exec(compile(source, "<filters>", "exec"), writer.names)
    run: Callable[[Any], R | None] = writer.names["run"]
    return run


class _Writer:
    def __init__(self, short: Shortcuts) -> None:
        self.short = short
        self.names: dict[str, Any] = dict(short.names)
        self.loads: dict[str, str] = {}  # of locals, by what they are called

    def constant(self, value: Any) -> str:
        name = f"c{len(self.names)}"
        self.names[name] = value
        return name

    def filter(self, one: Filter) -> str:
        try:
            return self.condition(one.tree, one.text, 0)
        except FilterError:  # it names a list, which only its own closure knows
            return f"{self.constant(one.run)}({self.short.view})"

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
            case Compare(Field(name), "contains", bytes() as literal):
                return self.contains(name, literal)
            case OneOf(Field(name), items):
                return self.one_of(name, item_set(items))
            case Matches(Field(name), pattern):
                return self.matches(name, pattern)
            case Wildcard(Field(name), glob, strict):
                return self.present(name, f"{self.constant(patterns.wildcard_test(glob, strict=strict))}(x)")
            case Truth(Field(name)):
                return f"({self.value(name)} is True)"
            case Truth(Call(function, (Field(name), Literal(literal)))) if function in _METHODS:
                return self.present(name, f"x.{_METHODS[function]}({self.constant(literal)})")
        return self.closure(node, text)

    def closure(self, node: Condition, text: str) -> str:
        call = f"{self.constant(_Compiler(text, no_lists).condition(node))}({self.short.view})"
        name, key = _needed_key(node)
        keys = self.short.keys.get(name)
        return call if keys is None else f"({self.constant(key)} in {keys} and {call})"

    def one_of(self, name: str, items: Container[object]) -> str:
        if not isinstance(items, Ranges):
            return f"({self.value(name)} in {self.constant(items)})"
        self.names["bisect"] = bisect_right
        return self.present(name, f"bisect({self.constant(items.bounds)}, x) & 1 == 1")

    def contains(self, name: str, literal: bytes) -> str:
        """Looking into a str takes a fifth of the time of bytes, of which `in` takes twice that of `find`."""
        if name not in self.short.values or not literal:
            return self.present(name, f"x.find({self.constant(literal)}) >= 0")
        value = self.value(name)
        text = self.local(name, "t", f'"" if {value} is None else {value}.decode("latin-1")')
        return f"({self.constant(literal.decode('latin-1'))} in {text})"

    def matches(self, name: str, pattern: str) -> str:
        test = self.present(name, f"{self.constant(patterns.regex_test(pattern))}(x)")
        needed = patterns.needed_text(pattern)
        return f"({self.contains(name, needed)} and {test})" if needed else test

    def value(self, name: str) -> str:
        if name not in self.short.values:
            return f"{self.short.view}[{FIELDS[name].slot}]"
        return self.local(name, "f", self.short.values[name])

    def local(self, name: str, prefix: str, load: str) -> str:
        local = f"{prefix}{FIELDS[name].slot}"
        self.loads.setdefault(local, load)
        return local

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
