"""May these credentials give that much away?

Owns  the comparison of a token's rules with those of whoever makes, changes or rolls it.
Asks  `services.access` for what rules mean; the caller's function for a zone's account.
Tells `services.tokens`.
Not   whether somebody may touch tokens at all: the pipeline decided that.

Every pair of permission group and resource that the token allows must be allowed to the caller, by one policy
that covers the resource as a whole. What the caller is denied inside of it must be denied to the token too.
Addresses and times are not compared: a caller who is bound to an office may make a token that is not.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from edgestead.model.token_errors import GrantsMore
from edgestead.services.access import Identity, Reach, Rule

AccountOf = Callable[[str], str | None]


class Part(NamedTuple):
    """One resource: `account`, `account.zone` (`of` is the zone), `zones of` (an account), `user`; or "*"."""

    kind: str
    of: str


def check_held(caller: Identity, rules: Iterable[Rule], account_of: AccountOf) -> None:
    """Raises GrantsMore."""
    if caller.full:
        return
    held = _Held(caller.rules, account_of)
    denied = set(_pairs(rules, allow=False))
    for group, part in _pairs(rules, allow=True):
        if not held.whole(group, part, denied):
            raise GrantsMore(group=group, resource=f"{part.kind} {part.of}")


class _Held:
    """What somebody may give. Sets by group, so that a long token costs no more than its own length."""

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
