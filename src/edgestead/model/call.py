"""Who calls, and as of when: the first argument of every use case.

Owns  `Call` and `Actor`.
Not   HTTP.
"""

from datetime import date
from enum import StrEnum
from typing import Literal

import msgspec


class Profile(StrEnum):
    """`spec` follows the specification to the letter; `clients` bends where real clients need it."""

    SPEC = "spec"
    CLIENTS = "clients"


class Actor(msgspec.Struct, frozen=True, kw_only=True):
    """The caller, identified by the credentials. `token_id` is None for the key pair."""

    kind: Literal["user", "account"]
    id: str
    email: str | None = None
    token_id: str | None = None

    @property
    def text(self) -> str:
        """For what is written down, as JSON: never a secret."""
        return msgspec.json.encode(self).decode()


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """One request's circumstances. Time comes in here: no service asks the clock.

    `now_us` microseconds since the epoch, UTC; `as_of` the date whose behaviour is asked for.
    """

    actor: Actor
    as_of: date
    profile: Profile
    now_us: int
    request_id: str
