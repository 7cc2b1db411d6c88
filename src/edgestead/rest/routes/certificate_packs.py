"""REST face of certificates that authorities issue.

Owns  /zones/{zone_id}/ssl/certificate_packs, /zones/{zone_id}/ssl/universal/settings.
Not   certificates that are uploaded (`rest.routes.custom_certificates`).
"""

from edgestead.model.call import Call
from edgestead.model.envelope import Page
from edgestead.rest import declared
from edgestead.rest.context import AppContext, Write
from edgestead.rest.declared import choice, pages
from edgestead.rest.query import Query
from edgestead.rest.routing import route
from edgestead.usecases.certificate import packs
from edgestead.usecases.certificate.packs import (
    PackBody,
    PackView,
    QuotaView,
    UniversalBody,
    UniversalView,
)
from edgestead.usecases.zone.actions import ZoneId

_SSL = "/zones/{zone_id}/ssl"
_UNIVERSAL, _PACKS = f"{_SSL}/universal/settings", f"{_SSL}/certificate_packs"
_PACK = f"{_PACKS}/{{certificate_pack_id}}"
_READ, _WRITE = "SSL and Certificates Read", "SSL and Certificates Write"
_STATUSES = ("active", "all")


@route("GET", _UNIVERSAL, permission=_READ)
def show_universal_settings(zone_id: str, api: AppContext) -> UniversalView:
    """Whether the zone gets a certificate by itself, for its apex and all names below."""
    return api.barrier.read(lambda reader: packs.show_universal(reader, zone_id))


@route("PATCH", _UNIVERSAL, permission=_WRITE)
async def patch_universal_settings(
    zone_id: str, api: AppContext, call: Call, body: UniversalBody, write: Write
) -> UniversalView:
    """Whether the zone gets a certificate by itself. Switching it off takes away the one that it has."""
    return await write(lambda tx: packs.patch_universal(call, tx, api.platform, zone_id, body))


@route(
    "GET",
    _PACKS,
    permission=_READ,
    query=(*pages(), choice("status", _STATUSES, "active", "Also those that nothing is served of yet.")),
    answers=declared.page_of(PackView),
)
def list_certificate_packs(zone_id: str, api: AppContext, query: Query) -> Page:
    """The certificates that authorities issued for a zone, the newest first; with `all` also orders."""
    paging = query.paging()
    every = query.choice("status", _STATUSES, "active") == "all"
    return paging.of(
        api.barrier.read(
            lambda reader: packs.listed(reader, zone_id, paging.per_page, paging.offset, every=every)
        )
    )


@route("POST", f"{_PACKS}/order", permission=_WRITE)
async def order_certificate_pack(
    zone_id: str, api: AppContext, call: Call, body: PackBody, write: Write
) -> PackView:
    """Order a certificate for names of the zone; it is served as soon as an authority has issued it."""
    return await write(lambda tx: packs.order(call, tx, api.platform, zone_id, body))


@route("GET", f"{_PACKS}/quota", permission=_READ)
def show_certificate_pack_quota(zone_id: str, api: AppContext) -> QuotaView:
    """How many certificates may be ordered for a zone, and how many were."""
    return api.barrier.read(lambda reader: packs.quota(reader, zone_id))


@route("GET", _PACK, permission=_READ)
def show_certificate_pack(zone_id: str, certificate_pack_id: str, api: AppContext) -> PackView:
    """One certificate, or the order for it, with what the authority said last."""
    return api.barrier.read(lambda reader: packs.show(reader, zone_id, certificate_pack_id))


@route("PATCH", _PACK, permission=_WRITE)
async def renew_certificate_pack(
    zone_id: str, certificate_pack_id: str, api: AppContext, call: Call, write: Write
) -> PackView:
    """Order it again at once, without waiting for its renewal or the end of a pause."""
    return await write(lambda tx: packs.renew(call, tx, api.platform, zone_id, certificate_pack_id))


@route("DELETE", _PACK, permission=_WRITE)
async def delete_certificate_pack(
    zone_id: str, certificate_pack_id: str, api: AppContext, call: Call, write: Write
) -> ZoneId:
    """Delete a certificate that was ordered, and its key."""
    await write(lambda tx: packs.delete(call, tx, api.platform, zone_id, certificate_pack_id))
    return ZoneId(certificate_pack_id)
