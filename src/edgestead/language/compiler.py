"""A typed tree to Python closures that run on a view.

Owns  `Filter` and `ValueExpression`, how each node runs, what a missing value does.
Not   where a request's fields come from (`view`).

Missing values: a comparison of one is false, `!=` is true; a function of one is missing, except that
`concat` leaves it out; `any` and `all` over a missing array are false.

Two kinds of closure: a single condition answers a bool, a `many` condition a list of bools or None where its
array is missing. Plain fields have closures of their own because they are nine comparisons of ten.
"""

import operator
from collections.abc import Callable, Container, Iterator, Mapping
from typing import Any

from edgestead.language import patterns
from edgestead.language.errors import FilterError
from edgestead.language.fields import FIELDS
from edgestead.language.functions import FUNCTIONS
from edgestead.language.parser import parse_filter, parse_value
from edgestead.language.sets import item_set
from edgestead.language.tree import (
    EACH,
    Call,
    Compare,
    Condition,
    Constant,
    Field,
    Index,
    InList,
    Literal,
    Logic,
    Matches,
    Not,
    OneOf,
    Quantifier,
    Truth,
    ValueNode,
    Wildcard,
)
from edgestead.language.types import STRING, Type
from edgestead.language.view import View

Lists = Callable[[str, Type], Container[Any] | None]
Run = Callable[[View], bool]
RunMany = Callable[[View], list[bool] | None]
Get = Callable[[View], Any]
Check = Callable[[Any], bool]


def no_lists(name: str, type_: Type) -> None:
    """The resolver of an account without lists."""


class Filter:
    """A compiled filter: call it with a view.

    `text` as given, `tree` its typed form (``str(tree)`` is the normal form), `fields` the names of the
    fields it can look at. `run` is the bare closure, for a loop that counts its calls.
    """

    __slots__ = ("fields", "run", "text", "tree")

    def __init__(self, text: str, tree: Condition, run: Run) -> None:
        self.text = text
        self.tree = tree
        self.run = run
        self.fields = frozenset(_names(tree))

    def __call__(self, view: View) -> bool:
        return self.run(view)


class ValueExpression:
    """A compiled value: call it with a view, get the value or None where it is missing."""

    __slots__ = ("fields", "run", "text", "tree")

    def __init__(self, text: str, tree: ValueNode, run: Get) -> None:
        self.text = text
        self.tree = tree
        self.run = run
        self.fields = frozenset(_names(tree))

    def __call__(self, view: View) -> Any:
        return self.run(view)


def compile_filter(text: str, phase: str, *, lists: Lists = no_lists, with_response: bool = False) -> Filter:
    """Compile a rule's expression for a phase.

    `lists` resolves ``$name``: it gets the name and the type compared with it (STRING, INT or IP) and
    answers a container (`in` is asked with values in the form of `types`), or None if there is no such
    list. The container is kept, so one that changes is seen. `with_response` adds the response fields, for
    the counting expression of a rate limit.

    Raises  FilterError for an expression that is refused; KeyError for a phase that does not exist.
    Limits  in `types`: length, depth, patterns, items.
    Cost    about 100 µs; a call of the result about 0.1 µs per comparison.
    """
    tree = parse_filter(text, phase, with_response=with_response)
    return Filter(text, tree, _Compiler(text, lists).condition(tree))


def compile_value(text: str, phase: str, *, result: Type = STRING) -> ValueExpression:
    """Compile the value expression of a rewrite or redirect. Raises and limits as `compile_filter`."""
    tree = parse_value(text, phase, result=result)
    return ValueExpression(text, tree, _Compiler(text, no_lists).value(tree))


def _names(node: Condition | ValueNode) -> Iterator[str]:
    """The fields below a node, found without recursion."""
    waiting: list[Any] = [node]
    while waiting:
        node = waiting.pop()
        match node:
            case Field():
                yield node.name
            case Call():
                waiting.extend(node.args)
            case Index():
                waiting.append(node.base)
            case Not() | Quantifier():
                waiting.append(node.item)
            case Logic():
                waiting.extend(node.items)
            case Literal() | Constant():
                pass
            case _:
                waiting.append(node.value)


_CHECKS: dict[str, Callable[[Any], Check]] = {
    "==": lambda literal: literal.__eq__,
    "!=": lambda literal: literal.__ne__,
    "<": lambda literal: literal.__gt__,
    "<=": lambda literal: literal.__ge__,
    ">": lambda literal: literal.__lt__,
    ">=": lambda literal: literal.__le__,
    "&": lambda literal: lambda value: value & literal != 0,
    "contains": lambda literal: lambda value: literal in value,
}


class _Compiler:
    def __init__(self, text: str, lists: Lists) -> None:
        self.text = text
        self.lists = lists

    # Single conditions

    def condition(self, node: Condition) -> Run:
        match node:
            case Constant(flag):
                return lambda _: flag
            case Not(item):
                inner = self.condition(item)
                return lambda view: not inner(view)
            case Logic(op, items):
                return _LOGIC[op]([self.condition(item) for item in items])
            case Quantifier(op, item):
                return _quantify(op, self.many(item))
            case Truth(value):
                get = self.value(value)
                return lambda view: get(view) is True
        if isinstance(node.value, Field):
            return self._on_field(FIELDS[node.value.name].slot, node)
        get, check = self.value(node.value), self.check(node)
        missing = isinstance(node, Compare) and node.op == "!="

        def run(view: View) -> bool:
            value = get(view)
            return missing if value is None else check(value)

        return run

    def _on_field(self, slot: int, node: Compare | Matches | Wildcard | OneOf | InList) -> Run:
        if isinstance(node, Compare):
            literal: Any = node.literal
            if node.op == "==":
                return lambda view: view[slot] == literal
            if node.op == "!=":
                return lambda view: view[slot] != literal
            if node.op == "contains":
                return lambda view: (value := view[slot]) is not None and literal in value  # type: ignore[operator]
        if isinstance(node, OneOf):
            items = item_set(node.items)
            return lambda view: view[slot] in items
        check = self.check(node)
        return lambda view: (value := view[slot]) is not None and check(value)

    def check(self, node: Compare | Matches | Wildcard | OneOf | InList) -> Check:
        """The comparison alone, on a value that is not missing."""
        match node:
            case Compare():
                return _CHECKS[node.op](node.literal)
            case Matches():
                return patterns.regex_test(node.pattern)
            case Wildcard():
                return patterns.wildcard_test(node.pattern, strict=node.strict)
            case OneOf():
                return item_set(node.items).__contains__
            case InList():
                return self._list(node).__contains__

    def _list(self, node: InList) -> Container[Any]:
        found = self.lists(node.name, node.value.type)
        if found is None:
            start = max(0, self.text.find(f"${node.name}"))
            raise FilterError(
                self.text, start, start + len(node.name) + 1, f"could not find list ${node.name}"
            )
        return found

    # Conditions over arrays

    def many(self, node: Condition) -> RunMany:
        match node:
            case Not(item):
                inner = self.many(item)
                return lambda view: None if (flags := inner(view)) is None else [not flag for flag in flags]
            case Logic(op, items):
                return _logic_many(op, [self.many(item) for item in items])
            case Truth(value):
                return self.elements(value) if value.many else self.value(value)
        assert not isinstance(node, Constant | Quantifier)
        elements, check = self.elements(node.value), self.check(node)
        return lambda view: None if (values := elements(view)) is None else [check(value) for value in values]

    # Values

    def value(self, node: ValueNode) -> Get:
        match node:
            case Field(name):
                slot = FIELDS[name].slot
                return lambda view: view[slot]
            case Literal(value):
                return lambda _: value
            case Call():
                return self._call(node)
            case Index(base, path):
                get = self.value(base)
                for step in path:
                    get = _at(get, step)
                return get

    def elements(self, node: ValueNode) -> Callable[[View], list[Any] | None]:
        """The items a mapped value stands for, or None where the array itself is missing."""
        assert isinstance(node, Index)
        first = node.path.index(EACH)
        get, rest = self.value(node.base), node.path[first + 1 :]
        for step in node.path[:first]:
            get = _at(get, step)

        def run(view: View) -> list[Any] | None:
            container = get(view)
            return None if container is None else list(_spread(container, rest))

        return run

    def _call(self, node: Call) -> Get:
        function = FUNCTIONS[node.function]
        run = function.make(node.args)
        if node.args[0].many:
            return self._mapped_call(node, run)
        if function.keeps_missing:
            gets = [self.value(arg) for arg in node.args]
            return lambda view: run(*present) if (present := _present(gets, view)) else None
        first, others = self.value(node.args[0]), node.args[1:]
        if all(isinstance(arg, Literal) for arg in others):
            constants = [arg.value for arg in others if isinstance(arg, Literal)]
            return lambda view: None if (value := first(view)) is None else run(value, *constants)
        gets = [first, *map(self.value, others)]
        return lambda view: None if None in (values := [get(view) for get in gets]) else run(*values)

    def _mapped_call(self, node: Call, run: Callable[..., Any]) -> Get:
        elements, gets = self.elements(node.args[0]), [self.value(arg) for arg in node.args[1:]]

        def mapped(view: View) -> list[Any] | None:
            values = elements(view)
            others = [get(view) for get in gets]
            if values is None or None in others:
                return None
            return [result for value in values if (result := run(value, *others)) is not None]

        return mapped


def _present(gets: list[Get], view: View) -> list[Any]:
    return [value for get in gets if (value := get(view)) is not None]


def _at(get: Get, step: int | bytes | str) -> Get:
    """One step into an array or map."""
    if isinstance(step, int):

        def item(view: View) -> Any:
            value = get(view)
            return value[step] if value is not None and step < len(value) else None

        return item
    return lambda view: None if (value := get(view)) is None else value.get(step)


def _follow(value: Any, step: int | bytes | str) -> Any:
    if isinstance(step, int):
        return value[step] if step < len(value) else None
    return value.get(step)


def _spread(container: Any, path: tuple[int | bytes | str, ...]) -> Iterator[Any]:
    """All items, each followed down the rest of the path; those that lack it are left out."""
    for item in container.values() if isinstance(container, Mapping) else container:
        for depth, step in enumerate(path):
            if step == EACH:
                yield from _spread(item, path[depth + 1 :])
                break
            item = _follow(item, step)
            if item is None:
                break
        else:
            yield item


def _and(items: list[Run]) -> Run:
    if len(items) == 2:
        one, two = items
        return lambda view: one(view) and two(view)
    if len(items) == 3:
        one, two, three = items
        return lambda view: one(view) and two(view) and three(view)

    def run(view: View) -> bool:
        for item in items:
            if not item(view):
                return False
        return True

    return run


def _or(items: list[Run]) -> Run:
    if len(items) == 2:
        one, two = items
        return lambda view: one(view) or two(view)
    if len(items) == 3:
        one, two, three = items
        return lambda view: one(view) or two(view) or three(view)

    def run(view: View) -> bool:
        for item in items:
            if item(view):
                return True
        return False

    return run


def _xor(items: list[Run]) -> Run:
    return lambda view: sum(item(view) for item in items) % 2 == 1


_LOGIC: dict[str, Callable[[list[Run]], Run]] = {"and": _and, "or": _or, "xor": _xor}
_OPERATORS = {"and": operator.and_, "or": operator.or_, "xor": operator.xor}


def _logic_many(op: str, items: list[RunMany]) -> RunMany:
    combine = _OPERATORS[op]

    def run(view: View) -> list[bool] | None:
        result = items[0](view)
        for item in items[1:]:
            other = item(view)
            if result is None or other is None:
                return None
            result = list(map(combine, result, other))
        return result

    return run


def _quantify(op: str, flags_of: RunMany) -> Run:
    quantifier = any if op == "any" else all
    return lambda view: (flags := flags_of(view)) is not None and quantifier(flags)
