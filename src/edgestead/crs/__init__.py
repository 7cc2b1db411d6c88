"""SecLang text to typed rules and a catalogue of them. Only `loader` touches the disk."""

from edgestead.crs.catalogue import (
    ANOMALY_RULE_ID,
    RULESET_ID,
    Catalogue,
    Entry,
    build_catalogue,
    paranoia_level,
    scores,
)
from edgestead.crs.errors import RuleError, RulesMissing, RulesUnreadable
from edgestead.crs.loader import RuleFiles, load
from edgestead.crs.overrides import CategoryOverride, Effective, Overrides, RuleOverride, apply_overrides
from edgestead.crs.parser import parse
from edgestead.crs.rules import Control, Marker, Operator, Program, Rule, SetVar, Severity, Variable

__all__ = [
    "ANOMALY_RULE_ID",
    "RULESET_ID",
    "Catalogue",
    "CategoryOverride",
    "Control",
    "Effective",
    "Entry",
    "Marker",
    "Operator",
    "Overrides",
    "Program",
    "Rule",
    "RuleError",
    "RuleFiles",
    "RuleOverride",
    "RulesMissing",
    "RulesUnreadable",
    "SetVar",
    "Severity",
    "Variable",
    "apply_overrides",
    "build_catalogue",
    "load",
    "paranoia_level",
    "parse",
    "scores",
]
