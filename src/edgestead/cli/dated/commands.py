"""`edgecli deprecations`: its commands by name.

Owns  the group's table.
Not   the commands. Imports click and the standard library only.
"""

from edgestead.cli.lazy import Lazy, LazyGroup

_ROWS, _CHECK = "edgestead.cli.dated.rows", "edgestead.cli.dated.check"

COMMANDS = {
    "list": Lazy(_ROWS, "list_rows", "List what dates ended or replaced."),
    "show": Lazy(_ROWS, "show_row", "Show one row with its endpoints and what to use instead."),
    "check": Lazy(_CHECK, "check", "Find uses in source, configuration, HAR files and access logs."),
    "usage": Lazy(_ROWS, "usage", "Show which tokens still use what a date ended, on a running server."),
}

deprecations = LazyGroup(
    "deprecations",
    table=COMMANDS,
    help="""Find what a client uses that a date ended or replaced.

    \b
      edgecli deprecations list
      edgecli deprecations show firewall-rules
      edgecli deprecations check src/ deploy.yml
      edgecli deprecations usage""",
)
