"""Who is it, and may they do this?

Owns  what an identity is, the reading of policies, the decisions.
Not   whose a secret is (`usecases.access.table`); headers; writing tokens.

A token that another one made has the rights of both: each question is asked of it and of those above it
(`usecases.access.lineage`).
"""

import hashlib
from collections.abc import Mapping, Sequence
from ipaddress import IPv4Network, IPv6Network
from typing import Any, Literal, NamedTuple

import msgspec

from edgestead.model.addresses import plain, plain_network
from edgestead.model.call import Actor
from edgestead.model.permissions import BY_ID, GROUPS, with_implied
from edgestead.model.refusals import EdgeError, Forbidden, MethodNotAllowed
from edgestead.model.refusals.access import (
    AuthenticationError,
    InvalidAccessToken,
    InvalidApiToken,
    TokenNotUsableHere,
    TokenNotUsableNow,
)
from edgestead.model.refusals.kv import KvMethodNotAllowed
from edgestead.model.refusals.request import InvalidBody, JsonDecodeFailure
from edgestead.store.control import Reader
from edgestead.tables import zones
from edgestead.tables.tokens import TokenRow
from edgestead.tables.zones import Seen

ALL_GROUPS = frozenset(group.name for group in GROUPS)
_ZONE_READ, _DNS_WRITE = "Zone Read", "DNS Write"
_FINDERS = frozenset((_ZONE_READ, _DNS_WRITE))  # who has one of them in a zone finds it in the list of zones
_VENDORS = ("com.cloudflare.api.", "com.edge.api.")  # both spellings of a resource are read


class Family(NamedTuple):
    """Which refusals a family of routes speaks (contract "Authentication")."""

    name: str
    unknown: type[EdgeError]
    denied: type[EdgeError]
    method_not_allowed: type[MethodNotAllowed] = MethodNotAllowed
    not_json: type[InvalidBody] = InvalidBody


VERIFY = Family("verify", InvalidApiToken, InvalidApiToken)  # tells only whether the token is good
TOKENS = Family("tokens", InvalidApiToken, Forbidden)
PLATFORM = Family("platform", InvalidAccessToken, Forbidden, not_json=JsonDecodeFailure)
CONTENTS = Family("contents", AuthenticationError, AuthenticationError)
KEY_VALUES = Family("key-values", AuthenticationError, AuthenticationError, KvMethodNotAllowed)


class Group(msgspec.Struct, frozen=True, omit_defaults=True):
    id: str
    name: str | None = None


class Policy(msgspec.Struct, frozen=True):
    """One line of a token's policies, in the shape that the API takes and answers."""

    id: str
    effect: Literal["allow", "deny"]
    permission_groups: list[Group]
    resources: dict[str, Any]


DOTTED_IP = "request.ip"


class Addresses(msgspec.Struct, frozen=True, rename={"in_": "in"}, omit_defaults=True):
    in_: list[str] = []
    not_in: list[str] = []


class Condition(msgspec.Struct, frozen=True, omit_defaults=True, rename={"dotted": DOTTED_IP}):
    """Clients have two spellings of one member, and read the one that they wrote."""

    request_ip: Addresses | None = None
    dotted: Addresses | None = None

    @property
    def addresses(self) -> Addresses:
        return self.request_ip or self.dotted or Addresses()


_policies = msgspec.json.Decoder(list[Policy]).decode
_condition = msgspec.json.Decoder(Condition).decode


class Reach(msgspec.Struct, frozen=True):
    """What a policy's resources cover. An account covers its zones only where `account_zones` says so."""

    all_accounts: bool
    all_zones: bool
    accounts: frozenset[str]
    account_zones: frozenset[str]
    zones: frozenset[str]
    users: frozenset[str]


class Rule(msgspec.Struct, frozen=True):
    """A policy, read once."""

    allow: bool
    groups: frozenset[str]
    reach: Reach

    def covers(self, group: str, target: "Target") -> bool:
        if group not in self.groups:
            return False
        reach = self.reach
        if target.zone_id is not None:
            return (
                reach.all_zones or target.zone_id in reach.zones or target.account_id in reach.account_zones
            )
        if target.account_id is not None:
            return reach.all_accounts or target.account_id in reach.accounts
        return target.user_id in reach.users


class Target(NamedTuple):
    """What a request is about: a zone (with its account), an account, or a user."""

    account_id: str | None = None
    zone_id: str | None = None
    user_id: str | None = None


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """One credential that we know. `full` may do everything everywhere and skips the rules.

    `above` are the tokens that it comes from, as far as they allow less than everything. Status and times
    are the narrowest of all of them, rules and addresses its own.
    """

    actor: Actor
    full: bool
    rules: tuple[Rule, ...] = ()
    status: str = "active"
    not_before_us: int | None = None
    expires_us: int | None = None
    addresses: tuple[IPv4Network | IPv6Network, ...] = ()
    addresses_refused: tuple[IPv4Network | IPv6Network, ...] = ()
    above: tuple["Identity", ...] = ()

    @property
    def levels(self) -> tuple["Identity", ...]:
        """Itself and what it comes from: what each of them allows by itself counts."""
        return (self, *self.above)

    def state_at(self, now_us: int) -> str:
        """`active`, `disabled`, `expired` or `not yet valid`."""
        if self.status != "active":
            return self.status
        if self.expires_us is not None and now_us >= self.expires_us:
            return "expired"
        if self.not_before_us is not None and now_us < self.not_before_us:
            return "not yet valid"
        return "active"


def check_usable(identity: Identity, now_us: int, address: str) -> None:
    """Raises TokenNotUsableNow, TokenNotUsableHere."""
    state = identity.state_at(now_us)
    if state != "active":
        raise TokenNotUsableNow(state=state)
    for level in identity.levels if identity.above else (identity,):
        if level.addresses or level.addresses_refused:
            client = plain(address)
            inside = not level.addresses or any(client in network for network in level.addresses)
            if not inside or any(client in network for network in level.addresses_refused):
                raise TokenNotUsableHere(address=address)


def zone_target(reader: Reader, zone_id: str) -> Target:
    """A zone with its account; without one when there is no such zone."""
    return Target(account_id=zones.account_id(reader, zone_id), zone_id=zone_id)


def permits(identity: Identity, group: str, target: Target) -> bool:
    """Deny beats allow; what no policy names is denied."""
    if identity.full:
        return True
    return all(_permits_alone(level, group, target) for level in identity.levels)


def _permits_alone(level: Identity, group: str, target: Target) -> bool:
    covering = [rule.allow for rule in level.rules if rule.covers(group, target)]
    return bool(covering) and all(covering)


def permits_somewhere(identity: Identity, group: str) -> bool:
    """For lists, whose rows are chosen by `found_zones` and `sees_account` afterwards."""
    groups = _FINDERS if group == _ZONE_READ else {group}
    return identity.full or all(
        any(rule.allow and groups & rule.groups for rule in level.rules) for level in identity.levels
    )


def found_zones(identity: Identity) -> tuple[tuple[Seen, ...], ...] | None:
    """Which zones a list of them shows: those that each of these shows by any of its members; None is all.

    Those that the caller may read, and those whose records it may edit: a client with a token for just that
    begins with the zone's name. Zone Read that is denied hides both.
    """
    found = tuple(seen for level in identity.levels if (seen := _found_alone(level)) is not None)
    return found or None


def _found_alone(level: Identity) -> tuple[Seen, ...] | None:
    read, edited = seen_zones(level, _ZONE_READ), seen_zones(level, _DNS_WRITE, unless=_ZONE_READ)
    if read is None or edited is None:
        return None
    return (read,) if edited.is_nothing else (read, edited)


def seen_zones(identity: Identity, group: str, unless: str = "") -> Seen | None:
    """Which zones a caller alone has a group for, and `unless` not denied; None is all of them."""
    if identity.full:
        return None
    allowed = [rule.reach for rule in identity.rules if rule.allow and group in rule.groups]
    denied = [rule.reach for rule in identity.rules if not rule.allow and {group, unless} & rule.groups]
    if any(reach.all_zones for reach in denied):
        return Seen((), (), (), ())
    every = any(reach.all_zones for reach in allowed)
    return Seen(
        None if every else _sorted(reach.account_zones for reach in allowed),
        _sorted(reach.zones for reach in allowed),
        _sorted(reach.account_zones for reach in denied),
        _sorted(reach.zones for reach in denied),
    )


def sees_zone(identity: Identity, target: Target) -> bool:
    """Whether any policy allows something in this zone that no other one denies."""
    if identity.full:
        return True
    groups = frozenset().union(*(rule.groups for rule in identity.rules if rule.allow))
    return any(permits(identity, group, target) for group in groups)


def sees_account(identity: Identity, account_id: str) -> bool:
    """Whether a list of accounts shows this one: any policy that allows something in it."""
    if identity.full or (identity.actor.kind == "account" and identity.actor.id == account_id):
        return True
    return all(
        any(
            rule.allow
            and (
                rule.reach.all_accounts
                or account_id in rule.reach.accounts
                or account_id in rule.reach.account_zones
            )
            for rule in level.rules
        )
        for level in identity.levels
    )


def secret_hash(secret: str | bytes) -> bytes:
    return hashlib.sha256(secret if isinstance(secret, bytes) else secret.encode()).digest()


def identity_of(row: TokenRow, email: str | None = None) -> Identity:
    """The caller with the token's secret."""
    rules = read_rules(_policies(row.policies), row.owner_kind, row.owner_id)
    addresses = (_condition(row.condition) if row.condition else Condition()).addresses
    return Identity(
        actor=Actor(
            kind="account" if row.owner_kind == "account" else "user",
            id=row.owner_id,
            email=email,
            token_id=row.id,
        ),
        full=len(rules) == 1 and _is_full(rules[0], row.owner_id),
        rules=rules,
        status=row.status,
        not_before_us=row.not_before_us,
        expires_us=row.expires_us,
        addresses=tuple(map(plain_network, addresses.in_)),
        addresses_refused=tuple(map(plain_network, addresses.not_in)),
    )


def _is_full(rule: Rule, owner_id: str) -> bool:
    """Never an account's token: its rules stay within the account."""
    reach = rule.reach
    everywhere = reach.all_accounts and reach.all_zones and owner_id in reach.users
    return rule.allow and rule.groups >= ALL_GROUPS and everywhere


def read_rules(policies: Sequence[Policy], owner_kind: str, owner_id: str) -> tuple[Rule, ...]:
    """What policies mean for their token's owner: "every account" of an account's token is that account."""
    rules = tuple(_rule(policy) for policy in policies)
    if owner_kind != "account":
        return rules
    return tuple(Rule(rule.allow, rule.groups, _within(owner_id, rule.reach)) for rule in rules)


def _rule(policy: Policy) -> Rule:
    names = frozenset(BY_ID[group.id].name for group in policy.permission_groups if group.id in BY_ID)
    return Rule(policy.effect == "allow", with_implied(names), read_resources(policy.resources))


def _within(account_id: str, reach: Reach) -> Reach:
    """Zones by name stay: a draft is refused unless they are the account's, and no zone changes hands."""
    own = frozenset((account_id,))
    return Reach(
        False,
        False,
        own if reach.all_accounts else reach.accounts & own,
        own if reach.all_zones else reach.account_zones & own,
        reach.zones,
        frozenset(),
    )


def read_resources(resources: Mapping[str, Any]) -> Reach:
    """Read a policy's resources: `account.<id>`, `account.*`, `account.zone.<id>`, `account.zone.*`,
    `user.<id>`, each with "*", or an account with a map of its zones. What is none of these covers nothing.
    """
    found: dict[str, set[str]] = {"account": set(), "account.zone": set(), "user": set(), "zones of": set()}
    for key, value in resources.items():
        kind, _, name = without_vendor(key).rpartition(".")
        if kind == "account" and isinstance(value, Mapping):
            for inner in value:
                zone = without_vendor(inner).removeprefix("account.zone.")
                found["zones of" if zone == "*" else "account.zone"].add(name if zone == "*" else zone)
        elif kind in found:
            found[kind].add(name)
    return Reach(
        "*" in found["account"],
        "*" in found["account.zone"] or "*" in found["zones of"],
        *(frozenset(found[kind] - {"*"}) for kind in ("account", "zones of", "account.zone", "user")),
    )


def without_vendor(resource: str) -> str:
    """`account.<id>` and so on; empty for what is no resource."""
    for vendor in _VENDORS:
        if resource.startswith(vendor):
            return resource.removeprefix(vendor)
    return ""


def _sorted(sets: Any) -> tuple[str, ...]:
    return tuple(sorted(frozenset().union(*sets)))
