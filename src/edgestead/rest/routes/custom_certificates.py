"""REST face of certificates that are uploaded.

Owns  /zones/{zone_id}/custom_certificates.
Not   certificates that authorities issue (`rest.routes.certificate_packs`).
"""

from edgestead.model.call import Call
from edgestead.model.envelope import Page
from edgestead.rest import declared
from edgestead.rest.context import AppContext, Write
from edgestead.rest.declared import pages
from edgestead.rest.query import Query
from edgestead.rest.routing import route
from edgestead.usecases.certificate import custom
from edgestead.usecases.certificate.custom import CustomBody, CustomView, PlacesBody
from edgestead.usecases.zone.actions import ZoneId

_ALL = "/zones/{zone_id}/custom_certificates"
_ONE = f"{_ALL}/{{certificate_id}}"
_READ, _WRITE = "SSL and Certificates Read", "SSL and Certificates Write"


@route("GET", _ALL, permission=_READ, query=pages(), answers=declared.page_of(CustomView))
def list_custom_certificates(zone_id: str, api: AppContext, query: Query) -> Page:
    """A zone's uploaded certificates, the newest first; no answer has a key."""
    paging = query.paging()
    return paging.of(
        api.barrier.read(lambda reader: custom.listed(reader, zone_id, paging.per_page, paging.offset))
    )


@route("POST", _ALL, permission=_WRITE)
async def upload_custom_certificate(
    zone_id: str, api: AppContext, call: Call, body: CustomBody, write: Write
) -> CustomView:
    """Upload a certificate with its chain and key. The edge serves it in seconds, to names of this zone."""
    upload = custom.read(body, call.now_us)
    return await write(lambda tx: custom.create(call, tx, api.platform, zone_id, upload))


@route("PUT", f"{_ALL}/prioritize", permission=_WRITE)
async def prioritize_custom_certificates(
    zone_id: str, call: Call, body: PlacesBody, write: Write
) -> list[CustomView]:
    """Say which of several for one name is served: the one with the higher priority. Others keep theirs."""
    return await write(lambda tx: custom.prioritize(call, tx, zone_id, body))


@route("GET", _ONE, permission=_READ)
def show_custom_certificate(zone_id: str, certificate_id: str, api: AppContext) -> CustomView:
    """One uploaded certificate."""
    return api.barrier.read(lambda reader: custom.show(reader, zone_id, certificate_id))


@route("PATCH", _ONE, permission=_WRITE)
async def replace_custom_certificate(
    zone_id: str, certificate_id: str, api: AppContext, call: Call, body: CustomBody, write: Write
) -> CustomView:
    """Put a new certificate with its key in the place of one; connections that are open keep the old one."""
    upload = custom.read(body, call.now_us, whole=False)
    return await write(lambda tx: custom.replace(call, tx, api.platform, zone_id, certificate_id, upload))


@route("DELETE", _ONE, permission=_WRITE)
async def delete_custom_certificate(zone_id: str, certificate_id: str, call: Call, write: Write) -> ZoneId:
    """Delete an uploaded certificate and its key."""
    await write(lambda tx: custom.delete(call, tx, zone_id, certificate_id))
    return ZoneId(certificate_id)
