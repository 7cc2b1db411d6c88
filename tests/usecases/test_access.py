"""Policies: what they cover, and who wins."""

import pytest

from edgestead.model.call import Actor
from edgestead.model.ids import fixed_id, is_id
from edgestead.model.permissions import BY_ID, BY_NAME, GROUPS, with_implied
from edgestead.tables import accounts
from edgestead.tables.accounts import UserRow
from edgestead.usecases.access.authorise import (
    Identity,
    Policy,
    Reach,
    Rule,
    Target,
    found_zones,
    permits,
    read_resources,
    read_rules,
    secret_hash,
    seen_zones,
    sees_account,
)
from edgestead.usecases.access.table import AccessRows

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
    assert len({group.id for group in GROUPS}) == len(BY_NAME) == len(GROUPS)
    assert all(is_id(group.id) for group in GROUPS)


def test_published_ids_of_groups_are_ours_and_tokens_of_before_them_stay_valid():
    assert BY_ID["4755a26eedb94da69e1066d98aa820be"] is BY_NAME["DNS Write"]
    assert BY_ID["8b47d2786a534c08a1f94ee8f9f599ef"].name == "Workers KV Storage Read"
    assert BY_ID[fixed_id("permission group", "DNS Write")] is BY_NAME["DNS Write"]


def test_an_accounts_token_stays_within_its_account():
    def reach(resources, owner_kind="account"):
        policy = Policy("1", "allow", [], resources)
        return read_rules([policy], owner_kind, ACCOUNT)[0].reach

    everything = {f"{VENDOR}account.*": {f"{VENDOR}account.zone.*": "*"}, f"{VENDOR}user.{USER}": "*"}
    others = {f"{VENDOR}account.{OTHER}": {f"{VENDOR}account.zone.*": "*"}}
    both = {f"{VENDOR}account.*": "*", f"{VENDOR}account.zone.*": "*", **others}
    own, nobody = frozenset((ACCOUNT,)), frozenset()

    assert reach(both) == Reach(False, False, own, own, nobody, nobody)
    assert reach(everything).users == nobody
    assert reach({f"{VENDOR}account.{OTHER}": "*"}).accounts == nobody
    assert reach(others).account_zones == nobody
    assert reach({f"{VENDOR}account.{OTHER}": "*"}, "user").accounts == {OTHER}


def test_an_account_sees_itself_and_a_user_of_the_same_id_does_not():
    account = Identity(actor=Actor(kind="account", id=ACCOUNT), full=False)
    user = Identity(actor=Actor(kind="user", id=ACCOUNT), full=False)

    assert sees_account(account, ACCOUNT)
    assert not sees_account(account, OTHER)
    assert not sees_account(user, ACCOUNT)


def test_a_transaction_knows_a_key_by_all_of_it_and_by_its_owner_alone(monkeypatch):
    row = UserRow(
        id=USER,
        email="A@example.com",
        email_folded="a@example.com",
        key_hash=secret_hash(b"key"),
        created_us=0,
    )
    rows = {row.email_folded: row}
    monkeypatch.setattr(accounts, "user_of_email", lambda reader, email: rows.get(email))
    known = AccessRows(reader=None)

    assert known.by_key("A@Example.com", b"key").actor.id == USER
    assert known.by_key("a@example.com", b"another") is None
    assert known.by_key("b@example.com", b"key") is None


def test_a_zone_that_may_be_edited_is_found_beside_those_that_may_be_read():
    reads = rule(True, COVERS["one zone"][0], "Zone Read")
    edits = rule(True, COVERS["all zones"][0], "DNS Write")

    read, edited = ((), (ZONE,), (), ()), (None, (), (), ())

    assert found_zones(identity(reads)) == ((read,),)
    assert found_zones(identity(reads, edits)) == ((read, edited),)
    assert found_zones(identity(full=True)) is None
