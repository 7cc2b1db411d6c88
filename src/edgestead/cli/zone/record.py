"""`edgecli record`: its commands by name.

Owns  the group's table.
Not   the commands. Imports click and the standard library only.
"""

from edgestead.cli.lazy import Lazy, LazyGroup

_RECORDS, _CHANGES, _FILE = (
    "edgestead.cli.zone.record_read",
    "edgestead.cli.zone.record_write",
    "edgestead.cli.zone.file",
)

COMMANDS = {
    "list": Lazy(_RECORDS, "list_records", "List the records of a zone."),
    "get": Lazy(_RECORDS, "get", "Show one record."),
    "create": Lazy(_CHANGES, "create", "Create a record."),
    "update": Lazy(_CHANGES, "update", "Change some members of a record."),
    "delete": Lazy(_CHANGES, "delete", "Delete a record."),
    "import": Lazy(_FILE, "import_file", "Add the records of a zone file."),
    "export": Lazy(_FILE, "export_file", "Print a zone's records as a zone file."),
}

record = LazyGroup(
    "record",
    table=COMMANDS,
    help="""Create, list, change and delete the DNS records of a zone.

    A ZONE is meant by its name or id, a RECORD by its id or name. Server and credentials come from
    EDGE_API_BASE and EDGE_TOKEN (or EDGE_EMAIL and EDGE_KEY), or else from the server that runs on this
    machine. When a command has said that something is done, DNS already answers so.

    \b
      edgecli record create example.com www A 192.0.2.10 --ttl 300
      edgecli record create example.com @ MX mail.example.com --priority 10
      edgecli record update example.com www --content 192.0.2.11
      edgecli record delete example.com www --type A""",
)
