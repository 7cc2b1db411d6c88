"""REST face of TSIG keys.

Owns  secondary_dns/tsigs of accounts.
Not   what a key is good for (`dns.keyring`).
"""

from edgestead.model.call import Call
from edgestead.rest.context import AppContext, Write, WriteAs
from edgestead.rest.routing import route
from edgestead.usecases.access.authorise import Identity
from edgestead.usecases.account import tsig_keys
from edgestead.usecases.account.tsig_keys import TsigBody, TsigView

_KEYS = "/accounts/{account_id}/secondary_dns/tsigs"
_KEY = f"{_KEYS}/{{tsig_id}}"
_WRITE = "Account DNS Settings Write"


@route("GET", _KEYS, permission=_WRITE)
def list_tsigs(account_id: str, api: AppContext, identity: Identity) -> list[TsigView]:
    """An account's TSIG keys with their secrets, which is why it takes the right to write. No paging."""
    return api.barrier.read(lambda reader: tsig_keys.listed(reader, api.platform, identity, account_id))


@route("POST", _KEYS, permission=_WRITE)
async def create_tsig(
    account_id: str, api: AppContext, call: Call, body: TsigBody, write_as: WriteAs
) -> TsigView:
    """Make a TSIG key. Without `secret` one is made, without `algo` it is hmac-sha256."""
    return await write_as(
        lambda tx, identity: tsig_keys.create(call, tx, api.platform, identity, account_id, body)
    )


@route("GET", _KEY, permission=_WRITE)
def show_tsig(account_id: str, tsig_id: str, api: AppContext, identity: Identity) -> TsigView:
    """One TSIG key with its secret."""
    return api.barrier.read(
        lambda reader: tsig_keys.show(reader, api.platform, identity, account_id, tsig_id)
    )


@route("PUT", _KEY, permission=_WRITE)
async def update_tsig(
    account_id: str, tsig_id: str, api: AppContext, call: Call, body: TsigBody, write_as: WriteAs
) -> TsigView:
    """Change a TSIG key. What is not sent stays."""
    return await write_as(
        lambda tx, identity: tsig_keys.update(call, tx, api.platform, identity, account_id, tsig_id, body)
    )


@route("DELETE", _KEY, permission=_WRITE)
async def delete_tsig(account_id: str, tsig_id: str, api: AppContext, write: Write) -> dict[str, str]:
    """Delete a TSIG key: from the answer on nothing that it signed is believed."""
    await write(lambda tx: tsig_keys.delete(tx, account_id, tsig_id))
    return {"id": tsig_id}
