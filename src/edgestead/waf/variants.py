"""Many values through many chains of transformations, joined to one text.

Owns  when joined values may be transformed at once, and which steps of which chains change nothing.
Asks  `transformations`.
Tells `run` each value as a chain leaves it; `scan` all of them, each kind of text once.
Not   what is looked for in them.

Rules share 40 to 60 chains over the same arguments. Values are joined by bytes that are neither blank,
letter nor digit, and each step runs once over the joined text instead of once for each value, as most steps
look at a few neighbouring bytes. Three guards keep that the same as one by one: steps that look at whole
values run on each; a text with a hazard of the step (a backslash just before a separator) does too; and a
result that has another number of separators shows that a value now contains one: that value goes on alone.

Steps that cannot change a text are dropped before they run: the bytes that matter and occur in it (capitals
count as one) choose a plan, in which few chains are left, and their common beginnings are shared.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from .limits import Meter
from .transformations import CHANGED_BY, EACH, TRANSFORMATIONS, Transformation

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
    `each`: the step on many values, where there is a faster way than one by one."""

    number: int
    parent: int
    step: Transformation
    hazards: tuple[bytes, ...] | None
    harmless: tuple[bytes, ...]
    each: Callable[[list[bytes]], list[bytes]] | None


class Plan:
    """Steps for one kind of text: `node_of` is a node by chain."""

    __slots__ = ("_steps", "node_of", "nodes", "wanted")

    def __init__(self) -> None:
        self.nodes: list[Node] = [Node(0, 0, bytes, (), (), None)]
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
    return Node(number, parent, TRANSFORMATIONS[name], HAZARDS.get(name), harmless, EACH.get(name))


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

    def _stepped(self, text: bytes, node: Node) -> bytes:
        _, _, step, hazards, harmless, together = node
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

    def distinct(self, chains: tuple[int, ...], meter: Meter) -> dict[bytes, None]:
        """What the values become under some chains, each once. Raises as `text`."""
        nodes, same = self.plan.nodes_of(chains), self._same
        self._make(self.plan.steps_to(nodes), meter)
        texts = [self._texts[holder] for holder in dict.fromkeys([same[node] for node in nodes])]
        return dict.fromkeys(texts if len(self.values) == 1 else SEPARATOR.join(texts).split(SEPARATOR))


def _holds_any(text: bytes, parts: tuple[bytes, ...]) -> bool:
    for part in parts:  # no generator: most are empty or one
        if part in text:
            return True
    return False


class Texts:
    """Any values, in as few `Joined` as can be: one, and one for each value that holds a separator."""

    __slots__ = ("_chains", "parts", "values")

    def __init__(self, chains: Chains, values: list[bytes]) -> None:
        self._chains = chains
        self.values = values
        places = list(range(len(values)))
        if len(values) > 1 and SEPARATOR.join(values).count(SEPARATOR) >= len(values):
            odd = [place for place in places if SEPARATOR in values[place]]
            self.parts = [Joined(chains, [values[place]], [place]) for place in odd]
            places = [place for place in places if SEPARATOR not in values[place]]
            if places:
                self.parts.insert(0, Joined(chains, [values[place] for place in places], places))
        else:
            self.parts = [Joined(chains, values, places)] if values else []

    def prepare(self, chain: int, meter: Meter) -> list[Joined]:
        """The parts, each with the chain's text made. Raises: Refused when that was too much work."""
        while True:
            for number, part in enumerate(self.parts):
                try:
                    part.text(chain, meter)
                except _Leak as leak:
                    self._separate(number, leak.places)
                    break
            else:
                return self.parts

    def _separate(self, number: int, leaks: list[int]) -> None:
        part = self.parts.pop(number)
        gone = set(leaks)
        kept = [at for at in range(len(part.values)) if at not in gone]
        if kept:
            values, places = [part.values[at] for at in kept], [part.places[at] for at in kept]
            self.parts.insert(number, Joined(self._chains, values, places))
        self.parts.extend(Joined(self._chains, [part.values[at]], [part.places[at]]) for at in leaks)

    def all_lines(self, chains: tuple[int, ...], meter: Meter) -> bytes:
        """The values under every chain, each distinct one once: what the scan looks at."""
        found: dict[bytes, None] = {}
        number = 0
        while number < len(self.parts):
            try:
                found.update(self.parts[number].distinct(chains, meter))
            except _Leak as leak:
                self._separate(number, leak.places)
            else:
                number += 1
        return b"\n".join(found)
