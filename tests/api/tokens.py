"""Tokens that tests put into the database: what a user could make for himself."""

import msgspec

from edgestead.model.permissions import BY_NAME
from edgestead.services.access import secret_hash
from edgestead.tables import accounts, tokens
from edgestead.testing.api import CREDENTIALS, FIRST_US, LocalApi

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
        id="t" * 32,
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
    api.store.write(lambda tx: tokens.insert(tx, row._replace(**changes))).result()
    api.store.read(api.access.refresh)
    return row.id
