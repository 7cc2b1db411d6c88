"""The headers that say who calls.

Owns  both schemes' forms, which of them counts, the refusals of each.
Not   permissions.

Spec "Authentication"; contract "Authentication". An Authorization header decides alone; the key pair counts
only without one.
"""

from collections.abc import Mapping

from edgestead.model.refusals.access import (
    InvalidAuthEmailFormat,
    InvalidAuthKeyFormat,
    InvalidAuthorizationFormat,
    InvalidHeaders,
    MissingAuthEmail,
    MissingAuthKey,
    NoCredentials,
    UnknownKeyPair,
)
from edgestead.usecases.access.authorise import Family, Identity
from edgestead.usecases.access.table import Known

SECRET_CHARACTERS_MIN = 20  # ours have 40; shorter ones are no secrets
SECRET_CHARACTERS_MAX = 128  # longer ones are not even hashed
EMAIL_CHARACTERS_MAX = 254  # RFC 5321 §4.5.3.1.3, less the brackets
_BEARER = b"Bearer "
_VISIBLE = bytes(range(0x21, 0x7F))


def identify(headers: Mapping[bytes, bytes], access: Known, family: Family) -> Identity:
    """Whose credentials these are.

    Raises NoCredentials, MissingAuthEmail, MissingAuthKey, InvalidHeaders, UnknownKeyPair, or the family's
    refusal of an unknown token.
    """
    authorization = headers.get(b"authorization")
    if authorization is not None:
        identity = (
            access.by_token(authorization[len(_BEARER) :]) if authorization.startswith(_BEARER) else None
        )
        return identity or _by_token(authorization, access, family)
    email, key = headers.get(b"x-auth-email"), headers.get(b"x-auth-key")
    if email is None and key is None:
        raise NoCredentials
    if key is None:
        raise MissingAuthKey
    if email is None:
        raise MissingAuthEmail
    return _by_key(email, key, access)


def _by_token(authorization: bytes, access: Known, family: Family) -> Identity:
    """The header was not one that we know as it stands: read it with care."""
    scheme, _, token = authorization.partition(b" ")
    token = token.strip(b" ")
    if scheme.lower() != b"bearer" or not _is_secret(token):
        raise InvalidHeaders(chain=(InvalidAuthorizationFormat(),))
    identity = access.by_token(token)
    if identity is None:
        raise family.unknown
    return identity


def _by_key(email: bytes, key: bytes, access: Known) -> Identity:
    if not 3 <= len(email) <= EMAIL_CHARACTERS_MAX or b"@" not in email or email.translate(None, _VISIBLE):
        raise InvalidHeaders(chain=(InvalidAuthEmailFormat(),))
    if not _is_secret(key):
        raise InvalidHeaders(chain=(InvalidAuthKeyFormat(),))
    identity = access.by_key(email.decode("ascii"), key)
    if identity is None:
        raise UnknownKeyPair
    return identity


def _is_secret(text: bytes) -> bool:
    return SECRET_CHARACTERS_MIN <= len(text) <= SECRET_CHARACTERS_MAX and not text.translate(None, _VISIBLE)
