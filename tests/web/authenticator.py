"""An authenticator in software: one key pair for each passkey, answers as a browser's script sends them."""

import hashlib
import json
import secrets
from base64 import urlsafe_b64encode

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256

USER_PRESENT, USER_VERIFIED, HAS_KEY = 0x01, 0x04, 0x40


def base64url(octets):
    return urlsafe_b64encode(octets).rstrip(b"=").decode()


class Authenticator:
    """`count` is how often it has signed; None for one that does not count."""

    def __init__(self, count=0):
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.key_id = secrets.token_bytes(32)
        self.handle = ""
        self.count = count

    def create(self, asked, origin):
        """The answer to the options of a registration."""
        self.handle = asked["user"]["id"]
        numbers = self.key.public_key().public_numbers()
        x, y = (number.to_bytes(32, "big") for number in (numbers.x, numbers.y))
        cose = b"\xa5\x01\x02\x03\x26\x20\x01\x21\x58\x20" + x + b"\x22\x58\x20" + y  # RFC 9053 §7.1.1: P-256
        key = bytes(16) + len(self.key_id).to_bytes(2, "big") + self.key_id + cose
        data = self._data(asked["rp"]["id"], HAS_KEY) + key
        attestation = (
            b"\xa3\x63fmt\x64none\x67attStmt\xa0\x68authData\x59" + len(data).to_bytes(2, "big") + data
        )
        return self._answer(
            clientDataJSON=_client_data("webauthn.create", asked["challenge"], origin),
            attestationObject=attestation,
        )

    def get(self, asked, origin, **instead):
        """The answer to the options of a sign-in; `instead` lies about name, challenge, handle or count."""
        if self.count is not None:
            self.count += 1
        client = _client_data("webauthn.get", instead.get("challenge", asked["challenge"]), origin)
        data = self._data(instead.get("name", asked["rpId"]), count=instead.get("count"))
        signature = self.key.sign(data + hashlib.sha256(client).digest(), ec.ECDSA(SHA256()))
        answer = self._answer(clientDataJSON=client, authenticatorData=data, signature=signature)
        answer["response"]["userHandle"] = instead.get("handle", self.handle)
        return answer

    def _data(self, name, flags=0, count=None):
        count = (self.count or 0) if count is None else count
        flags |= USER_PRESENT | USER_VERIFIED
        return hashlib.sha256(name.encode()).digest() + bytes([flags]) + count.to_bytes(4, "big")

    def _answer(self, **response):
        id_ = base64url(self.key_id)
        parts = {name: base64url(octets) for name, octets in response.items()}
        return {"id": id_, "rawId": id_, "type": "public-key", "response": parts}


def _client_data(kind, challenge, origin):
    return json.dumps({"type": kind, "challenge": challenge, "origin": origin}).encode()
