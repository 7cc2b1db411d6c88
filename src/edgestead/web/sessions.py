"""Who looks at the dashboard: one-time links, and the sessions that they and tokens begin.

Owns  links and sessions, their ends and bounds.
Not   what anybody may do: each page asks the API with the session's credentials. Cookies (`web.site`).

    link       made by the machine's operator       LINK_SECONDS, or used       → session
    session    made by a link, or by a credential   IDLE_SECONDS without a request, SESSION_SECONDS, sign-out,
                                                    or its credentials refused  → gone

Both are held in memory by the hash of their secret: a restart of control ends them.
"""

import hashlib
import hmac
import secrets
from collections.abc import Callable
from typing import Final

LINK_SECONDS: Final = 120
IDLE_SECONDS: Final = 3_600
SESSION_SECONDS: Final = 12 * 3_600
LINKS_MAX: Final = 100  # not used yet
SESSIONS_MAX: Final = 1_000  # at once, of all browsers
_US: Final = 1_000_000

Headers = tuple[tuple[bytes, bytes], ...]


class Session:
    """`headers` gives the credentials of its requests, each time: the operator's may be renewed.

    `account` is the one that was chosen to be looked at, "" where none was.
    """

    __slots__ = ("account", "began_us", "form_key", "headers", "used_us")

    def __init__(self, headers: Callable[[], Headers], now_us: int) -> None:
        self.headers = headers
        self.began_us = self.used_us = now_us
        self.account = ""
        self.form_key = secrets.token_urlsafe(24)

    def is_own_form(self, key: str) -> bool:
        """Whether a form came from one of this session's pages."""
        return hmac.compare_digest(key.encode(), self.form_key.encode())


class Sessions:
    """Used by one event loop."""

    def __init__(self, now_us: Callable[[], int]) -> None:
        self._now_us = now_us
        self._links: dict[bytes, tuple[int, Callable[[], Headers]]] = {}
        self._sessions: dict[bytes, Session] = {}

    def make_link(self, headers: Callable[[], Headers]) -> str:
        """A secret that begins one session, once. The oldest goes where there are LINKS_MAX."""
        secret = secrets.token_urlsafe(24)
        while len(self._links) >= LINKS_MAX:
            del self._links[next(iter(self._links))]
        self._links[_hash(secret)] = (self._now_us(), headers)
        return secret

    def enter(self, secret: str) -> str | None:
        """The id of a new session, for a link that holds; then it holds no more."""
        made_us, headers = self._links.pop(_hash(secret), (0, tuple))
        if self._now_us() - made_us > LINK_SECONDS * _US:
            return None
        return self.begin(headers)

    def begin(self, headers: Callable[[], Headers]) -> str:
        """The id of a new session. The one that was used longest ago goes where there are SESSIONS_MAX."""
        now_us, id_ = self._now_us(), secrets.token_urlsafe(32)
        if len(self._sessions) >= SESSIONS_MAX:
            for key in [key for key, one in self._sessions.items() if self._is_over(one)]:
                del self._sessions[key]
        while len(self._sessions) >= SESSIONS_MAX:
            del self._sessions[min(self._sessions, key=lambda key: self._sessions[key].used_us)]
        self._sessions[_hash(id_)] = Session(headers, now_us)
        return id_

    def find(self, id_: str) -> Session | None:
        """The session, used now; None when there is none, or it is over."""
        key = _hash(id_)
        session = self._sessions.get(key)
        if session is None:
            return None
        if self._is_over(session):
            del self._sessions[key]
            return None
        session.used_us = self._now_us()
        return session

    def holds(self, id_: str) -> bool:
        """Whether there is such a session, which is not used by asking."""
        session = self._sessions.get(_hash(id_))
        return session is not None and not self._is_over(session)

    def end(self, id_: str) -> None:
        self._sessions.pop(_hash(id_), None)

    def __len__(self) -> int:
        return len(self._sessions)

    def _is_over(self, session: Session) -> bool:
        now_us = self._now_us()
        idle, age = now_us - session.used_us, now_us - session.began_us
        return idle > IDLE_SECONDS * _US or age > SESSION_SECONDS * _US


def _hash(secret: str) -> bytes:
    """Looking up by a hash tells nothing by its time."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()
