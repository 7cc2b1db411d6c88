"""An operator's settings for answering DNS.

Owns  the settings of this room and their defaults.
Not   reading them from anywhere (`config`), nor limits that need no setting.
"""

import secrets
from typing import Final

import msgspec

SECRET_OCTETS: Final = 32


def new_secret() -> bytes:
    return secrets.token_bytes(SECRET_OCTETS)


class DnsSettings(msgspec.Struct, frozen=True, kw_only=True):
    """`cookie_secret` is the same in all processes of a server and after restarts (RFC 7873 §6).

    `identity` answers NSID and id.server, `version` version.server; empty ones are not answered.
    """

    cookie_secret: bytes = msgspec.field(default_factory=new_secret)
    identity: bytes = b""
    version: bytes = b""


DEFAULTS: Final = DnsSettings()
