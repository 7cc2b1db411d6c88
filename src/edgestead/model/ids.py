"""Identifiers, which are never reused, and the text of API tokens.

Owns  their form: 32 lower-case hex digits, 40 characters; how random ones are made.
Not   what an identifier names; what is kept of a token: its hash (`usecases.access.authorise`).
"""

import hashlib
import re
import secrets

ID_DIGITS = 32
_FORM = re.compile(r"[0-9a-f]{32}")  # bounded: one pass, no backtracking


def is_id(text: str) -> bool:
    """
    >>> is_id("0123456789abcdef0123456789abcdef"), is_id("0123456789ABCDEF0123456789ABCDEF"), is_id("x")
    (True, False, False)
    """
    return len(text) == ID_DIGITS and _FORM.fullmatch(text) is not None


def fixed_id(kind: str, name: str) -> str:
    """The identifier of something built in, the same on every server."""
    return hashlib.sha256(f"edgestead {kind} {name}".encode()).hexdigest()[:ID_DIGITS]


def new_token_text() -> str:
    """40 characters of [A-Za-z0-9_-] (contract "Authentication"), 240 bits.

    The first is no dash: command lines of clients would take the token for an option.
    """
    while (text := secrets.token_urlsafe(30)).startswith("-"):
        pass
    return text
