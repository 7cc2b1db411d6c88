"""What rules name: whether it exists when they are written, and that it is not deleted while they name it.

Owns  the checks of `execute` and `skip` against what is stored and loaded (rulesets, versions, rules,
      categories); what counts as naming a ruleset or one of its versions.
Not   the form of a rule (`usecases.ruleset.rule`).

Only current versions count. An old version may name what is gone: sending its rules again is refused then.
Source: contract "Rulesets" §4.
"""

from collections.abc import Iterable, Iterator
from typing import Any, NoReturn

import msgspec

from edgestead.model.call import Profile
from edgestead.model.refusals.ruleset import ReferenceRefused
from edgestead.store.control import Reader
from edgestead.tables import rulesets
from edgestead.tables.rulesets import RulesetRow
from edgestead.usecases.ruleset.actions import LATEST
from edgestead.usecases.ruleset.gathered import Refusals
from edgestead.usecases.ruleset.managed import HOW_TO_LOAD, ManagedRuleset
from edgestead.usecases.ruleset.phases import EXECUTE, SKIP
from edgestead.usecases.ruleset.rule import RuleDraft
from edgestead.usecases.ruleset.shapes import Place

NO_SUCH_RULE = (
    "the ruleset has no such rule: ids of other servers do not carry over, look in its rules for the one"
    " whose description has the same number"
)
_ids = msgspec.json.Decoder(list[dict[str, Any]]).decode


class References:
    """What the rules of one ruleset may name. Made for one transaction; notes what is wrong in `refusals`."""

    def __init__(
        self,
        reader: Reader,
        managed: ManagedRuleset | None,
        account_id: str,
        kind: str,
        profile: Profile,
        refusals: Refusals,
    ) -> None:
        self._refusals = refusals
        self._reader = reader
        self._any_version = profile is Profile.CLIENTS
        self._managed = managed
        self._kind = kind
        self._custom = {row.id: row for row in rulesets.custom_rulesets(reader, account_id)}

    def check(self, draft: RuleDraft) -> None:
        """Note every name in the rule that means nothing. A rule that stays as it is was checked before."""
        if draft.definition is None:
            return
        action = draft.definition["action"]
        parameters = draft.definition.get("action_parameters", {})
        place = draft.place.at("action_parameters")
        if action == EXECUTE:
            self._check_execute(parameters, place)
        elif action == SKIP:
            self._check_skip(parameters, place)

    def _check_execute(self, parameters: dict[str, Any], place: Place) -> None:
        gathered, id_ = self._refusals.gathered, parameters["id"]
        managed = self._managed_named(id_)
        if managed is not None:
            with gathered():
                _check_phase(managed.phase, id_, place)
            with gathered():
                self._check_loaded(managed, parameters["version"], place.at("version"))
            check_overrides(parameters.get("overrides", {}), place.at("overrides"), managed, self._refusals)
            return
        with gathered():
            self._check_may_execute(id_, place)
        if id_ in self._custom:
            with gathered():
                self._check_version(self._custom[id_], parameters["version"], place.at("version"))
            with gathered():
                _no_overrides(parameters, place)

    def _check_loaded(self, managed: ManagedRuleset, version: str, place: Place) -> None:
        """Configurations of the hosted service name its own version; here one is loaded and that one runs."""
        if not self._any_version and not managed.is_version(version):
            _refuse(version, place, f"the loaded version is {managed.version}; expected it or {LATEST}")

    def _check_may_execute(self, id_: str, place: Place) -> None:
        custom = self._custom_named(id_, place.at("id"))
        if self._kind == "custom":
            _refuse(id_, place.at("id"), "a custom ruleset cannot execute a custom ruleset")
        _check_phase(custom.phase, id_, place)

    def _check_skip(self, parameters: dict[str, Any], place: Place) -> None:
        for index, id_ in enumerate(parameters.get("rulesets", ())):
            with self._refusals.gathered():
                if self._managed_named(id_) is None:
                    self._custom_named(id_, place.at("rulesets").at(index))
        for id_, rule_ids in parameters.get("rules", {}).items():
            self._check_skipped(id_, rule_ids, place.at("rules").at(id_))

    def _check_skipped(self, id_: str, rule_ids: list[str], place: Place) -> None:
        known: frozenset[str] = frozenset(rule_ids)  # of an unknown ruleset nothing more is said
        with self._refusals.gathered():
            known = self._rule_ids(id_, place)
        for index, rule_id in enumerate(rule_ids):
            if rule_id not in known:
                with self._refusals.gathered():
                    _refuse(rule_id, place.at(index), f"ruleset {id_} has no such rule")

    def _rule_ids(self, id_: str, place: Place) -> frozenset[str]:
        managed = self._managed_named(id_)
        if managed is not None:
            return frozenset(managed.entries)
        self._custom_named(id_, place)
        row = rulesets.ruleset(self._reader, id_)
        assert row is not None
        return frozenset(rule["id"] for rule in _ids(row.rules))

    def _managed_named(self, id_: str) -> ManagedRuleset | None:
        return self._managed if self._managed is not None and self._managed.id == id_ else None

    def _custom_named(self, id_: str, place: Place) -> RulesetRow:
        found = self._custom.get(id_)
        if found is None:
            reason = "there is no such ruleset"
            if self._managed is None:
                reason += f", and no managed ruleset is loaded: {HOW_TO_LOAD}"
            _refuse(id_, place, reason)
        return found

    def _check_version(self, custom: RulesetRow, version: str, place: Place) -> None:
        if version == LATEST:
            return
        if rulesets.ruleset_version(self._reader, custom.id, int(version)) is None:
            _refuse(
                version, place, f"ruleset {custom.id} has no such version; expected {LATEST} or one it has"
            )


def check_overrides(
    overrides: dict[str, Any], place: Place, managed: ManagedRuleset, refusals: Refusals
) -> None:
    """Note every rule or category that the ruleset does not have, and what cannot be overridden in it."""
    with refusals.gathered():
        _no_sensitivity(overrides, place)
    for name, check in (("categories", _check_category), ("rules", _check_rule)):
        for index, item in enumerate(overrides.get(name, ())):
            with refusals.gathered():
                check(item, place.at(name).at(index), managed)


def _check_category(item: dict[str, Any], place: Place, managed: ManagedRuleset) -> None:
    _no_sensitivity(item, place)
    if item["category"] not in managed.catalogue.categories:
        _refuse(item["category"], place.at("category"), "no rule of the ruleset has this category")


def _check_rule(item: dict[str, Any], place: Place, managed: ManagedRuleset) -> None:
    _no_sensitivity(item, place)
    entry = managed.entries.get(item["id"])
    if entry is None:
        _refuse(item["id"], place.at("id"), NO_SUCH_RULE)
    elif "score_threshold" in item and entry.score_threshold is None:
        reason = f"only the anomaly rule {managed.catalogue.anomaly_rule.id} has a threshold"
        place.at("score_threshold").refuse(item["score_threshold"], reason)


def _no_overrides(parameters: dict[str, Any], place: Place) -> None:
    if "overrides" in parameters:
        place.at("overrides").refuse(parameters["overrides"], "only managed rulesets have overrides")


def _no_sensitivity(item: dict[str, Any], place: Place) -> None:
    if "sensitivity_level" in item:
        reason = "it belongs to the rulesets of DDoS phases"
        place.at("sensitivity_level").refuse(item["sensitivity_level"], reason)


def _check_phase(phase: str, id_: str, place: Place) -> None:
    if phase != place.phase:
        _refuse(id_, place.at("id"), f"the ruleset is in phase {phase}")


def _refuse(value: str, place: Place, reason: str) -> NoReturn:
    raise ReferenceRefused(value=value, field=place.field, reason=reason, pointer=place.pointer)


Rule = dict[str, Any]
_decode_rules = msgspec.json.Decoder(list[Rule]).decode


def named(rules: Iterable[Rule]) -> frozenset[str]:
    """The rulesets that these rules execute, skip, or skip rules of."""
    return frozenset(_named(rules))


def pinned(reader: Reader, ruleset_id: str) -> dict[int, str]:
    """The versions that other rulesets execute by their number, each with one of those rulesets.

    Reads the users' rules one ruleset at a time: an account has few that execute a custom one, and each may
    be as large as `RULESET_OCTETS_MAX`.
    """
    found: dict[int, str] = {}
    for user_id in rulesets.users_of(reader, ruleset_id):
        row = rulesets.ruleset(reader, user_id)
        for rule in _decode_rules(row.rules) if row is not None else ():
            parameters = rule.get("action_parameters", {})
            if rule["action"] != EXECUTE or parameters["id"] != ruleset_id:
                continue
            if parameters["version"] != LATEST:
                found[int(parameters["version"])] = user_id
    return found


def _named(rules: Iterable[Rule]) -> Iterator[str]:
    for rule in rules:
        parameters = rule.get("action_parameters", {})
        if rule["action"] == EXECUTE:
            yield parameters["id"]
        elif rule["action"] == SKIP:
            yield from parameters.get("rulesets", ())
            yield from parameters.get("rules", ())
