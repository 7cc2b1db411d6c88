"""Interfaces that a date ended or replaced, and who still calls them.

Owns  the page.
Not   what is dated (`changes`).
"""

from edgestead.web.pages.shared import account_of, listed
from edgestead.web.visit import Shown, Visit

ROWS_MAX = 10  # credentials of a page: each has a table


async def show(visit: Visit) -> Shown:
    path = f"/accounts/{await account_of(visit)}/deprecations/usage"
    return Shown("dates.html", "Dates", {"usage": await listed(visit, path, per_page=ROWS_MAX)})
