"""An expression's text to its typed tree.

Owns  the grammar and every check that makes a tree well typed.
Not   running anything; which lists exist (`compiler`).

Precedence, tightest first: `not`, `and`, `xor`, `or`. Names and literals depend on one another's types, so
reading and checking are one pass, and the first mistake from the left is the one that is reported.

A level of nesting costs at most five Python frames here, so `NESTING_DEPTH_MAX` stays below the interpreter's
own limit however deep the caller stands.
"""

from difflib import get_close_matches

from edgestead.language import fields, patterns
from edgestead.language.errors import FilterError
from edgestead.language.functions import FUNCTIONS, Function, Kind, Parameter
from edgestead.language.lexer import Cursor
from edgestead.language.phases import PHASES
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
from edgestead.language.types import (
    BOOL,
    EXPRESSION_CHARS_MAX,
    INT,
    IP,
    NESTING_DEPTH_MAX,
    PATTERNS_MAX,
    SET_ITEMS_MAX,
    STRING,
    Type,
    array,
)

_LOGIC = {"and": "and", "or": "or", "xor": "xor"}
_LOGIC_SYMBOLS = {"&&": "and", "||": "or", "^^": "xor"}
_COMPARE_WORDS = {
    "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
    "bitwise_and": "&", "contains": "contains", "matches": "matches", "in": "in",
    "wildcard": "wildcard", "strict": "strict",
}  # fmt: skip
_COMPARE_SYMBOLS = {
    "==": "==",
    "!=": "!=",
    "<=": "<=",
    ">=": ">=",
    "<": "<",
    ">": ">",
    "~": "matches",
    "&": "&",
}
_ORDER = frozenset(("<", "<=", ">", ">="))
_ALLOWED = {
    STRING: frozenset(("==", "!=", "contains", "matches", "wildcard", "strict", "in")) | _ORDER,
    INT: frozenset(("==", "!=", "&", "in")) | _ORDER,
    IP: frozenset(("==", "!=", "in")),
}


def parse_filter(text: str, phase: str, *, with_response: bool = False) -> Condition:
    """The tree of a filter.

    Limits  `EXPRESSION_CHARS_MAX`, `NESTING_DEPTH_MAX`, `PATTERNS_MAX`, `SET_ITEMS_MAX`.
    Raises  FilterError; KeyError for an unknown phase.
    Source  the grammar of the v4 API's rules language, docs/reference/expressions.md.
    """
    parser = _Parser(text, phase, values=False, with_response=with_response)
    return parser.whole_condition()


def parse_value(text: str, phase: str, *, result: Type = STRING) -> ValueNode:
    """The tree of a value expression of a rewrite or redirect. Limits and refusals as `parse_filter`."""
    return _Parser(text, phase, values=True, with_response=False).whole_value(result)


class _Parser:
    def __init__(self, text: str, phase: str, *, values: bool, with_response: bool) -> None:
        self.cursor = Cursor(text)
        self.phase = phase
        self.direction = PHASES[phase]
        self.values = values
        self.with_response = with_response
        self.depth = 0
        self.patterns = 0
        self.once_used = False
        _refuse_at_once(text)

    # The whole

    def whole_condition(self) -> Condition:
        start = self.cursor.skip_blanks()
        tree = self.condition()
        self._complete()
        if tree.many:
            self._mismatch(start, BOOL, array(BOOL))
        return tree

    def whole_value(self, result: Type) -> ValueNode:
        start = self.cursor.skip_blanks()
        tree = self.argument()
        self._complete()
        if tree.many or tree.type != result:
            self._mismatch(start, result, array(tree.type) if tree.many else tree.type)
        return tree

    def _complete(self) -> None:
        if self.cursor.position < self.cursor.end:
            self.cursor.fail(self.cursor.position, "unrecognised input")

    def _mismatch(self, start: int, expected: Type, actual: Type) -> None:
        self.cursor.fail(start, f"expected value of type {expected}, but got {actual}", self.cursor.position)

    def _deeper(self, start: int) -> None:
        self.depth += 1
        if self.depth > NESTING_DEPTH_MAX:
            self.cursor.fail(start, f"maximum nesting depth exceeded (limit: {NESTING_DEPTH_MAX})")

    # Logic

    def condition(self) -> Condition:
        items, ops = [self._simple()], []
        while op := self._logic_op():
            start = self.cursor.skip_blanks()
            item = self._simple()
            if item.many != items[0].many:
                bools = (array(BOOL), BOOL)
                self._mismatch(start, bools[not items[0].many], bools[not item.many])
            items.append(item)
            ops.append(op)
        return _fold(items, ops)

    def _logic_op(self) -> str:
        before = self.cursor.position
        self.cursor.skip_blanks()
        for symbol, op in _LOGIC_SYMBOLS.items():
            if self.cursor.take(symbol):
                return op
        op = _LOGIC.get(self.cursor.word(), "")
        if not op:
            self.cursor.position = before
        return op

    def _simple(self) -> Condition:
        cursor = self.cursor
        start = cursor.position
        if cursor.take("("):
            self._deeper(start)
            cursor.skip_blanks()
            item = self.condition()
            self._close()
            return item
        if cursor.take("!"):
            return self._not(start)
        if cursor.peek() == "n" and cursor.word() == "not" and cursor.peek() not in ("[", "."):
            return self._not(start)
        cursor.position = start
        return self._comparison()

    def _close(self) -> None:
        self.cursor.skip_blanks()
        self.cursor.expect(")")
        self.depth -= 1

    def _not(self, start: int) -> Condition:
        self._deeper(start)
        self.cursor.skip_blanks()
        item = self._simple()
        self.depth -= 1
        return Not(item)

    def _quantifier(self, name: str) -> Condition:
        cursor = self.cursor
        self._deeper(cursor.skip_blanks())
        cursor.expect("(")
        start = cursor.skip_blanks()
        item = self.condition()
        if not item.many:
            self._mismatch(start, array(BOOL), BOOL)
        self._close()
        return Quantifier("any" if name == "any" else "all", item)

    # Comparisons

    def _comparison(self) -> Condition:
        cursor = self.cursor
        start = cursor.position
        name = cursor.name()
        if name in ("true", "false"):
            return Constant(name == "true")
        if name in ("any", "all"):
            return self._quantifier(name)
        value = self._value(name, start)
        if value.type == BOOL or (value.type == array(BOOL) and not value.many):
            return Truth(value)
        start = cursor.skip_blanks()
        op = self._compare_op(start)
        if op not in _ALLOWED.get(value.type, ()):
            cursor.fail(start, f"cannot perform this operation on type {value.type}", cursor.position)
        cursor.skip_blanks()
        return self._right_side(value, op)

    def _compare_op(self, start: int) -> str:
        cursor = self.cursor
        for symbol, op in _COMPARE_SYMBOLS.items():
            if cursor.take(symbol):
                return op
        word = cursor.word()
        op = _COMPARE_WORDS.get(word, "")
        if op == "strict":
            cursor.skip_blanks()
            op = "strict" if cursor.word() == "wildcard" else ""
        if not op:
            cursor.fail(start, "expected ComparisonOp")
        return op

    def _right_side(self, value: ValueNode, op: str) -> Condition:
        if op == "in":
            if self.cursor.peek() == "$":
                return InList(value, self.cursor.list_name())
            return OneOf(value, self._items(value.type))
        if op == "matches":
            return Matches(value, self._regex())
        if op in ("wildcard", "strict"):
            return Wildcard(value, self._wildcard(), op == "strict")
        return Compare(value, op, self._literal(value.type))

    def _literal(self, type_: Type) -> bytes | int:
        if type_ == STRING:
            return self.cursor.string()
        return self.cursor.address() if type_ == IP else self.cursor.integer()

    def _items(self, type_: Type) -> tuple[bytes | tuple[int, int], ...]:
        cursor = self.cursor
        start = cursor.position
        cursor.expect("{")
        items: list[bytes | tuple[int, int]] = []
        cursor.skip_blanks()
        while not cursor.take("}"):
            if len(items) == SET_ITEMS_MAX:
                cursor.fail(start, f"more than {SET_ITEMS_MAX} items")
            if cursor.peek() == ",":
                cursor.fail(cursor.position, "items of a set are separated by blanks", cursor.position + 1)
            if type_ == STRING:
                items.append(cursor.string())
            else:
                items.append(cursor.address_range() if type_ == IP else cursor.integer_range())
            cursor.skip_blanks()
        return tuple(items)

    # Patterns

    def _count_pattern(self, start: int) -> None:
        self.patterns += 1
        if self.patterns > PATTERNS_MAX:
            self.cursor.fail(start, f"more than {PATTERNS_MAX} regular expressions and wildcards")

    def _regex(self) -> str:
        start = self.cursor.position
        pattern = self.cursor.regex()
        self._count_pattern(start)
        try:
            patterns.compile_regex(pattern)
        except ValueError as error:
            self.cursor.fail(start, str(error), self.cursor.position)
        return pattern

    def _wildcard(self) -> bytes:
        start = self.cursor.position
        pattern = self.cursor.quoted_or_raw()
        self._count_pattern(start)
        try:
            patterns.wildcard_parts(pattern)
        except ValueError as error:
            self.cursor.fail(start, str(error), self.cursor.position)
        return pattern

    # Values

    def _value(self, name: str, start: int) -> ValueNode:
        field = fields.find(name, self.phase, with_response=self.with_response)
        base: Field | Call
        if field is not None:
            base = Field(field.name, field.type)
        elif name in FUNCTIONS and not self._unavailable(FUNCTIONS[name]):
            base = self._call(FUNCTIONS[name], start)
        else:
            self.cursor.fail(start, "unknown identifier", self.cursor.position, self._hint(name))
        return self._indexed(base)

    def _unavailable(self, function: Function) -> str:
        if function.values_only and not self.values:
            return f"{function.name}() works in the values of rewrites and redirects only"
        if function.phases and self.phase not in function.phases:
            return f"{function.name}() works in these phases only: {', '.join(sorted(function.phases))}"
        return ""

    def _hint(self, name: str) -> str:
        if name in FUNCTIONS:
            return self._unavailable(FUNCTIONS[name])
        if name in fields.FIELDS:
            return f"{name} exists in {fields.FIELDS[name].direction} phases only"
        close = get_close_matches(name, [*fields.FIELDS, *FUNCTIONS, "any", "all"], 1)
        return f"did you mean {close[0]}?" if close else ""

    def _indexed(self, base: Field | Call) -> ValueNode:
        cursor, type_ = self.cursor, base.type
        path: list[int | bytes | str] = []
        while cursor.peek() == "[":
            start = cursor.position
            cursor.position += 1
            cursor.skip_blanks()
            step = self._step()
            cursor.skip_blanks()
            cursor.expect("]")
            wanted = {int: ("Array",), bytes: ("Map",), str: ("Array", "Map")}[type(step)]
            if type_.kind not in wanted or type_.item is None:
                shown = cursor.text[start : cursor.position]
                cursor.fail(start, f"cannot access index {shown} for type {type_}", cursor.position)
            type_ = type_.item
            path.append(step)
        return Index(base, tuple(path), type_) if path else base

    def _step(self) -> int | bytes | str:
        cursor = self.cursor
        start = cursor.position
        if cursor.take(EACH):
            return EACH
        if cursor.peek() == '"':
            return cursor.string()
        if not cursor.peek().isdigit():
            cursor.fail(start, "expected quoted string or positive integer")
        return cursor.integer()

    # Calls

    def _call(self, function: Function, start: int) -> Call:
        cursor = self.cursor
        self._deeper(cursor.skip_blanks())
        cursor.expect("(")
        args: list[ValueNode] = []
        cursor.skip_blanks()
        while cursor.peek() and cursor.peek() != ")":
            if args:
                cursor.expect(",")
                cursor.skip_blanks()
            args.append(self._checked_argument(function, args))
            cursor.skip_blanks()
        required = sum(not parameter.optional for parameter in function.parameters)
        if len(args) < required:
            cursor.fail(cursor.position, "invalid number of arguments")
        self._close()
        return self._made(function, tuple(args), start)

    def _checked_argument(self, function: Function, before: list[ValueNode]) -> ValueNode:
        cursor, index, start = self.cursor, len(before), self.cursor.position
        if index >= len(function.parameters) and not function.repeats:
            cursor.fail(start, "invalid number of arguments")
        parameter = function.parameters[min(index, len(function.parameters) - 1)]
        arg = self.argument(keep_escapes=function.pattern_parameter == index)
        if arg.many and index > 0:
            cursor.fail(start, "invalid use of map each access operator", cursor.position)
        reason = _argument_reason(parameter, arg, before[0] if before and function.repeats else None)
        if reason:
            kind, text = reason
            cursor.fail(start, f"invalid {kind} of argument #{index}: {text}", cursor.position)
        if function.pattern_parameter == index:
            self._count_pattern(start)
        return arg

    def argument(self, *, keep_escapes: bool = False) -> ValueNode:
        """A field, call or constant, with its indexes."""
        cursor = self.cursor
        start, char = cursor.position, cursor.peek()
        if char == '"' or (char == "r" and cursor.text[start + 1 : start + 2] in ('"', "#")):
            return Literal(cursor.quoted_or_raw(keep_escapes=keep_escapes), STRING)
        if char.isdigit() or char == "-":
            return Literal(cursor.integer(), INT)
        return self._value(cursor.name(), start)

    def _made(self, function: Function, args: tuple[ValueNode, ...], start: int) -> Call:
        if function.once:
            if self.once_used:
                self.cursor.fail(start, f"{function.name}() may only be used once", self.cursor.position)
            self.once_used = True
        try:
            function.make(args)
        except ValueError as error:
            self.cursor.fail(start, f"invalid arguments: {error}", self.cursor.position)
        result = function.result if isinstance(function.result, Type) else function.result(args[0].type)
        return Call(function.name, args, array(result) if args[0].many else result)


def _refuse_at_once(text: str) -> None:
    if not text.strip():
        raise FilterError(text, 0, None, "the expression cannot be blank")
    if len(text) > EXPRESSION_CHARS_MAX:
        raise FilterError(
            text, EXPRESSION_CHARS_MAX, None, f"expression is longer than {EXPRESSION_CHARS_MAX} characters"
        )
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise FilterError(text, error.start, error.end, "unrecognised input") from None


def _fold(items: list[Condition], ops: list[str]) -> Condition:
    """Chains of one operator become one node, tighter operators first."""
    for op in ("and", "xor", "or"):
        groups, rest = [[items[0]]], []
        for item, before in zip(items[1:], ops, strict=True):
            if before == op:
                groups[-1].append(item)
            else:
                groups.append([item])
                rest.append(before)
        items = [group[0] if len(group) == 1 else Logic(op, tuple(group)) for group in groups]
        ops = rest
    return items[0]


def _argument_reason(parameter: Parameter, arg: ValueNode, first: ValueNode | None) -> tuple[str, str] | None:
    """What is wrong with an argument: of kind, type or value; None when nothing is."""
    kind = Kind.LITERAL if isinstance(arg, Literal) else Kind.FIELD
    if parameter.kind not in (Kind.ANY, kind):
        return "kind", f"expected argument of kind {parameter.kind.value}, but got {kind.value}"
    accepted = parameter.types
    if first is not None and accepted == (STRING, "Array"):
        accepted = (first.type,)  # concat joins what is of one type
    if not any(arg.type == one or arg.type.kind == one for one in accepted):
        names = " or ".join(f"{one}<_>" if isinstance(one, str) else str(one) for one in accepted)
        return "type", f"expected value of type {names}, but got {arg.type}"
    refused = parameter.check(arg.value) if isinstance(arg, Literal) else ""
    return ("value", refused) if refused else None
