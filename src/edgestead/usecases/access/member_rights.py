"""What a member may do, as the token at the top of everything that they make.

Owns  the policies that stand for roles; a member's own token, and when it follows their memberships.
Not   signing in (`usecases.account.signing_in`); inviting (`usecases.account.members`).

    roles of accepted memberships ──► policies of the member's token ──► bounds of every token made with it

The token is the member's alone and in no list: its secret is known to sessions of the dashboard in control's
memory, and to nobody else. So a session has the rights of the roles by the code that every token goes
through; a token that the member makes has it as its parent, and never more than it (`lineage`); and the
moment a role goes, all of that is narrower with the same commit.

    a membership is accepted, its roles change    the token's policies follow
    none is left                                  it is deleted, and every token that comes from it
    the password is another one, "everywhere"     its secret is another one: sessions end, tokens stay
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial

import msgspec

from edgestead.model.call import Call
from edgestead.model.ids import fixed_id
from edgestead.model.permissions import BY_NAME
from edgestead.model.refusals.account import RoleGrantsMore
from edgestead.model.refusals.token import GrantsMore
from edgestead.model.roles import USER_GROUPS, groups_of
from edgestead.store.control import Reader, Transaction
from edgestead.tables import accounts, tokens, zones
from edgestead.tables.tokens import TokenRow
from edgestead.usecases.access import identities, lineage, token_log
from edgestead.usecases.access.authorise import Group, Identity, Policy, read_rules
from edgestead.usecases.access.grants import check_held
from edgestead.usecases.platform import Platform

OWNER_KIND = "member"  # of its token: lists of a user's tokens do not have it, and no route finds it
TOKEN_NAME = "Session"
_PREFIX = "com.cloudflare.api"

read_roles = msgspec.json.Decoder(list[str]).decode
_policies = msgspec.json.Decoder(list[Policy]).decode


def token_id_of(user_id: str) -> str:
    return fixed_id("member", user_id)


def is_session(identity: Identity) -> bool:
    """Whether these are a member's own, and not those of a token or a key pair."""
    return identity.actor.token_id == token_id_of(identity.actor.id)


def policies_of(user_id: str, held: Iterable[tuple[str, Sequence[str]]]) -> list[Policy]:
    """What roles (identifiers, by account) give their member, as a token's policies."""
    found = [_policy(user_id, "user", USER_GROUPS, {f"{_PREFIX}.user.{user_id}": "*"})]
    for account_id, role_ids in held:
        account, groups = f"{_PREFIX}.account.{account_id}", sorted(groups_of(list(role_ids)))
        reached: dict[str, Mapping[str, object]] = {
            "account": {account: "*"},
            "zone": {account: {f"{_PREFIX}.account.zone.*": "*"}},
        }
        for scope, resources in reached.items():
            names = [name for name in groups if BY_NAME[name].scope == scope]
            if names:
                found.append(_policy(user_id, f"{account_id} {scope}", names, resources))
    return found


def check_may_give(identity: Identity, reader: Reader, account_id: str, role_ids: Sequence[str]) -> None:
    """Nobody gives, or takes, more than they have. Raises RoleGrantsMore."""
    policies = policies_of("", [(account_id, role_ids)])[1:]
    try:
        check_held(identity, read_rules(policies, OWNER_KIND, ""), cache(partial(zones.account_id, reader)))
    except GrantsMore as refused:
        raise RoleGrantsMore(**refused.facts) from None


def settle(call: Call, tx: Transaction, platform: Platform, user_id: str) -> None:
    """Make the member's token, where there is one, what their memberships say now."""
    row = tokens.by_id(tx, token_id_of(user_id))
    if row is None:
        return
    held = accepted(tx, user_id)
    if not held:
        end(call, tx, platform, user_id)
        return
    policies = msgspec.json.encode(policies_of(user_id, held)).decode()
    if policies != row.policies:
        _put(tx, row._replace(policies=policies, modified_us=call.now_us), tokens.update)


def open_session(call: Call, tx: Transaction, user_id: str, secret_hash: bytes) -> None:
    """Let this secret be the one of the member's token: an older one is dead with this commit."""
    policies = msgspec.json.encode(policies_of(user_id, accepted(tx, user_id))).decode()
    before = tokens.by_id(tx, token_id_of(user_id))
    if before is not None:
        row = before._replace(hash=secret_hash, policies=policies)
        if row != before:
            _put(tx, row._replace(modified_us=call.now_us), tokens.update)
        return
    row = TokenRow(
        id=token_id_of(user_id),
        owner_kind=OWNER_KIND,
        owner_id=user_id,
        name=TOKEN_NAME,
        hash=secret_hash,
        status="active",
        policies=policies,
        condition=None,
        not_before_us=None,
        expires_us=None,
        issued_us=call.now_us,
        modified_us=call.now_us,
    )
    _put(tx, row, tokens.insert)


def end(call: Call, tx: Transaction, platform: Platform, user_id: str) -> None:
    """Delete the member's token with every token that comes from it, of any owner, and the user's others."""
    row = tokens.by_id(tx, token_id_of(user_id))
    made = [] if row is None else lineage.rows_below(tx, row)
    dead = {one.id: one for one in (*made, *tokens.of_owner(tx, "user", user_id))}
    for one in dead.values():
        tokens.delete(tx, one.id)
        token_log.note(call, tx, platform, "delete", one)
    if row is not None:
        tokens.delete(tx, row.id)
        dead[row.id] = row
    identities.forget_tokens(tx, dead)


def accepted(reader: Reader, user_id: str) -> list[tuple[str, list[str]]]:
    """The accounts that the user belongs to, with the roles there."""
    return [
        (row.account_id, read_roles(row.roles))
        for row in accounts.memberships(reader, user_id)
        if row.status == "accepted"
    ]


def _put(tx: Transaction, row: TokenRow, write: Callable[[Transaction, TokenRow], None]) -> None:
    write(tx, row)
    identities.tell_token(tx, row)


def _policy(user_id: str, about: str, names: Iterable[str], resources: Mapping[str, object]) -> Policy:
    groups = [Group(BY_NAME[name].id, name) for name in names]
    return Policy(fixed_id("policy", f"{user_id} {about}"), "allow", groups, dict(resources))
