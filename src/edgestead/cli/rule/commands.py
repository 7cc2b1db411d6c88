"""`edgecli rule`: its commands by name.

Owns  the group's table.
Not   the commands. Imports click and the standard library only.
"""

from edgestead.cli.lazy import Lazy, LazyGroup

_RULES, _TRIAL = "edgestead.cli.rule.rules", "edgestead.cli.rule.trial"

COMMANDS = {
    "list": Lazy(_RULES, "list_rules", "List the rules of a zone in the order of evaluation."),
    "get": Lazy(_RULES, "get", "Print one rule as JSON."),
    "add": Lazy(_RULES, "add", "Add a rule to a phase."),
    "edit": Lazy(_RULES, "edit", "Change some members of a rule."),
    "move": Lazy(_RULES, "move", "Give a rule another place in its phase."),
    "remove": Lazy(_RULES, "remove", "Remove a rule."),
    "test": Lazy(_TRIAL, "try_request", "Say which rules a request would match. No request is sent."),
}

rule = LazyGroup(
    "rule",
    table=COMMANDS,
    help="""List, add, edit, move, remove and try the rules of a zone.

    A PHASE is one of the words that `edgecli rule add --help` lists, or the full name of a phase. A RULE is
    identified by its id or ref. A change is enforced by every edge process when the command says so.""",
)
