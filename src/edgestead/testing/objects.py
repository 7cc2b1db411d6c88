"""Stateful objects without a server, for tests of classes.

Owns  a node on real files, for as long as a block lasts.
Asks  `objects.host`.
Tells the test, through the same `env` that objects have.
Not   HTTP, tokens, other processes.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from os import PathLike, fspath

from edgestead.objects.classes import StatefulObject, describe
from edgestead.objects.env import Env
from edgestead.objects.host import Host


@asynccontextmanager
async def objects(folder: str | PathLike[str], *classes: type[StatefulObject]) -> AsyncIterator[Env]:
    """Run these classes on a folder, where a later block finds what they stored.

    Raises TypeError for a class that breaks a rule; BlockingIOError when the folder is in use; OSError.
    """
    host = Host(fspath(folder), {kind.__name__: describe(kind) for kind in classes})
    host.node.start()
    try:
        yield host.node.env
    finally:
        await host.close()
