"""One look at all values for all patterns at once: which rules may match.

Owns  the Hyperscan databases of a rule set, as bytes and at work; candidates of a text.
Not   keeping the bytes (the process does); exact matching (`run`).

Words of lists are literals in the same database, where thousands of them cost next to nothing. Some patterns
cost a hundred times the others, as they begin with nothing that can be searched for. RE2 alone is faster on
those, so they are left out, found by measuring each once: a wrong guess costs time, no match. A Hyperscan
that misses a known match is not used at all.

A large value is scanned in pieces, with a database of its own kind: nobody waits for 128 KB at 30 to 100 ns a
byte. It costs a sixth more, so all that is short is looked at at once.

Source: Hyperscan developer's reference, "Compiling Patterns"; design note 0017.
"""

from collections.abc import Generator, Sequence
from functools import lru_cache
from hashlib import sha256
from importlib.metadata import version
from time import perf_counter
from typing import Any, Final

import msgspec

from edgestead.waf.limits import SLICE_BYTES
from edgestead.waf.load.compile import CompiledRule, RuleSet
from edgestead.waf.plan.gates import (
    ARGUMENTS,
    FAMILIES,
    HEAD,
    RESPONSE,
    RX_FLAGS,
    Candidates,
    Gate,
    expressions,
    gates_of,
)

try:
    import hyperscan as _installed
except ImportError:  # no wheel for this machine: every rule is run, with the same outcome
    _installed = None  # type: ignore[assignment]
hyperscan: Any = _installed

FORMAT: Final = 4  # of what `compile_database` makes
PATTERN_BYTES_MAX = 32_768  # the longest line of a release has 6,600
SLOW_NS_PER_BYTE = 6.0  # a pattern that costs more on plain words is left to RE2
# Beside the one that every look at a byte costs; measured on 128 KB of words of SQL, the worst found.
UNITS_PER_BYTE: Final = {ARGUMENTS: 9, HEAD: 3, RESPONSE: 9}
STREAMED: Final = (ARGUMENTS, RESPONSE)  # families with values that are longer than a head may be
_PLAIN = b"the new order of red summer shoes has 2 items and a note for you\n" * 32
# Vectorscan 5.4.12 does not find this beyond the first 64 bytes: found by tests/waf/test_regression.py.
_PROBE: Final = rb"@.+=[\t-\r ]*\([\t-\r ]*select", b"@" + b"p" * 200 + b"=(select"
Expression = tuple[bytes, int]


class Family(msgspec.Struct, frozen=True, array_like=True):
    """One database; `owners` are places in the list of gates, by pattern. `streamed` is the same for values
    that are scanned in pieces, of the families of `STREAMED`."""

    owners: tuple[int, ...]
    digest: bytes
    database: bytes
    streamed: bytes


class Stored(msgspec.Struct, frozen=True, array_like=True):
    """`left_out` are places in the list of gates that RE2 serves better, or Hyperscan cannot take."""

    format: int
    key: str
    left_out: tuple[int, ...]
    families: tuple[Family, ...]


@lru_cache(maxsize=1)
def state() -> str:
    """Empty when there is a Hyperscan to rely on, else what is wrong with it."""
    if hyperscan is None:
        return "hyperscan is not installed"
    pattern, text = _PROBE
    met: list[int] = []
    database = _compiled([(pattern, RX_FLAGS)])
    database.scratch = hyperscan.Scratch(database)
    database.scan(text, match_event_handler=lambda *_: met.append(1))
    if met:
        return ""
    return (
        f"hyperscan {version('hyperscan')} misses what it should find and is not used: "
        "its library, Vectorscan 5.4.12, is at fault; 0.7.9 to 0.7.21 have 5.4.11"
    )


def available() -> bool:
    return not state()


def key_of(rule_set: RuleSet) -> str:
    """What the databases are for: patterns, flags, and the version that makes them."""
    digest = sha256(b"%d" % FORMAT)
    if hyperscan is not None:
        digest.update(version("hyperscan").encode())
    for gate in gates_of(rule_set):
        digest.update(repr(sorted(gate.families)).encode())
        for expression, flags in expressions(gate.link):
            digest.update(b"%d %d " % (len(expression), flags) + expression)
    return digest.hexdigest()


def size_of(rule_set: RuleSet) -> int:
    """How many patterns there are to compile."""
    return sum(len(expressions(gate.link)) * len(gate.families) for gate in gates_of(rule_set))


class Scanner:
    """The databases at work. One thread at a time: the scratch space is one."""

    def __init__(self, rule_set: RuleSet, stored: Stored) -> None:
        gates = gates_of(rule_set)
        left_out = set(stored.left_out)
        self.key = stored.key
        self._gates = {
            (gate.phase, gate.place): gate for number, gate in enumerate(gates) if number not in left_out
        }
        self._families: dict[str, tuple[Any, list[Gate]]] = {}
        self._streamed: dict[str, Any] = {}
        for family, kept in zip(FAMILIES, stored.families, strict=True):
            if kept.owners:
                database = _loaded(kept.database, hyperscan.HS_MODE_BLOCK)
                self._families[family] = database, [gates[owner] for owner in kept.owners]
            if kept.owners and kept.streamed:
                self._streamed[family] = _loaded(kept.streamed, hyperscan.HS_MODE_STREAM)

    def gate(self, rule: CompiledRule) -> Gate | None:
        """The rule's gate: without a candidate it cannot match."""
        return self._gates.get((rule.phase, rule.place))

    def candidates(self, text: bytes, family: str, group: str) -> Candidates:
        """The rules of a family that may match values of the group."""
        if family not in self._families:
            return set()
        database, owners = self._families[family]
        met: list[int] = []

        def note(owner: int, start: int, end: int, flags: int, context: object) -> None:
            met.append(owner)

        database.scan(text, match_event_handler=note)
        return _of_group(met, owners, group)

    def in_portions(self, value: bytes, family: str, group: str) -> Generator[int, None, Candidates]:
        """As `candidates`, of one value, however long; tells the units of work of each portion."""
        if family not in self._streamed:
            return self.candidates(value, family, group)
        owners = self._families[family][1]
        met: list[int] = []

        def note(owner: int, start: int, end: int, flags: int, context: object) -> None:
            met.append(owner)

        with self._streamed[family].stream(match_event_handler=note) as stream:
            for at in range(0, len(value), SLICE_BYTES):
                stream.scan(value[at : at + SLICE_BYTES])
                yield SLICE_BYTES * UNITS_PER_BYTE[family]
        return _of_group(met, owners, group)


def _of_group(met: Sequence[int], owners: Sequence[Gate], group: str) -> Candidates:
    gates = [owners[owner] for owner in met]
    return {(gate.phase, gate.place) for gate in gates if group in gate.sources}


def _loaded(stored: bytes, mode: int) -> Any:
    database = hyperscan.loadb(stored, mode=mode)
    database.scratch = hyperscan.Scratch(database)
    return database


class NoScanner:
    """Where there is no Hyperscan: nothing is gated."""

    key = ""

    def gate(self, rule: CompiledRule) -> Gate | None:
        return None

    def candidates(self, text: bytes, family: str, group: str) -> Candidates:
        return set()

    def in_portions(self, value: bytes, family: str, group: str) -> Generator[int, None, Candidates]:
        yield 0
        return set()


def compile_database(rule_set: RuleSet) -> bytes:
    """The databases as bytes, for `load`. Takes tens of seconds of one core.

    Raises: RuntimeError where there is no Hyperscan to rely on.
    """
    if not available():
        raise RuntimeError(state())
    gates = gates_of(rule_set)
    left_out = [
        number
        for number, gate in enumerate(gates)
        if gate.link.pattern is not None and not _pays(expressions(gate.link)[0])
    ]
    families = []
    for family in FAMILIES:
        wanted: list[Expression] = []
        owners: list[int] = []
        for number, gate in enumerate(gates):
            if family in gate.families and number not in left_out:
                found = expressions(gate.link)
                wanted += found
                owners += [number] * len(found)
        database = hyperscan.dumpb(_compiled(wanted)) if wanted else b""
        streamed = b""
        if wanted and family in STREAMED:
            streamed = hyperscan.dumpb(_compiled(wanted, hyperscan.HS_MODE_STREAM))
        digest = sha256(database + streamed).digest()
        families.append(Family(tuple(owners), digest, database, streamed))
    return msgspec.msgpack.encode(Stored(FORMAT, key_of(rule_set), tuple(left_out), tuple(families)))


def _compiled(wanted: Sequence[Expression], mode: int | None = None) -> Any:
    database = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK if mode is None else mode)
    database.compile(
        expressions=[expression for expression, _ in wanted],
        ids=list(range(len(wanted))),
        elements=len(wanted),
        flags=[flags for _, flags in wanted],
    )
    return database


def _pays(expression: Expression) -> bool:
    """Whether Hyperscan takes a pattern, and is fast enough with it."""
    if len(expression[0]) > PATTERN_BYTES_MAX:
        return False
    try:
        database = _compiled([expression])
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
    if not available():
        raise ValueError(state())
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
    if any(sha256(each.database + each.streamed).digest() != each.digest for each in decoded.families):
        raise ValueError("damaged database of patterns")
    return decoded
