"""The first account, its user, key and token; and their renewal.

Owns  what the first start writes, and how the database is made to agree with the credentials file.
Not   the file; tokens that users make themselves.
"""

from collections.abc import Callable

import msgspec

from edgestead.model.ids import fixed_id
from edgestead.model.permissions import BY_NAME
from edgestead.model.roles import SUPER_ADMINISTRATOR
from edgestead.store.control import Reader, Transaction
from edgestead.tables import accounts, tokens
from edgestead.tables.accounts import AccountRow, UserRow
from edgestead.tables.tokens import TokenRow
from edgestead.usecases.access import identities
from edgestead.usecases.access.authorise import ALL_GROUPS, secret_hash

FIRST_TOKEN_NAME = "First token"
EVERY_ROLE = msgspec.json.encode([SUPER_ADMINISTRATOR.id]).decode()
_FIRST_TOKEN_ID = fixed_id("token", FIRST_TOKEN_NAME)


class Credentials(msgspec.Struct, frozen=True, kw_only=True):
    """What the credentials file holds. Secrets are text; only their hashes are stored."""

    account_id: str
    email: str
    api_key: str
    api_token: str


def install(
    tx: Transaction,
    credentials: Credentials,
    *,
    revoke_others: bool = False,
    now_us: int,
    new_id: Callable[[], str],
) -> None:
    """Make the database agree with the file: the first start, a renewal, and every other start alike.

    A renewal changes key and token together, so a key that the database does not know is how it is met first:
    then the old key and first token die with this commit, and all other tokens too if `revoke_others`.
    Whatever else a start finds, a first token that its owner deleted say, stays as it is.
    """
    if accounts.account(tx, credentials.account_id) is None:
        _create(tx, credentials, now_us, new_id)
    else:
        _renew(tx, credentials, revoke_others, now_us)
        _keep_whole(tx)
    identities.settle(tx)


def is_key_of(reader: Reader, email: str, api_key: str) -> bool:
    """Whether a user of this address has this key."""
    key_hash = secret_hash(api_key)
    return any(
        user.email_folded == email.lower() and user.key_hash == key_hash for user in accounts.users(reader)
    )


def _renew(tx: Transaction, credentials: Credentials, revoke_others: bool, now_us: int) -> None:
    for user in accounts.users(tx):
        if user.email_folded == credentials.email.lower() and user.key_hash != secret_hash(
            credentials.api_key
        ):
            accounts.set_key_hash(tx, user.id, secret_hash(credentials.api_key))
            dead = [row.id for row in tokens.tokens(tx)] if revoke_others else [_FIRST_TOKEN_ID]
            for token_id in dead:
                tokens.delete(tx, token_id)
            identities.forget_tokens(tx, dead)
            tokens.insert(tx, _first_token(user.id, credentials, now_us))


def _keep_whole(tx: Transaction) -> None:
    row = tokens.by_id(tx, _FIRST_TOKEN_ID)
    if row is None or row.modified_us != row.issued_us:
        return
    policies = _everything(row.owner_id)
    if row.policies != policies:
        tokens.update(tx, row._replace(policies=policies))


def _create(tx: Transaction, credentials: Credentials, now_us: int, new_id: Callable[[], str]) -> None:
    user_id = new_id()
    email = credentials.email
    accounts.insert_account(
        tx, AccountRow(credentials.account_id, f"{email}'s Account", "standard", 0, now_us)
    )
    accounts.insert_user(tx, UserRow(user_id, email, email.lower(), secret_hash(credentials.api_key), now_us))
    accounts.insert_membership(tx, new_id(), credentials.account_id, user_id, "accepted", now_us, EVERY_ROLE)
    tokens.insert(tx, _first_token(user_id, credentials, now_us))


def _first_token(user_id: str, credentials: Credentials, now_us: int) -> TokenRow:
    return TokenRow(
        id=_FIRST_TOKEN_ID,
        owner_kind="user",
        owner_id=user_id,
        name=FIRST_TOKEN_NAME,
        hash=secret_hash(credentials.api_token),
        status="active",
        policies=_everything(user_id),
        condition=None,
        not_before_us=None,
        expires_us=None,
        issued_us=now_us,
        modified_us=now_us,
    )


def _everything(user_id: str) -> str:
    policy = {
        "id": fixed_id("policy", FIRST_TOKEN_NAME),
        "effect": "allow",
        "permission_groups": [{"id": BY_NAME[name].id, "name": name} for name in sorted(ALL_GROUPS)],
        "resources": {
            "com.cloudflare.api.account.*": "*",
            "com.cloudflare.api.account.zone.*": "*",
            f"com.cloudflare.api.user.{user_id}": "*",
        },
    }
    return msgspec.json.encode([policy]).decode()
