"""REST face of certificates for origins.

Owns  /certificates.
Not   certificates that browsers see (`rest.routes.certificate_packs`, `rest.routes.custom_certificates`).
"""

from edgestead.model.call import Call
from edgestead.model.envelope import Page
from edgestead.rest import declared
from edgestead.rest.context import AppContext, WriteAs
from edgestead.rest.declared import Parameter, pages
from edgestead.rest.query import Query
from edgestead.rest.routing import route
from edgestead.usecases.access.authorise import Identity
from edgestead.usecases.certificate import origin
from edgestead.usecases.certificate.origin import READ, WRITE, OriginBody, OriginView, RevokedView

_ALL = "/certificates"
_ONE = f"{_ALL}/{{origin_certificate_id}}"


@route(
    "GET",
    _ALL,
    permission=READ,
    query=(*pages(), Parameter("zone_id", "The zone whose certificates are listed; it has to be named.")),
    answers=declared.page_of(OriginView),
)
def list_origin_certificates(api: AppContext, identity: Identity, query: Query) -> Page:
    """A zone's certificates for origins that are not revoked, the newest first."""
    paging, zone_id = query.paging(), query.text("zone_id")
    return paging.of(
        api.barrier.read(
            lambda reader: origin.listed(reader, identity, zone_id, paging.per_page, paging.offset)
        )
    )


@route("POST", _ALL, permission=WRITE)
async def create_origin_certificate(
    api: AppContext, call: Call, body: OriginBody, write_as: WriteAs
) -> OriginView:
    """Sign a certificate for an origin's key. The edge trusts it where the zone's `ssl` is `strict`."""
    wish = origin.read(body)
    return await write_as(lambda tx, identity: origin.create(call, tx, api.platform, identity, wish))


@route("GET", _ONE, permission=READ)
def show_origin_certificate(origin_certificate_id: str, api: AppContext, identity: Identity) -> OriginView:
    """One certificate for an origin."""
    return api.barrier.read(lambda reader: origin.show(reader, identity, origin_certificate_id))


@route("DELETE", _ONE, permission=WRITE)
async def revoke_origin_certificate(origin_certificate_id: str, call: Call, write_as: WriteAs) -> RevokedView:
    """Revoke a certificate for an origin: the edge takes it no more, within some seconds."""
    return await write_as(lambda tx, identity: origin.revoke(call, tx, identity, origin_certificate_id))
