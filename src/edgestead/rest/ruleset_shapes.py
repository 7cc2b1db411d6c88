"""What the routes of rulesets take and answer, for the API's description.

Owns  the members' names and types.
Not   checking a body: `usecases.ruleset.body` does, and its refusals point at every wrong member at once.
"""

from typing import Any

import msgspec

from edgestead.rest.declared import Answers, flag, number
from edgestead.usecases.ruleset.view import RulesetView


class Position(msgspec.Struct, omit_defaults=True):
    """One of the three. An empty `before` or `after` is the first or last place; `index` counts from 1."""

    before: str | None = None
    after: str | None = None
    index: int | None = None


class Logging(msgspec.Struct):
    enabled: bool


class RuleReplaced(msgspec.Struct, omit_defaults=True, kw_only=True):
    """A rule of a PUT. `id` or `ref` of a rule that is there keeps its identity; without any other member the
    rule stays as it is."""

    action: str | None = None
    expression: str | None = None
    action_parameters: dict[str, Any] = {}
    description: str = ""
    enabled: bool = True
    id: str | None = None
    ref: str | None = None
    logging: Logging | None = None
    ratelimit: dict[str, Any] | None = None
    exposed_credential_check: dict[str, str] | None = None


class RuleSent(RuleReplaced, omit_defaults=True, kw_only=True):
    """A rule."""

    action: str
    expression: str


class PlacedRule(RuleSent, omit_defaults=True, kw_only=True):
    """A rule of its own route, which also takes its place."""

    position: Position | None = None


class RulesetReplaced(msgspec.Struct, omit_defaults=True, kw_only=True):
    """`name`, `kind` and `phase` never change; they may be repeated."""

    name: str | None = None
    description: str | None = None
    kind: str | None = None
    phase: str | None = None
    rules: list[RuleReplaced] = []


class RulesetSent(msgspec.Struct, omit_defaults=True, kw_only=True):
    name: str
    kind: str
    phase: str
    description: str = ""
    rules: list[RuleSent] = []


class EntrypointSent(msgspec.Struct, omit_defaults=True, kw_only=True):
    """Kind and phase are in the path."""

    name: str | None = None
    description: str | None = None
    rules: list[RuleReplaced] = []


class Cursors(msgspec.Struct):
    after: str


class CursorsInfo(msgspec.Struct):
    """There only while more follows: send `after` as `cursor`."""

    cursors: Cursors


DRY_RUN = (flag("dry_run", "Only say whether it could be done; the result is null then."),)
IF_VERSION = (number("if_version", "Refuse the change if this is not the rule's version any more."),)
RULESET = Answers(RulesetView)
RULESETS = Answers(list[RulesetView])
WRITTEN = Answers(RulesetView | None)
