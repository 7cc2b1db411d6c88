"""The ways in which a token's right ends, as changes of its row.

Owns  the table.
Not   writing the row; the moments at which a request meets the end.
"""

from collections.abc import Callable

from edgestead.tables.tokens import TokenRow
from edgestead.usecases.access.authorise import secret_hash

PAST_US = 1_000_000

REVOCATIONS: dict[str, Callable[[TokenRow], TokenRow | None]] = {  # None: the row is gone
    "deleted": lambda row: None,
    "disabled": lambda row: row._replace(status="disabled"),
    "rolled": lambda row: row._replace(hash=secret_hash("another-secret_0123456789abcdefABCDEF01")),
    "narrowed": lambda row: row._replace(policies="[]"),
    "bound to an address": lambda row: row._replace(condition='{"request_ip":{"in":["192.0.2.0/24"]}}'),
    "over": lambda row: row._replace(expires_us=PAST_US),
}
