"""Targets and operators of a rule: text to `Variable` and `Operator`.

Owns  how selectors, patterns, counts and exclusions are written, and the arguments of operators.
Not   reading data files: a callback does.
"""

from collections.abc import Callable
from ipaddress import ip_network

from edgestead.crs import tables
from edgestead.crs.errors import shown
from edgestead.crs.lexer import split_targets
from edgestead.crs.rules import Operator, Variable

TARGETS_MAX = 256  # targets of one rule
PHRASES_MAX = 100_000  # phrases of one operator
ReadData = Callable[[str], str]


def read_targets(text: str) -> tuple[Variable, ...]:
    """``ARGS|!ARGS:id|&REQUEST_HEADERS:Host``. Raises: ValueError."""
    targets = tuple(read_target(part) for part in split_targets(text))
    if len(targets) > TARGETS_MAX:
        raise ValueError(f"more than {TARGETS_MAX} targets")
    return targets


def read_target(text: str) -> Variable:
    """One target. Raises: ValueError for an unknown variable, or a selector where none can be."""
    bare = text.strip()
    excluded, count = bare.startswith("!"), bare.startswith("&")
    name, colon, selector = bare.lstrip("!&").partition(":")
    folded = name.strip().lower()
    if folded not in tables.COLLECTIONS and folded not in tables.SINGLE_VARIABLES:
        raise ValueError(f"unknown variable {shown(name.strip())}")
    if colon and folded in tables.SINGLE_VARIABLES:
        raise ValueError(f"{name} takes no selector")
    if colon and not selector:
        raise ValueError(f"{name} has an empty selector")
    key, pattern = split_selector(selector, xpath=folded == "xml")
    canonical = tables.COLLECTIONS.get(folded) or tables.SINGLE_VARIABLES[folded]
    return Variable(canonical, key, pattern, count, excluded)


def split_selector(text: str, *, xpath: bool = False) -> tuple[str, bool]:
    """(key or pattern, whether it is a pattern); quotes around either are dropped."""
    bare = text.strip()
    if len(bare) > 1 and bare[0] == bare[-1] == "'":
        bare = bare[1:-1]
    if not xpath and len(bare) > 1 and bare[0] == bare[-1] == "/":
        return bare[1:-1], True
    return bare, False


def read_operator(text: str, read_data: ReadData) -> Operator:
    """``@rx ...``, ``!@within ...`` or a bare pattern. `read_data` gives a data file's text by name.

    Raises: ValueError for an unknown operator or an argument that it cannot take.
    """
    negated = text.startswith("!")
    bare = text[1:].lstrip() if negated else text
    if not bare.startswith("@"):
        return Operator("rx", bare, negated)
    word, _, argument = bare[1:].partition(" ")
    name = tables.OPERATORS.get(word.lower())
    if name is None:
        raise ValueError(f"unknown operator {shown('@' + word)}")
    if name not in ("rx", "rxGlobal"):
        argument = argument.strip()
    if argument and name in tables.OPERATORS_WITHOUT_ARGUMENT:
        argument = ""  # ModSecurity ignores it, and rules in the wild have one
    if (
        not argument
        and name not in tables.OPERATORS_WITHOUT_ARGUMENT
        and name not in ("rx", "streq", "within")
    ):
        raise ValueError(f"operator @{name} needs an argument")
    return Operator(name, argument, negated, _phrases(name, argument, read_data))


def _phrases(name: str, argument: str, read_data: ReadData) -> tuple[str, ...]:
    """The operator's phrases; checks the argument of every operator with a fixed syntax."""
    phrases: tuple[str, ...] = ()
    if name in tables.FILE_OPERATORS:
        phrases = tuple(line for file in argument.split() for line in data_lines(read_data(file)))
    elif name == "pm":
        phrases = pm_phrases(argument)
    elif name == "validateByteRange" and "%{" not in argument:
        byte_ranges(argument)
    elif name in tables.NUMERIC_OPERATORS and "%{" not in argument and not _is_number(argument):
        raise ValueError(f"operator @{name} needs a number, not {shown(argument)}")
    networks = argument.split(",") if name == "ipMatch" else phrases if name == "ipMatchFromFile" else ()
    for network in networks:
        ip_network(network.strip(), strict=False)
    if len(phrases) > PHRASES_MAX:
        raise ValueError(f"more than {PHRASES_MAX} phrases")
    return phrases


def pm_phrases(argument: str) -> tuple[str, ...]:
    """The words of ``@pm``. Between two bars bytes may be spelled in hexadecimal: ``A|42 20|C``.

    A space in hexadecimal is part of the word. Bars around anything else are literal.
    """
    words: list[str] = [""]
    parts = argument.replace("\t", " ").split("|")
    place = 0
    while place < len(parts):
        first, *more = parts[place].split(" ")
        words[-1] += first
        words += more
        place += 1
        if place == len(parts):
            break
        octets = _octets(parts[place]) if place + 1 < len(parts) else None
        if octets is None:
            words[-1] += "|"
        else:
            words[-1] += octets
            place += 1
    return tuple(word for word in words if word)


def _octets(text: str) -> str | None:
    """Bytes spelled in pairs of digits, those beyond ASCII escaped; None for anything else."""
    try:
        octets = bytes.fromhex(text)
    except ValueError:
        return None
    return octets.decode("ascii", "surrogateescape") or None


def _is_number(text: str) -> bool:
    digits = text.removeprefix("-")
    return digits.isascii() and digits.isdigit() and len(digits) <= 18


def data_lines(text: str) -> list[str]:
    """The phrases of a data file: one a line, without blank lines and comments."""
    lines = (line.strip() for line in text.split("\n"))
    return [line for line in lines if line and not line.startswith("#")]


def byte_ranges(text: str) -> tuple[tuple[int, int], ...]:
    """``9,10,32-126`` as inclusive pairs. Raises: ValueError."""
    pairs = []
    for part in text.split(","):
        first, _, last = part.strip().partition("-")
        if not all(n.isdigit() and n.isascii() and int(n[:4]) <= 255 for n in (first, last or first)):
            raise ValueError(f"a byte range is numbers from 0 to 255, not {shown(part.strip())}")
        pairs.append((int(first), int(last or first)))
    return tuple(pairs)
