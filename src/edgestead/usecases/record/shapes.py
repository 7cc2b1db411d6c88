"""Records in the shape that a call asks for: by its date and its profile.

Owns  what older dates answered besides, and the spellings of the profile `clients`.
Not   the newest shape, which rows keep ready (`usecases.change.view`).

    until 2024-11-30  zone_id and zone_name behind id
    until 2024-07-14  locked, always false, behind ttl
    until 2024-05-31  service, proto and name in the data of SRV records

Members are put in between bytes that no text of a user's can hold: inside of a JSON string a quote is
escaped.
"""

from collections.abc import Sequence

import msgspec

from edgestead.changes import changed
from edgestead.model.call import Call, Profile
from edgestead.usecases.record import srv_members

_ID_END = len('{"id":""') + 32
_SRV = b',"type":"SRV",'
_BEHIND_TTL = b',"settings":{'
_OWN_SPELLING = b',"managed_by_edge_tunnel":'
_VENDOR_SPELLING = b',"managed_by_argo_tunnel":'

_encode = msgspec.json.Encoder().encode


def shown(call: Call, zone_id: str, zone_name: str, bodies: Sequence[bytes]) -> bytes:
    """Stored bodies of one zone, in their order, with commas between."""
    if not changed("record-zone-fields", call.as_of):
        bodies = [_older(call, zone_id, zone_name, body) for body in bodies]
    return spelled(call, b",".join(bodies))


def spelled(call: Call, text: bytes) -> bytes:
    """Stored bodies in the spelling of the call's profile, and in the newest shape."""
    return text.replace(_OWN_SPELLING, _VENDOR_SPELLING) if call.profile is Profile.CLIENTS else text


def _older(call: Call, zone_id: str, zone_name: str, body: bytes) -> bytes:
    if not changed("srv-data-members", call.as_of) and _SRV in body:
        body = _with_srv_members(body)
    if not changed("record-locked", call.as_of):
        body = body.replace(_BEHIND_TTL, b',"locked":false' + _BEHIND_TTL, 1)
    zone = b',"zone_id":%s,"zone_name":%s' % (_encode(zone_id), _encode(zone_name))
    return body[:_ID_END] + zone + body[_ID_END:]


def _with_srv_members(body: bytes) -> bytes:
    record = msgspec.json.decode(body)
    data = {**record["data"], **srv_members.members_of(record["name"])}
    return _encode({**record, "data": dict(sorted(data.items()))})
