"""May these credentials give that much away?

Owns  the comparison of a token's rules and bounds with those of the caller who creates, changes, rolls or
      deletes it.
Not   whether the caller may manage tokens at all: the pipeline decided that.

Every pair of permission group and resource that the token allows must be allowed to the caller, by one policy
that covers the resource as a whole. What the caller is denied inside of it must be denied to the token too.
A zone that is gone since a token named it is no resource: its id is never given again, and the token has to
end, too.
A token's bounds lie within the caller's own:

    bound               lies within
    expires_on          the caller has none, or it is there and not later
    not_before          always: whoever calls is past his own, and the token works at once at the earliest
    request_ip.in       the caller has none, or it is there and each network is inside of one of the caller's
    request_ip.not_in   each of the caller's networks is inside of one of the token's, as far as the token's
                        `in` reaches into it
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from ipaddress import IPv4Network, IPv6Network, collapse_addresses
from typing import NamedTuple

from edgestead.model.refusals.token import BoundsWider, GrantsMore
from edgestead.usecases.access.authorise import Identity, Reach, Rule

AccountOf = Callable[[str], str | None]
Network = IPv4Network | IPv6Network


class Part(NamedTuple):
    """One resource: `account`, `account.zone` (`of` is the zone), `zones of` (an account), `user`; or "*"."""

    kind: str
    of: str


def check_held(
    caller: Identity, rules: Iterable[Rule], account_of: AccountOf, gone: Collection[str] = ()
) -> None:
    """Of the zones that are `gone` nothing has to be held. Raises GrantsMore."""
    if caller.full:
        return
    rules = tuple(rules)
    denied = set(_pairs(rules, allow=False))
    ended = {Part("account.zone", zone) for zone in gone}
    allowed = [pair for pair in _pairs(rules, allow=True) if pair[1] not in ended]
    for level in caller.levels:
        held = _Held(level.rules, account_of)
        for group, part in allowed:
            if not held.whole(group, part, denied):
                raise GrantsMore(group=group, resource=f"{part.kind} {part.of}")


def check_bounds(caller: Identity, token: Identity) -> None:
    """Raises BoundsWider."""
    if caller.expires_us is not None and (token.expires_us is None or token.expires_us > caller.expires_us):
        raise BoundsWider(reason="expires_on has to be there, and not later than your own")
    for level in caller.levels:
        _check_addresses(level, token)


def _check_addresses(caller: Identity, token: Identity) -> None:
    if caller.addresses:
        held = _joined(caller.addresses)
        if not token.addresses or not all(_is_inside(network, held) for network in token.addresses):
            raise BoundsWider(reason="request_ip.in has to be there, and to stay within your own")
    refused = _joined(token.addresses_refused)
    for hole in caller.addresses_refused:
        reached = [_smaller(hole, network) for network in token.addresses if _overlap(hole, network)]
        if not all(_is_inside(part, refused) for part in (reached if token.addresses else [hole])):
            raise BoundsWider(reason="request_ip.not_in has to refuse all that your own does")


def _joined(networks: Iterable[Network]) -> list[Network]:
    """The same addresses in as few networks as can be: one that is inside of all is inside of one."""
    found = list(networks)
    return [
        *collapse_addresses(network for network in found if isinstance(network, IPv4Network)),
        *collapse_addresses(network for network in found if isinstance(network, IPv6Network)),
    ]


def _is_inside(network: Network, others: Iterable[Network]) -> bool:
    return any(_overlap(network, other) and _smaller(network, other) == network for other in others)


def _overlap(one: Network, other: Network) -> bool:
    return one.version == other.version and one.overlaps(other)


def _smaller(one: Network, other: Network) -> Network:
    """Of two that overlap, the one that is inside of the other."""
    return one if one.prefixlen >= other.prefixlen else other


class _Held:
    """The permissions that a caller may grant. Sets by group, so that a long token costs no more than its own
    length.
    """

    def __init__(self, rules: Iterable[Rule], account_of: AccountOf) -> None:
        self._account_of = account_of
        self._allowed: dict[str, set[Part]] = defaultdict(set)
        self._denied: dict[str, set[Part]] = defaultdict(set)
        for group, part in _pairs(rules, allow=True):
            self._allowed[group].add(part)
        for group, part in _pairs(rules, allow=False):
            self._denied[group].add(part)

    def whole(self, group: str, part: Part, denied: set[tuple[str, Part]]) -> bool:
        around = self._around(part)
        if not around & self._allowed[group]:
            return False
        return all(
            any((group, wider) in denied for wider in self._around(hole))
            for hole in self._denied[group]
            if hole in around or part in self._around(hole)
        )

    def _around(self, part: Part) -> set[Part]:
        """The part, and what contains it."""
        found = {part}
        if part.kind == "account.zone":
            found |= {Part("zones of", "*"), Part("zones of", self._account_of(part.of) or "")}
        elif part.kind != "user":
            found.add(Part(part.kind, "*"))
        return found


def _pairs(rules: Iterable[Rule], *, allow: bool) -> Iterator[tuple[str, Part]]:
    for rule in rules:
        if rule.allow is allow:
            parts = tuple(_parts(rule.reach))
            for group in sorted(rule.groups):
                for part in parts:
                    yield group, part


def _parts(reach: Reach) -> Iterator[Part]:
    if reach.all_accounts:
        yield Part("account", "*")
    if reach.all_zones:
        yield Part("zones of", "*")
    for kind, names in (
        ("account", reach.accounts - {"*"}),
        ("zones of", reach.account_zones - {"*"}),
        ("account.zone", reach.zones - {"*"}),
        ("user", reach.users),
    ):
        for name in sorted(names):
            yield Part(kind, name)
