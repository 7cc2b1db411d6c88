"""The permission groups that a token's policies name.

Owns  their names, identifiers, scopes, and which implies which.
Not   deciding.

A Write group implies the Read group of the same name. The WAF of an account is one part of its rulesets, and
the right to write one includes the other: the API has one family of routes for both.
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
    ("Firewall Services", "zone"),
    ("SSL and Certificates", "zone"),
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
# The published identifiers of Read and Write: configurations and programs hold them (contract "Published ids
# of permission groups"). Groups that only this platform has are named by a digest.
_PUBLISHED: dict[str, tuple[str, str]] = {
    "Zone": ("c8fed203ed3043cba015a93ad1616f1f", "e6d2666161e84845a636613608cee8d5"),
    "DNS": ("82e64a83756745bbbb1c9c2701bf816b", "4755a26eedb94da69e1066d98aa820be"),
    "Zone Settings": ("517b21aee92c4d89936c976ba6e4be55", "3030687196b94b638145a3953da2b699"),
    "Zone WAF": ("dbc512b354774852af2b5a5f4ba3d470", "fb6778dc191143babbfaa57993f1d275"),
    "Firewall Services": ("4ec32dfcb35641c5bb32d5ef1ab963b4", "43137f8d07884d3198dc0ee77ca6e79b"),
    "SSL and Certificates": ("7b7216b327b04b8fbc8f524e1f9b7531", "c03055bc037c4ea9afb9a9f104b7b721"),
    "Account WAF": ("56b2af4817c84ad99187911dc3986c23", "cde8c82463b6414ca06e46b9633f52a6"),
    "Account Rulesets": ("fb39996ee9044d2a8725921e02744b39", "56907406c3d548ed902070ec4df0e328"),
    "Workers KV Storage": ("8b47d2786a534c08a1f94ee8f9f599ef", "f7f0eda5697f475c90846e879bab8666"),
    "Account Settings": ("c1fde68c7bcc44588cbb6ddbc16d6480", "1af1fa2adc104452b74a9a3364202f20"),
    "Account API Tokens": ("eb56a6953c034b9d97dd838155666f06", "5bc3f8b21c554832afc660159ab75fa4"),
    "Account DNS Settings": ("cfa964bcdafc4ab39704e7476154e41b", "dc44f27f48ab405392a5f69fe822bd01"),
}
# Metrics tell of all accounts together, so no account's owner can give them away.
_SINGLE: tuple[tuple[str, Scope], ...] = (("Objects Invoke", "account"), ("Metrics Read", "user"))


def _own_id(name: str) -> str:
    return fixed_id("permission group", name)


def _pair(area: str, scope: Scope) -> tuple[PermissionGroup, PermissionGroup]:
    read, write = f"{area} Read", f"{area} Write"
    ids = _PUBLISHED.get(area, (_own_id(read), _own_id(write)))
    return PermissionGroup(ids[0], read, scope), PermissionGroup(ids[1], write, scope)


GROUPS: tuple[PermissionGroup, ...] = (
    *(group for area, scope in _PAIRS for group in _pair(area, scope)),
    *(PermissionGroup(_own_id(name), name, scope) for name, scope in _SINGLE),
)
BY_NAME = {group.name: group for group in GROUPS}
# Tokens of before the published identifiers hold our own.
BY_ID = {id_: group for group in GROUPS for id_ in (_own_id(group.name), group.id)}


def with_implied(names: frozenset[str]) -> frozenset[str]:
    """The names, and what they imply: Read of each Write, the account's rulesets of its WAF."""
    names |= {name.replace("WAF", "Rulesets") for name in names if name.startswith("Account WAF ")}
    return names | {name.removesuffix("Write") + "Read" for name in names if name.endswith(" Write")}
