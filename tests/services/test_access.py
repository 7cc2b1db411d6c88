"""Policies: what they cover, and who wins."""

import pytest

from edgestead.model.call import Actor
from edgestead.model.permissions import BY_ID, BY_NAME, GROUPS, with_implied
from edgestead.services.access import (
    Identity,
    Rule,
    Target,
    permits,
    read_resources,
    seen_zones,
    sees_account,
)

ACCOUNT, OTHER, ZONE, USER = "a" * 32, "b" * 32, "c" * 32, "d" * 32
VENDOR = "com.cloudflare.api."
IN_ZONE = Target(account_id=ACCOUNT, zone_id=ZONE)
IN_OTHER = Target(account_id=OTHER, zone_id="e" * 32)
OF_ACCOUNT, OF_USER = Target(account_id=ACCOUNT), Target(user_id=USER)

# resources, and which of the targets they cover
COVERS = {
    "one zone": ({f"{VENDOR}account.zone.{ZONE}": "*"}, {IN_ZONE}),
    "all zones": ({f"{VENDOR}account.zone.*": "*"}, {IN_ZONE, IN_OTHER}),
    "an account's zones": ({f"{VENDOR}account.{ACCOUNT}": {f"{VENDOR}account.zone.*": "*"}}, {IN_ZONE}),
    "a zone in an account": (
        {f"{VENDOR}account.{ACCOUNT}": {f"{VENDOR}account.zone.{ZONE}": "*"}},
        {IN_ZONE},
    ),
    "one account": ({f"{VENDOR}account.{ACCOUNT}": "*"}, {OF_ACCOUNT}),
    "all accounts": ({f"{VENDOR}account.*": "*"}, {OF_ACCOUNT}),
    "all accounts' zones": ({f"{VENDOR}account.*": {f"{VENDOR}account.zone.*": "*"}}, {IN_ZONE, IN_OTHER}),
    "the user": ({f"{VENDOR}user.{USER}": "*"}, {OF_USER}),
    "neutral spelling": ({f"com.edge.api.account.zone.{ZONE}": "*"}, {IN_ZONE}),
    "nothing we know": ({"com.example.account.zone.*": "*", f"{VENDOR}bucket.x": "*", "": "*"}, set()),
    "nothing": ({}, set()),
}


def identity(*rules, full=False):
    return Identity(actor=Actor(kind="user", id=USER), full=full, rules=rules)


def rule(allow, resources, *groups):
    return Rule(allow, with_implied(frozenset(groups or ("DNS Read",))), read_resources(resources))


@pytest.mark.parametrize(("resources", "covered"), COVERS.values(), ids=COVERS)
def test_resources_cover_what_they_name(resources, covered):
    caller = identity(rule(True, resources))

    targets = {IN_ZONE, IN_OTHER, OF_ACCOUNT, OF_USER}
    assert {target for target in targets if permits(caller, "DNS Read", target)} == covered


@pytest.mark.parametrize(("resources", "covered"), COVERS.values(), ids=COVERS)
def test_deny_takes_away_exactly_what_allow_would_give(resources, covered):
    everything = {f"{VENDOR}account.zone.*": "*", f"{VENDOR}account.*": "*", f"{VENDOR}user.{USER}": "*"}
    caller = identity(rule(True, everything), rule(False, resources))

    targets = {IN_ZONE, IN_OTHER, OF_ACCOUNT, OF_USER}
    assert {target for target in targets if not permits(caller, "DNS Read", target)} == covered


def test_write_implies_read_of_the_same_area_only():
    caller = identity(rule(True, COVERS["one zone"][0], "DNS Write"))

    assert permits(caller, "DNS Read", IN_ZONE)
    assert permits(caller, "DNS Write", IN_ZONE)
    assert not permits(caller, "Zone Read", IN_ZONE)
    assert not permits(identity(rule(True, COVERS["one zone"][0], "DNS Read")), "DNS Write", IN_ZONE)


def test_a_zone_that_does_not_exist_is_covered_by_all_zones_only():
    absent = Target(account_id=None, zone_id="f" * 32)

    assert permits(identity(rule(True, COVERS["all zones"][0])), "DNS Read", absent)
    assert not permits(identity(rule(True, COVERS["an account's zones"][0])), "DNS Read", absent)


def test_full_identities_see_everything():
    caller = identity(full=True)

    assert permits(caller, "DNS Write", IN_ZONE)
    assert seen_zones(caller, "Zone Read") is None
    assert sees_account(caller, OTHER)


def test_lists_show_what_is_allowed_and_not_denied():
    caller = identity(
        rule(True, COVERS["an account's zones"][0]),
        rule(True, {f"{VENDOR}account.zone.{'f' * 32}": "*"}),
        rule(False, COVERS["one zone"][0]),
    )

    assert seen_zones(caller, "DNS Read") == ((ACCOUNT,), ("f" * 32,), (), (ZONE,))
    assert seen_zones(caller, "Zone Read") == ((), (), (), ())


def test_all_zones_denied_is_no_zone_and_all_allowed_is_every_account():
    allow, deny = rule(True, COVERS["all zones"][0]), rule(False, COVERS["all zones"][0])

    assert seen_zones(identity(allow), "DNS Read") == (None, (), (), ())
    assert seen_zones(identity(allow, deny), "DNS Read") == ((), (), (), ())


def test_accounts_are_seen_by_whoever_may_do_something_in_them():
    assert sees_account(identity(rule(True, COVERS["an account's zones"][0])), ACCOUNT)
    assert sees_account(identity(rule(True, COVERS["one account"][0])), ACCOUNT)
    assert not sees_account(identity(rule(False, COVERS["one account"][0])), ACCOUNT)
    assert not sees_account(identity(rule(True, COVERS["one account"][0])), OTHER)


def test_groups_have_one_name_and_one_id_each():
    assert len(BY_ID) == len(BY_NAME) == len(GROUPS)
    assert all(len(group.id) == 32 for group in GROUPS)
