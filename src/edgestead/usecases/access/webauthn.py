"""What an authenticator answered, checked: WebAuthn level 2, §7.1 and §7.2, by the library `fido2`.

Owns  which answers are taken: kind, origin, relying party, challenge, algorithm, whose it says that it is.
Not   whose key it is and how often it signed (`usecases.account.passkeys`); challenges (`web.passkeys`).

Loaded with the first answer, off the event loop: the library takes 0.07 s to import, and most servers never
need it. How an authenticator was made (attestation) is not asked.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from fido2.server import Fido2Server
from fido2.utils import websafe_decode
from fido2.webauthn import (
    AttestedCredentialData,
    AuthenticationResponse,
    PublicKeyCredentialRpEntity,
    RegistrationResponse,
)

from edgestead.model.refusals.account import PasskeyRefused, PasskeySignInRefused
from edgestead.usecases.limits import PASSKEY_ALGORITHMS, PASSKEY_ID_OCTETS_MAX


class Registered(NamedTuple):
    key_id: bytes
    public_key: bytes
    sign_count: int


def registered(answer: Mapping[str, Any], challenge: str, origin: str) -> Registered:
    """A new key. Raises PasskeyRefused."""
    try:
        response = RegistrationResponse.from_dict(answer)
        data = _server(origin).register_complete(_state(challenge), response)
        key = data.credential_data
        assert key is not None
        if key.public_key[3] not in PASSKEY_ALGORITHMS:
            raise ValueError("another algorithm")
    except Exception as broken:  # a stranger's octets in a parser that is not ours: of any kind
        raise PasskeyRefused(reason="the browser's answer is none to this page") from broken
    if not 1 <= len(key.credential_id) <= PASSKEY_ID_OCTETS_MAX:
        raise PasskeyRefused(reason=f"its identifier is longer than {PASSKEY_ID_OCTETS_MAX} octets")
    return Registered(key.credential_id, bytes(key), data.counter)


def key_id_of(answer: Mapping[str, Any]) -> bytes:
    """Which key an answer says that it is of. Raises PasskeySignInRefused."""
    try:
        return websafe_decode(answer["rawId"])
    except Exception as broken:
        raise PasskeySignInRefused from broken


def signed(answer: Mapping[str, Any], challenge: str, origin: str, public_key: bytes, user_id: str) -> int:
    """How often the key has signed now, where the answer is good. Raises PasskeySignInRefused."""
    try:
        response = AuthenticationResponse.from_dict(answer)
        key = AttestedCredentialData(public_key)
        _server(origin).authenticate_complete(_state(challenge), [key], response)
        said = response.response.user_handle
        if said != user_id.encode():
            raise ValueError("another member's")
        return response.response.authenticator_data.counter
    except Exception as broken:
        raise PasskeySignInRefused from broken


def _server(origin: str) -> Fido2Server:
    relying_party = PublicKeyCredentialRpEntity(name="", id=urlsplit(origin).hostname)
    return Fido2Server(relying_party, verify_origin=lambda said: said == origin)


def _state(challenge: str) -> dict[str, str]:
    return {"challenge": challenge, "user_verification": "preferred"}
