"""Which rules somebody may give to a token, by what he holds."""

from ipaddress import ip_network

import pytest

from edgestead.model.call import Actor
from edgestead.model.permissions import BY_NAME
from edgestead.model.refusals.token import BoundsWider, GrantsMore
from edgestead.usecases.access.authorise import Group, Identity, Policy, read_rules
from edgestead.usecases.access.grants import check_bounds, check_held

A, B, Z, Y, U = "a" * 32, "b" * 32, "c" * 32, "d" * 32, "0" * 32  # accounts A and B, zones Z of A and Y of B
API = "com.cloudflare.api."
EVERY_ZONE, ZONES_OF_A, ZONES_OF_B = (
    {API + "account.zone.*": "*"},
    {API + f"account.{A}": {API + "account.zone.*": "*"}},
    {API + f"account.{B}": {API + "account.zone.*": "*"}},
)
ZONE_Z, ZONE_Y = {API + f"account.zone.{Z}": "*"}, {API + f"account.zone.{Y}": "*"}
EVERY_ACCOUNT, ACCOUNT_A, USER = (
    {API + "account.*": "*"},
    {API + f"account.{A}": "*"},
    {API + f"user.{U}": "*"},
)


def allow(group, resources):
    return "allow", group, resources


def deny(group, resources):
    return "deny", group, resources


READ, WRITE = "DNS Read", "DNS Write"
HELD = [  # what the caller holds, what he gives
    ([allow(READ, EVERY_ZONE)], [allow(READ, EVERY_ZONE)]),
    ([allow(READ, EVERY_ZONE)], [allow(READ, ZONES_OF_A)]),
    ([allow(READ, EVERY_ZONE)], [allow(READ, ZONE_Z)]),
    ([allow(READ, ZONES_OF_A)], [allow(READ, ZONE_Z)]),
    ([allow(WRITE, ZONE_Z)], [allow(READ, ZONE_Z)]),
    ([allow(READ, EVERY_ACCOUNT)], [allow(READ, ACCOUNT_A)]),
    ([allow(READ, USER)], [allow(READ, USER)]),
    ([allow(READ, ZONE_Z)], [deny(WRITE, EVERY_ZONE)]),
    ([allow(READ, EVERY_ZONE), deny(READ, ZONE_Z)], [allow(READ, EVERY_ZONE), deny(READ, ZONE_Z)]),
    ([allow(READ, EVERY_ZONE), deny(READ, ZONE_Z)], [allow(READ, EVERY_ZONE), deny(READ, ZONES_OF_A)]),
    ([allow(READ, EVERY_ZONE), deny(READ, ZONE_Y)], [allow(READ, ZONE_Z)]),
    ([allow(READ, EVERY_ZONE), deny(READ, ZONES_OF_B)], [allow(READ, ZONES_OF_A)]),
    ([allow(READ, EVERY_ZONE), deny(WRITE, ZONE_Y)], [allow(READ, ZONE_Z)]),
]
MORE = [
    ([], [allow(READ, ZONE_Z)]),
    ([allow(READ, ZONE_Z)], [allow(WRITE, ZONE_Z)]),
    ([allow(READ, ZONE_Z)], [allow(READ, ZONE_Y)]),
    ([allow(READ, ZONE_Z)], [allow(READ, ZONES_OF_A)]),
    ([allow(READ, ZONES_OF_A)], [allow(READ, EVERY_ZONE)]),
    ([allow(READ, ZONES_OF_A)], [allow(READ, ZONE_Y)]),
    ([allow(READ, ACCOUNT_A)], [allow(READ, EVERY_ACCOUNT)]),
    ([allow(READ, ACCOUNT_A)], [allow(READ, ZONES_OF_A)]),
    ([allow(READ, EVERY_ACCOUNT)], [allow(READ, ZONE_Z)]),
    ([allow(READ, EVERY_ZONE)], [allow(READ, USER)]),
    ([allow(READ, EVERY_ZONE), deny(READ, ZONE_Z)], [allow(READ, EVERY_ZONE)]),
    ([allow(READ, EVERY_ZONE), deny(READ, ZONE_Z)], [allow(READ, ZONE_Z)]),
    ([allow(READ, EVERY_ZONE), deny(READ, ZONE_Z)], [allow(READ, ZONES_OF_A)]),
    ([allow(READ, EVERY_ZONE), deny(READ, ZONES_OF_A)], [allow(READ, ZONE_Z)]),
    ([allow(READ, EVERY_ZONE), deny(READ, ZONE_Z)], [allow(READ, EVERY_ZONE), deny(READ, ZONE_Y)]),
    ([allow(READ, EVERY_ZONE), deny(READ, EVERY_ZONE)], [allow(READ, ZONE_Z)]),
]


def rules(lines):
    policies = [
        Policy("p", effect, [Group(BY_NAME[group].id)], resources) for effect, group, resources in lines
    ]
    return read_rules(policies, "user", U)


def check(held, given):
    caller = Identity(actor=Actor(kind="user", id=U, token_id="t"), full=False, rules=rules(held))
    check_held(caller, rules(given), {Z: A, Y: B}.get)


@pytest.mark.parametrize(("held", "given"), HELD)
def test_what_somebody_holds_he_may_give(held, given):
    check(held, given)


@pytest.mark.parametrize(("held", "given"), MORE)
def test_more_than_somebody_holds_he_may_not_give(held, given):
    with pytest.raises(GrantsMore):
        check(held, given)


def test_who_holds_everything_gives_anything():
    caller = Identity(actor=Actor(kind="user", id=U), full=True)

    check_held(caller, rules([allow(WRITE, EVERY_ZONE)]), {}.get)


def bound(expires=None, within=(), without=()):
    return Identity(
        actor=Actor(kind="user", id=U),
        full=False,
        expires_us=expires,
        addresses=tuple(map(ip_network, within)),
        addresses_refused=tuple(map(ip_network, without)),
    )


OFFICE, DESK, HOME = "192.0.2.0/24", "192.0.2.7/32", "198.51.100.0/24"
HALVES = ("192.0.2.0/25", "192.0.2.128/25")
NARROWER = [  # the caller's bounds, the token's
    (bound(), bound()),
    (bound(), bound(5, [OFFICE], [DESK])),
    (bound(5), bound(5)),
    (bound(5), bound(4)),
    (bound(within=[OFFICE]), bound(within=[OFFICE])),
    (bound(within=[OFFICE]), bound(within=[DESK])),
    (bound(within=[OFFICE, HOME]), bound(within=[HOME])),
    (bound(within=HALVES), bound(within=[OFFICE])),
    (bound(within=[OFFICE, "2001:db8::/32"]), bound(within=["2001:db8:1::/48"])),
    (bound(without=[DESK]), bound(without=[DESK])),
    (bound(without=[DESK]), bound(without=[OFFICE, HOME])),
    (bound(without=[OFFICE]), bound(without=HALVES)),
    (bound(without=[OFFICE]), bound(within=[HOME])),
    (bound(without=[OFFICE]), bound(within=["192.0.0.0/16"], without=[OFFICE])),
    (bound(without=[OFFICE]), bound(within=[DESK, HOME], without=[DESK])),
]
WIDER = [
    (bound(5), bound()),
    (bound(5), bound(6)),
    (bound(within=[OFFICE]), bound()),
    (bound(within=[OFFICE]), bound(without=[HOME])),
    (bound(within=[OFFICE]), bound(within=[HOME])),
    (bound(within=[OFFICE]), bound(within=[OFFICE, HOME])),
    (bound(within=[DESK]), bound(within=[OFFICE])),
    (bound(within=[OFFICE]), bound(within=["2001:db8::/32"])),
    (bound(within=HALVES[:1]), bound(within=[OFFICE])),
    (bound(without=[DESK]), bound()),
    (bound(without=[DESK]), bound(within=[OFFICE])),
    (bound(without=[OFFICE]), bound(without=[DESK])),
    (bound(without=[OFFICE]), bound(without=HALVES[:1])),
    (bound(without=[OFFICE]), bound(within=[DESK, HOME])),
]


@pytest.mark.parametrize(("caller", "token"), NARROWER)
def test_bounds_within_the_callers_own_pass(caller, token):
    check_bounds(caller, token)


@pytest.mark.parametrize(("caller", "token"), WIDER)
def test_wider_bounds_are_refused(caller, token):
    with pytest.raises(BoundsWider):
        check_bounds(caller, token)
