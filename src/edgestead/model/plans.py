"""The plans a zone can have, and what a plan changes.

Owns  their names, identifiers and limits.
Not   money: every plan costs nothing here.
"""

from typing import NamedTuple


class Plan(NamedTuple):
    """One plan. Contract "TTL and proxy", "Text", "PATCH, PUT, batch"."""

    id: str
    name: str
    legacy_id: str
    ttl_seconds_min: int
    comment_characters_max: int
    batch_changes_max: int


PLANS: dict[str, Plan] = {
    plan.legacy_id: plan
    for plan in (
        Plan("0feeeeeeeeeeeeeeeeeeeeeeeeeeeeee", "Free Website", "free", 60, 100, 200),
        Plan("1feeeeeeeeeeeeeeeeeeeeeeeeeeeeee", "Pro Website", "pro", 60, 500, 3_500),
        Plan("2feeeeeeeeeeeeeeeeeeeeeeeeeeeeee", "Business Website", "business", 60, 500, 3_500),
        Plan("94f3b7b768b0458b56d2cac4fe5ec0f9", "Enterprise Website", "enterprise", 30, 500, 3_500),
    )
}
PLAN_AT_BIRTH = "free"
