"""What a client asks a token to be, checked.

Owns  the shape of the body, its rules, and the JSON text that is stored.
Not   whether the caller may give that much (`usecases.access.grants`).

Contract "Tokens". Spellings of resources are kept as they were sent: clients compare what they read with it.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from ipaddress import ip_network
from typing import Literal, NamedTuple

import msgspec

from edgestead.model.ids import is_id
from edgestead.model.permissions import BY_ID
from edgestead.model.refusals.token import (
    TokenConditionRefused,
    TokenNameRefused,
    TokenPoliciesRefused,
    TokenTimeRefused,
)
from edgestead.usecases.access.authorise import (
    DOTTED_IP,
    Addresses,
    Condition,
    Group,
    Policy,
    read_resources,
    without_vendor,
)
from edgestead.usecases.limits import (
    TOKEN_ADDRESSES_MAX,
    TOKEN_NAME_CHARACTERS_MAX,
    TOKEN_POLICIES_MAX,
    TOKEN_RESOURCES_MAX,
)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SECONDS_END = 253_402_300_800  # the year 10000, which RFC 3339 cannot write
_TIME_CHARACTERS_MAX = 40
_TOP_KINDS = ("account", "account.zone", "user")

AccountOf = Callable[[str], str | None]


class Owner(NamedTuple):
    """Whose token it is."""

    kind: Literal["user", "account"]
    id: str


class GroupBody(msgspec.Struct, frozen=True):
    id: str


class PolicyBody(msgspec.Struct, frozen=True):
    effect: Literal["allow", "deny"]
    permission_groups: list[GroupBody]
    resources: dict[str, str | dict[str, str]]
    id: str | None = None


class AddressesBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"in_": "in"}):
    in_: list[str] | None = None
    not_in: list[str] | None = None


class ConditionBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"dotted": DOTTED_IP}):
    """What is not understood is refused: a token would be good where its owner thinks that it is not."""

    request_ip: AddressesBody | None = None
    dotted: AddressesBody | None = None


class TokenBody(msgspec.Struct, frozen=True):
    """What create and update take. `status` counts in an update only; there, what is absent is cleared."""

    name: str = ""
    policies: list[PolicyBody] = []
    condition: ConditionBody | None = None
    not_before: str | None = None
    expires_on: str | None = None
    status: Literal["active", "disabled", "expired"] | None = None


class Draft(NamedTuple):
    """A body that is right. Times are microseconds since the epoch, of whole seconds."""

    name: str
    policies: list[Policy]
    condition: str | None
    not_before_us: int | None
    expires_us: int | None


def read(
    body: TokenBody,
    owner: Owner,
    account_of: AccountOf,
    new_id: Callable[[], str],
    before: Sequence[Policy] = (),
) -> Draft:
    """Check a body. A policy keeps its id when it is one of those `before`; a zone that they name may be gone
    meanwhile, and be named on: who switches a token off sends the rest of it as it was.

    Raises TokenNameRefused, TokenPoliciesRefused, TokenConditionRefused, TokenTimeRefused.
    """
    if not 1 <= len(body.name) <= TOKEN_NAME_CHARACTERS_MAX or any(c < " " or c == "\x7f" for c in body.name):
        raise TokenNameRefused(limit=TOKEN_NAME_CHARACTERS_MAX, pointer="/name")
    known = frozenset(policy.id for policy in before)
    named = {zone for policy in before for zone in read_resources(policy.resources).zones}
    _check_policies(body.policies, owner, account_of, {zone for zone in named if account_of(zone) is None})
    not_before_us = _time("not_before", body.not_before)
    expires_us = _time("expires_on", body.expires_on)
    if not_before_us is not None and expires_us is not None and expires_us <= not_before_us:
        raise TokenTimeRefused(field="expires_on", reason="it is not after not_before", pointer="/expires_on")
    return Draft(
        body.name,
        [_policy(policy, new_id, known) for policy in body.policies],
        _condition(body.condition),
        not_before_us,
        expires_us,
    )


def _policy(body: PolicyBody, new_id: Callable[[], str], known: Collection[str]) -> Policy:
    groups = {group.id: Group(group.id, BY_ID[group.id].name) for group in body.permission_groups}
    policy_id = body.id if body.id is not None and body.id in known else new_id()
    return Policy(policy_id, body.effect, list(groups.values()), body.resources)


def _check_policies(
    policies: list[PolicyBody], owner: Owner, account_of: AccountOf, gone: Collection[str]
) -> None:
    if not 1 <= len(policies) <= TOKEN_POLICIES_MAX:
        raise _refused(f"a token has from 1 to {TOKEN_POLICIES_MAX}", "/policies")
    count = sum(1 for policy in policies for _ in _resources(policy.resources))
    if count > TOKEN_RESOURCES_MAX:
        raise _refused(f"they name more than {TOKEN_RESOURCES_MAX} resources", "/policies")
    for number, policy in enumerate(policies):
        pointer = f"/policies/{number}"
        if not policy.permission_groups:
            raise _refused("a policy names at least one permission group", f"{pointer}/permission_groups")
        for group in policy.permission_groups:
            if group.id not in BY_ID:
                raise _refused("there is no such permission group", f"{pointer}/permission_groups")
        reason = _wrong_resource(policy.resources, owner, account_of, gone)
        if reason is not None:
            raise _refused(reason, f"{pointer}/resources")


def _wrong_resource(
    resources: Mapping[str, str | dict[str, str]],
    owner: Owner,
    account_of: AccountOf,
    gone: Collection[str],
) -> str | None:
    """Why these resources are refused, if they are. Zones that are `gone` are nobody's."""
    if not resources:
        return "a policy names at least one resource"
    for account, key, value in _resources(resources):
        kind, _, name = without_vendor(key).rpartition(".")
        if kind not in (("account.zone",) if account is not None else _TOP_KINDS):
            return "a resource is com.cloudflare.api.account.ID, .account.zone.ID or .user.ID"
        if not (is_id(name) or (name == "*" and kind != "user")):
            return "a resource ends in an identifier of 32 hex digits, or in * for all of its kind"
        if value != "*":
            return 'a resource has the value "*", or an account a map of its zones, which is not empty'
        if kind == "account.zone" and name in gone:
            continue
        if (
            account not in (None, "*")
            and kind == "account.zone"
            and name != "*"
            and account_of(name) != account
        ):
            return "a zone is not in the account that it is nested in"
        if not _may_own(owner, kind, name, account_of):
            return f"a token of this {owner.kind} cannot reach beyond it"
    return None


def _may_own(owner: Owner, kind: str, name: str, account_of: AccountOf) -> bool:
    """A user's token may name no other user; an account's token nothing outside of the account."""
    if kind == "user":
        return owner == Owner("user", name)
    if owner.kind == "user" or name == "*":
        return True
    return (account_of(name) if kind == "account.zone" else name) == owner.id


def _resources(resources: Mapping[str, str | dict[str, str]]) -> Iterator[tuple[str | None, str, str]]:
    """Every resource as (the account it is nested in, key, value). The account itself comes with "*"."""
    for key, value in resources.items():
        if isinstance(value, str):
            yield None, key, value
            continue
        kind, _, account = without_vendor(key).rpartition(".")
        yield None, key, "*" if kind == "account" and value else ""
        for inner_key, inner_value in value.items():
            yield account, inner_key, inner_value


def _condition(body: ConditionBody | None) -> str | None:
    """The JSON text of what was sent, in its spelling; None when it says nothing."""
    if body is None:
        return None
    sent = body.request_ip or body.dotted
    if sent is None:
        return None
    pointer = "/condition/request_ip" if body.request_ip else f"/condition/{DOTTED_IP}"
    if body.request_ip and body.dotted:
        raise TokenConditionRefused(reason=f"{DOTTED_IP} is request_ip: send one", pointer=pointer)
    addresses = Addresses(sent.in_ or [], sent.not_in or [])
    if len(addresses.in_) + len(addresses.not_in) > TOKEN_ADDRESSES_MAX:
        raise TokenConditionRefused(
            reason=f"there are more than {TOKEN_ADDRESSES_MAX} addresses", pointer=pointer
        )
    for member, networks in (("in", addresses.in_), ("not_in", addresses.not_in)):
        if not all(_is_network(text) for text in networks):
            raise TokenConditionRefused(
                reason="an address or a network in CIDR form, without bits behind its prefix, is expected",
                pointer=f"{pointer}/{member}",
            )
    if not addresses.in_ and not addresses.not_in:
        return None
    condition = Condition(addresses) if body.request_ip else Condition(dotted=addresses)
    return msgspec.json.encode(condition).decode()


def _is_network(text: str) -> bool:
    try:
        ip_network(text)
    except ValueError:
        return False
    return "%" not in text  # a zone of this machine's interfaces says nothing about a client


def _time(field: str, text: str | None) -> int | None:
    """RFC 3339 with an offset, cut to whole seconds: microseconds since the epoch."""
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text) if len(text) <= _TIME_CHARACTERS_MAX else None
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise TokenTimeRefused(
            field=field, reason="a time is written like 2026-01-31T12:00:00Z", pointer=f"/{field}"
        )
    seconds = (moment - _EPOCH) // timedelta(seconds=1)
    if not 0 <= seconds < _SECONDS_END:
        raise TokenTimeRefused(field=field, reason="it is not between 1970 and 9999", pointer=f"/{field}")
    return seconds * 1_000_000


def _refused(reason: str, pointer: str) -> TokenPoliciesRefused:
    return TokenPoliciesRefused(reason=reason, pointer=pointer)
