"""The use cases of API tokens, a user's and an account's.

Owns  what each of them does, in one transaction; a token's JSON shape; the list of permission groups.
Not   using a token (`usecases.access.authorise`, which the caller refreshes after each write).

Of a secret only the SHA-256 is kept: its text is in the answer that made it, and nowhere else.
"""

from functools import cache, partial

import msgspec

from edgestead.model.call import Call
from edgestead.model.envelope import Listed
from edgestead.model.permissions import GROUPS
from edgestead.model.refusals.account import AccountNotSeen
from edgestead.model.refusals.token import (
    BoundsWider,
    GrantsMore,
    LineageTooLong,
    TokenNotFound,
    TokenQuota,
    WiderThanParent,
)
from edgestead.model.times import whole_seconds
from edgestead.store.control import Reader, Transaction
from edgestead.tables import accounts, tokens, zones
from edgestead.tables.tokens import TokenRow
from edgestead.usecases.access import identities, lineage, token_draft, token_log
from edgestead.usecases.access.authorise import Identity, Policy, identity_of, secret_hash, without_vendor
from edgestead.usecases.access.grants import check_bounds, check_held
from edgestead.usecases.access.token_draft import AccountOf, Draft, Owner, TokenBody
from edgestead.usecases.access.token_uses import TokenUses
from edgestead.usecases.limits import TOKEN_LINEAGE_MAX, TOKENS_PER_ACCOUNT_MAX, TOKENS_PER_USER_MAX
from edgestead.usecases.platform import Platform

_TOKENS_MAX = {"user": TOKENS_PER_USER_MAX, "account": TOKENS_PER_ACCOUNT_MAX}
_SCOPES = {"zone": "account.zone", "account": "account", "user": "user"}
_policies = msgspec.json.Decoder(list[Policy]).decode


class TokenView(msgspec.Struct, frozen=True, kw_only=True):
    """Contract "Tokens". `value` is there only when the token was just made. `parent_id`, the token that made
    it, is ours: it is there only for who asks for it.
    """

    id: str
    name: str
    status: str
    issued_on: str
    modified_on: str
    last_used_on: str | msgspec.UnsetType
    parent_id: str | msgspec.UnsetType | None = msgspec.UNSET
    not_before: str | msgspec.UnsetType
    expires_on: str | msgspec.UnsetType
    policies: msgspec.Raw
    condition: msgspec.Raw | msgspec.UnsetType
    value: str | msgspec.UnsetType = msgspec.UNSET


class GroupView(msgspec.Struct, frozen=True):
    id: str
    name: str
    scopes: tuple[str, ...]


def user_owner(identity: Identity) -> Owner:
    """The user whose credentials these are. Only for routes that refuse an account's tokens."""
    return Owner("user", identity.actor.id)


def account_owner(reader: Reader, account_id: str) -> Owner:
    """Raises AccountNotSeen: there is no such account."""
    if accounts.account(reader, account_id) is None:
        raise AccountNotSeen
    return Owner("account", account_id)


def create(
    call: Call, tx: Transaction, platform: Platform, identity: Identity, owner: Owner, body: TokenBody
) -> TokenView:
    """Make a token; the answer is the only one with its secret.

    Raises TokenQuota, LineageTooLong, GrantsMore, BoundsWider, and what `token_draft.read` raises.
    """
    tokens_max = _TOKENS_MAX[owner.kind]
    if tokens.of_owner_count(tx, *owner) >= tokens_max:
        raise TokenQuota(limit=tokens_max)
    account_of = _accounts_of_zones(tx)
    draft = token_draft.read(body, owner, account_of, platform.new_id)
    secret = platform.new_secret()
    row = TokenRow(
        id=platform.new_id(),
        owner_kind=owner.kind,
        owner_id=owner.id,
        name=draft.name,
        hash=secret_hash(secret),
        status="active",
        policies=_text(draft.policies),
        condition=draft.condition,
        not_before_us=draft.not_before_us,
        expires_us=draft.expires_us,
        issued_us=call.now_us,
        modified_us=call.now_us,
        parent_id=identity.actor.token_id,
    )
    _check_within(identity, row, account_of, None)
    if len(lineage.rows_above(tx, row)) >= TOKEN_LINEAGE_MAX:
        raise LineageTooLong(limit=TOKEN_LINEAGE_MAX)
    tokens.insert(tx, row)
    identities.tell_token(tx, row)
    token_log.note(call, tx, platform, "create", row)
    return msgspec.structs.replace(_view(row, call.now_us, None), value=secret)


def listed(
    call: Call,
    reader: Reader,
    owner: Owner,
    uses: TokenUses,
    *,
    include_expired: bool,
    descending: bool,
    with_parents: bool,
    limit: int,
    offset: int,
) -> Listed:
    """An owner's tokens by time of issue. There are few: all of them are read."""
    views = [
        _view(row, call.now_us, uses.last_us(row.id), with_parent=with_parents)
        for row in tokens.of_owner(reader, *owner)
    ]
    shown = [view for view in views if include_expired or view.status != "expired"]
    if descending:
        shown.reverse()
    return Listed(shown[offset : offset + limit], len(shown))


def show(
    call: Call, reader: Reader, owner: Owner, uses: TokenUses, token_id: str, *, with_parent: bool
) -> TokenView:
    """Raises TokenNotFound."""
    row = _row(reader, owner, token_id)
    return _view(row, call.now_us, uses.last_us(token_id), with_parent=with_parent)


def update(
    call: Call,
    tx: Transaction,
    platform: Platform,
    identity: Identity,
    owner: Owner,
    uses: TokenUses,
    token_id: str,
    body: TokenBody,
) -> TokenView:
    """Replace everything of a token except its secret. Without a `status` the old one is kept.

    Raises TokenNotFound, GrantsMore, BoundsWider, and what `token_draft.read` raises.
    """
    account_of = _accounts_of_zones(tx)
    row = _row_within(tx, identity, owner, token_id, account_of)
    draft = token_draft.read(body, owner, account_of, platform.new_id, _policies(row.policies))
    changed = _changed(row, draft)._replace(modified_us=call.now_us)
    if body.status in ("active", "disabled"):  # `expired` is what a client has read: times say that
        changed = changed._replace(status=body.status)
    _check_within(identity, changed, account_of, row)
    _check_above(tx, row, changed, account_of)
    _change(call, tx, platform, changed)
    return _view(changed, call.now_us, uses.last_us(token_id))


def roll(
    call: Call, tx: Transaction, platform: Platform, identity: Identity, owner: Owner, token_id: str
) -> str:
    """Give a token a new secret, which is returned. Raises TokenNotFound, GrantsMore, BoundsWider.

    A caller who learns a token's secret gets its permissions: these must not exceed his own.
    """
    row = _row_within(tx, identity, owner, token_id, _accounts_of_zones(tx))
    secret = platform.new_secret()
    rolled = row._replace(hash=secret_hash(secret), modified_us=call.now_us)
    tokens.update(tx, rolled)
    identities.tell_token(tx, rolled)
    token_log.note(call, tx, platform, "roll", row)
    return secret


def delete(
    call: Call,
    tx: Transaction,
    platform: Platform,
    identity: Identity,
    owner: Owner,
    token_id: str,
    *,
    with_successors: bool = False,
) -> list[str]:
    """Delete a token and the ones created from it, of any owner; returns the ids of these.

    Without them, those that it made go one level up (`lineage`).

    Raises TokenNotFound, GrantsMore, BoundsWider.
    """
    account_of = _accounts_of_zones(tx)
    row = _row_within(tx, identity, owner, token_id, account_of)
    below = lineage.rows_below(tx, row) if with_successors else []
    if not with_successors:
        for successor in tokens.of_parent(tx, row.id):
            _lift(call, tx, platform, successor, row, account_of)
    for one in (row, *below):
        tokens.delete(tx, one.id)
        token_log.note(call, tx, platform, "delete", one)
    identities.forget_tokens(tx, (row.id, *(one.id for one in below)))
    return [one.id for one in below]


def _lift(
    call: Call,
    tx: Transaction,
    platform: Platform,
    successor: TokenRow,
    parent: TokenRow,
    account_of: AccountOf,
) -> None:
    """Before its parent goes: what the parent held back until now does not get free."""
    lifted = successor._replace(parent_id=parent.parent_id)
    begins_us = max(successor.not_before_us or 0, call.now_us)
    is_free = (
        _lies_within(identity_of(parent), successor, account_of, successor)
        and (parent.not_before_us or 0) <= begins_us
    )
    if successor.status == "active" and not is_free:
        _change(call, tx, platform, lifted._replace(status="disabled", modified_us=call.now_us))
    else:
        tokens.update(tx, lifted)
        identities.tell_token(tx, lifted)


def _lies_within(bounds: Identity, row: TokenRow, account_of: AccountOf, before: TokenRow) -> bool:
    """Whether a token is no wider than these credentials, which work or would at their time."""
    try:
        _check_within(bounds, row, account_of, before)
    except (GrantsMore, BoundsWider):
        return False
    return bounds.status == "active"


def _change(call: Call, tx: Transaction, platform: Platform, changed: TokenRow) -> None:
    tokens.update(tx, changed)
    identities.tell_token(tx, changed)
    token_log.note(call, tx, platform, "update", changed)


def permission_groups(owner_kind: str, name: str | None, scope: str | None) -> list[GroupView]:
    """The groups that a token of such an owner can use. An unknown scope has none."""
    wanted_scope = without_vendor(scope) if scope else None
    return [
        GroupView(group.id, group.name, (f"com.cloudflare.api.{_SCOPES[group.scope]}",))
        for group in GROUPS
        if (owner_kind == "user" or group.scope != "user")
        and (not name or group.name.casefold() == name.casefold())
        and (wanted_scope is None or _SCOPES[group.scope] == wanted_scope)
    ]


def _row(reader: Reader, owner: Owner, token_id: str) -> TokenRow:
    row = tokens.token(reader, owner.kind, owner.id, token_id)
    if row is None:
        raise TokenNotFound
    return row


def _changed(row: TokenRow, draft: Draft) -> TokenRow:
    return row._replace(
        name=draft.name,
        policies=_text(draft.policies),
        condition=draft.condition,
        not_before_us=draft.not_before_us,
        expires_us=draft.expires_us,
    )


def _row_within(
    reader: Reader, identity: Identity, owner: Owner, token_id: str, account_of: AccountOf
) -> TokenRow:
    """A token that the caller may touch: his own, one that comes from it, or one that he could make.

    Raises TokenNotFound, GrantsMore, BoundsWider.
    """
    row = _row(reader, owner, token_id)
    if identity.actor.token_id not in (row.id, *(one.id for one in lineage.rows_above(reader, row))):
        _check_within(identity, row, account_of, row)
    return row


def _check_above(reader: Reader, before: TokenRow, changed: TokenRow, account_of: AccountOf) -> None:
    """Whoever changes it, a token gets nothing that those above it have not. What is only taken away may be
    taken away from a token that they hold back.

    Raises WiderThanParent.
    """
    bounds = msgspec.structs.replace(identity_of(before), status="active")
    if _lies_within(bounds, changed, account_of, before):
        return
    for row in lineage.rows_above(reader, before):
        try:
            _check_within(identity_of(row), changed, account_of, before)
        except (GrantsMore, BoundsWider):
            raise WiderThanParent(id=row.id) from None


def _check_within(identity: Identity, row: TokenRow, account_of: AccountOf, before: TokenRow | None) -> None:
    """`before` is the token as it is stored: nobody has to hold zones that it names and that are gone."""
    token = identity_of(row)
    named = identity_of(before).rules if before is not None else ()
    gone = {zone for rule in named for zone in rule.reach.zones if account_of(zone) is None}
    check_held(identity, token.rules, account_of, gone)
    check_bounds(identity, token)


def _accounts_of_zones(reader: Reader) -> AccountOf:
    """One look at the table for each zone, however often it is asked for."""
    return cache(partial(zones.account_id, reader))


def _text(policies: list[Policy]) -> str:
    return msgspec.json.encode(policies).decode()


def _view(row: TokenRow, now_us: int, used_us: int | None, *, with_parent: bool = False) -> TokenView:
    expired = row.expires_us is not None and now_us >= row.expires_us
    return TokenView(
        id=row.id,
        name=row.name,
        status="expired" if expired and row.status == "active" else row.status,
        issued_on=whole_seconds(row.issued_us),
        modified_on=whole_seconds(row.modified_us),
        last_used_on=_time(used_us),
        parent_id=row.parent_id if with_parent else msgspec.UNSET,
        not_before=_time(row.not_before_us),
        expires_on=_time(row.expires_us),
        policies=msgspec.Raw(row.policies),
        condition=msgspec.UNSET if row.condition is None else msgspec.Raw(row.condition),
    )


def _time(time_us: int | None) -> str | msgspec.UnsetType:
    return msgspec.UNSET if time_us is None else whole_seconds(time_us)
