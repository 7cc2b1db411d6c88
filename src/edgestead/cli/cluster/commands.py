"""`edgecli cluster`: its commands by name.

Owns  the group's table.
Not   the commands. Imports click and the standard library only.
"""

from edgestead.cli.lazy import Lazy, LazyGroup

_FIRST, _NODES, _LEAVE = (f"edgestead.cli.cluster.{name}" for name in ("first", "nodes", "leave"))

COMMANDS = {
    "demo": Lazy("edgestead.cli.cluster.demo", "demo", "Try three nodes and a database on this machine."),
    "init": Lazy(_FIRST, "init", "Make a cluster and the folder of its first node."),
    "invite": Lazy(_NODES, "invite", "Print a token by which another machine becomes a node."),
    "status": Lazy(_NODES, "status", "Show the nodes, who leads, and what is not well."),
    "move-leader": Lazy(_NODES, "move_leader", "Let another control node lead."),
    "drain": Lazy(_NODES, "drain", "Make a node one that can be stopped unnoticed."),
    "remove": Lazy(_NODES, "remove", "Let a node in no more."),
    "upgrade-check": Lazy(_NODES, "upgrade_check", "Say what an upgrade would meet."),
    "export": Lazy(_LEAVE, "export", "Copy everything out, to go on with one machine."),
    "backup": Lazy(_LEAVE, "backup", "Copy everything out, to keep it."),
}

cluster = LazyGroup(
    "cluster",
    table=COMMANDS,
    help="""Several machines that are one server, over PostgreSQL.

    What is acknowledged is in the database, on its primary and its synchronous standby; each control node
    has all control data, and one of them leads. Commands below work on the folder of a control node, with
    --cluster or EDGE_CLUSTER.

    \b
      edgecli cluster demo
      edgecli cluster init --database 'postgresql://db1,db2/edge' --name ams-1 --advertise 10.0.0.1:8790 DIR
      edgecli serve --cluster DIR
      edgecli cluster invite ams-2 --role control,objects,edge --cluster DIR""",
)
