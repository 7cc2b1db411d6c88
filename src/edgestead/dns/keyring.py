"""The keys of one process: who signed a message, and whose zones he may transfer.

Owns  the keys as the feed has them, opened; the clock that signatures are judged by; the documents of all.
Not   the signatures (`tsig`); how a key is opened (`server`); what accounts say of transfers (`outgoing`).

One thread takes changes and asks who may transfer, another may judge: what that reads is replaced, never
changed.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterable
from types import MappingProxyType
from typing import Final, NamedTuple, Protocol

from edgestead.dns import tsig
from edgestead.dns.outgoing import Outgoing
from edgestead.dns.tsig import Key, Verdict
from edgestead.model import tsig as model
from edgestead.model.transfers import KIND_ACL, KIND_OUTGOING
from edgestead.model.tsig import KIND_KEY, KIND_OWNER, ServedKey

log = logging.getLogger(__name__)

_NO_ID: Final = b"\0\0"

Row = tuple[str, str, str, bytes]
"""Scope, kind, key and document of the feed: what a warm start takes."""
Unseal = Callable[[ServedKey], bytes]
"""The secret of a key. Raises ValueError."""


class Change(Protocol):
    """One entry of the feed; kind "" forgets the scope, doc None the key."""

    @property
    def scope(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def key(self) -> str: ...
    @property
    def doc(self) -> bytes | None: ...


class _Held(NamedTuple):
    id: str
    key: Key
    account_id: str
    transfer: bool
    update: bool


def _nobody(_key: ServedKey) -> bytes:
    raise ValueError("this process opens no keys")


class Keyring:
    """`keys` are by name. Without an `unseal` there are none. A `cookie_secret` takes the place of the one in
    the settings (`dns.cookies`).
    """

    def __init__(self, unseal: Unseal = _nobody, now_s: Callable[[], float] = time.time) -> None:
        self._unseal = unseal
        self._now_s = now_s
        self._rows: dict[tuple[str, str, str], bytes] = {}
        self._held: dict[bytes, _Held] = {}
        self._owners: dict[bytes, str] = {}
        self.outgoing = Outgoing()
        self.keys: tsig.Keyring = MappingProxyType({})
        self.cookie_secret: bytes | None = None
        self._opening = threading.Lock()

    def take(self, changes: Iterable[Change]) -> None:
        """Changes of the feed, in order; other kinds are ignored."""
        has_keys = False
        for change in changes:
            if change.kind == KIND_KEY:
                has_keys = True
                self._put((change.scope, KIND_KEY, change.key), change.doc)
            elif change.kind == KIND_OWNER:
                self._own((change.scope, KIND_OWNER, ""), change.doc)
            elif change.kind == KIND_OUTGOING:
                self._send((change.scope, KIND_OUTGOING, ""), change.doc)
            elif change.kind == KIND_ACL:
                self.outgoing.take_ranges(change.key, change.doc)
                self._put((change.scope, KIND_ACL, change.key), change.doc)
            elif not change.kind:  # a zone is gone; no scope of keys ever is
                self._own((change.scope, KIND_OWNER, ""), None)
                self._send((change.scope, KIND_OUTGOING, ""), None)
        if has_keys:
            self.open()

    def _put(self, place: tuple[str, str, str], doc: bytes | None) -> None:
        if doc is None:
            self._rows.pop(place, None)
        else:
            self._rows[place] = doc

    def _own(self, place: tuple[str, str, str], doc: bytes | None) -> None:
        """Read on the thread that takes changes only: what transfers run on."""
        before = self._rows.get(place)
        if before is not None:
            self._owners.pop(model.decode_owner(before).apex, None)
        if doc is not None:
            owner = model.decode_owner(doc)
            self._owners[owner.apex] = owner.account_id
        self._put(place, doc)

    def _send(self, place: tuple[str, str, str], doc: bytes | None) -> None:
        self.outgoing.take_zone(self._rows.get(place), doc)
        self._put(place, doc)

    def open(self) -> None:
        """Open all keys; again when what opens them has come. From any thread."""
        with self._opening:
            self._open()

    def _open(self) -> None:
        held = {}
        for (_, kind, id_), doc in list(self._rows.items()):
            if kind != KIND_KEY:
                continue
            served = model.decode_key(doc)
            try:
                if served.algorithm not in model.ALGORITHMS:
                    raise ValueError(f"{served.algorithm} is of a newer release")
                algorithm = bytes((len(served.algorithm),)) + served.algorithm.encode() + b"\0"
                key = Key(served.name, algorithm, self._unseal(served))
            except ValueError as error:
                log.error("the TSIG key %s cannot be opened: %s", id_, error)
                continue
            held[key.name] = _Held(id_, key, served.account_id, served.transfer, served.update)
        self._held = held
        self.keys = MappingProxyType({name: one.key for name, one in held.items()})

    def aside(self) -> "Keyring":
        """An empty one for a snapshot."""
        return Keyring(self._unseal, self._now_s)

    def take_over(self, other: "Keyring") -> None:
        """Replace everything by what `other` has, which must not be used afterwards."""
        self._rows, self._owners, self.outgoing = other._rows, other._owners, other.outgoing
        self.open()  # what opens them may have come meanwhile

    def rows(self) -> list[Row]:
        return [(*place, doc) for place, doc in self._rows.items()]

    def restore(self, rows: Iterable[Row]) -> None:
        self.take(_Restored(*row) for row in rows)

    def now_s(self) -> int:
        return int(self._now_s())

    def judge(self, query: bytes) -> Verdict:
        """Who sent a query, which is without its ID, as `tsig.verify` says. Raises BadMessage."""
        return tsig.verify(_NO_ID + query, self.keys, self.now_s())

    def id_of(self, key: Key | None) -> str:
        """ "" for no key."""
        held = self._held.get(key.name) if key is not None else None
        return held.id if held is not None else ""

    def of_id(self, id_: str) -> Key | None:
        return next((held.key for held in self._held.values() if held.id == id_), None)

    def may_update(self, key: Key) -> bool:
        """Whether it may change anything at all: control knows what."""
        held = self._held.get(key.name)
        return held is not None and held.update

    def may_transfer(self, key: Key | None, apex: bytes) -> bool:
        held = self._held.get(key.name) if key is not None else None
        return held is not None and held.transfer and held.account_id == self._owners.get(apex)


class _Restored(NamedTuple):
    scope: str
    kind: str
    key: str
    doc: bytes | None
