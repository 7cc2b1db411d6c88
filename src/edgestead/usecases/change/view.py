"""A record as the API answers it.

Owns  the shape of a record's JSON object, its order of members, and what `proxiable` says.
Not   older shapes and other spellings (`usecases.record.shapes`); the envelope.

Contract "Common fields" and "Golden shapes". The row keeps the bytes of the newest shape in the profile
`spec`.
"""

from ipaddress import IPv4Network, IPv6Network
from typing import Any

import msgspec

from edgestead.model.records import TYPES
from edgestead.model.times import six_digits
from edgestead.tables.records import RecordRow
from edgestead.usecases.serving.rendering import read_settings

# As rdata has them: loopback, private, link-local and "this network".
_UNPROXIABLE_V4 = tuple(
    (int(network.network_address), int(network.netmask))
    for network in map(
        IPv4Network,
        ("0.0.0.0/8", "10.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.168.0.0/16"),
    )
)
_UNPROXIABLE_V6 = tuple(
    (int(network.network_address), int(network.netmask))
    for network in map(IPv6Network, ("::/127", "fc00::/7", "fe80::/10"))
)


class Meta(msgspec.Struct, frozen=True):
    auto_added: bool = False
    managed_by_apps: bool = False
    managed_by_edge_tunnel: bool = False
    source: str = "primary"


class RecordView(msgspec.Struct, frozen=True, omit_defaults=False):
    """One DNS record. `priority`, `data` and the two `_modified_on` stand only where they mean something."""

    id: str
    name: str
    type: str
    content: str
    priority: int | msgspec.UnsetType
    proxiable: bool
    proxied: bool
    ttl: int
    data: msgspec.Raw | msgspec.UnsetType
    settings: dict[str, bool]
    meta: Meta
    comment: str | None
    tags: msgspec.Raw
    created_on: str
    modified_on: str
    comment_modified_on: str | msgspec.UnsetType
    tags_modified_on: str | msgspec.UnsetType


_META = Meta()
_encode = msgspec.json.Encoder().encode


def render(row: RecordRow) -> bytes:
    """The newest shape in the profile `spec`; `row.body` is not looked at."""
    unset = msgspec.UNSET
    born = six_digits(row.created_us)
    return _encode(
        RecordView(
            row.id,
            row.name,
            row.type,
            row.content,
            unset if row.priority is None else row.priority,
            is_proxiable(row.type, row.rdata, row.proxied),
            bool(row.proxied),
            row.ttl,
            unset if row.data is None else msgspec.Raw(row.data.encode()),
            _shown_settings(row),
            _META,
            row.comment,
            msgspec.Raw(row.tags.encode()),
            born,
            born if row.modified_us == row.created_us else six_digits(row.modified_us),
            unset if row.comment_modified_us is None else six_digits(row.comment_modified_us),
            unset if row.tags_modified_us is None else six_digits(row.tags_modified_us),
        )
    )


def is_proxiable(type_: str, rdata: bytes, proxied: int) -> bool:
    """Whether the type can be proxied and the target is not of a loopback, link-local or private range.

    A record that is proxied already is proxiable: whether its origin may be reached is decided when the edge
    connects, by the operator's ranges.
    """
    if not TYPES[type_].proxiable:
        return False
    if proxied or type_ == "CNAME":
        return True
    address = int.from_bytes(rdata, "big")
    networks = _UNPROXIABLE_V4 if type_ == "A" else _UNPROXIABLE_V6
    return not any(address & mask == network for network, mask in networks)


def _shown_settings(row: RecordRow) -> dict[str, Any]:
    if row.type not in ("A", "AAAA", "CNAME"):
        return {}
    stored = read_settings(row.settings)
    shown: dict[str, Any] = {}
    if row.type == "CNAME":
        shown["flatten_cname"] = bool(stored.flatten_cname)
    # Only what was set: a member that came by itself when a record is proxied is an error to Terraform, which
    # plans what the answer before had. DNS only, one that is set waits for the proxy.
    for member in ("ipv4_only", "ipv6_only"):
        value = getattr(stored, member)
        if value is not None:
            shown[member] = value
    return shown
