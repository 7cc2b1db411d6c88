"""Which resources and groups a token's policies may name."""

import itertools

import pytest

from edgestead.model.permissions import BY_NAME
from edgestead.model.refusals.token import TokenPoliciesRefused
from edgestead.usecases.access import token_draft
from edgestead.usecases.access.token_draft import GroupBody, Owner, PolicyBody, TokenBody

A, B, Z, Y, U, V = "a" * 32, "b" * 32, "c" * 32, "d" * 32, "0" * 32, "1" * 32
API = "com.cloudflare.api."
USER, ACCOUNT = Owner("user", U), Owner("account", A)
GROUP = GroupBody(BY_NAME["DNS Read"].id)

GOOD = [
    (USER, {API + "account.*": "*", API + "account.zone.*": "*", API + f"user.{U}": "*"}),
    (USER, {f"com.edge.api.account.{A}": "*", f"com.edge.api.account.zone.{Z}": "*"}),
    (USER, {API + f"account.{A}": {API + "account.zone.*": "*"}}),
    (USER, {API + f"account.{A}": {API + f"account.zone.{Z}": "*"}}),
    (USER, {API + "account.*": {API + f"account.zone.{Y}": "*"}}),
    (ACCOUNT, {API + f"account.{A}": "*", API + f"account.zone.{Z}": "*"}),
    (ACCOUNT, {API + "account.*": "*", API + "account.zone.*": "*"}),
]
BAD = [
    (USER, {}),
    (USER, {"": "*"}),
    (USER, {"*": "*"}),
    (USER, {f"account.{A}": "*"}),
    (USER, {API + "account": "*"}),
    (USER, {API + f"account.{A.upper()}": "*"}),
    (USER, {API + f"accounts.{A}": "*"}),
    (USER, {API + "account.zone.example": "*"}),
    (USER, {API + f"account.{A}": "read"}),
    (USER, {API + f"account.{A}": {}}),
    (USER, {API + f"account.{A}": {API + f"account.{A}": "*"}}),
    (USER, {API + f"account.{A}": {API + "account.zone.*": "no"}}),
    (USER, {API + f"account.{A}": {API + f"account.zone.{Y}": "*"}}),
    (USER, {API + f"account.zone.{Z}": {API + "account.zone.*": "*"}}),
    (USER, {API + "user.*": "*"}),
    (USER, {API + f"user.{V}": "*"}),
    (ACCOUNT, {API + f"user.{A}": "*"}),
    (ACCOUNT, {API + f"account.{B}": "*"}),
    (ACCOUNT, {API + f"account.zone.{Y}": "*"}),
    (ACCOUNT, {API + "account.zone." + "e" * 32: "*"}),
    (ACCOUNT, {API + f"account.{B}": {API + "account.zone.*": "*"}}),
    (ACCOUNT, {API + "account.*": {API + f"account.zone.{Y}": "*"}}),
]


def read(owner, *policies):
    ids = itertools.count()
    return token_draft.read(
        TokenBody("n", list(policies)), owner, {Z: A, Y: B}.get, lambda: f"{next(ids):032x}"
    )


@pytest.mark.parametrize(("owner", "resources"), GOOD)
def test_resources_are_taken_as_they_are_written(owner, resources):
    [policy] = read(owner, PolicyBody("allow", [GROUP], resources)).policies

    assert policy.resources == resources


@pytest.mark.parametrize(("owner", "resources"), BAD)
def test_what_is_no_resource_of_the_owner_is_refused(owner, resources):
    with pytest.raises(TokenPoliciesRefused) as refusal:
        read(owner, PolicyBody("allow", [GROUP], resources))

    assert refusal.value.pointer == "/policies/0/resources"


@pytest.mark.parametrize("groups", [[], [GroupBody("f" * 32)], [GROUP, GroupBody("")]])
def test_groups_are_ones_that_there_are(groups):
    with pytest.raises(TokenPoliciesRefused, match="permission group"):
        read(USER, PolicyBody("allow", groups, GOOD[0][1]))


def test_a_group_that_is_named_twice_is_kept_once():
    [policy] = read(USER, PolicyBody("allow", [GROUP, GROUP], GOOD[0][1])).policies

    assert [group.name for group in policy.permission_groups] == ["DNS Read"]


def test_policies_and_resources_are_bounded():
    one = PolicyBody("allow", [GROUP], {API + f"account.zone.{Z}": "*"})
    zones = {API + f"account.zone.{number:032x}": "*" for number in range(200)}

    read(USER, *[one] * 50)
    read(USER, PolicyBody("allow", [GROUP], zones))
    with pytest.raises(TokenPoliciesRefused, match="from 1 to 50"):
        read(USER, *[one] * 51)
    with pytest.raises(TokenPoliciesRefused, match="more than 200"):
        read(USER, PolicyBody("allow", [GROUP], zones), one)
