"""TLS towards origins.

Owns  the contexts for the zone setting `ssl`: `full` takes any certificate, `strict` a valid one; refusing
      those of the server's own authority that were revoked.
Not   the setting's meaning (`routing`).
"""

import ssl
from asyncio import BaseTransport
from typing import NamedTuple


class Vouching(NamedTuple):
    """The authority (PEM) that this server has for origins, and serials that it revoked.

    Serials are upper-case hexadecimal, as `ssl` names them.
    """

    authority: str = ""
    revoked: tuple[str, ...] = ()


class Contexts:
    """Made when they are first needed: the system's certificates take a while to read."""

    def __init__(self, extra_ca: str | None) -> None:
        """`extra_ca` is a file of certificates that vouch for origins too."""
        self._extra_ca = extra_ca
        self._made: dict[tuple[str, bool], ssl.SSLContext] = {}
        self._authority = ""
        self._revoked: frozenset[str] = frozenset()

    def trust(self, vouching: Vouching) -> None:
        """For new connections. At `strict` the server's own authority counts, too."""
        if vouching.authority != self._authority:
            self._authority = vouching.authority
            for http2 in (False, True):
                self._made.pop(("strict", http2), None)
        self._revoked = frozenset(vouching.revoked)

    def refuses(self, mode: str, transport: BaseTransport) -> bool:
        """Whether the origin that this leads to showed a certificate that was revoked."""
        if mode != "strict" or not self._revoked:
            return False
        shown = transport.get_extra_info("peercert") or {}
        return shown.get("serialNumber") in self._revoked

    def get(self, mode: str, http2: bool = False) -> ssl.SSLContext:
        """Raises OSError, ssl.SSLError: the operator's file cannot be read."""
        context = self._made.get((mode, http2))
        if context is None:
            context = self._made[mode, http2] = self._make(mode, http2)
        return context

    def _make(self, mode: str, http2: bool) -> ssl.SSLContext:
        context = ssl.create_default_context()
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_alpn_protocols(["h2", "http/1.1"] if http2 else ["http/1.1"])
        if mode == "strict":
            if self._extra_ca is not None:
                context.load_verify_locations(self._extra_ca)
            if self._authority:
                context.load_verify_locations(cadata=self._authority)
        else:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context
