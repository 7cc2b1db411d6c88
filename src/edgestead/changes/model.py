"""What a dated change is.

Owns  the shape of a row.
Not   the rows.
"""

from datetime import UTC, date, datetime
from enum import StrEnum

import msgspec


class Kind(StrEnum):
    """What the date ended. It decides which generated test a row gets.

    endpoint   the route answers 410 after the date
    alias      the route still answers for its replacement, with deprecation headers
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
    """One route that a row names. `{name}` matches one path segment, `{name*}` the whole rest."""

    method: str
    path: str


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """One row: from 00:00 UTC of `day` on, that day included, the new behaviour holds.

    `endpoints` are the routes that the day ended or replaced, `affected` those that continue with other
    members. `removed`: none of them answers any more. `successor` is the route that a client should use where
    this server has one, with the parameters of the row's paths; `moved` is a part of the older path, and its
    replacement in the newer one. `members` are those that requests should no longer have, as JSON pointers
    without their first slash (RFC 6901). `setting` is the zone setting, for rows of that kind. `note` says
    what this server does, where the kind does not; `earlier` what it did until the day.
    """

    subject: str
    day: date
    kind: Kind
    title: str
    replacement: str = ""
    endpoints: tuple[Endpoint, ...] = ()
    affected: tuple[Endpoint, ...] = ()
    removed: bool = False
    successor: str = ""
    moved: tuple[str, str] | None = None
    members: tuple[str, ...] = ()
    setting: str = ""
    note: str = ""
    earlier: str = ""

    @property
    def day_us(self) -> int:
        """When the day begins, in microseconds of the epoch."""
        return int(datetime(self.day.year, self.day.month, self.day.day, tzinfo=UTC).timestamp()) * 1_000_000

    def advice(self, path: str = "") -> str:
        """What to use instead, as a sentence. `path` is the one that was asked for."""
        if not self.replacement:
            return "There is no replacement."
        if self.moved and path:
            return f"Use {self.replacement}: {path.replace(*self.moved)}."
        return f"Use {self.replacement}."
