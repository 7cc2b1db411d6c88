"""How much an account, a zone or a namespace may hold.

Owns  the quotas that an operator sets, 0 meaning none.
Not   counting: the use case that adds does that in its transaction; the size of a request (`model.limits`).
"""

import msgspec

RECORDS_PER_ZONE_MAX = 1_000_000  # ours: a start reads as many in some seconds


class Quotas(msgspec.Struct, frozen=True, kw_only=True):
    """Sizes of values are in octets, with their keys and metadata."""

    account_zones: int = 0
    zone_records: int = RECORDS_PER_ZONE_MAX
    account_value_bytes: int = 0
    namespace_value_bytes: int = 0


NO_QUOTAS = Quotas()
