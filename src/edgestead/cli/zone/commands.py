"""`edgecli zone`: its commands by name.

Owns  the group's table.
Not   the commands. Imports click and the standard library only.
"""

from edgestead.cli.lazy import Lazy, LazyGroup

_ZONES, _HISTORY, _FILE = "edgestead.cli.zone.life", "edgestead.cli.zone.history", "edgestead.cli.zone.file"

COMMANDS = {
    "list": Lazy(_ZONES, "list_zones", "List zones."),
    "create": Lazy(_ZONES, "create", "Create a zone; DNS answers for it at once."),
    "get": Lazy(_ZONES, "get", "Show one zone."),
    "delete": Lazy(_ZONES, "delete", "Delete a zone with its records."),
    "import": Lazy(_FILE, "import_file", "Add the records of a zone file."),
    "export": Lazy(_FILE, "export_file", "Print a zone's records as a zone file."),
    "history": Lazy(_HISTORY, "history", "Show who changed what, newest first."),
    "restore": Lazy(_HISTORY, "restore", "Make a zone, or a name in it, what it once was."),
    "pause": Lazy(_ZONES, "pause", "Switch off all rules of a zone, until it is unpaused."),
    "unpause": Lazy(_ZONES, "unpause", "End a pause: the rules hold again."),
    "undo": Lazy(_HISTORY, "undo", "Take one change back."),
}

zone = LazyGroup(
    "zone",
    table=COMMANDS,
    help="""Create, list and delete zones; import, export, history and undo.

    A ZONE is meant by its name or id. Server and credentials come from EDGE_API_BASE and EDGE_TOKEN (or
    EDGE_EMAIL and EDGE_KEY), or else from the server that runs on this machine. When a command has said that
    something is done, DNS already answers so.""",
)
