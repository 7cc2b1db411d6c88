"""What the edge serves from: the documents that travel from control to the edge processes.

Owns  the shape of the feed's documents for zones and proxied names at the edge, and their bytes; which
      headers the edge itself writes.
Not   rulesets (`model.ruleset_document`); what DNS serves (`model.served`).

The scope of both is the zone's id. Origins are in these documents and in no others: DNS never hears of them.
"""

from typing import Any

import msgspec

from edgestead.model.ruleset_document import KIND_RULESET

KIND_EDGE_ZONE = "edge:zone"
KIND_EDGE_NAME = "edge:name"
KINDS = (KIND_EDGE_ZONE, KIND_EDGE_NAME, KIND_RULESET)  # all that an edge follows of the feed
OWN_HEADERS = frozenset(
    {
        *("x-forwarded-for", "x-forwarded-proto", "cdn-loop"),
        *("edge-connecting-ip", "edge-ray", "cf-connecting-ip", "cf-ray"),
    }
)


class EdgeZone(msgspec.Struct, frozen=True, array_like=True):
    """A zone. `settings` are the values that were set, by id; the others have their defaults."""

    name: str
    account_id: str
    plan: str
    paused: bool
    settings: dict[str, Any]


class EdgeName(msgspec.Struct, frozen=True, array_like=True):
    """A proxied name and its origins. `owner` and `alias` are lower-case wire form, addresses 4 or 16 octets.

    A name has addresses, or the alias that its CNAME record is.
    """

    owner: bytes
    addresses: tuple[bytes, ...]
    alias: bytes | None = None


encode = msgspec.msgpack.Encoder(order="deterministic").encode
decode_zone = msgspec.msgpack.Decoder(EdgeZone).decode
decode_name = msgspec.msgpack.Decoder(EdgeName).decode
