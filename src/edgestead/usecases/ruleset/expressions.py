"""Expressions inside of rules: the checks that ask the language.

Owns  which member is a filter, a value or a characteristic, and how a refusal of the language is answered.
Not   grammar and types.
"""

from collections.abc import Callable
from typing import Any

from edgestead.language import BOOL, INT, IP, STRING, FilterError, Type, compile_filter, compile_value
from edgestead.language.errors import EXCERPT_CHARACTERS_MAX
from edgestead.language.fields import VISITOR
from edgestead.model.refusals.ruleset import ExpressionBlank, ExpressionRefused
from edgestead.usecases.ruleset.shapes import Place

_COUNTABLE = (STRING, INT, IP, BOOL, Type("Array", STRING))
_EXPRESSION_MEMBERS = frozenset(
    ("expression", "counting_expression", "username_expression", "password_expression", "key")
)
_REGEX_WORDS = ("matches", "~", "regex_replace")
Compile = Callable[[str, str], object]


def filter_expression(value: Any, place: Place) -> str:
    """A rule's condition."""
    return _checked(value, place, compile_filter)


def counting_expression(value: Any, place: Place) -> str:
    """A rate limit's own condition, which also sees the response. Empty is the rule's expression."""
    if value == "":
        return ""
    return _checked(value, place, lambda text, phase: compile_filter(text, phase, with_response=True))


def value_expression(value: Any, place: Place) -> str:
    """What a rewrite or redirect computes: a String."""
    return _checked(value, place, compile_value)


def characteristic(value: Any, place: Place) -> str:
    """What a rate limit counts by: any value that the phase knows."""
    return value if value == VISITOR else _checked(value, place, _compile_countable)


def regex_uses(value: Any) -> int:
    """How often the expressions in a JSON value use regular expressions, at most.

    By their words alone: also where they stand inside of a string. Parsing every rule of a ruleset again to
    add one would take longer than all the rest of the write.
    """
    if isinstance(value, list):
        return sum(map(regex_uses, value))
    if not isinstance(value, dict):
        return 0
    uses = 0
    for name, one in value.items():
        if isinstance(one, str) and name in _EXPRESSION_MEMBERS:
            uses += sum(map(one.count, _REGEX_WORDS))
        else:
            uses += regex_uses(one)
    return uses


def _compile_countable(text: str, phase: str) -> None:
    for result in _COUNTABLE[:-1]:
        try:
            compile_value(text, phase, result=result)
            return
        except FilterError as error:
            if not error.reason.startswith("expected value of type"):
                raise
    compile_value(text, phase, result=_COUNTABLE[-1])


def _checked(value: Any, place: Place, compile_: Compile) -> str:
    if not isinstance(value, str):
        place.mistyped("a string")
    if not value.strip():
        raise ExpressionBlank(field=place.field, pointer=place.pointer)
    try:
        compile_(value, place.phase)
    except FilterError as error:
        shown = value if len(value) <= EXCERPT_CHARACTERS_MAX else value[:EXCERPT_CHARACTERS_MAX] + "…"
        raise ExpressionRefused(
            value=shown, field=place.field, reason=str(error), pointer=place.pointer
        ) from None
    return value
