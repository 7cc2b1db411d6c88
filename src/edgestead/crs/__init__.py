"""SecLang text to typed rules and a catalogue of them. Only `loader` touches the disk."""

from .catalogue import ANOMALY_RULE_ID, RULESET_ID, Catalogue, Entry, build_catalogue, paranoia_level, scores
from .errors import RuleError, RulesMissing, RulesUnreadable
from .loader import RuleFiles, load
from .overrides import CategoryOverride, Effective, Overrides, RuleOverride, apply_overrides
from .parser import parse
from .rules import Control, Marker, Operator, Program, Rule, SetVar, Severity, Variable

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
