"""One request on its way through the rules: the interpreter, and all that rules remember meanwhile.

Owns  TX and the other variables of rules, captures, matched variables, exclusions, hits.
Not   which rules to try (`plan`, `scan`), verdicts (`engine`).

The meaning of everything here is that of ModSecurity 3.0.15: each matching value sets variables at once, also
in a chain that fails later; controls and skips wait for the whole chain; captures stay until overwritten.
One thing is not: MATCHED_VAR as a target is every value that matched the link before, not the last of them,
which a client could choose by sending one more.

Source: reference manual of ModSecurity v3, "Actions", "Variables".
"""

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence, Set
from functools import lru_cache
from itertools import chain
from typing import Any, NamedTuple, Protocol

from edgestead.waf.limits import (
    CALL_UNITS,
    CAPTURES_MAX,
    MATCHED_BYTES_MAX,
    PART_BYTES,
    TX_KEYS_MAX,
    TX_VALUE_BYTES_MAX,
    Meter,
    at_once,
)
from edgestead.waf.load.compile import CLEAN_VALUE_BYTES_MAX, CLEAN_VALUES_MAX, CompiledRule, Control, Link
from edgestead.waf.load.macros import Macro
from edgestead.waf.run.suspects import DETECTORS, suspects
from edgestead.waf.terms.operators import number
from edgestead.waf.terms.targets import Item, Target, excludes, visible
from edgestead.waf.terms.variants import Chains, Texts
from edgestead.waf.transaction import Pair, Values

MEMORIES_MAX = 512  # outcomes of one rule
MEMORY_KEY_BYTES_MAX = 4_096  # of a result that is remembered within one request
_END = Item("", b"", b"\0\0")  # between the values of two links
FEW = 2  # values that are looked at one by one at once
MATCH_UNITS = 10 * CALL_UNITS  # of what a match sets
_BEHIND_ALL = 1 << 30  # the place behind all rules of a phase
FEW_DETECTED = 16  # the same for detectors, which look at each anyway
DYNAMIC_TESTS_MAX = 1_024  # operators whose argument is made while they run, the latest ones
_MATCHED = frozenset(("MATCHED_VAR", "MATCHED_VARS", "MATCHED_VAR_NAME", "MATCHED_VARS_NAMES"))
_OF_LAST_LINK = frozenset(("MATCHED_VAR", "MATCHED_VAR_NAME"))
_NUMBERS = [b"%d" % digit for digit in range(CAPTURES_MAX)]


Match = tuple[Item, bytes, Any]  # the item, its transformed value, what the operator found
Held = Generator[None, None, bool]  # steps to whether something holds, where there are many values


class Selection:
    """The items of one target set; their texts, on demand; those of them that may match at all."""

    __slots__ = ("items", "open", "texts")

    def __init__(self, items: list[Item]) -> None:
        self.items = items
        self.texts: Texts | None = None
        self.open: Selection | None = None

    def has_few(self, most: int) -> bool:
        """Whether it is as cheap to look at each by itself."""
        if len(self.items) > most:
            return False
        for item in self.items:  # no generator: there is one, mostly
            if len(item[2]) > PART_BYTES:
                return False
        return True

    def joined(self, chains: Chains, made: Iterable[Texts]) -> Texts:
        """Texts with all their values, the search's own where they are among them."""
        if self.texts is None:
            values = {item.value: None for item in self.items}
            texts = (texts for texts in made if texts.holds(values))
            self.texts = next(texts, None) or Texts(chains, list(values))
        return self.texts


class Knowledge(NamedTuple):
    """What earlier requests taught: values of some variables that none of some links matches.

    Those are the values that can have no `candidates`.
    """

    links: Set[Link] = frozenset()
    variables: frozenset[str] = frozenset()
    candidates: Mapping[bytes, Set[tuple[int, int]]] = {}

    def open(self, items: list[Item]) -> list[Item]:
        """The items that may match."""
        known = self.candidates
        return [item for item in items if item[0] not in self.variables or known.get(item[2], True)]


class Found:
    """What one rule found first: for events."""

    __slots__ = ("matched", "rule", "variable")

    def __init__(self, rule: CompiledRule, variable: bytes, matched: bytes) -> None:
        self.rule = rule
        self.variable = variable
        self.matched = matched[:MATCHED_BYTES_MAX]


Puts = dict[bytes, bytes | None]  # by slot


class Outcomes(dict[tuple[bytes, ...], Puts]):
    """What a rule set although it did not match, by the values looked at; empty where it is never read."""

    def __init__(self, *, heard: bool) -> None:
        super().__init__()
        self.heard = heard


class PhaseRules(Protocol):
    """What `Run.phase` needs of a phase's plan. `memories` are by place, of rules worth remembering;
    `capturing` are places of rules whose captures are read."""

    rules: dict[int, CompiledRule]
    capturing: set[int]
    memories: dict[int, Outcomes]
    markers: dict[str, int]

    def active(self, run: "Run", candidates: set[int]) -> list[int]: ...
    def woken(self, run: "Run", start: int, end: int) -> Iterator[int]: ...


_NOTHING_KNOWN = Knowledge()


class Run:
    """State of one transaction. `tx` starts as the plan's constants; `dirty` are its keys changed since;
    `made` are texts of the search in which there are candidates."""

    def __init__(
        self,
        chains: Chains,
        tx: dict[bytes, bytes],
        values: Values,
        meter: Meter,
        knowledge: Knowledge = _NOTHING_KNOWN,
    ) -> None:
        self.chains = chains
        self.tx = dict(tx)
        self.dirty: set[bytes] = set()
        self.values = values
        self.meter = meter
        self.made: list[Texts] = []
        self._knowledge = knowledge
        self._captures = True  # of the current rule: they are read later
        self.headers: dict[bytes, list[bytes]] = {}
        self.matched: list[Pair] = []
        self.rule: CompiledRule | None = None
        self.found: list[Found] = []
        self.stopped = False
        self.processor: str | None = None  # of the body, when a rule chose one
        self.force_body = self.has_body = False
        self.resume_at = -1
        self._first: tuple[bytes, bytes] | None = None
        self._puts: Puts | None = None  # what a rule sets, while it is noted
        self._link_start = 0  # of the matches of the link before
        self._selections: dict[int, Selection] = {}
        self._whole: dict[tuple[str, ...], list[Item]] = {}
        self._removed: list[Any] = []  # tests of a rule
        self._targets_removed: list[tuple[Any, Target]] = []

    def values_changed(self) -> None:
        """After a body was added: forget what was selected, learn the headers."""
        self._selections.clear()
        self._whole.clear()
        self.headers = {}
        for key, value in self.values.get("REQUEST_HEADERS", ()):
            self.headers.setdefault(key.lower(), []).append(value)

    # What rules see

    def pairs(self, variable: str) -> Sequence[Pair]:
        if variable == "TX":
            return [(key, value) for key, value in self.tx.items() if b"\0" not in key]
        if variable in _MATCHED:
            pairs = self.matched[self._link_start :] if variable in _OF_LAST_LINK else self.matched
            return [(name, name) for name, _ in pairs] if variable.endswith(("NAME", "NAMES")) else pairs
        return self.values.get(variable, ())

    def single(self, variable: str, key: bytes) -> bytes | None:
        if variable == "RULE" and self.rule is not None:
            rule = self.rule.rule
            return {b"id": b"%d" % rule.id, b"msg": rule.message.encode()}.get(key)
        return self.tx.get(slot(variable, key))

    def header(self, key: bytes) -> Sequence[bytes]:
        return self.headers.get(key, ())

    def whole(self, target: Target, hidden: Sequence[Target]) -> list[Item]:
        key = target.variable, *[each.name for each in hidden]
        known = self._whole.get(key)
        if known is None:
            known = self._whole[key] = visible(target.select(self), hidden)
        return known

    def macro(self, variable: str, key: bytes) -> bytes:
        if key and variable in ("TX", "IP", "GLOBAL", "RESOURCE", "SESSION", "USER", "RULE"):
            return self.single(variable, key) or b""
        if variable in _MATCHED:  # the last: to list them for each match would be quadratic
            if len(self.matched) <= (self._link_start if variable in _OF_LAST_LINK else 0):
                return b""
            name, value = self.matched[-1]
            return name if variable.endswith(("NAME", "NAMES")) else value
        for name, value in self.pairs(variable):
            if not key or name.lower() == key:
                return value
        return b""

    # Rules

    def phase(self, rules: PhaseRules, candidates: set[int]) -> Iterator[None]:
        """Run the rules of a phase, in order; gives way where that is long.

        Raises: Refused when the work is too much.
        """
        self.resume_at = done = -1
        for place in (*rules.active(self, candidates), _BEHIND_ALL):
            for each in chain(rules.woken(self, done, place), (place,)):
                steps = self._run(rules, each)
                if steps is not None:
                    yield from steps
                if self.meter.is_due():
                    yield
            done = place

    def _run(self, rules: PhaseRules, place: int) -> Iterator[None] | None:
        """Steps where its rule looks at many values."""
        if place < self.resume_at or self.stopped or place == _BEHIND_ALL:
            return None
        rule = rules.rules[place]
        if self._removed and any(removes(rule) for removes in self._removed):
            return None
        self._captures = place in rules.capturing
        memory = rules.memories.get(place)
        if memory is None or self._targets_removed:
            held = self.matches(rule)
            if not isinstance(held, bool):
                return self._run_on(rules, rule, held)
        else:
            held = self._matches_anew(rule, memory)
        if held:
            self._follow(rules, rule)
        return None

    def _run_on(self, rules: PhaseRules, rule: CompiledRule, steps: Held) -> Iterator[None]:
        if (yield from steps):
            self._follow(rules, rule)

    def _matches_anew(self, rule: CompiledRule, memory: Outcomes) -> bool:
        """As `matches`; for values that did not match before, only what was set then is set."""
        key = tuple(
            item[2]
            for link in rule.links
            if link.targets.static
            for item in (*self._select(link).items, _END)
        )
        known = memory.get(key)
        if known is not None:
            for slot_, value in known.items():
                self._put(slot_, value)
            return False
        puts: Puts = {}
        self._puts = puts
        held = settled(self.matches(rule))
        self._puts = None
        if not held and sum(map(len, key)) <= MEMORY_KEY_BYTES_MAX:
            if len(memory) >= MEMORIES_MAX:
                memory.clear()
            memory[key] = puts if memory.heard else {}
        return held

    def matches(self, rule: CompiledRule) -> bool | Held:
        """Whether the whole chain holds; variables are set as it goes."""
        self.rule = rule
        self.matched = []
        self._link_start = 0
        self._first = None
        for place, link in enumerate(rule.links):
            held = self.holds(link)
            if not isinstance(held, bool):
                return self._match_on(rule, place, held)
            if not held:
                return False
        return True

    def _match_on(self, rule: CompiledRule, place: int, steps: Held) -> Held:
        """The chain from a link on that takes steps."""
        held = yield from steps
        for link in rule.links[place + 1 :]:
            if not held:
                return False
            outcome = self.holds(link)
            held = outcome if isinstance(outcome, bool) else (yield from outcome)
        return held

    def _follow(self, rules: PhaseRules, rule: CompiledRule) -> None:
        """What waits for the whole chain: controls, skips, the log."""
        for link in rule.links:
            for control in link.controls:
                self.control(control)
        if rule.rule.skip_after:
            self.resume_at = rules.markers[rule.rule.skip_after]
        elif rule.rule.skip:
            self.resume_at = rule.place + rule.rule.skip + 1
        if rule.rule.disruptive == "allow":
            self.stopped = True
        if rule.logged:
            variable, matched = self._first or (b"", b"")
            self.found.append(Found(rule, variable, matched))

    # Links

    def holds(self, link: Link) -> bool | Held:
        """Whether a link matches; its variables are set."""
        if link.kind == "always":
            self._set_all(link)
            return True
        selection = self._select(link)
        if not selection.items:
            return False
        test = link.pattern.search if link.pattern is not None else link.test
        clean = link.clean
        if test is None:
            test, clean = _dynamic_test(link, link.argument.expand(self)), None
        if link.origin in self._knowledge.links:
            selection = self._open(selection)
        if not selection.has_few(FEW_DETECTED if link.kind in DETECTORS else FEW):
            return self._many(link, selection, test)
        start = len(self.matched)
        matches = self._few(link, selection.items, test, clean)
        for item, value, found in matches:
            self._matched(link, item, value, found)
        self._link_start = start
        return bool(matches)

    def _select(self, link: Link) -> Selection:
        targets = link.targets
        if self._targets_removed:
            gone = [target for rule, target in self._targets_removed if rule(self.rule)]
            if gone:
                items = [i for i in targets.select(self) if not any(excludes(target, i) for target in gone)]
                return Selection(items)
        if not targets.static:
            return Selection(targets.select(self))
        known = self._selections.get(targets.number)
        if known is None:
            known = self._selections[targets.number] = Selection(targets.select(self))
        return known

    def _open(self, selection: Selection) -> Selection:
        """Without the values that are known not to match."""
        if selection.open is None:
            selection.open = Selection(self._knowledge.open(selection.items))
        return selection.open

    def _many(self, link: Link, selection: Selection, test: Any) -> Held:
        negated, meter = link.negated, self.meter
        meter.toil(len(selection.items) * CALL_UNITS)
        if meter.is_due():
            yield
        suspects = yield from self._suspects(link, selection)
        start, held = len(self.matched), False
        for item in selection.items if suspects else ():
            for value in suspects.get(item.value, ()):
                found = test(value)
                meter.spend(len(value) + 16)
                if (found is None) == negated:
                    held = True
                    self._matched(link, item, value, found)
                    meter.toil(MATCH_UNITS)
                if meter.is_due():
                    yield
        self._link_start = start
        return held

    def _few(self, link: Link, items: list[Item], test: Any, clean: set[bytes] | None) -> list[Match]:
        matches: list[Match] = []
        for item in items:
            start = item.value
            if clean is not None and start in clean:
                continue
            before = len(matches)
            for value in self._staged(link, start):
                found = test(value)
                if (found is None) == link.negated:
                    matches.append((item, value, found))
            if len(matches) == before and clean is not None and len(start) <= CLEAN_VALUE_BYTES_MAX:
                if len(clean) >= CLEAN_VALUES_MAX:
                    clean.clear()
                clean.add(start)
        return matches

    def _staged(self, link: Link, value: bytes) -> list[bytes]:
        """The value at the end of the chain; with multiMatch also each step that changes it."""
        self.meter.spend(len(value) * (len(link.steps) + 1) + 16)
        if len(link.stages) == 1:
            for step in link.steps:
                value = step(value)
            return [value]
        stages = [value]
        for step in link.steps:
            value = step(value)
            if value != stages[-1]:
                stages.append(value)
        return stages

    def _suspects(
        self, link: Link, selection: Selection
    ) -> Generator[None, None, dict[bytes, dict[bytes, None]]]:
        """What values become that may match then, by value; all that do are among them."""
        meter = self.meter
        texts = selection.joined(self.chains, self.made)
        found: dict[bytes, dict[bytes, None]] = {}
        for part in texts.making(link.stages, meter):
            if part is not None:
                for stage in part.distinct_stages(link.stages, meter):
                    for place, value in suspects(link, part, stage, meter):
                        found.setdefault(texts.values[place], {})[value] = None
            if meter.is_due() or part is None:
                yield
        return found

    # Actions

    def _matched(self, link: Link, item: Item, value: bytes, found: Any) -> None:
        name = item.name
        part = value
        if found is not None:
            part = found if isinstance(found, bytes) else found.group(0)
            if link.capture and self._captures:
                self._capture(found)
        if self._first is None or (self._first[0].startswith((b"TX:", b"&")) and not name.startswith(b"TX:")):
            self._first = name, part
        self.matched.append((name, value))
        if link.setters:
            self._set_all(link)

    def _capture(self, found: Any) -> None:
        if isinstance(found, bytes):
            self._put(b"0", found)
            return
        for number_, text in enumerate((found.group(0), *found.groups()[: CAPTURES_MAX - 1])):
            if text is not None:
                self._put(_NUMBERS[number_], text)

    def _set_all(self, link: Link) -> None:
        for setter in link.setters:
            key = slot(setter.collection, _expanded(setter.key, self).lower())
            if setter.op == "!":
                self._put(key, None)
                continue
            value = _expanded(setter.value, self)
            if setter.op != "=":
                change = number(value) if setter.op == "+" else -number(value)
                value = b"%d" % (number(self.tx.get(key, b"")) + change)
            self._put(key, value)

    def _put(self, key: bytes, value: bytes | None) -> None:
        if self._puts is not None:
            self._puts[key] = value
        if self.tx.get(key) == value:
            return
        if value is None:
            self.tx.pop(key)
        elif key in self.tx or len(self.tx) < TX_KEYS_MAX:
            self.tx[key] = value[:TX_VALUE_BYTES_MAX]
        else:
            return
        self.dirty.add(key)

    def control(self, control: Control) -> None:
        option, value = control.option, control.value
        if option in _RULE_CHOICES:
            self._removed.append(_RULE_CHOICES[option](value))
        elif option in _TARGET_CHOICES and control.target is not None:
            self._targets_removed.append((_TARGET_CHOICES[option](value), control.target))
        elif option == "ruleEngine":
            self.stopped = value.lower() == "off"
        elif option == "requestBodyProcessor":
            self.processor = value.upper()
            self.values["REQBODY_PROCESSOR"] = [(b"", self.processor.encode())]
        elif option == "forceRequestBodyVariable":
            self.force_body = value.lower() == "on"


def settled(held: bool | Held) -> bool:
    """Whether it matches, without yielding to other tasks."""
    return held if isinstance(held, bool) else at_once(held)


def _expanded(macro: Macro, run: Run) -> bytes:
    return macro.constant if macro.constant is not None else macro.expand(run)


def slot(collection: str, key: bytes) -> bytes:
    """Where a variable lies in `Run.tx`: TX under its own key, others behind their name and a NUL."""
    return key if collection == "TX" else collection.encode() + b"\0" + key


@lru_cache(maxsize=DYNAMIC_TESTS_MAX)
def _dynamic_test(link: Link, argument: bytes) -> Any:
    return link.test_for(argument)


def _by_id(text: str) -> Any:
    chosen = []
    for part in text.replace(",", " ").split():
        first, _, last = part.partition("-")
        if first.isdigit() and (last or first).isdigit():
            chosen.append((int(first), int(last or first)))
    return lambda rule: any(first <= rule.rule.id <= last for first, last in chosen)


def _by_tag(text: str) -> Any:
    return lambda rule: text in rule.rule.tags


def _by_message(text: str) -> Any:
    return lambda rule: rule.rule.message == text


_RULE_CHOICES = {"ruleRemoveById": _by_id, "ruleRemoveByTag": _by_tag, "ruleRemoveByMsg": _by_message}
_TARGET_CHOICES = {
    "ruleRemoveTargetById": _by_id,
    "ruleRemoveTargetByTag": _by_tag,
    "ruleRemoveTargetByMsg": _by_message,
}
