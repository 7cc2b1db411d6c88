"""The permission groups that a token's policies name.

Owns  their names, identifiers, scopes, and which implies which.
Asks  `model.ids`.
Tells `services.access` and the routes, which each name one.
Not   deciding.

A Write group implies the Read group of the same name. The WAF of an account is one part of its rulesets, and
whoever may write one may write the other: the API has one family of routes for both.
"""

from typing import Literal, NamedTuple

from edgestead.model.ids import fixed_id

Scope = Literal["zone", "account", "user"]


class PermissionGroup(NamedTuple):
    id: str
    name: str
    scope: Scope


_PAIRS: tuple[tuple[str, Scope], ...] = (
    ("Zone", "zone"),
    ("DNS", "zone"),
    ("Zone Settings", "zone"),
    ("Zone WAF", "zone"),
    ("Account WAF", "account"),
    ("Account Rulesets", "account"),
    ("Workers KV Storage", "account"),
    ("Account Settings", "account"),
    ("Account API Tokens", "account"),
    ("Account DNS Settings", "account"),
    ("Objects", "account"),
    ("API Tokens", "user"),
    ("Memberships", "user"),
    ("User Details", "user"),
)
_SINGLE: tuple[tuple[str, Scope], ...] = (("Objects Invoke", "account"),)

GROUPS: tuple[PermissionGroup, ...] = tuple(
    PermissionGroup(fixed_id("permission group", name), name, scope)
    for name, scope in (
        *((f"{area} {kind}", scope) for area, scope in _PAIRS for kind in ("Read", "Write")),
        *_SINGLE,
    )
)
BY_NAME = {group.name: group for group in GROUPS}
BY_ID = {group.id: group for group in GROUPS}


def with_implied(names: frozenset[str]) -> frozenset[str]:
    """The names, and what they imply: Read of each Write, the account's rulesets of its WAF."""
    names |= {name.replace("WAF", "Rulesets") for name in names if name.startswith("Account WAF ")}
    return names | {name.removesuffix("Write") + "Read" for name in names if name.endswith(" Write")}
