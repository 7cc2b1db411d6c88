"""REST face of DNS settings and DNSSEC of a zone, and of an account's defaults.

Owns  dns_settings of zones and accounts, their two dedicated routes, dnssec.
Not   custom name servers (`rest.routes.custom_nameservers`).
"""

from edgestead.model import envelope
from edgestead.model.call import Call
from edgestead.model.envelope import REMARK, Message
from edgestead.rest.context import AppContext, Write
from edgestead.rest.declared import Answers
from edgestead.rest.routing import Answer, route
from edgestead.usecases.zone import dns_settings, dnssec
from edgestead.usecases.zone.dns_settings import (
    AccountDnsSettingsBody,
    AccountDnsSettingsView,
    DnsSettingsBody,
    DnsSettingsView,
    SwitchBody,
    SwitchView,
)
from edgestead.usecases.zone.dnssec import DnssecBody, DnssecView, KeyView, RollBody

_ZONE = "/zones/{zone_id}/dns_settings"
_ACCOUNT = "/accounts/{account_id}/dns_settings"
_DNSSEC = "/zones/{zone_id}/dnssec"
_READ, _WRITE = "DNS Read", "DNS Write"
_USE_APEX_NS, _OVERRIDES = "use_apex_ns", "secondary_overrides"


@route("GET", _ZONE, permission=_READ)
def show_dns_settings(zone_id: str, api: AppContext, call: Call) -> DnsSettingsView:
    """DNS settings of a zone."""
    return api.barrier.read(lambda reader: dns_settings.show(call, reader, api.platform, zone_id))


@route("PATCH", _ZONE, permission=_WRITE, answers=Answers(DnsSettingsView))
async def patch_dns_settings(
    zone_id: str, api: AppContext, call: Call, body: DnsSettingsBody, write: Write
) -> Answer:
    """Change DNS settings; what is not sent stays. SOA and NS are served at once."""
    messages = [Message(REMARK, text) for text in dns_settings.remarks(body)]
    return await write(
        lambda tx: dns_settings.patch(call, tx, api.platform, zone_id, body),
        lambda view: Answer(envelope.success(view, messages)),
    )


@route("GET", f"{_ZONE}/{_USE_APEX_NS}", permission=_READ)
def show_use_apex_ns(zone_id: str, api: AppContext) -> SwitchView:
    """The older view of `multi_provider`."""
    return api.barrier.read(lambda reader: dns_settings.show_switch(reader, zone_id, _USE_APEX_NS))


@route("PATCH", f"{_ZONE}/{_USE_APEX_NS}", permission=_WRITE)
async def patch_use_apex_ns(
    zone_id: str, api: AppContext, call: Call, body: SwitchBody, write: Write
) -> SwitchView:
    """The older view of `multi_provider`."""
    return await write(
        lambda tx: dns_settings.patch_switch(call, tx, api.platform, zone_id, _USE_APEX_NS, body)
    )


@route("GET", f"{_ZONE}/{_OVERRIDES}", permission=_READ)
def show_secondary_overrides(zone_id: str, api: AppContext) -> SwitchView:
    """The older view of `secondary_overrides`."""
    return api.barrier.read(lambda reader: dns_settings.show_switch(reader, zone_id, _OVERRIDES))


@route("PATCH", f"{_ZONE}/{_OVERRIDES}", permission=_WRITE)
async def patch_secondary_overrides(
    zone_id: str, api: AppContext, call: Call, body: SwitchBody, write: Write
) -> SwitchView:
    """The older view of `secondary_overrides`."""
    return await write(
        lambda tx: dns_settings.patch_switch(call, tx, api.platform, zone_id, _OVERRIDES, body)
    )


@route("GET", _ACCOUNT, permission="Account DNS Settings Read")
def show_dns_defaults(account_id: str, api: AppContext, call: Call) -> AccountDnsSettingsView:
    """DNS settings that an account gives to new zones."""
    return api.barrier.read(lambda reader: dns_settings.show_defaults(call, reader, api.platform, account_id))


@route("PATCH", _ACCOUNT, permission="Account DNS Settings Write")
async def patch_dns_defaults(
    account_id: str, api: AppContext, call: Call, body: AccountDnsSettingsBody, write: Write
) -> AccountDnsSettingsView:
    """Change what new zones get; zones that are there stay as they are."""
    return await write(lambda tx: dns_settings.patch_defaults(call, tx, api.platform, account_id, body))


@route("GET", _DNSSEC, permission=_READ)
def show_dnssec(zone_id: str, api: AppContext) -> DnssecView:
    """DNSSEC of a zone: its status, and what the parent zone needs to know of its key."""
    return api.barrier.read(lambda reader: dnssec.show(reader, zone_id))


@route("PATCH", _DNSSEC, permission=_WRITE)
async def patch_dnssec(
    zone_id: str, api: AppContext, call: Call, body: DnssecBody, write: Write
) -> DnssecView:
    """Sign a zone (`active`), or end that (`disabled`) once the parent has no DS; store DNSSEC switches."""
    return await write(lambda tx: dnssec.patch(call, tx, api.platform, zone_id, body))


@route("DELETE", _DNSSEC, permission=_WRITE)
async def delete_dnssec(zone_id: str, api: AppContext, call: Call, write: Write) -> str:
    """End signing as `disabled` does, and forget DNSSEC switches."""
    return await write(lambda tx: dnssec.delete(call, tx, api.platform, zone_id))


@route("GET", f"{_DNSSEC}/zsk", permission=_READ)
def list_signing_keys(zone_id: str, api: AppContext) -> tuple[KeyView, ...]:
    """Zone signing keys: none where one key signs everything."""
    return api.barrier.read(lambda reader: dnssec.list_zone_keys(reader, zone_id))


@route("POST", f"{_DNSSEC}/roll", permission=_WRITE)
async def roll_keys(zone_id: str, api: AppContext, call: Call, body: RollBody, write: Write) -> DnssecView:
    """Begin to replace the zone's keys, or the one of a role: `csk`, `ksk` or `zsk`."""
    return await write(lambda tx: dnssec.roll(call, tx, api.platform, zone_id, body))
