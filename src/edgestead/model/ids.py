"""Identifiers: 32 lower-case hex digits, never reused.

Owns  their form and how a random one is made.
Not   what an identifier names.
"""

import hashlib
import re

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
