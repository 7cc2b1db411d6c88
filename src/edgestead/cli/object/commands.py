"""`edgecli object`: its commands by name.

Owns  the group's table.
Not   the commands. Imports click and the standard library only.
"""

from edgestead.cli.lazy import Lazy, LazyGroup

_READ, _USE = "edgestead.cli.object.read", "edgestead.cli.object.use"
_TIME, _ADOPT = "edgestead.cli.object.past", "edgestead.cli.object.adopt"
_HELD, _APART = "edgestead.cli.object.quarantine", "edgestead.cli.object.apart"

COMMANDS = {
    "list": Lazy(_READ, "list_objects", "List objects that have stored something."),
    "info": Lazy(_READ, "info", "Show facts of one object."),
    "where": Lazy(_READ, "where", "Show which machine and process runs an object."),
    "call": Lazy(_USE, "call", "Call a method of an object."),
    "stats": Lazy(_READ, "stats", "Show what the code of each class takes of the processors."),
    "sql": Lazy(_USE, "sql", "Run SQL on an object's database."),
    "export": Lazy(_READ, "export", "Save an object's database as a plain SQLite file."),
    "bookmark": Lazy(_TIME, "bookmark", "Print the bookmark of now, or of a time."),
    "timeline": Lazy(_TIME, "timeline", "Show the moments that an object can be taken back to."),
    "restore": Lazy(_TIME, "restore", "Take an object back to a bookmark or a time."),
    "undo": Lazy(_TIME, "undo", "Take back the last restore."),
    "alarm": Lazy(_TIME, "alarm", "Show, set, delete or run an object's alarm."),
    "apart": Lazy(_APART, "apart", "List classes that have a process of their own, and let one go back."),
    "quarantine": Lazy(_HELD, "quarantine", "List and release what is not run because it ended processes."),
    "release": Lazy(_HELD, "release_quarantine", "Let an object in quarantine run again."),
    "verify": Lazy(_READ, "verify", "Check every page, index and record of objects."),
    "delete": Lazy(_USE, "delete", "Delete what an object has stored."),
    "accept-loss": Lazy(_ADOPT, "accept_loss", "Go on with logs that lost acknowledged records."),
    "adopt": Lazy(_ADOPT, "adopt", "Make a copied data folder's objects their own."),
}

object_ = LazyGroup(
    "object",
    table=COMMANDS,
    help="""List, call, query, copy and mend stateful objects.

    An object is meant by its CLASS and NAME, or with --id by its id. Its class need not be loaded, but to be
    called. Address and credentials come from EDGE_OBJECTS_ADDR and EDGE_TOKEN (or EDGE_EMAIL and EDGE_KEY),
    or else from the server that runs on this machine.

    \b
      edgecli object list
      edgecli object call Leaderboard chess submit ann 1200
      edgecli object sql Leaderboard chess 'SELECT * FROM scores'""",
)
