"""Many values through many chains of transformations, joined to one text.

Owns  when joined values may be transformed at once, and which steps of which chains change nothing.
Not   what is looked for in them.

Rules share 40 to 60 chains over the same arguments. Values are joined by bytes that are neither blank,
letter nor digit, and each step runs once over the joined text instead of once for each value, as most steps
look at a few neighbouring bytes. Three guards keep that the same as one by one: steps that look at whole
values run on each; a text with a hazard of the step (a backslash just before a separator) does too; and a
result that has another number of separators shows that a value now contains one: that value is then processed
alone.

Steps that cannot change a text are dropped before they run: the bytes that matter and occur in it (capitals
count as one) choose a plan, in which few chains are left, and their common beginnings are shared.

Many values are joined in several parts, and each step on a part is at most a portion of work: nobody waits
for all of a body to be decoded in forty ways.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate
from typing import NamedTuple

from edgestead.waf.limits import CALL_UNITS, PART_BYTES, PART_VALUES, SLICE_BYTES, SMALL_BYTES, Meter
from edgestead.waf.terms.transformations import (
    CHANGED_BY,
    EACH,
    IN_PORTIONS,
    TRANSFORMATIONS,
    Portions,
    Transformation,
)

Chain = tuple[str, ...]
SEPARATOR = b"\x1e\x1d"  # two bytes: one alone is too often among what base64 decodes to
PLANS_MAX = 2_048  # kinds of text that have their plan kept
_AFTER_BACKSLASH = (b"\\" + SEPARATOR,)
# Steps that see only neighbouring bytes, with what must not stand in a joined text for that to hold.
HAZARDS: dict[str, tuple[bytes, ...]] = {
    "cmdLine": (),
    "compressWhitespace": (),
    "cssDecode": _AFTER_BACKSLASH,
    "escapeSeqDecode": _AFTER_BACKSLASH,
    "htmlEntityDecode": (),
    "jsDecode": _AFTER_BACKSLASH,
    "lowercase": (),
    "removeCommentsChar": (),
    "removeNulls": (),
    "removeWhitespace": (),
    "replaceComments": (b"/*",),
    "replaceNulls": (),
    "uppercase": (),
    "urlDecode": (),
    "urlDecodeUni": (),
}
# Steps on whole values that leave all of them as they are when none of these is in the joined text.
HARMLESS_WITHOUT: dict[str, tuple[bytes, ...]] = {
    "normalizePath": (b"/.", b"//", b"..", SEPARATOR + b"."),
    "normalizePathWin": (b"/.", b"//", b"..", SEPARATOR + b".", b"\\"),
}
# What a step may add to the bytes of a text; all others may make any byte.
_ADDS: dict[str, frozenset[int]] = {
    "cmdLine": frozenset(range(97, 123)) | {32},
    "compressWhitespace": frozenset({32}),
    "lowercase": frozenset(range(97, 123)),
    "normalizePath": frozenset(),
    "normalizePathWin": frozenset(b"/"),
    "removeCommentsChar": frozenset(),
    "removeNulls": frozenset(),
    "removeWhitespace": frozenset(),
    "replaceComments": frozenset(b" "),
    "replaceNulls": frozenset(b" "),
    "trim": frozenset(),
    "trimLeft": frozenset(),
    "trimRight": frozenset(),
    "uppercase": frozenset(range(65, 91)),
}
_ALL = frozenset(range(256))
# What a step adds where a byte is not there.
_ADDS_WITHOUT: dict[str, tuple[int, frozenset[int]]] = {
    "htmlEntityDecode": (ord("#"), frozenset(b'"&<>\xa0')),
    "urlDecode": (ord("%"), frozenset(b" ")),
    "urlDecodeUni": (ord("%"), frozenset(b" ")),
}


class Node(NamedTuple):
    """One step behind a parent. `hazards` None: each value by itself; `harmless`: see `HARMLESS_WITHOUT`;
    `each`: the step on many values, where there is a faster way than one by one; `portions`: the step on a
    large value, where it calls Python for each of the bytes `marks`."""

    number: int
    parent: int
    step: Transformation
    hazards: tuple[bytes, ...] | None
    harmless: tuple[bytes, ...]
    each: Callable[[list[bytes]], list[bytes]] | None
    portions: Callable[[bytes], Portions] | None
    marks: bytes

    def units(self, text: bytes, values: int) -> int:
        """The cost of the step in addition to reading each byte."""
        calls = values if self.hazards is None else 0
        if self.marks:
            calls += len(text) - len(text.translate(None, self.marks))
        return calls * CALL_UNITS


class Plan:
    """Steps for one kind of text: `node_of` is a node by chain."""

    __slots__ = ("_steps", "node_of", "nodes", "wanted")

    def __init__(self) -> None:
        self.nodes: list[Node] = [Node(0, 0, bytes, (), (), None, None, b"")]
        self.node_of: list[int] = []
        self.wanted: dict[tuple[int, ...], tuple[int, ...]] = {}
        self._steps: dict[tuple[int, ...], tuple[Node, ...]] = {}

    def nodes_of(self, chains: tuple[int, ...]) -> tuple[int, ...]:
        """The nodes of some chains, each once."""
        found = self.wanted.get(chains)
        if found is None:
            found = self.wanted[chains] = tuple(dict.fromkeys(self.node_of[chain] for chain in chains))
        return found

    def steps_to(self, nodes: tuple[int, ...]) -> tuple[Node, ...]:
        """The steps to those nodes, none before its parent's."""
        found = self._steps.get(nodes)
        if found is None:
            needed = {0}
            for node in nodes:
                while node not in needed:
                    needed.add(node)
                    node = self.nodes[node].parent
            # parents have the lower numbers
            found = self._steps[nodes] = tuple(self.nodes[node] for node in sorted(needed - {0}))
        return found


class Chains:
    """Every chain that rules use, by number."""

    def __init__(self, chains: Iterable[Chain]) -> None:
        self.chains: tuple[Chain, ...] = tuple(dict.fromkeys(((), *chains)))
        self.numbers = {chain: number for number, chain in enumerate(self.chains)}
        used = {name for chain in self.chains for name in chain}
        changing = [CHANGED_BY[name] or frozenset() for name in sorted(used)]
        changing += [frozenset((byte,)) for byte, _ in _ADDS_WITHOUT.values()]
        # bytes that the same steps may change are one class, named by its smallest byte
        classes: dict[tuple[bool, ...], int] = {}
        table = bytearray(256)
        for byte in range(256):
            table[byte] = classes.setdefault(tuple(byte in some for some in changing), byte)
        self._classes = bytes(table)
        plain = classes.get((False,) * len(changing))
        self._plain = bytes(byte for byte in range(256) if table[byte] == plain)
        self._plans: dict[frozenset[int], Plan] = {}

    def plan(self, text: bytes) -> Plan:
        kinds = frozenset(text.translate(self._classes, self._plain))
        plan = self._plans.get(kinds)
        if plan is None:
            if len(self._plans) >= PLANS_MAX:
                self._plans.clear()
            plan = self._plans[kinds] = self._make(kinds)
        return plan

    def _make(self, kinds: frozenset[int]) -> Plan:
        present = frozenset(byte for byte in range(256) if self._classes[byte] in kinds) | set(self._plain)
        plan = Plan()
        known: dict[Chain, int] = {(): 0}
        for chain in self.chains:
            node = 0
            done: Chain = ()
            for name in effective(chain, present):
                done = (*done, name)
                if done not in known:
                    known[done] = len(plan.nodes)
                    plan.nodes.append(_node(len(plan.nodes), node, name))
                node = known[done]
            plan.node_of.append(node)
        return plan


def _node(number: int, parent: int, name: str) -> Node:
    harmless = HARMLESS_WITHOUT.get(name, ())
    portions = IN_PORTIONS.get(name)
    marks = bytes(sorted(CHANGED_BY[name] or ())) if portions is not None else b""
    hazards, each = HAZARDS.get(name), EACH.get(name)
    return Node(number, parent, TRANSFORMATIONS[name], hazards, harmless, each, portions, marks)


def effective(chain: Chain, present: frozenset[int]) -> Chain:
    """The chain without the steps that leave every text of the bytes `present` as it is."""
    left = []
    for name in chain:
        changing = CHANGED_BY[name]
        if changing is None or changing & present:
            left.append(name)
            adds = _ADDS.get(name)
            if name in _ADDS_WITHOUT and _ADDS_WITHOUT[name][0] not in present:
                adds = _ADDS_WITHOUT[name][1]
            present = _ALL if adds is None else present | adds
    return tuple(left)


class _Leak(Exception):
    """Values that hold the separator after a step, by place."""

    def __init__(self, places: list[int]) -> None:
        self.places = places


class Joined:
    """Values that share each step. `places` are theirs among all values of the text.

    A step that turns out to change nothing leads to its parent's text, so what follows it is shared too.
    """

    __slots__ = ("_after", "_same", "_texts", "places", "plan", "values")

    def __init__(self, chains: Chains, values: list[bytes], places: list[int]) -> None:
        self.values = values
        self.places = places
        root = SEPARATOR.join(values)
        self.plan = chains.plan(root)
        self._texts: dict[int, bytes] = {0: root}
        self._same: dict[int, int] = {0: 0}  # the node that holds a node's text
        self._after: dict[tuple[int, Transformation], int] = {}

    def text(self, chain: int, meter: Meter) -> bytes:
        """All values as the chain leaves them, with separators. Raises: _Leak; Refused."""
        return self._texts[self.holder_of(chain, meter)]

    def holder_of(self, chain: int, meter: Meter) -> int:
        """The node whose text is the chain's: the same for the same text. Raises as `text`."""
        node = self.plan.node_of[chain]
        if node not in self._same:
            self._make(self.plan.steps_to((node,)), meter)
        return self._same[node]

    def _make(self, steps: tuple[Node, ...], meter: Meter) -> None:
        """Take steps, none before its parent's."""
        same, texts, after = self._same, self._texts, self._after
        units = 0
        for node in steps:
            if node.number in same:
                continue
            before = same[node.parent]
            found = after.get((before, node.step))
            if found is None:
                text = texts[before]
                stepped = self._stepped(text, node)
                units += len(text) + 64
                if stepped == text:
                    found = before
                else:
                    found = node.number
                    texts[found] = stepped
                after[before, node.step] = found
            same[node.number] = found
        meter.spend(units)

    def make(self, nodes: tuple[int, ...], meter: Meter) -> None:
        """Take the steps to some nodes. Raises as `text`."""
        self._make(self.plan.steps_to(nodes), meter)

    def making(self, nodes: tuple[int, ...], meter: Meter) -> Iterator[None]:
        """As `make`; gives way where that is long."""
        if len(self._texts[0]) <= SMALL_BYTES:
            self.make(nodes, meter)
            return
        for node in self.plan.steps_to(nodes):
            if node.number in self._same:
                continue
            before = self._same[node.parent]
            if (before, node.step) not in self._after:
                text = self._texts[before]
                if len(text) > PART_BYTES and len(self.values) == 1 and node.portions is not None:
                    yield from self._in_portions(node, before, node.portions(text), meter)
                else:
                    meter.toil(node.units(text, len(self.values)))
            self._make((node,), meter)
            if meter.is_due():
                yield

    def _in_portions(self, node: Node, before: int, steps: Portions, meter: Meter) -> Iterator[None]:
        """One step on a large value; `_make` finds it done."""
        stepped = yield from meter.toiling(steps)
        meter.spend(len(stepped) + CALL_UNITS)
        self._after[before, node.step] = before if stepped == self._texts[before] else node.number
        self._texts.setdefault(self._after[before, node.step], stepped)

    def _stepped(self, text: bytes, node: Node) -> bytes:
        _, _, step, hazards, harmless, together, _, _ = node
        count = len(self.values)
        if count == 1:
            return step(text)
        if hazards is not None and not _holds_any(text, hazards):
            stepped = step(text)
            if stepped is text or stepped.count(SEPARATOR) == count - 1:
                return stepped
        elif harmless and not text.startswith(b".") and not _holds_any(text, harmless):
            return text
        values = text.split(SEPARATOR)
        each = [step(value) for value in values] if together is None else together(values)
        if leaks := [place for place, value in enumerate(each) if SEPARATOR in value]:
            raise _Leak(leaks)
        return SEPARATOR.join(each)

    def lines(self, chain: int, meter: Meter) -> bytes:
        """The same with line ends for separators: ``^``, ``$`` and ``\\b`` hold as in each value alone."""
        text = self.text(chain, meter)
        return text if len(self.values) == 1 else text.replace(SEPARATOR, b"\n")

    def split(self, chain: int, meter: Meter) -> list[bytes]:
        text = self.text(chain, meter)
        return [text] if len(self.values) == 1 else text.split(SEPARATOR)

    def distinct_stages(self, stages: tuple[int, ...], meter: Meter) -> Iterable[int]:
        """One of the stages for each text that they come to. Raises as `text`."""
        if len(stages) == 1:
            return stages
        return {self.holder_of(stage, meter): stage for stage in stages}.values()

    def distinct(self, nodes: tuple[int, ...]) -> dict[bytes, None]:
        """What the values become at some nodes that were made, each once."""
        same = self._same
        texts = [self._texts[holder] for holder in dict.fromkeys([same[node] for node in nodes])]
        return dict.fromkeys(texts if len(self.values) == 1 else SEPARATOR.join(texts).split(SEPARATOR))


def _holds_any(text: bytes, parts: tuple[bytes, ...]) -> bool:
    for part in parts:  # no generator: most are empty or one
        if part in text:
            return True
    return False


class Texts:
    """Any values, in as few `Joined` as can be: parts of `PART_BYTES`, and one for each value that holds a
    separator. `is_small`: to make all of it takes no more than a portion.
    """

    __slots__ = ("_chains", "_known", "is_small", "parts", "values")

    def __init__(self, chains: Chains, values: list[bytes]) -> None:
        self._chains = chains
        self.values = values
        self._known: frozenset[bytes] | None = None
        joined = SEPARATOR.join(values)
        self.is_small = len(joined) <= SMALL_BYTES
        places = list(range(len(values)))
        if len(values) < 2:
            self.parts = [Joined(chains, values, places)] if values else []
        elif joined.count(SEPARATOR) >= len(values):
            odd = [place for place in places if SEPARATOR in values[place]]
            self.parts = self._parts([place for place in places if SEPARATOR not in values[place]])
            self.parts += [Joined(chains, [values[place]], [place]) for place in odd]
        elif len(joined) <= PART_BYTES and len(values) <= PART_VALUES:
            self.parts = [Joined(chains, values, places)]
        else:
            self.parts = self._parts(places)

    def _parts(self, places: list[int]) -> list[Joined]:
        """Values without a separator, in order; a large one is a part by itself."""
        values = [self.values[place] for place in places]
        ends = [0, *accumulate(map(len, values))]
        parts: list[Joined] = []
        start = 0
        while start < len(values):
            end = min(bisect_right(ends, ends[start] + PART_BYTES) - 1, start + PART_VALUES)
            end = max(end, start + 1)
            parts.append(Joined(self._chains, values[start:end], places[start:end]))
            start = end
        return parts

    def holds(self, values: Iterable[bytes]) -> bool:
        """Whether all of these are among them."""
        if self._known is None:
            self._known = frozenset(self.values)
        return self._known.issuperset(values)

    def prepare(self, chain: int, meter: Meter) -> list[Joined]:
        """The parts, each with the chain's text made. Raises: Refused when that was too much work."""
        if len(self.parts) == 1:
            try:
                self.parts[0].text(chain, meter)
            except _Leak as leak:
                self._separate(0, leak.places)
            else:
                return self.parts
        number = 0
        while number < len(self.parts):
            try:
                self.parts[number].text(chain, meter)
            except _Leak as leak:
                self._separate(number, leak.places)
            else:
                number += 1
        return self.parts

    def making(self, chains: tuple[int, ...], meter: Meter) -> Iterator[Joined | None]:
        """Each part with the chains' texts made; None is others' turn. Raises as `prepare`."""
        number = 0
        while number < len(self.parts):
            part = self.parts[number]
            try:
                yield from part.making(part.plan.nodes_of(chains), meter)
            except _Leak as leak:
                self._separate(number, leak.places)
            else:
                yield part
                number += 1

    def _separate(self, number: int, leaks: list[int]) -> None:
        part = self.parts.pop(number)
        gone = set(leaks)
        kept = [at for at in range(len(part.values)) if at not in gone]
        if kept:
            values, places = [part.values[at] for at in kept], [part.places[at] for at in kept]
            self.parts.insert(number, Joined(self._chains, values, places))
        self.parts.extend(Joined(self._chains, [part.values[at]], [part.places[at]]) for at in leaks)

    def scannable(self, chains: tuple[int, ...], meter: Meter) -> Iterator[bytes | None]:
        """The values under every chain, a line each, in texts of about `SLICE_BYTES`: what the scan looks at.

        None is others' turn. Raises as `prepare`.
        """
        if self.is_small:
            yield self._lines(chains, meter)
            return
        lines: dict[bytes, None] = {}
        size = 0
        for part in self.making(chains, meter):
            if part is None:
                yield None
                continue
            found = part.distinct(part.plan.nodes_of(chains))
            size += sum(map(len, found)) + len(found)
            lines.update(found)
            meter.toil(CALL_UNITS // 4 * len(found))
            if size > SLICE_BYTES:
                yield from _slices(lines)
                lines, size = {}, 0
        if lines:
            yield b"\n".join(lines)

    def _lines(self, chains: tuple[int, ...], meter: Meter) -> bytes:
        found: dict[bytes, None] = {}
        number = 0
        while number < len(self.parts):
            part = self.parts[number]
            nodes = part.plan.nodes_of(chains)
            try:
                part.make(nodes, meter)
            except _Leak as leak:
                self._separate(number, leak.places)
            else:
                found.update(part.distinct(nodes))
                number += 1
        return b"\n".join(found)


def _slices(lines: Iterable[bytes]) -> Iterator[bytes]:
    held: list[bytes] = []
    size = 0
    for line in lines:
        if held and size + len(line) >= SLICE_BYTES:
            yield b"\n".join(held)
            held, size = [], 0
        held.append(line)
        size += len(line) + 1
    yield b"\n".join(held)
