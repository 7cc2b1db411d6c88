"""Tokens that tests put into the database: what a user could make for himself."""

import msgspec

from edgestead.model.permissions import BY_NAME
from edgestead.tables import accounts, tokens
from edgestead.usecases.access import identities
from edgestead.usecases.access.authorise import secret_hash
from tests.support.api import CREDENTIALS, FIRST_US, LocalApi

TOKEN_ID = "7" * 32
SECRET = "restricted-token_0123456789abcdefABCDEF0"
RESTRICTED = {"authorization": f"Bearer {SECRET}"}
ACCOUNT = f"com.cloudflare.api.account.{CREDENTIALS.account_id}"
ALL_ZONES = "com.cloudflare.api.account.zone.*"


def zone(zone_id: str) -> str:
    return f"com.cloudflare.api.account.zone.{zone_id}"


def policy(*groups: str, resources, effect: str = "allow"):
    if isinstance(resources, str):
        resources = {resources: "*"}
    return {
        "id": "p" * 32,
        "effect": effect,
        "permission_groups": [{"id": BY_NAME[group].id} for group in groups],
        "resources": resources,
    }


def put_token(api: LocalApi, *policies, owner_kind: str = "user", condition=None, **changes) -> str:
    """Let SECRET be a token with these policies; returns its id."""
    user = api.store.read(accounts.users)[0]
    row = tokens.TokenRow(
        id=TOKEN_ID,
        owner_kind=owner_kind,
        owner_id=user.id if owner_kind == "user" else CREDENTIALS.account_id,
        name="restricted",
        hash=secret_hash(SECRET),
        status="active",
        policies=msgspec.json.encode(policies).decode(),
        condition=None if condition is None else msgspec.json.encode(condition).decode(),
        not_before_us=None,
        expires_us=None,
        issued_us=FIRST_US,
        modified_us=FIRST_US,
    )
    row = row._replace(**changes)

    def write(tx):
        tokens.insert(tx, row)
        identities.tell_token(tx, row)

    api.store.write(write).result()
    return row.id
