"""The managed OWASP ruleset as the API shows it.

Owns  its JSON, made once; which of its versions exist.
Not   overrides; running it.

Source: spec "Managed ruleset configuration"; contract "Rulesets" §5; docs/explanation/crs.md.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import msgspec

from edgestead.crs import ANOMALY_RULE_ID, RULESET_ID, Catalogue, Entry, build_catalogue, load, parse
from edgestead.model.times import six_digits
from edgestead.usecases.ruleset.actions import LATEST
from edgestead.usecases.ruleset.phases import MANAGED_PHASE
from edgestead.usecases.ruleset.view import SOURCES, RulesetView, encode

PACKAGE = "modsecurity-crs"
HOW_TO_LOAD = f"install the package {PACKAGE} (apt install {PACKAGE}), or start the server with --crs PATH"


class Increment(msgspec.Struct, frozen=True):
    increment: int


class ManagedRuleView(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A rule without an expression: the platform's own text is not shown."""

    id: str
    version: str
    action: str
    action_parameters: Increment | None = None
    categories: tuple[str, ...] = ()
    score_threshold: int | None = None
    description: str
    last_updated: str
    ref: str
    enabled: bool


class ManagedRuleset:
    """One loaded catalogue. `summary` and `whole` are JSON texts.

    `remarks` list what cannot work on this machine; the deploying client gets them.
    """

    __slots__ = ("_updated", "catalogue", "entries", "phase", "remarks", "summary", "whole")

    def __init__(self, catalogue: Catalogue, updated_us: int, remarks: tuple[str, ...] = ()) -> None:
        self.catalogue = catalogue
        self.remarks = remarks
        self.entries = catalogue.by_id()
        self.phase = MANAGED_PHASE
        self._updated = six_digits(updated_us)
        self.summary = encode(self._view(None))
        self.whole = encode(self._view(catalogue.entries))

    @property
    def id(self) -> str:
        return self.catalogue.id

    @property
    def version(self) -> str:
        return self.catalogue.version

    def is_version(self, version: str) -> bool:
        return version in (LATEST, self.version)

    def by_tag(self, tag: str) -> bytes:
        """The ruleset with only the rules that have the tag as a category."""
        return encode(self._view([entry for entry in self.catalogue.entries if tag in entry.categories]))

    def _view(self, entries: "tuple[Entry, ...] | list[Entry] | None") -> RulesetView:
        rules = msgspec.UNSET if entries is None else msgspec.Raw(encode([*map(self._rule, entries)]))
        return RulesetView(
            id=self.id,
            name=self.catalogue.name,
            description=self.catalogue.description,
            source=SOURCES[self.phase],
            kind="managed",
            version=self.version,
            rules=rules,
            last_updated=self._updated,
            phase=self.phase,
        )

    def _rule(self, entry: Entry) -> ManagedRuleView:
        return ManagedRuleView(
            id=entry.id,
            version=entry.version,
            action=entry.action,
            action_parameters=None if entry.increment is None else Increment(entry.increment),
            categories=entry.categories,
            score_threshold=entry.score_threshold,
            description=entry.description,
            last_updated=self._updated,
            ref=entry.ref,
            enabled=True,
        )


class Platform(Protocol):
    """What use cases of rulesets ask of the server (`usecases.platform`)."""

    @property
    def managed(self) -> ManagedRuleset | None: ...

    @property
    def new_id(self) -> Callable[[], str]: ...


def load_managed(
    path: Path | None = None,
    *,
    ruleset_id: str = RULESET_ID,
    anomaly_rule_id: str = ANOMALY_RULE_ID,
    remarks: tuple[str, ...] = (),
) -> ManagedRuleset:
    """Read the rule set at `path` (folder or release archive), or the system's; 150 ms.

    Raises RulesUnreadable: none there, or unreadable; RuleError: text that is not understood; ValueError: a
    rule set without anomaly scores. What `crs` refuses is refused as a whole.
    """
    files = load(path)
    catalogue = build_catalogue(
        parse(files.files, files.entries), ruleset_id=ruleset_id, anomaly_rule_id=anomaly_rule_id
    )
    return ManagedRuleset(catalogue, files.modified_us, remarks)
