"""Addresses on the web that secrets may be sent to.

Owns  which are: those with TLS, and those of this machine.
Not   asking them.
"""

from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

URL_CHARACTERS_MAX: Final = 2_048  # of an address: more than any provider has


def is_safe(url: str) -> bool:
    """Whether it is an http(s) address without surprises: by TLS, or by loopback.

    >>> [is_safe(one) for one in ("https://a.example/x", "http://127.0.0.1:8080", "http://a.example")]
    [True, True, False]
    """
    if not 0 < len(url) <= URL_CHARACTERS_MAX or not url.isascii() or not url.isprintable() or " " in url:
        return False
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        return False
    if not host or parts.username is not None or parts.fragment or "\\" in url:
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and _is_loopback(host))


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
