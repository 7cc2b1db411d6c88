"""Tokens of the user: what each may do, when it was used last, revoking one.

Owns  the page.
Not   making tokens: `edgecli token create` prints a secret where no browser keeps it.
"""

from edgestead.web.pages.shared import listed
from edgestead.web.visit import ROOT, Moved, Shown, Visit


async def show(visit: Visit) -> Shown:
    return Shown("tokens.html", "Tokens", {"tokens": await listed(visit, "/user/tokens")})


async def revoke(visit: Visit) -> Moved:
    await visit.api.send("DELETE", f"/user/tokens/{visit.field('id')}")
    return Moved(f"{ROOT}/tokens", "The token is revoked: nothing that it asked for happens from now on.")
