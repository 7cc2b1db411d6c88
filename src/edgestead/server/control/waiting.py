"""The first thing of a control process: waiting for the place of one that ends, and freeing what that had.

Owns  waiting; the order of loading and freeing.
Not   control itself (`server.control.main`); which process gets a place (`server.supervisor`).

Nobody writes while there is no control, and in a cluster while a dead process holds the office; loading
control and the database's driver takes a good part of a second of a busy core. A process that waits for a
place has loaded all of it. One that is begun for a place loads the driver first, and the rest when the office
is free, so this module imports next to nothing.
"""

import logging
from contextlib import suppress
from pathlib import Path

from edgestead.server import process
from edgestead.server.entrance import loading
from edgestead.server.messages import ControlStart, WaitingControlStart
from edgestead.server.supervisor.control_life import ControlLife


def main() -> None:
    waiting, messages = process.begin_waiting(WaitingControlStart)
    if waiting.in_cluster and not process.has_place(messages):
        _load_what_frees(Path(waiting.data_dir))
    if not process.has_place(messages):  # given meanwhile: the office is freed before the rest is loaded
        _load_the_rest(in_cluster=waiting.in_cluster)
        process.Status(waiting.status_fd).waiting()
    start = process.take_place(ControlStart, waiting, messages)
    if start.cluster_database is not None:
        _bury_the_one_before(start, start.cluster_database)
    with loading():
        from edgestead.server.control.main import main as live

    live(start)


def _load_what_frees(data_dir: Path) -> None:
    """What takes its time, here, where nobody waits for it."""
    import edgestead.postgres.incarnations  # noqa: F401 - with the driver
    from edgestead.server.nodes import identity

    with suppress(identity.NotANode, OSError):  # said when it matters
        identity.member_of(data_dir / identity.FOLDER)  # loads what reads certificates


def _load_the_rest(*, in_cluster: bool) -> None:
    with loading():
        import edgestead.server.control.main

        if in_cluster:
            import edgestead.server.cluster.part  # noqa: F401 - to have it
    process.rest_collector()


def _bury_the_one_before(start: ControlStart, dsn: str) -> None:
    """Other processes need not wait for its lease. Without the database or an identity they do.

    So the leases that it granted to processes of this machine end first (`main` lets new ones count).
    """
    ControlLife(start.control_life_fd, writes=True).shuts()
    import psycopg

    from edgestead.postgres.connection import Misconfigured, Trouble
    from edgestead.postgres.incarnations import bury
    from edgestead.server.nodes import identity

    try:
        bury(dsn, identity.member_of(Path(start.data_dir, identity.FOLDER)).peer.name)
    except (Trouble, Misconfigured, psycopg.Error, identity.NotANode, OSError) as error:
        logging.getLogger("edgestead.server").info(
            "what the process before this one had is not freed: %s", error
        )
