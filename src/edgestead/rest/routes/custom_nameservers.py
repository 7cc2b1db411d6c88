"""REST face of custom name servers.

Owns  custom_ns of accounts and zones.
Not   DNS settings, which choose a set too (`rest.routes.dns_settings`).
"""

import msgspec

from edgestead.model.call import Call
from edgestead.model.envelope import encode
from edgestead.rest.context import AppContext, Write
from edgestead.rest.declared import Answers
from edgestead.rest.routing import Answer, route
from edgestead.usecases.account import custom_nameservers
from edgestead.usecases.account.custom_nameservers import NameserverBody, NameserverView
from edgestead.usecases.zone import nameservers
from edgestead.usecases.zone.nameservers import ZoneCustomBody

_ACCOUNT = "/accounts/{account_id}/custom_ns"
_ZONE = "/zones/{zone_id}/custom_ns"
_READ, _WRITE = "Account DNS Settings Read", "Account DNS Settings Write"


class ZoneNameservers(msgspec.Struct):
    """An envelope with two members more."""

    result: list[str]
    success: bool
    errors: list[str]
    messages: list[str]
    enabled: bool
    ns_set: int


@route("GET", _ACCOUNT, permission=_READ)
def list_nameservers(account_id: str, api: AppContext) -> list[NameserverView]:
    """An account's custom name servers, with the addresses that their names have. No paging."""
    return api.barrier.read(lambda reader: custom_nameservers.listed(reader, account_id))


@route("POST", _ACCOUNT, permission=_WRITE)
async def add_nameserver(
    account_id: str, api: AppContext, call: Call, body: NameserverBody, write: Write
) -> NameserverView:
    """Add a name server to a set. Zones that use the set serve it at once."""
    return await write(lambda tx: custom_nameservers.add(call, tx, api.platform, account_id, body))


@route("DELETE", f"{_ACCOUNT}/{{ns_name}}", permission=_WRITE)
async def remove_nameserver(
    account_id: str, ns_name: str, api: AppContext, call: Call, write: Write
) -> list[str]:
    """Remove a name server. The last of a set that zones use stays."""
    await write(lambda tx: custom_nameservers.remove(call, tx, api.platform, account_id, ns_name))
    return []


@route("GET", f"{_ACCOUNT}/availability", permission=_READ)
def list_available_names(account_id: str, api: AppContext) -> list[str]:
    """Names of zones below which name servers can be named."""
    return api.barrier.read(lambda reader: custom_nameservers.availability(reader, account_id))


@route("GET", _ZONE, permission="DNS Read", answers=Answers(ZoneNameservers, bare=True))
def show_zone_nameservers(zone_id: str, api: AppContext) -> Answer:
    """Whether a zone uses its account's name servers: `enabled` and `ns_set` beside an empty `result`."""
    view = api.barrier.read(lambda reader: nameservers.show_custom(reader, zone_id))
    body = {
        "result": [],
        "success": True,
        "errors": [],
        "messages": [],
        "enabled": view.enabled,
        "ns_set": view.ns_set,
    }
    return Answer(encode(body))


@route("PUT", _ZONE, permission="DNS Write")
async def put_zone_nameservers(
    zone_id: str, api: AppContext, call: Call, body: ZoneCustomBody, write: Write
) -> list[str]:
    """Use the account's name servers, or the server's. The older view of `nameservers`."""
    await write(lambda tx: nameservers.put_custom(call, tx, api.platform, zone_id, body))
    return []
