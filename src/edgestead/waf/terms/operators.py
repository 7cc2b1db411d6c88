"""The operators of rules other than regular expressions.

Owns  every other operator of the language, as a test made once from its argument.
Not   rx and rxGlobal (engine), negation, macros (the engine expands them and asks for a test again).

A test is total and linear in the value. What it returns is what rules capture as ``TX:0``, and what events
show. Where the manual is silent the result is that of ModSecurity 3.0.15.

Source: reference manual of ModSecurity v3, "Operators".
"""

import re
from collections.abc import Callable, Sequence
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network

import re2

from edgestead.waf.terms import checksums, libinjection

Test = Callable[[bytes], bytes | None]
Phrases = Sequence[bytes]
PHRASES_PER_PATTERN_MAX = 2_000  # of pmFromFile in one automaton
CANDIDATES_MAX = 10_000  # starts at which a verify… operator looks for a number

# Operators that have nothing to look into here: they never match, and the engine says so at start.
ABSENT = {
    "geoLookup": "there is no database of places",
    "inspectFile": "no program is run for a request",
    "rbl": "no name is looked up for a request",
}
_LETTERS = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
_BAD_PERCENT = re.compile(rb"%(?![0-9A-Fa-f]{2})")
_NUMBER = re.compile(rb"[ \t\n\v\f\r]*([+-]?)0*([0-9]{0,20})")
_INT_MAX, _LONG_MAX = (1 << 31) - 1, (1 << 63) - 1
_RE2 = re2.Options()
_RE2.encoding = re2.Options.Encoding.LATIN1
_RE2.log_errors = False
_RE2.dot_nl = True
_RE2.max_mem = 64 << 20  # thousands of phrases in one automaton


def make_test(name: str, argument: bytes = b"", phrases: Phrases = ()) -> Test:
    """The test of one operator, by its canonical name.

    `argument` has its macros expanded; `phrases` are those of pm, pmFromFile and ipMatchFromFile.

    Raises: ValueError for an argument that the operator cannot take; KeyError for rx, rxGlobal or a name that
    is no operator.
    """
    if name in ABSENT:
        return _never
    return _MAKERS[name](argument, phrases)


def number(text: bytes) -> int:
    """The number that a text begins with, else 0; the nearest that 64 bits hold."""
    if text.isdigit() and len(text) < 19:  # nearly all that rules reckon with
        return int(text)
    found = _NUMBER.match(text)
    if found is None or not found[2]:
        return 0
    return max(min(int(found[1] + found[2]), _LONG_MAX), -_LONG_MAX - 1)


def _int_number(text: bytes) -> int:
    """As `number`, but 0 for what 32 bits do not hold: what @eq compares."""
    value = number(text)
    return value if -_INT_MAX - 1 <= value <= _INT_MAX else 0


def _never(value: bytes) -> bytes | None:
    return None


def _always(argument: bytes, phrases: Phrases) -> Test:
    return lambda value: value


def _none(argument: bytes, phrases: Phrases) -> Test:
    return _never


def _compared(holds: Callable[[int, int], bool]) -> Callable[[bytes, Phrases], Test]:
    def make(argument: bytes, phrases: Phrases) -> Test:
        wanted = number(argument)
        return lambda value: value if holds(number(value), wanted) else None

    return make


def _same_number(argument: bytes, phrases: Phrases) -> Test:
    wanted = _int_number(argument)
    return lambda value: value if _int_number(value) == wanted else None


def _equal(argument: bytes, phrases: Phrases) -> Test:
    return lambda value: value if value == argument else None


def _contains(argument: bytes, phrases: Phrases) -> Test:
    return lambda value: argument if argument in value else None


def _begins(argument: bytes, phrases: Phrases) -> Test:
    return lambda value: argument if value.startswith(argument) else None


def _ends(argument: bytes, phrases: Phrases) -> Test:
    return lambda value: argument if value.endswith(argument) else None


def _within(argument: bytes, phrases: Phrases) -> Test:
    return lambda value: value if value in argument else None


def _contains_word(argument: bytes, phrases: Phrases) -> Test:
    """The argument without adjacent letters; other word characters do not matter."""

    def test(value: bytes) -> bytes | None:
        at = value.find(argument)
        while at >= 0:
            end = at + len(argument)
            if (at == 0 or value[at - 1] not in _LETTERS) and (
                end == len(value) or value[end] not in _LETTERS
            ):
                return argument
            at = value.find(argument, at + 1) if argument else -1
        return None

    return test


def _phrases(argument: bytes, phrases: Phrases) -> Test:
    """Any of the phrases, without regard to ASCII case."""
    words = sorted({phrase.lower() for phrase in phrases if phrase})
    if not words:
        return _never
    chunks = [
        words[at : at + PHRASES_PER_PATTERN_MAX] for at in range(0, len(words), PHRASES_PER_PATTERN_MAX)
    ]
    searches = [
        re2.compile(b"(?i)" + b"|".join(_literal(word) for word in chunk), _RE2).search for chunk in chunks
    ]

    def test(value: bytes) -> bytes | None:
        for search in searches:
            if (found := search(value)) is not None:
                return bytes(found[0])
        return None

    return test


def _literal(word: bytes) -> bytes:
    return b"".join(b"\\x{%02x}" % byte for byte in word)


def _addresses(argument: bytes, phrases: Phrases) -> Test:
    names = [part.strip() for part in argument.split(b",")] if not phrases else list(phrases)
    networks = [ip_network(name.decode("ascii"), strict=False) for name in names if name]
    by_family: dict[int, list[IPv4Network | IPv6Network]] = {4: [], 6: []}
    for network in networks:
        by_family[network.version].append(network)

    def test(value: bytes) -> bytes | None:
        try:
            address = ip_address(value.decode("ascii"))
        except ValueError:
            return None
        return value if any(address in network for network in by_family[address.version]) else None

    return test


def _byte_range(argument: bytes, phrases: Phrases) -> Test:
    allowed: set[int] = set()
    for part in argument.split(b","):
        first, dash, last = part.strip().partition(b"-")
        low, high = int(first), int(last) if dash else int(first)
        if not 0 <= low <= high <= 255:
            raise ValueError(f"no range of bytes: {part.decode('latin-1')}")
        allowed.update(range(low, high + 1))
    table = bytes(sorted(allowed))

    def test(value: bytes) -> bytes | None:
        outside = value.translate(None, table)
        return outside or None

    return test


def _utf8(argument: bytes, phrases: Phrases) -> Test:
    def test(value: bytes) -> bytes | None:
        if value.isascii():
            return None
        try:
            value.decode("utf-8")
        except UnicodeDecodeError as error:
            return value[error.start : error.end + 1]
        return None

    return test


def _url_encoding(argument: bytes, phrases: Phrases) -> Test:
    def test(value: bytes) -> bytes | None:
        found = _BAD_PERCENT.search(value)
        return None if found is None else value[found.start() : found.start() + 3]

    return test


def _verified(check: Callable[[bytes], bool]) -> Callable[[bytes, Phrases], Test]:
    """Numbers that look like the argument, a pattern, and whose check digits are right."""

    def make(argument: bytes, phrases: Phrases) -> Test:
        try:
            search = re2.compile(argument, _RE2).search
        except re2.error as error:
            raise ValueError(f"bad pattern: {error}") from None

        def test(value: bytes) -> bytes | None:
            at = 0
            for _ in range(CANDIDATES_MAX):
                found = search(value, at)
                if found is None:
                    return None
                if check(found[0]):
                    return bytes(found[0])
                at = found.start() + 1
            return None

        return test

    return make


def _sql_injection(argument: bytes, phrases: Phrases) -> Test:
    return libinjection.sql_injection


def _cross_site(argument: bytes, phrases: Phrases) -> Test:
    return libinjection.cross_site_scripting


_MAKERS: dict[str, Callable[[bytes, Phrases], Test]] = {
    "beginsWith": _begins,
    "contains": _contains,
    "containsWord": _contains_word,
    "detectSQLi": _sql_injection,
    "detectXSS": _cross_site,
    "endsWith": _ends,
    "eq": _same_number,
    "ge": _compared(lambda value, wanted: value >= wanted),
    "gt": _compared(lambda value, wanted: value > wanted),
    "ipMatch": _addresses,
    "ipMatchFromFile": _addresses,
    "le": _compared(lambda value, wanted: value <= wanted),
    "lt": _compared(lambda value, wanted: value < wanted),
    "noMatch": _none,
    "pm": _phrases,
    "pmFromFile": _phrases,
    "streq": _equal,
    "strmatch": _contains,
    "unconditionalMatch": _always,
    "validateByteRange": _byte_range,
    "validateUrlEncoding": _url_encoding,
    "validateUtf8Encoding": _utf8,
    "verifyCC": _verified(checksums.is_card),
    "verifyCPF": _verified(checksums.is_cpf),
    "verifySSN": _verified(checksums.is_ssn),
    "verifySVNR": _verified(checksums.is_svnr),
    "within": _within,
}
OPERATORS = frozenset((*_MAKERS, *ABSENT))
