"""Custom rulesets of an account by names that people read, in the place of ids.

Owns  what a ruleset and a rule in it are called where other rules execute or skip them, and the way back.
Not   rulesets themselves; managed ones, whose ids are published. Imports the standard library only.

A ruleset is called by its phase and name: `custom/office`. Of several with one name in one phase the second,
by its id, is `custom/office #2`. A rule in it, which a `skip` may name, is called by its `ref`, or else by
its description or expression, if no other rule of the ruleset is called so.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from edgestead.cli.failure import Failed, listed
from edgestead.cli.rule.phases import word_of

Json = dict[str, Any]
_SEPARATOR = "/"


class Names:
    """Of one account on one server. `rules_of` reads a ruleset's rules by its id, when they are asked for.

    What is not known stays as it is: an id of a managed ruleset, a name of a ruleset that is not there.
    """

    def __init__(self, summaries: Iterable[Json], rules_of: Callable[[str], Sequence[Json]]) -> None:
        self.custom: dict[str, str] = {}  # id by name
        self._known: set[str] = set()  # ids of all, managed ones too
        self._names: dict[str, str] = {}
        self._rules_of = rules_of
        self._rules: dict[str, dict[str, str]] = {}
        self.learn(summaries)

    def learn(self, summaries: Iterable[Json]) -> None:
        """Further rulesets, as lists answer them."""
        for one in sorted(summaries, key=lambda one: str(one["id"])):
            self._known.add(one["id"])
            if one["kind"] != "custom" or one["id"] in self._names:
                continue
            first = name = word_of(one["phase"]) + _SEPARATOR + one["name"]
            place = 1
            while name in self.custom:
                place += 1
                name = f"{first} #{place}"
            self.custom[name], self._names[one["id"]] = one["id"], name

    def name(self, ruleset_id: str) -> str:
        return self._names.get(ruleset_id, ruleset_id)

    def set_rules(self, ruleset_id: str, rules: Sequence[Json]) -> None:
        """What a ruleset has now."""
        self._rules[ruleset_id] = rule_names(rules)

    def rules_in(self, ruleset_id: str) -> Mapping[str, str]:
        """What the rules of a ruleset are called, by id."""
        if ruleset_id not in self._rules:
            self.set_rules(ruleset_id, self._rules_of(ruleset_id))
        return self._rules[ruleset_id]

    def named(self, rule: Json) -> Json:
        """A rule of this server, with names for the custom rulesets and their rules."""
        return _translated(rule, self.name, self._rule_name)

    def identified(self, rule: Json) -> Json:
        """A rule with names as this server takes it. Raises Failed: it names what is not there."""
        return _translated(rule, self._id, self._rule_id)

    def absent(self, rule: Json) -> list[str]:
        """Ids that a rule of a document executes or skips, of rulesets that this server does not have."""
        return [one for one in _references(rule) if not is_name(one) and one not in self._known]

    def possible(self, rules: Iterable[Json]) -> Iterator[Json]:
        """As `identified`, without those that name what is not there yet."""
        for rule in rules:
            try:
                yield self.identified(rule)
            except Failed:
                continue

    def _id(self, name: str) -> str:
        if name in self.custom or not is_name(name):
            return self.custom.get(name, name)
        raise Failed(f"There is no ruleset {name}.")

    def _rule_name(self, ruleset_id: str, rule_id: str) -> str:
        return self.rules_in(ruleset_id).get(rule_id, rule_id) if ruleset_id in self._names else rule_id

    def _rule_id(self, name: str, rule: str) -> str:
        if name not in self.custom:
            return rule
        rules = self.rules_in(self.custom[name])
        if rule in rules:
            return rule
        found = next((id_ for id_, called in rules.items() if called == rule), None)
        if found is None:
            raise Failed(f"The ruleset {name} has no rule {rule!r}.")
        return found


def is_name(text: str) -> bool:
    """Whether that is a custom ruleset as documents name it. An id is none."""
    return _SEPARATOR in text


def names_in(rule: Json) -> Iterator[str]:
    """The custom rulesets that a rule of a document executes, skips, or skips rules of."""
    return filter(is_name, _references(rule))


def _references(rule: Json) -> list[str]:
    """The rulesets that a rule executes, skips, or skips rules of: names and ids."""
    found: list[str] = []

    def note(name: str) -> str:
        found.append(name)
        return name

    _translated(rule, note, lambda _, one: one)
    return found


def not_here(rule: Json, absent: Sequence[str]) -> str:
    """What is said of a rule of another server that names rulesets which are not here."""
    words = rule.get("description") or rule.get("expression", "true")
    return f"a rule to {rule['action']} the ruleset {listed(absent)}, which is not here: {words}"


def newest(rule: Json) -> Json:
    """A rule of a document without the version of the custom ruleset that it executes, if it names one: each
    server counts them on its own."""
    parameters: Json = rule.get("action_parameters") or {}
    if "version" not in parameters or not any(names_in(rule)):
        return rule
    rest = {member: value for member, value in parameters.items() if member != "version"}
    return {**rule, "action_parameters": rest}


def _translated(rule: Json, ruleset: Callable[[str], str], rule_in: Callable[[str, str], str]) -> Json:
    """The rule with other words for what it executes (`id`) and skips (`rulesets`, `rules`)."""
    parameters = rule.get("action_parameters")
    if not isinstance(parameters, dict):
        return rule
    new = dict(parameters)
    if rule.get("action") == "execute" and isinstance(new.get("id"), str):
        new["id"] = ruleset(new["id"])
    if rule.get("action") == "skip" and isinstance(new.get("rulesets"), list):
        new["rulesets"] = [ruleset(one) for one in new["rulesets"]]
    if rule.get("action") == "skip" and isinstance(new.get("rules"), dict):
        new["rules"] = {
            ruleset(name): [rule_in(name, one) for one in rules] for name, rules in new["rules"].items()
        }
    return {**rule, "action_parameters": new}


def rule_names(rules: Sequence[Json]) -> dict[str, str]:
    """By id. One whose words are another's too keeps its id."""
    called = {rule["id"]: rule_words(rule) for rule in rules}
    counts = Counter(called.values())
    return {id_: words if counts[words] == 1 else id_ for id_, words in called.items()}


def rule_words(rule: Json) -> str:
    """What a rule is called, of a server or of a document."""
    ref = rule.get("ref")
    own = ref if ref != rule.get("id") else None
    return str(own or rule.get("description") or rule.get("expression", "true"))


def kept(rules: Iterable[Json], present: Mapping[str, str]) -> list[Json]:
    """Rules of a document as they are sent. One that is called as one that is there stays that rule, with its
    id, by which others may skip it; `present` is what those are called, by id."""
    ids = {words: id_ for id_, words in present.items()}
    bodies = []
    for rule in rules:
        own = ids.pop(rule_words(rule), None)
        same = {"id": own} if own is not None and "ref" not in rule else {}
        bodies.append({"expression": "true", **rule, **same})
    return bodies
