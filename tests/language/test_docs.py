"""The reference pages say what is true."""

from pathlib import Path

import pytest

from edgestead.language import FUNCTIONS, compile_filter, compile_value, types

from .conftest import FILTERS, VALUES

REFERENCE = Path(__file__).parents[2] / "docs/reference"
EXPRESSIONS = (REFERENCE / "expressions.md").read_text()


def blocks(kind: str) -> list[str]:
    texts = EXPRESSIONS.split(f"```{kind}\n")[1:]
    return [line for text in texts for line in text.split("```")[0].splitlines()]


@pytest.mark.parametrize("text", blocks("text"))
def test_every_example_compiles(text: str) -> None:
    compile_filter(text, FILTERS)


@pytest.mark.parametrize("text", blocks("value"))
def test_every_value_example_compiles(text: str) -> None:
    compile_value(text, VALUES)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_function_is_listed(name: str) -> None:
    assert f"`{name}(" in EXPRESSIONS


@pytest.mark.parametrize(
    "limit",
    [
        types.EXPRESSION_CHARS_MAX,
        types.NESTING_DEPTH_MAX,
        types.PATTERNS_MAX,
        types.SET_ITEMS_MAX,
        types.REGEX_INSTRUCTIONS_MAX,
        types.VALUE_BYTES_MAX,
        types.VALUE_ITEMS_MAX,
    ],
)
def test_every_limit_is_listed(limit: int) -> None:
    assert f"| {limit:,}" in EXPRESSIONS.split("## Limits")[1]
