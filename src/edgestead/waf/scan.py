"""One look at all values for all patterns at once: which rules may match.

Owns  which links gate their rule, how their patterns go into one Hyperscan database, candidates of a text.
Asks  `hyperscan`, where it is installed.
Tells `engine` candidates: always more than match, never fewer.
Not   keeping the compiled database (the process does: `bytes_of`, `load`); exact matching (`run`).

A link gates its rule when it wants one of some texts or patterns in values of the request. Words of lists are
literals in the same database, where thousands of them cost next to nothing.

Some patterns cost a hundred times the others, as they begin with nothing that can be searched for. RE2 alone
is faster on those, so they are left out, found by measuring each once: a wrong guess costs time, no match.

Source: Hyperscan developer's reference, "Compiling Patterns"; design note 0017.
"""

from collections.abc import Sequence
from hashlib import sha256
from importlib.metadata import version
from time import perf_counter
from typing import Any, Final, NamedTuple

import msgspec

from .compile import CompiledRule, Link, RuleSet

try:
    import hyperscan
except ImportError:  # no wheel for this machine: every rule is run, with the same outcome
    hyperscan = None  # type: ignore[assignment]

FORMAT: Final = 1  # of what `bytes_of` makes
PATTERN_BYTES_MAX = 32_768
SLOW_NS_PER_BYTE = 6.0  # a pattern that costs more on plain words is left to RE2
_LITERAL_OPERATORS = frozenset("beginsWith contains containsWord endsWith strmatch streq".split())
_PHRASE_OPERATORS = frozenset(("pm", "pmFromFile"))
# Variables whose values are scanned, by the text they are scanned with.
GROUPS: dict[str, tuple[str, ...]] = {
    "arguments": tuple(
        """ARGS ARGS_NAMES ARGS_GET ARGS_GET_NAMES ARGS_POST ARGS_POST_NAMES REQUEST_COOKIES
        REQUEST_COOKIES_NAMES FILES FILES_NAMES MULTIPART_PART_HEADERS XML REQUEST_FILENAME REQUEST_BASENAME
        PATH_INFO MULTIPART_FILENAME MULTIPART_NAME""".split()
    ),
    "head": tuple(
        """REQUEST_HEADERS REQUEST_HEADERS_NAMES REQUEST_LINE REQUEST_URI REQUEST_URI_RAW QUERY_STRING
        REQUEST_METHOD REQUEST_PROTOCOL""".split()
    ),
    "body": ("REQUEST_BODY",),
    "response": ("RESPONSE_HEADERS", "RESPONSE_HEADERS_NAMES", "RESPONSE_BODY"),
}
_GROUP_OF = {variable: group for group, variables in GROUPS.items() for variable in variables}


class Entry(NamedTuple):
    """One expression: its text and flags, and the gate it belongs to."""

    expression: bytes
    flags: int
    gate: int


class Gate(NamedTuple):
    """A rule's link whose patterns are scanned for, and the groups of values it looks at."""

    phase: int
    place: int
    groups: frozenset[str]
    link: Link


class Stored(msgspec.Struct, frozen=True, array_like=True):
    """`left_out` are places in the list of gates that RE2 serves better, or Hyperscan cannot take."""

    format: int
    key: str
    left_out: tuple[int, ...]
    owners: tuple[int, ...]
    digest: bytes
    database: bytes


def gates_of(rule_set: RuleSet) -> list[Gate]:
    """At most one gate for each rule: its first link that can be one."""
    gates = []
    for rule in rule_set.rules:
        for link in rule.links:
            groups = _groups(link)
            if groups and _is_gate(link):
                gates.append(Gate(rule.phase, rule.place, groups, link))
                break
    return gates


def _groups(link: Link) -> frozenset[str]:
    """Where the link's values are scanned; empty when some of them are not."""
    found = set()
    for target in link.targets.included:
        if target.count or target.variable not in _GROUP_OF:
            return frozenset()
        found.add(_GROUP_OF[target.variable])
    return frozenset(found)


def _is_gate(link: Link) -> bool:
    if link.negated or link.argument.constant is None:
        return False
    if link.pattern is not None:
        return True
    if link.operator in _PHRASE_OPERATORS:
        return bool(link.phrases)
    return link.operator in _LITERAL_OPERATORS and bool(link.argument.constant)


def available() -> bool:
    return hyperscan is not None


def key_of(rule_set: RuleSet) -> str:
    """What a compiled database is for: patterns, flags, and the version and machine that made it."""
    digest = sha256(b"%d" % FORMAT)
    if hyperscan is not None:
        digest.update(version("hyperscan").encode())
    for gate in gates_of(rule_set):
        for expression, flags in _expressions(gate.link):
            digest.update(b"%d %d " % (len(expression), flags) + expression)
    return digest.hexdigest()


def _expressions(link: Link) -> list[tuple[bytes, int]]:
    if link.pattern is not None:
        return [(link.pattern.wide, _RX_FLAGS)]
    words = link.phrases if link.operator in _PHRASE_OPERATORS else (link.argument.constant or b"",)
    caseless = _CASELESS if link.operator in _PHRASE_OPERATORS else 0
    return [(_literal(word), _WORD_FLAGS | caseless) for word in words if word]


def _literal(word: bytes) -> bytes:
    return b"".join(b"\\x%02x" % byte for byte in word)


# Flags of Hyperscan by value, so that a key can be made without it.
_CASELESS, _DOTALL, _MULTILINE, _SINGLE, _EMPTY, _PREFILTER = 1, 2, 4, 8, 16, 128
_RX_FLAGS = _DOTALL | _MULTILINE | _SINGLE | _EMPTY
_WORD_FLAGS = _DOTALL | _SINGLE


class Scanner:
    """The compiled database with its gates. One thread at a time: the scratch space is one."""

    def __init__(self, rule_set: RuleSet, stored: Stored) -> None:
        gates = gates_of(rule_set)
        left_out = set(stored.left_out)
        self.key = stored.key
        self._owners = [gates[owner] for owner in stored.owners]
        self._gated = {
            (gate.phase, gate.place) for number, gate in enumerate(gates) if number not in left_out
        }
        self._database: Any = hyperscan.loadb(stored.database, mode=hyperscan.HS_MODE_BLOCK)
        self._database.scratch = hyperscan.Scratch(self._database)

    def gates(self, rule: CompiledRule) -> bool:
        return (rule.phase, rule.place) in self._gated

    def candidates(self, text: bytes, group: str) -> set[tuple[int, int]]:
        """(phase, place) of the rules that may match values of the group."""
        met: list[int] = []

        def note(owner: int, start: int, end: int, flags: int, context: object) -> None:
            met.append(owner)

        self._database.scan(text, match_event_handler=note)
        owners = self._owners
        found = set()
        for owner in met:
            gate = owners[owner]
            if group in gate.groups:
                found.add((gate.phase, gate.place))
        return found


def compile_database(rule_set: RuleSet) -> bytes:
    """The database as bytes, for `load`. Takes tens of seconds of one core.

    Raises: RuntimeError where Hyperscan is not installed.
    """
    if hyperscan is None:
        raise RuntimeError("hyperscan is not installed")
    entries: list[Entry] = []
    left_out: list[int] = []
    gates = gates_of(rule_set)
    for number, gate in enumerate(gates):
        expressions = _expressions(gate.link)
        if gate.link.pattern is not None and not _pays(*expressions[0]):
            left_out.append(number)
            continue
        entries += [Entry(expression, flags, number) for expression, flags in expressions]
    owners = [entry.gate for entry in entries]
    database = hyperscan.dumpb(_compiled(entries))
    digest = sha256(database).digest()
    stored = Stored(FORMAT, key_of(rule_set), tuple(left_out), tuple(owners), digest, database)
    return msgspec.msgpack.encode(stored)


def size_of(rule_set: RuleSet) -> int:
    """How many patterns there are to compile."""
    return sum(len(_expressions(gate.link)) for gate in gates_of(rule_set))


def _compiled(entries: Sequence[Entry]) -> Any:
    database = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
    database.compile(
        expressions=[entry.expression for entry in entries],
        ids=list(range(len(entries))),
        elements=len(entries),
        flags=[entry.flags for entry in entries],
    )
    return database


_PLAIN = b"the new order of red summer shoes has 2 items and a note for you\n" * 32


def _pays(expression: bytes, flags: int) -> bool:
    """Whether Hyperscan takes a pattern, and is fast enough with it."""
    if len(expression) > PATTERN_BYTES_MAX:
        return False
    try:
        database = _compiled([Entry(expression, flags, 0)])
        database.scratch = hyperscan.Scratch(database)
    except hyperscan.HyperscanError:
        return False
    times = []
    for _ in range(5):
        start = perf_counter()
        database.scan(_PLAIN, match_event_handler=lambda *_: None)
        times.append(perf_counter() - start)
    return min(times) * 1e9 / len(_PLAIN) < SLOW_NS_PER_BYTE


def load(rule_set: RuleSet, stored: bytes) -> Scanner:
    """The scanner from bytes of `compile_database`.

    Raises: ValueError when they are damaged or made for other rules.
    """
    decoded = check(rule_set, stored)
    try:
        return Scanner(rule_set, decoded)
    except hyperscan.HyperscanError as error:
        raise ValueError(f"unusable database of patterns: {error}") from None


def check(rule_set: RuleSet, stored: bytes) -> Stored:
    """Whether `load` would take it. Raises: ValueError."""
    try:
        decoded = msgspec.msgpack.decode(stored, type=Stored)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"damaged database of patterns: {error}") from None
    if decoded.format != FORMAT or decoded.key != key_of(rule_set):
        raise ValueError("the database of patterns is of other rules")
    if sha256(decoded.database).digest() != decoded.digest:
        raise ValueError("damaged database of patterns")
    return decoded


class NoScanner:
    """Where there is no Hyperscan: nothing is gated."""

    key = ""

    def gates(self, rule: CompiledRule) -> bool:
        return False

    def candidates(self, text: bytes, group: str) -> set[tuple[int, int]]:
        return set()
