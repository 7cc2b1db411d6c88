"""When each token was last used.

Owns  the times in memory, and which of them are not written down yet.
Not   who may use a token.

A use costs one entry in a dictionary, not a write: the times are written down every minute or so, and those
since then are lost when the server is killed.
"""

from collections.abc import Mapping

from edgestead.store.control import Reader, Transaction
from edgestead.tables import token_log


class TokenUses:
    """Used by one thread, but for `write`."""

    def __init__(self) -> None:
        self._used_us: dict[str, int] = {}
        self._written_us: dict[str, int] = {}

    def load(self, reader: Reader) -> None:
        """What an earlier life of the server has written down."""
        self._written_us = token_log.uses(reader)
        self._used_us = dict(self._written_us)

    def note(self, token_id: str, used_us: int) -> None:
        """A use, perhaps of a while ago."""
        if used_us > self._used_us.get(token_id, 0):
            self._used_us[token_id] = used_us

    def last_us(self, token_id: str) -> int | None:
        return self._used_us.get(token_id)

    def unwritten(self) -> dict[str, int]:
        """Uses since they were last stored."""
        written = self._written_us
        return {token_id: used for token_id, used in self._used_us.items() if written.get(token_id) != used}

    def written(self, uses: Mapping[str, int], reader: Reader) -> None:
        """These are in the database now; what is gone from it, of deleted tokens, is forgotten here."""
        self._written_us.update(uses)
        since = self.unwritten()
        self._written_us = token_log.uses(reader)
        self._used_us = {**self._written_us, **since}


def write(tx: Transaction, uses: Mapping[str, int]) -> None:
    for token_id, used_us in uses.items():
        token_log.set_use(tx, token_id, used_us)
    token_log.delete_uses_of_gone(tx)
