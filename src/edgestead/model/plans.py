"""The plans a zone can have, and what a plan changes.

Owns  their names, identifiers and limits.
Asks  nobody.
Tells `services`.
Not   money: every plan costs nothing here.
"""

from typing import NamedTuple


class Plan(NamedTuple):
    id: str
    name: str
    legacy_id: str
    ttl_seconds_min: int


PLANS: dict[str, Plan] = {
    plan.legacy_id: plan
    for plan in (
        Plan("0feeeeeeeeeeeeeeeeeeeeeeeeeeeeee", "Free Website", "free", 60),
        Plan("1feeeeeeeeeeeeeeeeeeeeeeeeeeeeee", "Pro Website", "pro", 60),
        Plan("2feeeeeeeeeeeeeeeeeeeeeeeeeeeeee", "Business Website", "business", 60),
        Plan("94f3b7b768b0458b56d2cac4fe5ec0f9", "Enterprise Website", "enterprise", 30),
    )
}
PLAN_AT_BIRTH = "free"
