"""Pages that authorities look for, to see that a name leads here.

Owns  which there are now, in this worker.
Not   which there should be (`usecases.certificate.orders`); handshakes with a proof.
"""

from collections.abc import Mapping


class Pages:
    """Values by "host/token". `take` puts all of them in the place of those before."""

    def __init__(self) -> None:
        self._pages: Mapping[str, str] = {}

    def take(self, pages: Mapping[str, str]) -> None:
        self._pages = pages

    def value(self, host: bytes, token: bytes) -> str | None:
        if not self._pages:
            return None
        return self._pages.get(f"{host.decode('latin-1')}/{token.decode('latin-1')}")
