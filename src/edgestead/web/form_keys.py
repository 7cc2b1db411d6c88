"""Keys of the forms that stand before a session: who sends one has it from a page of ours, in that browser.

Owns  the browser's cookie before a session, keys bound to it, their end, what is told to who has none.
Not   keys of a session's forms (`web.sessions`), the origin of a form (`web.site`).

    page   ── cookie: a random value, if the browser has none ──► browser
           └─ field:  END.MAC(secret of this process, value, END) ─┘
    form   ── both come back ──► the MAC is theirs and END is to come, or the page is shown again with words

Nothing is kept for a browser, so nobody can fill a table. A restart of control ends the keys, as it ends
sessions; what was typed is on the page that is shown again, but for secrets.
"""

import hashlib
import hmac
import re
import secrets
from collections.abc import Callable
from typing import Final

COOKIE: Final = "edge_form"
KEY_SECONDS: Final = 1_200  # to type a password, or to find it
_OCTETS: Final = 24
_VALUE: Final = re.compile(r"[A-Za-z0-9_-]{32}", re.ASCII)
_KEY: Final = re.compile(r"([0-9]{1,12})\.([0-9a-f]{64})", re.ASCII)
_US: Final = 1_000_000
_AGAIN: Final = "Nothing was done. What you typed is still there, but for secrets: send it once more."
NO_COOKIE: Final = (
    "Your browser sent no cookie with this form, and without one nobody can sign in here. Allow cookies for"
    " this address, and send it once more."
)
TOO_OLD: Final = f"This form was open for more than {KEY_SECONDS // 60} minutes. {_AGAIN}"
UNKNOWN: Final = f"This form was made for another browser, or before the server was started anew. {_AGAIN}"


class FormKeys:
    """Used by one event loop."""

    def __init__(self, now_us: Callable[[], int]) -> None:
        self._now_us = now_us
        self._secret = secrets.token_bytes(32)

    @staticmethod
    def browser(cookie: str) -> str:
        """The value of a browser's cookie: what it sent, where that has the form of ours, else a new one."""
        return cookie if _VALUE.fullmatch(cookie) else secrets.token_urlsafe(_OCTETS)

    def key(self, browser: str) -> str:
        """For one page."""
        end_s = self._now_us() // _US + KEY_SECONDS
        return f"{end_s}.{self._mac(browser, end_s)}"

    def fault(self, cookie: str, key: str) -> str:
        """Why a form is refused, for people; "" where it is none of these."""
        if not _VALUE.fullmatch(cookie):
            return NO_COOKIE
        found = _KEY.fullmatch(key)
        end_s = int(found[1]) if found else 0
        if not hmac.compare_digest(self._mac(cookie, end_s), found[2] if found else ""):
            return UNKNOWN
        return "" if self._now_us() // _US <= end_s else TOO_OLD

    def _mac(self, browser: str, end_s: int) -> str:
        return hmac.new(self._secret, f"{browser}.{end_s}".encode(), hashlib.sha256).hexdigest()
