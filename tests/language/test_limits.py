"""The limits of expressions and of the values they see."""

import pytest

from edgestead.language import FilterError, LazyView, compile_filter, fixed_view, loader_table, parse_filter
from edgestead.language.types import (
    EXPRESSION_CHARS_MAX,
    NESTING_DEPTH_MAX,
    PATTERNS_MAX,
    VALUE_BYTES_MAX,
    VALUE_ITEMS_MAX,
    clip,
)

from .conftest import FILTERS

# how an expression of that depth is written
NESTINGS = {
    "parentheses": lambda depth: "(" * depth + "ssl" + ")" * depth,
    "not": lambda depth: "not " * depth + "ssl",
    "bangs": lambda depth: "!" * depth + "ssl",
    "calls": lambda depth: "lower(" * depth + "http.host" + ")" * depth + ' eq "a"',
    "mixed": lambda depth: "not (" * (depth // 2) + "ssl" + ")" * (depth // 2),
    "logic": lambda depth: "(ssl and " * depth + "ssl" + ")" * depth,
}


@pytest.mark.parametrize("kind", NESTINGS)
def test_nesting_to_the_limit_parses_prints_and_runs(kind: str) -> None:
    text = NESTINGS[kind](NESTING_DEPTH_MAX)

    compiled = compile_filter(text, FILTERS)

    assert compiled(fixed_view({"http.host": b"A", "ssl": True}))
    assert parse_filter(str(compiled.tree), FILTERS) == compiled.tree


@pytest.mark.parametrize("kind", NESTINGS)
def test_nesting_beyond_the_limit_is_refused(kind: str) -> None:
    with pytest.raises(FilterError, match="maximum nesting depth exceeded"):
        compile_filter(NESTINGS[kind](NESTING_DEPTH_MAX + 2), FILTERS)


def test_quantifiers_nest_no_deeper_than_anything_else() -> None:
    with pytest.raises(FilterError, match="maximum nesting depth exceeded"):
        compile_filter("any(" * 200, FILTERS)


def test_the_longest_expression_passes_and_one_more_character_does_not() -> None:
    text = "ssl" + " or ssl" * ((EXPRESSION_CHARS_MAX - 3) // 7)
    text += " " * (EXPRESSION_CHARS_MAX - len(text))

    assert compile_filter(text, FILTERS)(fixed_view({"ssl": True}))
    with pytest.raises(FilterError, match=f"longer than {EXPRESSION_CHARS_MAX}"):
        compile_filter(text + " ", FILTERS)


@pytest.mark.parametrize("condition", ['http.host ~ "a"', 'http.host wildcard "a"'])
def test_patterns_are_counted(condition: str) -> None:
    compile_filter(" or ".join([condition] * PATTERNS_MAX), FILTERS)
    with pytest.raises(FilterError, match=f"more than {PATTERNS_MAX} regular"):
        compile_filter(" or ".join([condition] * (PATTERNS_MAX + 1)), FILTERS)


def test_a_set_of_as_many_items_as_fit_is_found_in() -> None:
    numbers = " ".join(map(str, range(0, 1_600, 2)))

    even = compile_filter(f"ip.src.asnum in {{{numbers}}}", FILTERS)

    assert [n for n in range(-1, 9) if even(fixed_view({"ip.src.asnum": n}))] == [0, 2, 4, 6, 8]


def test_a_regular_expression_has_a_memory_bound() -> None:
    with pytest.raises(FilterError, match="regex parse error: pattern too large"):
        compile_filter('http.host ~ "' + "[ac-eg-i]{1000}" * 60 + '"', FILTERS)


LARGE = ["[a-z]{0,500}" * 10, "(?i)" + "[a-z]{0,500}" * 10, "[ac-eg-i]{1000}" * 2]
FITTING = ["a" * 4_000, "(?i)" + "a" * 4_000, "|".join(f"word{n}" for n in range(450)), "[a-z]{0,1000}"]


@pytest.mark.parametrize("pattern", LARGE)
def test_a_regular_expression_has_a_bound_of_instructions(pattern: str) -> None:
    with pytest.raises(FilterError, match=r"regex parse error: pattern too large - .* more than 5000"):
        compile_filter(f'http.host ~ "{pattern}"', FILTERS)


@pytest.mark.parametrize("pattern", FITTING)
def test_a_long_pattern_without_nested_repetitions_fits(pattern: str) -> None:
    assert compile_filter(f'http.host ~ "{pattern}"', FILTERS)


HOSTILE = [b"a" * (VALUE_BYTES_MAX - 1) + b"!", b"ab" * 60_000, b"*" * 100_000]
EXPENSIVE = [
    'http.host ~ "(a+)+$"',
    'http.host ~ "(a|aa)+b!"',
    'http.host ~ "(.*)*x"',
    'http.host wildcard "*a*a*a*a*a*a*a*a*b*!"',
    'http.host strict wildcard "*ab*ab*ab*ba*c"',
]


@pytest.mark.timeout(60)
@pytest.mark.parametrize("text", EXPENSIVE)
def test_no_value_makes_a_pattern_slow(text: str) -> None:
    compiled = compile_filter(text, FILTERS)

    assert not any(compiled(fixed_view({"http.host": value})) for value in HOSTILE)


def test_a_long_value_is_cut_before_anything_looks_at_it() -> None:
    view = fixed_view({"http.host": b"a" * VALUE_BYTES_MAX + b"end"})

    assert compile_filter(f"len(http.host) == {VALUE_BYTES_MAX}", FILTERS)(view)
    assert not compile_filter('http.host contains "end"', FILTERS)(view)


def test_arrays_and_maps_are_cut_at_every_depth() -> None:
    names = [b"n%d" % n for n in range(VALUE_ITEMS_MAX + 5)]

    assert clip(names) == names[:VALUE_ITEMS_MAX]
    assert clip({b"a": names}) == {b"a": names[:VALUE_ITEMS_MAX]}
    assert list(clip(dict.fromkeys(names, 1))) == names[:VALUE_ITEMS_MAX]
    assert clip([b"a" * (VALUE_BYTES_MAX + 1)]) == [b"a" * VALUE_BYTES_MAX]


def test_a_field_is_loaded_once_and_only_when_asked_for() -> None:
    asked: list[str] = []

    def host(request: str) -> bytes:
        asked.append(request)
        return request.encode()

    def never(request: str) -> bytes:
        raise AssertionError(request)

    view = LazyView("a.example", loader_table({"http.host": host, "http.referer": never}))
    rule = compile_filter('http.host eq "a.example" or http.host eq "b" or http.referer eq "c"', FILTERS)

    assert rule(view)
    assert rule(view)
    assert asked == ["a.example"]


def test_a_loader_for_an_unknown_field_is_a_mistake() -> None:
    with pytest.raises(KeyError):
        loader_table({"http.hots": lambda request: b""})
