"""What an OpenID provider says, checked: metadata, keys and ID tokens (OpenID Connect Core, Discovery 1.0).

Owns  which documents, addresses, keys, algorithms and claims are taken.
Not   asking the provider (`web.issuer`); whose subject it is (`usecases.account.openid`).

    token ── three parts, an algorithm of the table, no `crit`
          ── a key of the provider's of that algorithm's kind, by its id
          ── the signature
          ── iss, aud, azp, exp, nbf, iat, nonce ──► claims

The table of algorithms has signatures by public keys alone: with `none` anybody could have written the token,
and with HMAC whoever knows a public key. Signatures are read by the library `josepy`, which is loaded off the
event loop by the first sign-in.
"""

import hmac
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from josepy import b64, jwk, jws

from edgestead.model.web_address import is_safe
from edgestead.usecases.limits import EMAIL_CHARACTERS_MAX

ALGORITHMS: Final[Mapping[str, str]] = {  # and the kind of key that each needs
    **dict.fromkeys(("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"), "RSA"),
    "ES256": "P-256",
    "ES384": "P-384",
    "ES512": "P-521",
}
TOKEN_CHARACTERS_MAX: Final = 16_384  # of an ID token: those with a hundred groups have 8,000
SUBJECT_CHARACTERS_MAX: Final = 255  # OpenID Connect Core §2
KEYS_MAX: Final = 64  # of a provider: large ones have a dozen
KEYS_TRIED_MAX: Final = 4  # of one id
RSA_BITS_MIN, RSA_BITS_MAX = 2_048, 8_192
LEEWAY_SECONDS: Final = 60  # of two clocks
AGE_SECONDS_MAX: Final = 600  # of a token: it was made for this sign-in
_AUDIENCES_MAX: Final = 16


class Untrusted(Exception):
    """Not taken, and why: for the log, with nothing in it that was sent."""


class UnknownKey(Untrusted):
    """Signed with a key that is none of these: the provider may have new ones."""


class Metadata(NamedTuple):
    """`userinfo` is "" where there is none. `sends_secret`: in the form, as HTTP's own way is not taken."""

    authorization: str
    token: str
    keys: str
    userinfo: str
    sends_secret: bool
    names_issuer: bool


class Wanted(NamedTuple):
    """What a token has to say."""

    issuer: str
    client_id: str
    nonce: str
    now_s: float


class Claims(NamedTuple):
    subject: str
    email: str


class _Discovery(msgspec.Struct):
    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    userinfo_endpoint: str = ""
    token_endpoint_auth_methods_supported: tuple[str, ...] = ("client_secret_basic",)
    authorization_response_iss_parameter_supported: bool = False


class _Key(msgspec.Struct):
    kty: str
    kid: str = ""
    crv: str = ""
    alg: str = ""
    use: str = "sig"

    @property
    def kind(self) -> str:
        return self.crv if self.kty == "EC" else self.kty


class Keys(NamedTuple):
    """A provider's keys: each as it is told apart, and as it was sent."""

    all: Sequence[tuple[_Key, Mapping[str, Any]]]


def metadata_of(document: bytes, issuer: str) -> Metadata:
    """Raises Untrusted."""
    try:
        found = msgspec.json.decode(document, type=_Discovery)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise Untrusted("its metadata cannot be read") from None
    if found.issuer != issuer:
        raise Untrusted("its metadata names another issuer")
    asked = (found.authorization_endpoint, found.token_endpoint, found.jwks_uri)
    if not all(map(is_safe, asked)) or (found.userinfo_endpoint and not is_safe(found.userinfo_endpoint)):
        raise Untrusted("its metadata has an address without TLS")
    methods = found.token_endpoint_auth_methods_supported
    return Metadata(
        *asked,
        found.userinfo_endpoint,
        "client_secret_basic" not in methods and "client_secret_post" in methods,
        found.authorization_response_iss_parameter_supported,
    )


def keys_of(document: bytes) -> Keys:
    """Keys for signatures; others are left out. Raises Untrusted."""
    listed = _object(document, "its keys cannot be read").get("keys")
    if not isinstance(listed, list) or len(listed) > KEYS_MAX:
        raise Untrusted("its keys cannot be read, or are too many")
    found = []
    for raw in listed:
        try:
            key = msgspec.convert(raw, _Key)
        except msgspec.ValidationError:
            continue
        if key.use == "sig" and key.kind in ALGORITHMS.values():
            found.append((key, raw))
    return Keys(found)


def claims_of(token: str, keys: Keys, wanted: Wanted) -> dict[str, Any]:
    """All that an ID token says, where it is for this sign-in. Raises Untrusted, UnknownKey."""
    said = _object(_payload(token, keys), "its payload is no object")
    if said.get("iss") != wanted.issuer:
        raise Untrusted("iss is another issuer")
    _check_audience(said, wanted.client_id)
    _check_times(said, wanted.now_s)
    nonce = said.get("nonce")
    if not isinstance(nonce, str) or not hmac.compare_digest(nonce.encode(), wanted.nonce.encode()):
        raise Untrusted("nonce is another sign-in's")
    subject_of(said)
    return said


def subject_of(said: Mapping[str, Any]) -> str:
    """Raises Untrusted."""
    subject = said.get("sub")
    if not isinstance(subject, str) or not 0 < len(subject) <= SUBJECT_CHARACTERS_MAX:
        raise Untrusted("sub is missing, or too long")
    return subject


def userinfo_of(document: bytes, subject: str) -> dict[str, Any]:
    """Raises Untrusted: also where it is about somebody else (OpenID Connect Core §5.3.2)."""
    said = _object(document, "its user information cannot be read")
    if said.get("sub") != subject:
        raise Untrusted("its user information is another subject's")
    return said


def email_of(said: Mapping[str, Any], claim: str) -> str:
    """The member's e-mail address. Raises Untrusted: none, or one that the provider has not verified."""
    email = said.get(claim)
    if not isinstance(email, str) or "@" not in email or len(email) > EMAIL_CHARACTERS_MAX:
        raise Untrusted(f"{claim} is missing, or no e-mail address")
    if any(not "!" <= character <= "~" for character in email):  # as members' are: others fold into them
        raise Untrusted(f"{claim} has a character that no member's address has")
    verified = said.get("email_verified")
    if (claim == "email" or verified is not None) and verified is not True:
        raise Untrusted("email_verified is not true")
    return email


def _payload(token: str, keys: Keys) -> bytes:
    if len(token) > TOKEN_CHARACTERS_MAX or not token.isascii() or token.count(".") != 2:
        raise Untrusted("the token is too long, or has other than three parts")
    try:
        header = _object(b64.b64decode(token.partition(".")[0]), "its head is no object")
        read = jws.JWS.from_compact(token.encode())
    except Untrusted:
        raise
    except Exception:  # a stranger's octets in a parser that is not ours: of any kind
        raise Untrusted("the token cannot be read") from None
    kind = ALGORITHMS.get(str(header.get("alg")))
    if kind is None or "crit" in header:
        raise Untrusted("its algorithm is not taken")
    if not any(_verifies(read, key, str(header["alg"])) for key in _candidates(header, kind, keys)):
        raise Untrusted("its signature is wrong")
    payload: bytes = read.payload
    return payload


def _candidates(header: Mapping[str, Any], kind: str, keys: Keys) -> Sequence[Mapping[str, Any]]:
    """The keys that it may be signed with. Raises UnknownKey."""
    kid, alg = header.get("kid"), header["alg"]
    found = [
        raw
        for key, raw in keys.all
        if key.kind == kind and key.alg in ("", alg) and (kid is None or key.kid == kid)
    ]
    if not found or len(found) > KEYS_TRIED_MAX:
        raise UnknownKey("its key is not known")
    return found


def _verifies(read: jws.JWS, raw: Mapping[str, Any], alg: str) -> bool:
    try:
        key = jwk.JWK.from_json(dict(raw))
        public = key.key._wrapped if hasattr(key.key, "_wrapped") else key.key
        if isinstance(public, RSAPublicKey) and not RSA_BITS_MIN <= public.key_size <= RSA_BITS_MAX:
            return False
        return read.signature.combined.alg.name == alg and bool(read.verify(key))
    except Exception:
        return False


def _check_audience(said: Mapping[str, Any], client_id: str) -> None:
    audience = said.get("aud")
    listed = [audience] if isinstance(audience, str) else audience
    if not isinstance(listed, list) or len(listed) > _AUDIENCES_MAX or client_id not in listed:
        raise Untrusted("aud is another client")
    if said.get("azp", client_id if len(listed) == 1 else None) != client_id:
        raise Untrusted("azp is another client")


def _check_times(said: Mapping[str, Any], now_s: float) -> None:
    ends, made, begins = (_seconds(said.get(name)) for name in ("exp", "iat", "nbf"))
    if ends is None or now_s >= ends + LEEWAY_SECONDS:
        raise Untrusted("exp is over, or missing")
    if made is None or not now_s - AGE_SECONDS_MAX - LEEWAY_SECONDS <= made <= now_s + LEEWAY_SECONDS:
        raise Untrusted("iat is not now, or missing")
    if "nbf" in said and (begins is None or begins > now_s + LEEWAY_SECONDS):
        raise Untrusted("nbf is to come")


def _seconds(value: object) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and abs(value) < 1e12 else None  # type: ignore[arg-type]


def _object(document: bytes, words: str) -> dict[str, Any]:
    try:
        return msgspec.json.decode(document, type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise Untrusted(words) from None
