"""What will surprise somebody about zones: what `edgecli doctor` says, a page of them at a time.

Owns  asking about a zone, the page.
Not   what is wrong with one (`health.setup`).
"""

from collections.abc import Iterable

from edgestead.health.rows import Finding
from edgestead.health.setup import ADDRESS_TYPES, TLS_SETTINGS, Zone, of_zone
from edgestead.web.asker import Json, Refused
from edgestead.web.pages.shared import listed
from edgestead.web.visit import Shown, Visit

ZONES_A_PAGE = 25  # each costs two calls, and four with records where nothing listens for TLS
LOOKED_AT = 5  # records of a zone: mostly one is an address, and no more calls are needed


async def show(visit: Visit) -> Shown:
    zones = await listed(visit, "/zones", order="name", per_page=ZONES_A_PAGE)
    remarks = [one._asdict() for one in await of_zones(visit, zones["items"])]
    return Shown("examination.html", "Zones examined", {"zones": zones, "remarks": remarks})


async def of_zones(visit: Visit, zones: Iterable[Json]) -> list[Finding]:
    return [one for zone in zones for one in of_zone(await _zone(visit, zone))]


async def _zone(visit: Visit, zone: Json) -> Zone:
    """What the session may not read is not known."""
    path, setup = f"/zones/{zone['id']}", visit.setup()
    has_records = has_address = wrong_ds = None
    on: list[str] = []
    try:
        records = await visit.api.result(f"{path}/dns_records", {"per_page": LOOKED_AT})
        has_records = bool(records)
        has_address = any(one["type"] in ADDRESS_TYPES for one in records)
        if len(records) == LOOKED_AT and not has_address:
            has_address = await _has_one_of(visit, path, ADDRESS_TYPES)
        dnssec = await visit.api.result(f"{path}/dnssec")
        wrong_ds = dnssec["next"] if dnssec["is_bogus"] else None
        if has_records and setup is not None and not setup.has_tls:  # else no name invites anybody
            settings = [await visit.api.result(f"{path}/settings/{name}") for name in TLS_SETTINGS]
            on = [one["id"] for one in settings if one["value"] == "on"]
    except Refused as refused:
        if refused.status not in (403, 404):
            raise
    return Zone(zone["name"], has_records, has_address, on, zone["id"], wrong_ds)


async def _has_one_of(visit: Visit, path: str, types: Iterable[str]) -> bool:
    for one in types:
        if await visit.api.result(f"{path}/dns_records", {"type": one, "per_page": LOOKED_AT}):
            return True
    return False
