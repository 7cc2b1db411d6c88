"""What the dashboard shows of the cluster: looked at once for all who ask, and kept for some seconds.

Owns  the look on a thread, how far each control node is behind.
Not   the facts (`server.founding.look`), the page (`web.pages.cluster`).
"""

import asyncio
from collections.abc import Callable
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from edgestead.server.errors import StartError

if TYPE_CHECKING:
    from edgestead.server.cluster.part import ClusterPart

KEPT_SECONDS: Final = 5.0  # of one look, which takes a second and a connection of the database


class ClusterLook:
    """Used by one event loop."""

    def __init__(self, folder: Path, part: "ClusterPart", clock: Callable[[], float] = monotonic) -> None:
        self._folder, self._part, self._clock = folder, part, clock
        self._looking: asyncio.Task[dict[str, Any]] | None = None
        self._looked_at = 0.0

    async def __call__(self) -> dict[str, Any]:
        """As `edgecli cluster status --json`, each node with `behind`; or `error`."""
        looking = self._looking
        if looking is None or (looking.done() and self._clock() - self._looked_at > KEPT_SECONDS):
            looking = self._looking = asyncio.create_task(self._look())
        return await asyncio.shield(looking)

    async def _look(self) -> dict[str, Any]:
        try:
            found, numbers = await asyncio.to_thread(_facts, self._folder)
        except (StartError, OSError) as error:
            return {"error": str(error)}
        finally:
            self._looked_at = self._clock()
        applied = self._part.membership.seat.members.positions
        for node in found["nodes"]:
            if "control" not in node["roles"]:
                continue  # what it lacks is counted in changes of the feed, and known already
            newest = max((applied.get(number, -1) for number in numbers.get(node["name"], ())), default=-1)
            node["behind"] = max(0, found["log_sequence"] - newest) if newest >= 0 else None
        return found


def _facts(folder: Path) -> tuple[dict[str, Any], dict[str, list[int]]]:
    """And the control processes of each node. Blocks. Raises StartError, OSError."""
    from edgestead.postgres.incarnations import overview
    from edgestead.server.founding.look import look
    from edgestead.server.founding.node import opened

    with opened(folder) as node:
        facts = look(node)
        rows = overview(node.link).rows
    numbers: dict[str, list[int]] = {}
    for number, row in rows.items():
        numbers.setdefault(row.node, []).append(number)
    return {**facts.members, "error": ""}, numbers
