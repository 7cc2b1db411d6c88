"""The roles that a member of an account can have.

Owns  their names and identifiers, and the permission groups that each gives.
Not   who has which (`usecases.account.members`); deciding (`usecases.access.authorise`).

A role is no second kind of right: it stands for groups that a token could name, on one account and its zones.
"""

from typing import NamedTuple

from edgestead.model.ids import fixed_id
from edgestead.model.permissions import BY_NAME, GROUPS, with_implied


class Role(NamedTuple):
    """`groups` are of accounts and zones; a Write group implies its Read group."""

    id: str
    name: str
    description: str
    groups: frozenset[str]


def _role(name: str, description: str, *groups: str) -> Role:
    return Role(fixed_id("role", name), name, description, frozenset(groups))


_ALL = tuple(group.name for group in GROUPS if group.scope != "user")
_READS = tuple(name for name in _ALL if name.endswith(" Read"))
_RULES = ("Zone WAF Write", "Firewall Services Write", "Account WAF Write", "Account Rulesets Write")
_VALUES = ("Workers KV Storage Write", "Objects Write", "Objects Invoke")

SUPER_ADMINISTRATOR = _role(
    "Super Administrator - All Privileges", "May do everything in the account, its members included.", *_ALL
)
ROLES: tuple[Role, ...] = (
    SUPER_ADMINISTRATOR,
    _role(
        "Administrator",
        "May do everything but change the account and its members.",
        *(name for name in _ALL if name != "Account Settings Write"),
    ),
    _role(
        "Editor",
        "May change zones, records, settings, rules, values and objects; makes no token of the account.",
        *_RULES,
        *_VALUES,
        *("Zone Write", "DNS Write", "Zone Settings Write", "SSL and Certificates Write"),
        "Account DNS Settings Write",
        "Account Settings Read",
    ),
    _role(
        "DNS",
        "May change records and DNS settings of every zone.",
        *("Zone Read", "DNS Write", "Zone Settings Read", "Account DNS Settings Write"),
    ),
    _role(
        "Firewall", "May change rules and the WAF.", *_RULES, "Zone Read", "Zone Settings Read", "DNS Read"
    ),
    _role("Objects and Key-Value", "May change values and objects, and call objects.", *_VALUES),
    _role("Administrator Read Only", "May read everything in the account.", *_READS),
)
BY_ID = {role.id: role for role in ROLES}
USER_GROUPS = ("API Tokens Write", "Memberships Write", "User Details Write")
"""What each member may do to what is their own."""


def groups_of(role_ids: list[str]) -> frozenset[str]:
    """What several roles give together; one that is not there any more gives nothing."""
    return frozenset().union(*(BY_ID[one].groups for one in role_ids if one in BY_ID))


def permissions_of(role_ids: list[str], areas: dict[str, str]) -> dict[str, dict[str, bool]]:
    """By area, whether it may be read and written; `areas` maps one to its pair of groups."""
    held = with_implied(groups_of(role_ids))
    return {
        area: {"read": f"{group} Read" in held, "write": f"{group} Write" in held}
        for area, group in areas.items()
    }


assert all(group in BY_NAME for role in ROLES for group in role.groups)
