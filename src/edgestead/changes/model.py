"""What a dated change is.

Owns  the shape of a row.
Asks  nobody.
Tells `changes.table` how to write one down.
Not   the rows.
"""

from datetime import date
from enum import StrEnum

import msgspec


class Kind(StrEnum):
    """What the date ended. It decides which generated test a row gets.

    endpoint   the route answers 410 after the date
    alias      the route goes on answering, with deprecation headers
    setting    a zone setting left the platform, or lost its effect
    field      a member of a resource changed
    transport  framing and TLS; holds at every date
    """

    ENDPOINT = "endpoint"
    ALIAS = "alias"
    SETTING = "setting"
    FIELD = "field"
    TRANSPORT = "transport"


class Endpoint(msgspec.Struct, frozen=True):
    """One route that a row names. `{name}` stands for one path segment."""

    method: str
    path: str


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """One row: from 00:00 UTC of `day` on, that day included, the new behaviour holds."""

    subject: str
    day: date
    kind: Kind
    title: str
    replacement: str
    endpoints: tuple[Endpoint, ...] = ()
