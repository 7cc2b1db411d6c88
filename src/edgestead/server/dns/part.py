"""What both kinds of DNS process share: the table and the keys fed from control, and their counters.

Owns  loading a snapshot aside; opening keys; the map from the room's counters to cells of the page.
Not   answering; the connection to control.
"""

from collections.abc import Sequence

from edgestead.dns.counters import TIMES_US, TOOK, Slot
from edgestead.dns.keyring import Keyring
from edgestead.dns.table import Table
from edgestead.model import sealing
from edgestead.model.counters import Page, slot
from edgestead.model.served import KIND_NAME, KIND_ZONE
from edgestead.model.tsig import KIND_KEY, ServedKey
from edgestead.server.dns.secret_memory import SecretReader
from edgestead.server.messages import DnsStart
from edgestead.store.changes import Change

KINDS = (KIND_ZONE, KIND_NAME, KIND_KEY)

_ZONES = slot("edge_dns_zones")
_SEQUENCE = slot("edge_feed_sequence")
_CELLS: dict[int, int] = {
    Slot.NOERROR: slot("edge_dns_answers_total", "noerror"),
    Slot.FORMERR: slot("edge_dns_answers_total", "formerr"),
    Slot.SERVFAIL: slot("edge_dns_answers_total", "servfail"),
    Slot.NXDOMAIN: slot("edge_dns_answers_total", "nxdomain"),
    Slot.NOTIMP: slot("edge_dns_answers_total", "notimp"),
    Slot.REFUSED: slot("edge_dns_answers_total", "refused"),
    Slot.OTHER_RCODE: slot("edge_dns_answers_total", "other"),
    Slot.QUERIES: slot("edge_dns_queries_total"),
    Slot.TRUNCATED: slot("edge_dns_truncated_total"),
    Slot.DROPPED: slot("edge_dns_dropped_total"),
    Slot.CACHE_HITS: slot("edge_dns_cache_hits_total"),
    Slot.UNSENT: slot("edge_dns_unsent_total"),
    Slot.LIMITED: slot("edge_dns_limited_total", "dropped"),
    Slot.SLIPPED: slot("edge_dns_limited_total", "shortened"),
    Slot.COOKIES_GOOD: slot("edge_dns_cookies_good_total"),
    Slot.TCP_CONNECTIONS: slot("edge_dns_tcp_connections_total"),
    Slot.TCP_OPEN: slot("edge_dns_tcp_connections_open"),
    Slot.TRANSFERS_WHOLE: slot("edge_dns_transfers_total", "whole"),
    Slot.TRANSFERS_CHANGES: slot("edge_dns_transfers_total", "changes"),
    Slot.TRANSFERS_CURRENT: slot("edge_dns_transfers_total", "current"),
    Slot.TRANSFERS_REFUSED: slot("edge_dns_transfers_total", "refused"),
    Slot.NOTIFIES_ANSWERED: slot("edge_dns_notifies_total", "answered"),
    Slot.NOTIFIES_UNANSWERED: slot("edge_dns_notifies_total", "unanswered"),
    Slot.HANDSHAKES_DONE: slot("edge_dns_handshakes_total", "done"),
    Slot.HANDSHAKES_FAILED: slot("edge_dns_handshakes_total", "failed"),
    Slot.QUERIES_TLS: slot("edge_dns_private_queries_total", "tls"),
    Slot.QUERIES_HTTPS: slot("edge_dns_private_queries_total", "https"),
    **{TOOK + at: slot("edge_dns_answer_seconds") + at for at in range(len(TIMES_US) + 2)},
}


class PageCounters:
    """The room's counters, in this process's page."""

    def __init__(self, page: Page) -> None:
        self.page = page
        page.set(_CELLS[Slot.TCP_OPEN], 0)  # a level: what the last life had open is closed

    def add(self, slot: int, n: int) -> None:
        self.page.add(_CELLS[slot], n)


def new_keyring(start: DnsStart) -> Keyring:
    """For keys that are sealed with the server's secret, or with that which comes from control."""
    fed = SecretReader(start.secrets_fd) if start.secrets_fd >= 0 else None
    missing = (
        "the data folder's secret could not be read" if fed is None else "what opens it has not come yet"
    )

    def open_key(key: ServedKey) -> bytes:
        secret = start.tsig_secret if fed is None else fed.secrets.tsig
        if not secret:
            raise ValueError(missing)
        return sealing.unseal(secret, key.sealed, key.name)

    keyring = Keyring(open_key)
    if fed is not None:
        fed.follow(keyring)
    return keyring


class TableConsumer:
    """Brings the feed into a table and a keyring: a `feed.follower.Consumer`."""

    def __init__(self, table: Table, keyring: Keyring, page: Page, newest: int = 0) -> None:
        """`newest` is the sequence that both stand at already."""
        self._table, self._keyring = table, keyring
        self.page = page
        self._aside, self._keys_aside = Table(), keyring.aside()
        self._newest = newest
        self._show()

    def begin(self) -> None:
        self._aside, self._keys_aside = Table(), self._keyring.aside()

    def load(self, changes: Sequence[Change]) -> None:
        self._aside.apply(changes)
        self._keys_aside.take(changes)
        self._newest = max(self._newest, *(change.sequence for change in changes))

    def swap(self) -> None:
        self._table.take_over(self._aside)
        self._keyring.take_over(self._keys_aside)
        self._aside, self._keys_aside = Table(), self._keyring.aside()
        self._show()

    def apply(self, changes: Sequence[Change]) -> None:
        self._table.apply(changes)
        self._keyring.take(changes)
        self._newest = changes[-1].sequence
        self._show()

    def _show(self) -> None:
        self.page.set(_ZONES, self._table.zones)
        self.page.set(_SEQUENCE, self._newest)
