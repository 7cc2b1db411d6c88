"""The managed ruleset in a worker: an engine once its rules are ready, and what zones make of it.

Owns  `ManagedRules`: whether requests can be inspected, policies by overrides.
Not   loading rules or compiling them (`server`); requests.
"""

from collections import Counter
from functools import lru_cache
from typing import Any

import msgspec

from edgestead.crs import ANOMALY_RULE_ID, RULESET_ID, Catalogue, Overrides, RuleOverride, apply_overrides
from edgestead.waf.engine import Engine
from edgestead.waf.transaction import Policy

POLICIES_KEPT_MAX = 1_024  # choices of overrides and exceptions, of all zones together
NOT_LOADED = "the server has no such managed ruleset"
NOT_READY = "the rules are not ready yet"


class ManagedRules:
    """`engine` is None until the rules are ready; `reason` says why it is.

    `ruleset_id` and `anomaly_rule_id` are those that the API shows. `response_octets` is how much of an
    answer's body is inspected; 0: answers are not.
    """

    def __init__(
        self,
        ruleset_id: str = RULESET_ID,
        anomaly_rule_id: str = ANOMALY_RULE_ID,
        response_octets: int = 0,
    ) -> None:
        self.ruleset_id = ruleset_id
        self.anomaly_rule_id = anomaly_rule_id
        self.response_octets = response_octets
        self.engine: Engine | None = None
        self.catalogue: Catalogue | None = None
        self.reason = NOT_LOADED
        self.verdicts: Counter[str] = Counter()  # inspections since the start, by what they led to
        self._inspected: Counter[tuple[str, str]] = Counter()
        self.policy = lru_cache(POLICIES_KEPT_MAX)(self._policy)

    def begin(self) -> None:
        """There is a rule set, and it is being made ready."""
        self.reason = NOT_READY

    def missing(self) -> None:
        """There is no rule set after all."""
        self.reason = NOT_LOADED

    def ready(self, engine: Engine, catalogue: Catalogue) -> None:
        """Inspect with this engine from now on."""
        self.engine, self.catalogue, self.reason = engine, catalogue, ""
        self.policy.cache_clear()

    def count(self, zone_id: str, rule_id: str) -> None:
        """A rule that executes the ruleset has looked at a request of a zone."""
        if len(self._inspected) >= POLICIES_KEPT_MAX * 16:  # of zones and rules that are gone, too
            self._inspected.clear()
        self._inspected[zone_id, rule_id] += 1

    def counted(self, zone_id: str, rule_id: str) -> int:
        """How many it has looked at since the last call."""
        return self._inspected.pop((zone_id, rule_id), 0)

    def unusable(self, ruleset_id: str) -> str:
        """Why a ruleset cannot be executed now; empty when it can."""
        return NOT_LOADED if ruleset_id != self.ruleset_id else self.reason

    def _policy(self, overrides: Overrides, skipped: frozenset[str]) -> Policy:
        """What is left of the ruleset. Exceptions (`skipped`, rule ids) beat every override."""
        assert self.engine is not None
        assert self.catalogue is not None
        left_out = tuple(RuleOverride(id=id_, enabled=False) for id_ in sorted(skipped))
        effective = apply_overrides(
            self.catalogue, msgspec.structs.replace(overrides, rules=overrides.rules + left_out)
        )
        return self.engine.policy(effective)


def overrides_of(parameters: dict[str, Any]) -> Overrides:
    """The overrides of an `execute` rule. Raises: msgspec.ValidationError for what is none."""
    return msgspec.convert(parameters.get("overrides") or {}, Overrides)


NO_RULES = ManagedRules()
