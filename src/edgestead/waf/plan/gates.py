"""Which rules a scan can hold back, and which values it has to look at for them.

Owns  gates, the groups of values, the texts of expressions.
Not   Hyperscan (`scan`).

A link gates its rule when it wants one of some texts or patterns in values of the request. Rules on arguments
are many and their patterns dear, those on headers few: so each family of values has a database of its own. A
rule that looks at both is in both.
"""

from typing import Final, NamedTuple

from edgestead.waf.load.compile import CompiledRule, Link, RuleSet
from edgestead.waf.run.suspects import SOFT_KINDS
from edgestead.waf.terms.variants import SEPARATOR

ARGUMENTS, BODY, HEAD, RESPONSE = "arguments", "body", "head", "response"
FAMILY_OF: Final = {ARGUMENTS: ARGUMENTS, BODY: ARGUMENTS, HEAD: HEAD, RESPONSE: RESPONSE}
FAMILIES: Final = (ARGUMENTS, HEAD, RESPONSE)
ARGUMENT_VARIABLES: Final = frozenset(
    """ARGS ARGS_NAMES ARGS_GET ARGS_GET_NAMES ARGS_POST ARGS_POST_NAMES REQUEST_COOKIES
    REQUEST_COOKIES_NAMES FILES FILES_NAMES MULTIPART_PART_HEADERS MULTIPART_FILENAME MULTIPART_NAME XML
    REQUEST_FILENAME REQUEST_BASENAME PATH_INFO""".split()
)
_HEAD = frozenset(
    """REQUEST_HEADERS REQUEST_HEADERS_NAMES REQUEST_LINE REQUEST_URI REQUEST_URI_RAW QUERY_STRING
    REQUEST_METHOD REQUEST_PROTOCOL""".split()
)
_RESPONSE = frozenset(("RESPONSE_HEADERS", "RESPONSE_HEADERS_NAMES", "RESPONSE_BODY"))
_LITERAL_OPERATORS = frozenset("beginsWith contains containsWord endsWith strmatch streq".split())
_PHRASE_OPERATORS = frozenset(("pm", "pmFromFile"))
# Flags of Hyperscan by value, so that a key can be made without it.
_CASELESS, _DOTALL, _MULTILINE, _SINGLE, _EMPTY = 1, 2, 4, 8, 16
RX_FLAGS: Final = _DOTALL | _MULTILINE | _SINGLE | _EMPTY
WORD_FLAGS: Final = _DOTALL | _SINGLE

Candidates = set[tuple[int, int]]  # phase and place of rules
Places = frozenset[tuple[int, int]]  # the same, of rules that look at something
Source = tuple[str, bytes]  # variable; key, lower case, empty for all of it


class Soft(NamedTuple):
    """A rule's link that is asked of the joined texts, where no database helps. `sources` as in `Gate`."""

    phase: int
    place: int
    sources: dict[str, tuple[Source, ...]]
    link: Link


class Gate(NamedTuple):
    """A rule's link whose patterns are scanned for. `sources` are its values, by group."""

    phase: int
    place: int
    sources: dict[str, tuple[Source, ...]]
    link: Link

    @property
    def families(self) -> frozenset[str]:
        return frozenset(FAMILY_OF[group] for group in self.sources)


def gates_of(rule_set: RuleSet) -> list[Gate]:
    """At most one gate for each rule: its first link that can be one."""
    return [gate for rule in rule_set.rules if (gate := _gate(rule)) is not None]


def _gate(rule: CompiledRule) -> Gate | None:
    for link in rule.links:
        if _is_gate(link) and (sources := _sources(link)):
            return Gate(rule.phase, rule.place, sources, link)
    return None


def soft_gate(rule: CompiledRule) -> Soft | None:
    """Its first link of a kind that joined texts can exclude."""
    for link in rule.links:
        asked = link.kind in SOFT_KINDS and link.argument.constant is not None and not says_nothing(link)
        if asked and (sources := _sources(link)):
            return Soft(rule.phase, rule.place, sources, link)
    return None


def says_nothing(link: Link) -> bool:
    """Whether the pattern is met in every value, as the empty one already has it."""
    return link.pattern is not None and link.pattern.search(b"") is not None


def takes_line_ends(link: Link) -> bool:
    """Whether the pattern is likely to begin at the line end before a scanned value, where none is in it."""
    pattern = link.pattern
    return pattern is not None and not pattern.anchored and b"\\n" in (link.argument.constant or b"")


def matches_separators(link: Link) -> bool:
    """Whether the ends between scanned values alone look like a match: then a scan says nothing."""
    pattern = link.pattern
    return (
        pattern is not None
        and not pattern.anchored
        and pattern.search_joined(b"\n") is not None
        and pattern.search_joined(SEPARATOR) is None
    )


def _is_gate(link: Link) -> bool:
    if link.negated or link.argument.constant is None:
        return False
    if link.pattern is not None:
        return not matches_separators(link)
    if link.operator in _PHRASE_OPERATORS:
        return bool(link.phrases)
    return link.operator in _LITERAL_OPERATORS and bool(link.argument.constant)


def _sources(link: Link) -> dict[str, tuple[Source, ...]]:
    """The link's values by group; empty when some of them are not scanned."""
    names = {target.variable for target in link.targets.included}
    if any(target.count for target in link.targets.included):
        return {}
    found: dict[str, dict[Source, None]] = {}
    for target in link.targets.included:
        group = _group(target.variable)
        if not group or (group == RESPONSE and names - _RESPONSE):
            return {}
        key = target.key if group == HEAD and target.pattern is None else b""
        found.setdefault(group, {})[target.variable, key] = None
    return {group: tuple(sources) for group, sources in found.items()}


def _group(variable: str) -> str:
    if variable in ARGUMENT_VARIABLES:
        return ARGUMENTS
    if variable in _HEAD:
        return HEAD
    if variable == "REQUEST_BODY":
        return BODY
    return RESPONSE if variable in _RESPONSE else ""


def expressions(link: Link) -> list[tuple[bytes, int]]:
    """What is scanned for, with flags: a match of the link has a match of one of them."""
    if link.pattern is not None:
        return [(link.pattern.wide, RX_FLAGS)]
    if link.operator in _PHRASE_OPERATORS:
        return [(_literal(word), WORD_FLAGS | _CASELESS) for word in link.phrases if word]
    return [(_literal(link.argument.constant or b""), WORD_FLAGS)]


def _literal(word: bytes) -> bytes:
    return b"".join(b"\\x%02x" % byte for byte in word)
