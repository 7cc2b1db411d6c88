"""SecLang files to a `Program`.

Owns  directives, chains, includes, later updates of earlier rules, and the checks over all rules.
Not   reading the disk: the texts are parameters (`loader`).

Rules are kept as drafts until the last line, because SecRuleUpdate… and SecRuleRemove… may name any earlier
rule, and become frozen structs then.
"""

from collections.abc import Callable, Iterable, Mapping
from fnmatch import fnmatchcase
from pathlib import PurePosixPath

import msgspec
import re2

from edgestead.crs import tables
from edgestead.crs.actions import read_actions, rule_fields, whole_number
from edgestead.crs.errors import RuleError, shown
from edgestead.crs.lexer import arguments, directives, split_actions
from edgestead.crs.rules import Marker, Operator, Program, Rule, Variable
from edgestead.crs.targets import read_operator, read_targets

INCLUDE_DEPTH_MAX = 16  # nested includes; also ends a loop
RULES_MAX = 50_000  # a release has about 650
CHAIN_LINKS_MAX = 64  # rules of one chain; releases have under ten
SECONDS_MAX = 365 * 86_400  # a year


class _Draft(msgspec.Struct):
    """A rule whose targets and actions may still change."""

    targets: list[Variable]
    operator: Operator
    pairs: list[tuple[str, str]]
    file: str
    line: int
    inherited: tuple[tuple[str, str], ...] = ()
    links: list["_Draft"] = []

    def value(self, name: str) -> str:
        return next((value for key, value in self.pairs if key == name), "")

    def values(self, name: str) -> list[str]:
        return [value for key, value in self.pairs if key == name]

    @property
    def id(self) -> int:
        return int(self.value("id"))


def parse(files: Mapping[str, str], entries: Iterable[str]) -> Program:
    """The program of `entries`, in order.

    `files` maps every name that an entry, an include or a data operator may use to its text. Relative names
    are looked up next to the file that uses them.

    Raises  RuleError for anything unknown, contradictory or over a limit: nothing is skipped.
    Limits  `RULES_MAX`, `INCLUDE_DEPTH_MAX`, `CHAIN_LINKS_MAX`, and those of `lexer`, `targets`, `actions`.
    """
    reader = _Reader(files)
    for entry in entries:
        reader.file(entry, files[entry])
    return reader.program()


class _Reader:
    def __init__(self, files: Mapping[str, str]) -> None:
        self.files = files
        self.items: list[_Draft | Marker] = []
        self.by_id: dict[int, _Draft] = {}
        self.open_chain: _Draft | None = None
        self.signature = ""
        self.timeout_seconds = 3_600
        self.defaults: dict[int, tuple[tuple[str, str], ...]] = {}
        self.settings: dict[str, tuple[str, ...]] = {}
        self.depth = 0
        self.name, self.line = "", 0

    # Files

    def file(self, name: str, text: str) -> None:
        outer = self.name, self.line
        self.depth += 1
        self.name, self.line = name, 0
        if self.depth > INCLUDE_DEPTH_MAX:
            raise RuleError(name, 0, f"includes are nested deeper than {INCLUDE_DEPTH_MAX}")
        try:
            for self.line, directive in directives(text):
                if words := arguments(directive):
                    self._directive(words)
            if self.open_chain is not None:
                raise ValueError("the last rule's chain goes on, but the file ends")
        except RuleError:
            raise
        except ValueError as error:
            raise RuleError(name, self.line, str(error)) from None
        self.depth -= 1
        self.name, self.line = outer

    def _directive(self, words: list[str]) -> None:
        folded = words[0].lower()
        if folded in tables.SETTINGS:
            self.settings[tables.SETTINGS[folded]] = tuple(words[1:])
            return
        known = _DIRECTIVES.get(folded)
        if known is None:
            raise ValueError(f"unknown directive {shown(words[0])}")
        run, low, high = known
        if not low <= len(words) - 1 <= high:
            raise ValueError(f"{words[0]} takes {low}{f' to {high}' if high > low else ''} arguments")
        if self.open_chain is not None and folded not in ("secrule", "secaction"):
            raise ValueError("a chain goes on: only a rule may follow")
        run(self, *words[1:])

    def _data(self, name: str) -> str:
        path = str(PurePosixPath(self.name).parent / name)
        if path not in self.files:
            raise ValueError(f"there is no data file {shown(name)}")
        return self.files[path]

    def include(self, pattern: str) -> None:
        if not self._include(pattern):
            raise ValueError(f"no file matches {shown(pattern)}")

    def include_optional(self, pattern: str) -> None:
        self._include(pattern)

    def _include(self, pattern: str) -> int:
        path = str(PurePosixPath(self.name).parent / pattern)
        found = sorted(name for name in self.files if fnmatchcase(name, path))
        for name in found:
            self.file(name, self.files[name])
        return len(found)

    # Rules

    def rule(self, targets: str, operator: str, actions: str = "") -> None:
        self._add(list(read_targets(targets)), read_operator(operator, self._data), actions)

    def action(self, actions: str) -> None:
        self._add([], Operator("unconditionalMatch"), actions)

    def _add(self, targets: list[Variable], operator: Operator, actions: str) -> None:
        draft = _Draft(targets, operator, read_actions(split_actions(actions)), self.name, self.line)
        head = self.open_chain
        fields = rule_fields(draft.pairs)
        phase = fields.get("phase", 2)
        if head is None:
            self._add_head(draft, fields.get("id", 0), phase)
        else:
            if fields.get("id"):
                raise ValueError("a link of a chain has no id of its own")
            if len(head.links) == CHAIN_LINKS_MAX:
                raise ValueError(f"a chain has more than {CHAIN_LINKS_MAX} links")
            head.links.append(draft)
        if fields.get("chained"):
            self.open_chain = head or draft
        else:
            self.open_chain = None

    def _add_head(self, draft: _Draft, id_: int, phase: int) -> None:
        if not id_:
            raise ValueError("a rule needs an id")
        if id_ in self.by_id:
            other = self.by_id[id_]
            raise ValueError(f"id {id_} is already taken by {other.file}:{other.line}")
        if len(self.by_id) == RULES_MAX:
            raise ValueError(f"more than {RULES_MAX} rules")
        draft.inherited = self.defaults.get(phase, ())
        self.by_id[id_] = draft
        self.items.append(draft)

    def marker(self, name: str) -> None:
        self.items.append(Marker(name, self.name, self.line))

    def component_signature(self, signature: str) -> None:
        self.signature = signature

    def collection_timeout(self, seconds: str) -> None:
        self.timeout_seconds = whole_number(seconds, 0, SECONDS_MAX, "SecCollectionTimeout")

    def default_action(self, actions: str) -> None:
        pairs = tuple(read_actions(split_actions(actions)))
        phase = rule_fields(pairs).get("phase")
        if phase is None or not any(name in tables.DISRUPTIVE_ACTIONS for name, _ in pairs):
            raise ValueError("SecDefaultAction needs a phase and a disruptive action")
        self.defaults[phase] = pairs

    # Updates of earlier rules

    def remove_by_id(self, *ranges: str) -> None:
        chosen = _id_ranges(" ".join(ranges))
        self._remove(lambda draft: any(first <= draft.id <= last for first, last in chosen))

    def remove_by_tag(self, pattern: str) -> None:
        self._remove(_matching("tag", pattern))

    def remove_by_message(self, pattern: str) -> None:
        self._remove(_matching("msg", pattern))

    def _remove(self, chosen: Callable[[_Draft], bool]) -> None:
        self.items = [item for item in self.items if isinstance(item, Marker) or not chosen(item)]
        self.by_id = {id_: draft for id_, draft in self.by_id.items() if not chosen(draft)}

    def update_target_by_id(self, id_: str, targets: str, replaced: str = "") -> None:
        chosen = _id_ranges(id_)
        self._retarget(lambda draft: any(a <= draft.id <= b for a, b in chosen), targets, replaced)

    def update_target_by_tag(self, pattern: str, targets: str, replaced: str = "") -> None:
        self._retarget(_matching("tag", pattern), targets, replaced)

    def update_target_by_message(self, pattern: str, targets: str, replaced: str = "") -> None:
        self._retarget(_matching("msg", pattern), targets, replaced)

    def _retarget(self, chosen: Callable[[_Draft], bool], targets: str, replaced: str) -> None:
        added, gone = read_targets(targets), read_targets(replaced) if replaced else ()
        for draft in self.by_id.values():
            if chosen(draft):
                draft.targets = [target for target in draft.targets if target not in gone]
                draft.targets.extend(target for target in added if target not in draft.targets)

    def update_action_by_id(self, id_: str, actions: str) -> None:
        pairs = read_actions(split_actions(actions))
        draft = self.by_id.get(whole_number(id_, 1, 1 << 31, "id"))
        if draft is None:
            raise ValueError(f"there is no rule {id_} to update")
        if any(name in ("id", "phase", "chain") for name, _ in pairs):
            raise ValueError("id, phase and chain of a rule cannot be updated")
        if any(name in tables.DISRUPTIVE_ACTIONS for name, _ in pairs):
            draft.pairs = [pair for pair in draft.pairs if pair[0] not in tables.DISRUPTIVE_ACTIONS]
        draft.pairs.extend(pairs)

    # The end

    def program(self) -> Program:
        markers = {item.name for item in self.items if isinstance(item, Marker)}
        items = tuple(item if isinstance(item, Marker) else _built(item) for item in self.items)
        for item in items:
            if isinstance(item, Rule) and item.skip_after and item.skip_after not in markers:
                raise RuleError(item.file, item.line, f"skipAfter names no marker: {shown(item.skip_after)}")
        return Program(
            items=items,
            signature=self.signature,
            collection_timeout_seconds=self.timeout_seconds,
            defaults=self.defaults,
            settings=self.settings,
        )


def _built(draft: _Draft, head: Rule | None = None) -> Rule:
    try:
        fields = rule_fields(draft.pairs, draft.inherited)
    except ValueError as error:
        raise RuleError(draft.file, draft.line, str(error)) from None
    fields.pop("chained", None)
    fields = {"id": 0, "phase": head.phase if head else 2} | fields
    if not fields.get("disruptive"):
        fields["disruptive"] = next((n for n, _ in draft.inherited if n in tables.DISRUPTIVE_ACTIONS), "")
    rule = Rule(
        variables=tuple(draft.targets), operator=draft.operator, file=draft.file, line=draft.line, **fields
    )
    return msgspec.structs.replace(rule, chain=tuple(_built(link, rule) for link in draft.links))


def _id_ranges(text: str) -> list[tuple[int, int]]:
    ranges = []
    for part in text.replace(",", " ").split():
        first, _, last = part.strip('"').partition("-")
        ranges.append((whole_number(first, 1, 1 << 31, "id"), whole_number(last or first, 1, 1 << 31, "id")))
    if not ranges:
        raise ValueError("expected ids or ranges of ids")
    return ranges


def _matching(action: str, pattern: str) -> Callable[[_Draft], bool]:
    options = re2.Options()
    options.log_errors = False
    try:
        regex = re2.compile(pattern, options)
    except re2.error:
        raise ValueError(f"bad pattern {shown(pattern)}") from None
    return lambda draft: any(regex.search(value) is not None for value in draft.values(action))


_MANY = 1_000
# name: what to do, how few and how many arguments
_DIRECTIVES: dict[str, tuple[Callable[..., None], int, int]] = {
    "secrule": (_Reader.rule, 2, 3),
    "secaction": (_Reader.action, 1, 1),
    "secmarker": (_Reader.marker, 1, 1),
    "seccomponentsignature": (_Reader.component_signature, 1, 1),
    "secdefaultaction": (_Reader.default_action, 1, 1),
    "seccollectiontimeout": (_Reader.collection_timeout, 1, 1),
    "secruleremovebyid": (_Reader.remove_by_id, 1, _MANY),
    "secruleremovebytag": (_Reader.remove_by_tag, 1, 1),
    "secruleremovebymsg": (_Reader.remove_by_message, 1, 1),
    "secruleupdatetargetbyid": (_Reader.update_target_by_id, 2, 3),
    "secruleupdatetargetbytag": (_Reader.update_target_by_tag, 2, 3),
    "secruleupdatetargetbymsg": (_Reader.update_target_by_message, 2, 3),
    "secruleupdateactionbyid": (_Reader.update_action_by_id, 2, 2),
    "include": (_Reader.include, 1, 1),
    "includeoptional": (_Reader.include_optional, 1, 1),
}
