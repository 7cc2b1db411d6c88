"""What browsers need for passkeys: by which address they came, and a challenge to sign.

Owns  relying parties and origins; challenges in memory, their end and bounds; the options that browsers take.
Not   answers (`usecases.access.webauthn`), budgets and sessions (`web.people`).

    made ── taken by an answer, whatever comes of it ──► gone
      └── CHALLENGE_SECONDS over, or too many newer ones of its network or of all ──► gone

A passkey is bound to a name (WebAuthn §5.1.2, "effective domain"): at an IP address there are none. Browsers
keep it from other names; other ports of this one are kept from it by its origin.
"""

import re
import secrets
from base64 import urlsafe_b64encode
from collections import Counter
from collections.abc import Sequence
from ipaddress import ip_address
from typing import Any, Final, NamedTuple

from edgestead.model.budgets.networks import network_of
from edgestead.model.refusals.account import PasskeyRefused
from edgestead.usecases.account.signing_in import Person
from edgestead.usecases.limits import PASSKEY_ALGORITHMS

CHALLENGE_SECONDS: Final = 300  # as long as the browser's own question stays open
CHALLENGES_MAX: Final = 1_024  # not answered yet: 320 KB
CHALLENGES_OF_NETWORK_MAX: Final = 64  # so that nobody pushes out the others' alone
_OCTETS: Final = 32
_HOST: Final = re.compile(r"([a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?)(?::[0-9]{1,5})?", re.ASCII)
_PORT: Final = re.compile(r":[0-9]{1,5}\Z", re.ASCII)
_US: Final = 1_000_000


class Place(NamedTuple):
    """The address by which a browser came: `host` with its port; `origin` where it names one, for forms."""

    host: str
    origin: str = ""

    @property
    def name(self) -> str:
        """What passkeys are bound to; "" for an IP address."""
        found = _HOST.fullmatch(self.host)
        try:
            ip_address(found[1] if found else "::")
        except ValueError:
            return found[1] if found else ""
        return ""

    @property
    def named(self) -> str:
        """Where passkeys can be used instead: the name that every machine has for itself."""
        port = _PORT.search(self.host)
        return "http://localhost" + (port[0] if port else "")

    def checked(self) -> str:
        """The origin, which is this host by a scheme of the web. Raises PasskeyRefused."""
        if not self.name:
            raise PasskeyRefused(reason=f"there are none at an IP address; open {self.named}")
        if self.origin not in (f"http://{self.host}", f"https://{self.host}"):
            raise PasskeyRefused(reason="the browser does not say from which page it is")
        return self.origin


class Asked(NamedTuple):
    ends_us: int
    network: str
    origin: str
    user_id: str | None


class Challenges:
    """Used by one event loop. `user_id` is None for a sign-in, else whose registration it is."""

    def __init__(self, seconds: int = CHALLENGE_SECONDS) -> None:
        self._seconds = seconds
        self._asked: dict[str, Asked] = {}
        self._held: Counter[str] = Counter()

    def make(self, origin: str, client: str, user_id: str | None, now_us: int) -> str:
        network = str(network_of(client))
        if self._held[network] >= CHALLENGES_OF_NETWORK_MAX:
            self._drop(next(text for text, one in self._asked.items() if one.network == network))
        while len(self._asked) >= CHALLENGES_MAX:
            self._drop(next(iter(self._asked)))
        text = encoded(secrets.token_bytes(_OCTETS))
        self._asked[text] = Asked(now_us + self._seconds * _US, network, origin, user_id)
        self._held[network] += 1
        return text

    def take(self, text: str, origin: str, user_id: str | None, now_us: int) -> bool:
        """Whether it was asked for this, and not answered yet; it is gone in any case."""
        found = self.taken(text, now_us)
        return found is not None and (found.origin, found.user_id) == (origin, user_id)

    def taken(self, text: str, now_us: int) -> Asked | None:
        """What was asked with it, where that still holds; it is gone in any case."""
        found = self._asked.get(text)
        if found is None:
            return None
        self._drop(text)
        return found if now_us < found.ends_us else None

    def _drop(self, text: str) -> None:
        network = self._asked.pop(text).network
        self._held[network] -= 1
        if not self._held[network]:
            del self._held[network]


def sign_in_options(challenge: str, place: Place) -> dict[str, Any]:
    return {
        "challenge": challenge,
        "rpId": place.name,
        "timeout": CHALLENGE_SECONDS * 1_000,
        "userVerification": "preferred",
    }


def register_options(
    challenge: str, place: Place, person: Person, present: Sequence[bytes]
) -> dict[str, Any]:
    user = {"id": encoded(person.user_id.encode()), "name": person.email, "displayName": person.email}
    return {
        "challenge": challenge,
        "rp": {"id": place.name, "name": "Edgestead"},
        "user": user,
        "pubKeyCredParams": [{"type": "public-key", "alg": one} for one in PASSKEY_ALGORITHMS],
        "timeout": CHALLENGE_SECONDS * 1_000,
        "excludeCredentials": [{"type": "public-key", "id": encoded(one)} for one in present],
        "authenticatorSelection": {
            "residentKey": "required",
            "requireResidentKey": True,
            "userVerification": "preferred",
        },
        "attestation": "none",
    }


def encoded(octets: bytes) -> str:
    """base64url without padding, as WebAuthn writes octets."""
    return urlsafe_b64encode(octets).rstrip(b"=").decode()
