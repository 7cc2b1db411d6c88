"""The text of an API token: what its holder sends.

Owns  its form and how a new one is made.
Not   what is kept of it: its hash (`usecases.access.authorise`).
"""

import secrets


def new_token_text() -> str:
    """40 characters of [A-Za-z0-9_-] (contract "Authentication"), 240 bits.

    The first is no dash: command lines of clients would take the token for an option.
    """
    while (text := secrets.token_urlsafe(30)).startswith("-"):
        pass
    return text
