"""TLS towards origins.

Owns  the contexts for the zone setting `ssl`: `full` takes any certificate, `strict` a valid one.
Not   the setting's meaning (`routing`).
"""

import ssl


class Contexts:
    """Made when they are first needed: the system's certificates take a while to read."""

    def __init__(self, extra_ca: str | None) -> None:
        """`extra_ca` is a file of certificates that vouch for origins too."""
        self._extra_ca = extra_ca
        self._made: dict[str, ssl.SSLContext] = {}

    def get(self, mode: str) -> ssl.SSLContext:
        """Raises OSError, ssl.SSLError: the operator's file cannot be read."""
        context = self._made.get(mode)
        if context is None:
            context = self._made[mode] = self._make(mode)
        return context

    def _make(self, mode: str) -> ssl.SSLContext:
        context = ssl.create_default_context()
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_alpn_protocols(["http/1.1"])
        if mode == "strict":
            if self._extra_ca is not None:
                context.load_verify_locations(self._extra_ca)
        else:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context
