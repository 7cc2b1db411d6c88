"""The cluster: its nodes, who leads, how far behind they are, where an acknowledged write is.

Owns  the page. Who may read the account's members sees it.
Not   the facts: `edgecli cluster status` has the same.
"""

from edgestead.web.asker import Refused
from edgestead.web.pages.shared import account_of
from edgestead.web.visit import Shown, Visit


async def show(visit: Visit) -> Shown:
    if visit.cluster is None:
        message = "This server is no node of a cluster. `edgecli cluster init` makes one."
        raise Refused(404, [{"code": 1001, "message": message}])
    await visit.api.result(f"/accounts/{await account_of(visit)}/roles")
    found = await visit.cluster()
    return Shown("cluster.html", "Cluster", {"found": found}, 503 if found["error"] else 200)
