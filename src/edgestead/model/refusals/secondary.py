"""Refusals of catalog zones, and of secondary zones.

Owns  code, status and wording of each.
Not   zones themselves (`model.refusals.zone`).

    BadRequest (400)
    ├── CatalogRefused   9601
    ├── PeerRefused      9603
    ├── PeerInUse        9604
    ├── IncomingRefused  9606
    ├── NotSecondary     9607
    ├── ZoneIsSecondary  9608
    ├── FollowedRefused  9610
    └── NoMember         9611
    NotFound (404)
    ├── CatalogNotFound  9600
    ├── PeerNotFound     9602
    ├── IncomingNotFound 9605
    └── FollowedNotFound 9609
"""

from edgestead.model.refusals import BadRequest, NotFound


class CatalogNotFound(NotFound):
    code, wording = 9600, 'The account has no catalog zone. PUT makes one: {{"name": "catalog.example"}}.'


class CatalogRefused(BadRequest):
    code, wording = 9601, "The catalog is refused: {reason}"


class PeerNotFound(NotFound):
    code, wording = 9602, "The account has no peer with this id."


class PeerRefused(BadRequest):
    code, wording = 9603, "The peer is refused: {reason}"


class PeerInUse(BadRequest):
    code, wording = 9604, "Zone {zone} uses this peer: give that zone another one first."


class IncomingNotFound(NotFound):
    code, wording = (
        9605,
        "The zone has no peers yet: POST to its secondary_dns/incoming says where it is transferred from.",
    )


class IncomingRefused(BadRequest):
    code, wording = 9606, "The zone cannot be transferred so: {reason}"


class NotSecondary(BadRequest):
    code, wording = 9607, "{name} is no secondary zone: its records are kept here."


class ZoneIsSecondary(BadRequest):
    """What a transfer brings is changed at the primary, but for whether a name is proxied."""

    code, wording = (
        9608,
        "{name} is a secondary zone: {what} at its primary. Here a name can only be proxied,"
        " with the DNS setting secondary_overrides on.",
    )


class FollowedNotFound(NotFound):
    code, wording = 9609, "The account follows no catalog with this id."


class FollowedRefused(BadRequest):
    code, wording = 9610, "The catalog cannot be followed so: {reason}"


class NoMember(BadRequest):
    code, wording = 9611, "No catalog that is followed made {name}: it stays by itself."
