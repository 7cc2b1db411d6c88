"""Rulesets as JSON text.

Owns  the members of a ruleset and their order.
Not   the members of a rule (`usecases.ruleset.merge`, `usecases.ruleset.managed`).

Source: spec "Ruleset"; contract "Rulesets" §2 and §8.
"""

import msgspec

from edgestead.model.times import six_digits
from edgestead.tables.rulesets import RulesetRow
from edgestead.usecases.ruleset.phases import MANAGED_PHASE

encode = msgspec.json.Encoder().encode
SOURCES = {MANAGED_PHASE: "firewall_managed"}  # the only phase whose source the specification names


class RulesetView(msgspec.Struct, frozen=True, kw_only=True):
    """A ruleset; without `rules` it is a summary, as lists show it."""

    id: str
    name: str
    description: str
    source: str | msgspec.UnsetType = msgspec.UNSET
    kind: str
    version: str
    rules: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    last_updated: str
    phase: str


def summary(row: RulesetRow) -> bytes:
    return encode(_view(row, msgspec.UNSET))


def whole(row: RulesetRow) -> bytes:
    return encode(_view(row, msgspec.Raw(row.rules.encode())))


def _view(row: RulesetRow, rules: msgspec.Raw | msgspec.UnsetType) -> RulesetView:
    return RulesetView(
        id=row.id,
        name=row.name,
        description=row.description,
        source=SOURCES.get(row.phase, msgspec.UNSET),
        kind=row.kind,
        version=str(row.version),
        rules=rules,
        last_updated=six_digits(row.updated_us),
        phase=row.phase,
    )
