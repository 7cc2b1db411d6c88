"""Refusals of rulesets and their rules.

Owns  code, status and wording of each.
Not   what is wrong with an expression (`language` says it), or with the request's credentials.

    NotFound (404)
    ├── RulesetNotFound    10001
    ├── RuleNotFound       10002
    ├── EntrypointNotFound 10003
    ├── VersionNotFound    10004
    └── TagNotFound        10005
    BadRequest (400)
    └── RulesetRefused            20100
        ├── InvalidJson           10026
        │   └── UnknownField      10026
        ├── PhaseRefused          20102
        ├── ParametersNeeded      20113
        ├── ActionNeeded          20114
        ├── TooManyRules          20217
        ├── RulesetTooLarge       20218
        ├── TooManyRegexes        20219
        ├── ManagedIsReadOnly     20221
        ├── RulesetInUse          20222
        ├── CurrentVersion        20223
        ├── VersionInUse          20224
        ├── RuleChanged           20225
        └── ValueRefused          20121
            ├── ActionRefused     20120
            ├── ExpressionBlank   20125
            ├── ExpressionRefused 20127
            ├── ReferenceRefused  20128
            ├── PositionRefused   20129
            ├── DuplicateRule     20130
            └── RulesetExists     20217

A RulesetRefused has a pointer to the member that is wrong. None have those for which no member is: text that
is no JSON, a phase in the path, what is read-only, current, in use, changed meanwhile, or too large as a
whole.
Source: contract "Rulesets" §6; codes that it does not give are ours.
"""

from edgestead.model.refusals import BadRequest, NotFound

_VALUE = "'{value}' is not a valid value for {field} because {reason}"


class RulesetNotFound(NotFound):
    """No such ruleset in this account or zone, or a managed one that is not loaded."""

    code, wording = 10001, "could not find ruleset {ruleset_id}"


class RuleNotFound(NotFound):
    code, wording = 10002, "could not find rule {rule_id} in ruleset {ruleset_id}"


class EntrypointNotFound(NotFound):
    code, wording = 10003, "could not find entrypoint ruleset in the {phase} phase"


class VersionNotFound(NotFound):
    code, wording = 10004, "could not find version {version} of ruleset {ruleset_id}"


class TagNotFound(NotFound):
    """No rule of the managed ruleset has this category."""

    code, wording = 10005, "could not find a rule with tag {tag} in ruleset {ruleset_id}"


class RulesetRefused(BadRequest):
    """Base of every refusal of a ruleset's contents."""

    code, wording = 20100, "{reason}"


class InvalidJson(RulesetRefused):
    """Not JSON, or a member of the wrong type, or one that is missing."""

    code, wording = 10026, "invalid JSON: {reason}"


class UnknownField(InvalidJson):
    code, wording = 10026, 'invalid JSON: unknown field "{field}"'


class PhaseRefused(RulesetRefused):
    """No phase, or one that this kind of ruleset cannot be in."""

    code, wording = 20102, 'phase "{phase}" is not accessible in this API{because}'


class ParametersNeeded(RulesetRefused):
    code, wording = 20113, "action parameters are required for the {action} action"


class ActionNeeded(RulesetRefused):
    code, wording = 20114, "action is required{because}"


class TooManyRules(RulesetRefused):
    code, wording = 20217, "exceeded maximum number of rules in the phase {phase}: {rules} out of {rules_max}"


class RulesetTooLarge(RulesetRefused):
    code, wording = 20218, "the ruleset's rules take {octets} octets as JSON, more than {octets_max}"


class TooManyRegexes(RulesetRefused):
    code, wording = (
        20219,
        "the ruleset's expressions use matches, ~ and regex_replace {uses} times, more than {uses_max}",
    )


class ManagedIsReadOnly(RulesetRefused):
    code, wording = (
        20221,
        "managed rulesets cannot be changed: use overrides in the rule that executes {ruleset_id}",
    )


class RulesetInUse(RulesetRefused):
    code, wording = (
        20222,
        "ruleset {ruleset_id} cannot be deleted because a rule of ruleset {by_id} executes or skips it",
    )


class CurrentVersion(RulesetRefused):
    code, wording = 20223, "version {version} cannot be deleted because it is the current one"


class VersionInUse(RulesetRefused):
    code, wording = (
        20224,
        "version {version} of ruleset {ruleset_id} cannot be deleted because a rule of ruleset {by_id}"
        " executes it",
    )


class RuleChanged(RulesetRefused):
    """Not the version any more that the change was made for."""

    code, wording = (
        20225,
        "rule {rule_id} was changed meanwhile: it has version {version}, and the change is for {meant}",
    )


class ValueRefused(RulesetRefused):
    """A value that the member does not take; also the base of the refusals below."""

    code, wording = 20121, _VALUE


class ActionRefused(ValueRefused):
    code, wording = 20120, "'{value}' is not a valid value for action because {reason}"


class ExpressionBlank(ValueRefused):
    code, wording = 20125, "'' is not a valid value for {field} because the expression cannot be blank"


class ExpressionRefused(ValueRefused):
    code, wording = (
        20127,
        "'{value}' is not a valid value for {field} because could not parse filter expression: {reason}",
    )


class ReferenceRefused(ValueRefused):
    """The name of a ruleset, rule, category or version that does not exist, or cannot be meant here."""

    code, wording = 20128, _VALUE


class PositionRefused(ValueRefused):
    """A rule to stand before or after that is not there, or a place beyond the end."""

    code, wording = 20129, _VALUE


class DuplicateRule(ValueRefused):
    """Two rules of one ruleset with the same `id` or `ref`."""

    code, wording = 20130, _VALUE


class RulesetExists(ValueRefused):
    """A second entry point in a phase, or one custom ruleset too many."""

    code, wording = (
        20217,
        "'{value}' is not a valid value for kind because exceeded maximum number of {value} rulesets"
        " for phase {phase}",
    )
