"""Signing in with an OpenID provider: authorization code with PKCE (OpenID Connect Core §3.1, RFC 7636).

Owns  the way there and back: state, nonce and verifier, in which browser, until when.
Not   asking the provider (`web.issuer`); what it may say (`usecases.access.openid`); members (`web.people`).

    a form of the sign-in page ──► state in memory, browser in a cookie ──► the provider
                                                                              │  code, state
    session ◄── who it is ◄── ID token checked ◄── code redeemed ◄── same browser, in time, once

Nonce and verifier are made from state and browser with a secret of this process, so nothing else is kept, and
none of them is in a page, an address or the log. The cookie is SameSite=Lax: the way back comes from another
site. The session's own is Strict, and sent first with the link that follows.
"""

import hashlib
import hmac
import logging
import secrets
from collections.abc import Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode

from edgestead.model.refusals import EdgeError
from edgestead.model.refusals.account import OpenIdRefused, SignInRefused
from edgestead.web.issuer import Issuer, NotRedeemed, Provider, Redeemed
from edgestead.web.passkeys import Challenges, Place, encoded
from edgestead.web.people import People
from edgestead.web.sessions import Headers
from edgestead.web.visit import ROOT

log = logging.getLogger("edgestead.server")

PATH: Final = f"{ROOT}/openid"
COOKIE: Final = "edge_openid"
SIGN_IN_SECONDS: Final = 600  # at the provider: a password, a second factor
CODE_CHARACTERS_MAX: Final = 4_096  # of a code: some providers seal all they know in it
_ERROR_CHARACTERS_MAX: Final = 64
_US: Final = 1_000_000


class Away(NamedTuple):
    """The browser is led to the provider."""

    url: str
    browser: str


class Declined(Exception):
    """No session, and why: for the member."""


class OpenId:
    """Used by one event loop. `name` is how people know the provider."""

    def __init__(self, provider: Provider, people: People, issuer: Issuer | None = None) -> None:
        self.name = provider.name
        self.issuer = issuer or Issuer(provider)
        self._provider, self._people = provider, people
        self._secret = secrets.token_bytes(32)
        self._asked = Challenges(SIGN_IN_SECONDS)

    async def begin(self, place: Place, client: str) -> Away:
        """Raises OverBudget, Trouble."""
        self._people.spend(client)
        await self._people.loaded(_load)
        metadata = await self.issuer.metadata()
        redirect = _own_origin(place) + PATH
        browser = secrets.token_urlsafe(24)
        state = self._asked.make(redirect, client, self._made("browser", browser), self._people.now_us())
        query = {
            "response_type": "code",
            "client_id": self._provider.client_id,
            "redirect_uri": redirect,
            "scope": "openid email profile",
            "state": state,
            "nonce": self._made("nonce", state, browser),
            "code_challenge": encoded(
                hashlib.sha256(self._made("verifier", state, browser).encode()).digest()
            ),
            "code_challenge_method": "S256",
        }
        mark = "&" if "?" in metadata.authorization else "?"
        return Away(f"{metadata.authorization}{mark}{urlencode(query)}", browser)

    async def finish(self, query: Mapping[str, str], browser: str, client: str) -> Headers:
        """Of the way back. Raises Declined, OpenIdRefused, OverBudget, Trouble, Unavailable."""
        people = self._people
        people.spend(client)
        state = query.get("state", "")
        asked = self._asked.taken(state, people.now_us())
        own = self._made("browser", browser)
        if asked is None or not hmac.compare_digest((asked.user_id or "").encode(), own.encode()):
            raise Declined("This sign-in was begun in another browser, took too long, or was used already.")
        if error := query.get("error"):
            shown = "".join(filter(str.isprintable, error))[:_ERROR_CHARACTERS_MAX]
            raise Declined(f"{self.name} did not sign you in: {shown}.")
        from edgestead.usecases.access.openid import Untrusted

        try:
            subject, email = await self._who(query, state, browser, asked.origin)
            return await people.sign_in_by_openid(self._provider.issuer, subject, email, client)
        except (Untrusted, NotRedeemed, OpenIdRefused, SignInRefused) as refused:
            why = "its account is no member's here" if isinstance(refused, EdgeError) else refused
            log.warning("a sign-in with the OpenID provider is refused: %s", why)
            raise people.refused(OpenIdRefused(), client) from None

    async def _who(
        self, query: Mapping[str, str], state: str, browser: str, redirect: str
    ) -> tuple[str, str]:
        """Subject and e-mail address. Raises Trouble, Untrusted."""
        from edgestead.usecases.access import openid

        metadata = await self.issuer.metadata()
        named, code = query.get("iss"), query.get("code", "")
        if named != self._provider.issuer and (named is not None or metadata.names_issuer):
            raise openid.Untrusted("the way back names another issuer")  # RFC 9207
        if not 0 < len(code) <= CODE_CHARACTERS_MAX:
            raise openid.Untrusted("there is no code, or it is too long")
        redeemed = await self.issuer.redeem(code, self._made("verifier", state, browser), redirect)
        said = await self._said(redeemed.id_token, self._made("nonce", state, browser))
        subject = openid.subject_of(said)
        return subject, openid.email_of(await self._with_email(said, subject, redeemed), self._provider.claim)

    async def _said(self, token: str, nonce: str) -> dict[str, Any]:
        """What the token says, with the provider's keys, and once with newer ones. Raises Untrusted."""
        from edgestead.usecases.access import openid

        wanted = openid.Wanted(
            self._provider.issuer, self._provider.client_id, nonce, self._people.now_us() / _US
        )
        keys = await self.issuer.keys()
        assert keys is not None
        try:
            return await self._people.hashed(openid.claims_of, token, keys, wanted)
        except openid.UnknownKey:
            newer = await self.issuer.keys(anew=True)
            if newer is None:
                raise
            return await self._people.hashed(openid.claims_of, token, newer, wanted)

    async def _with_email(self, said: dict[str, Any], subject: str, redeemed: Redeemed) -> dict[str, Any]:
        """Providers may keep the address for who asks with the access token (OpenID Connect Core §5.4)."""
        from edgestead.usecases.access import openid

        metadata = await self.issuer.metadata()
        if self._provider.claim in said or not metadata.userinfo or not redeemed.access_token:
            return said
        document = await self.issuer.userinfo(metadata.userinfo, redeemed.access_token)
        return openid.userinfo_of(document, subject)

    def _made(self, *parts: str) -> str:
        return encoded(hmac.new(self._secret, "\0".join(parts).encode(), hashlib.sha256).digest())


def _own_origin(place: Place) -> str:
    """This server's, as the browser has it: a proxy with TLS may be in front."""
    by_tls = f"https://{place.host}"
    return by_tls if place.origin == by_tls else f"http://{place.host}"


def _load() -> None:
    """The library, off the loop."""
    import edgestead.usecases.access.openid  # noqa: F401
