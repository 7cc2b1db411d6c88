"""The rows of signed zones: their keys, and their names in canonical order.

Owns  the tables `signing_keys` and `signed_names`: their schema and statements.
Not   sealing a key; what a place is (`model.dnssec`); the state of a zone, which is a setting.

A row of `signing_keys` is one key: its public part, and its private part sealed; since when it has been in
its phase, and when it is to be looked at again. A row of `signed_names` is a name with an NSEC record.
`place` sorts as the names do; the apex is the empty one. `renew_us` is when its signatures are to be made
again; 0 of a name that has none yet and was not put off. `tag` is the key's that made them, 0 while none did.
"""

from typing import NamedTuple

from edgestead.store.control import Reader, Transaction
from edgestead.tables import columns

CREATE = """
create table signing_keys (
  id text primary key,
  zone_id text not null,
  flags integer not null,
  public blob not null,
  sealed blob not null,
  created_us integer not null
);
create index signing_keys_by_zone on signing_keys (zone_id, created_us);
create table signed_names (
  zone_id text not null,
  place blob not null,
  renew_us integer not null,
  primary key (zone_id, place)
);
create index signed_names_by_renew on signed_names (renew_us);
"""
ROLLS = """
alter table signing_keys add column role text not null default 'csk';
alter table signing_keys add column phase text not null default 'active';
alter table signing_keys add column since_us integer not null default 0;
alter table signing_keys add column due_us integer not null default 0;
update signing_keys set since_us = created_us;
create index signing_keys_by_due on signing_keys (due_us);
alter table signed_names add column tag integer not null default 0;
"""
NEVER_US = 1 << 62
"""When a key is looked at again that waits for something else than the time."""


class KeyRow(NamedTuple):
    """`role` and `phase` are of `usecases.serving.keyset`."""

    id: str
    zone_id: str
    flags: int
    public: bytes
    sealed: bytes
    created_us: int
    role: str
    phase: str
    since_us: int
    due_us: int


class SignedName(NamedTuple):
    zone_id: str
    place: bytes


COLUMNS = columns.names(KeyRow)
INSERT_KEY = columns.insert("signing_keys", KeyRow)
SELECT_KEYS = f"select {COLUMNS} from signing_keys where zone_id = ? order by created_us, id"
SELECT_KEYS_DUE = (
    "select zone_id from signing_keys where due_us <= ? group by zone_id order by min(due_us) limit ?"
)
UPDATE_KEY = "update signing_keys set phase = ?, since_us = ?, due_us = ? where id = ?"
DELETE_KEY = "delete from signing_keys where id = ?"
DELETE_KEYS = "delete from signing_keys where zone_id = ?"
UPSERT_NAME = (
    "insert into signed_names (zone_id, place, renew_us, tag) values (?, ?, ?, ?)"
    " on conflict (zone_id, place) do update set renew_us = excluded.renew_us, tag = excluded.tag"
)
UPDATE_RENEW = "update signed_names set renew_us = ? where zone_id = ? and place = ?"
INSERT_NAME = (
    "insert into signed_names (zone_id, place, renew_us) values (?, ?, 0)"
    " on conflict (zone_id, place) do nothing"
)
DELETE_NAME = "delete from signed_names where zone_id = ? and place = ?"
SELECT_BEFORE = "select place from signed_names where zone_id = ? and place < ? order by place desc limit 1"
SELECT_FROM = "select place from signed_names where zone_id = ? and place >= ? order by place limit 2"
SELECT_LAST = "select place from signed_names where zone_id = ? order by place desc limit 1"
SELECT_BETWEEN = "select place from signed_names where zone_id = ? and place > ? and place < ? order by place"
SELECT_SOME = "select place from signed_names where zone_id = ? order by place limit ?"
SELECT_DUE = "select zone_id, place from signed_names where renew_us <= ? order by renew_us limit ?"
SELECT_IS_UNSIGNED = "select 1 from signed_names where zone_id = ? and tag = 0 limit 1"
SELECT_IS_OTHERS = "select 1 from signed_names where zone_id = ? and tag <> ? limit 1"
UPDATE_DUE = "update signed_names set renew_us = ? where zone_id = ? and renew_us > ?"
DELETE_SOME = (
    "delete from signed_names where zone_id = ? and place in"
    " (select place from signed_names where zone_id = ? limit ?)"
)
DELETE_NAMES = "delete from signed_names where zone_id = ?"
COUNT_NAMES = "select count(*) from signed_names where zone_id = ?"


def add_key(tx: Transaction, row: KeyRow) -> None:
    tx.run(INSERT_KEY, row)


def keys(reader: Reader, zone_id: str) -> list[KeyRow]:
    """The oldest first."""
    return [KeyRow(*found) for found in reader.rows(SELECT_KEYS, (zone_id,))]


def zones_with_due_keys(reader: Reader, now_us: int, limit: int) -> list[str]:
    """Zones with a key that is to be looked at, the most urgent first."""
    return [zone_id for (zone_id,) in reader.rows(SELECT_KEYS_DUE, (now_us, limit))]


def set_phase(tx: Transaction, key_id: str, phase: str, since_us: int, due_us: int) -> None:
    tx.run(UPDATE_KEY, (phase, since_us, due_us, key_id))


def remove_key(tx: Transaction, key_id: str) -> None:
    tx.run(DELETE_KEY, (key_id,))


def forget_keys(tx: Transaction, zone_id: str) -> None:
    tx.run(DELETE_KEYS, (zone_id,))


def put_name(tx: Transaction, zone_id: str, place: bytes, renew_us: int, tag: int) -> None:
    tx.run(UPSERT_NAME, (zone_id, place, renew_us, tag))


def renew_later(tx: Transaction, zone_id: str, place: bytes, renew_us: int) -> None:
    """Leave the signatures of a name as they are until then."""
    tx.run(UPDATE_RENEW, (renew_us, zone_id, place))


def add_name(tx: Transaction, zone_id: str, place: bytes) -> bool:
    """Add a name without signatures. Returns whether it is new."""
    return bool(tx.run(INSERT_NAME, (zone_id, place)))


def remove_name(tx: Transaction, zone_id: str, place: bytes) -> bool:
    """Returns whether it was there."""
    return bool(tx.run(DELETE_NAME, (zone_id, place)))


def before(reader: Reader, zone_id: str, place: bytes) -> bytes:
    """The name before a place, in the circle of the zone; the apex itself where there is no other."""
    found = reader.row(SELECT_BEFORE, (zone_id, place)) or reader.row(SELECT_LAST, (zone_id,))
    return found[0] if found else b""


def behind(reader: Reader, zone_id: str, place: bytes) -> bytes | None:
    """The name behind one of the zone; behind the last one comes the apex. None: there is none at `place`."""
    found = [each for (each,) in reader.rows(SELECT_FROM, (zone_id, place))]
    if place not in found:
        return None
    return found[1] if len(found) > 1 else b""


def between(reader: Reader, zone_id: str, first: bytes, end: bytes) -> list[bytes]:
    """The names behind `first` and before `end`."""
    return [place for (place,) in reader.rows(SELECT_BETWEEN, (zone_id, first, end))]


def some(reader: Reader, zone_id: str, limit: int) -> list[bytes]:
    return [place for (place,) in reader.rows(SELECT_SOME, (zone_id, limit))]


def due(reader: Reader, now_us: int, limit: int) -> list[SignedName]:
    """Names of any zone whose signatures have to be made, the most urgent first."""
    return [SignedName(*found) for found in reader.rows(SELECT_DUE, (now_us, limit))]


def is_incomplete(reader: Reader, zone_id: str) -> bool:
    """Whether a name of the zone was never signed."""
    return reader.row(SELECT_IS_UNSIGNED, (zone_id,)) is not None


def is_signed_by_others(reader: Reader, zone_id: str, tag: int) -> bool:
    """Whether a name of the zone has signatures of another key than this one."""
    return reader.row(SELECT_IS_OTHERS, (zone_id, tag)) is not None


def renew_all(tx: Transaction, zone_id: str, now_us: int) -> None:
    """Have every signature of a zone made again now; the old ones are served until then."""
    tx.run(UPDATE_DUE, (now_us, zone_id, now_us))


def forget_names(tx: Transaction, zone_id: str) -> None:
    tx.run(DELETE_NAMES, (zone_id,))


def delete_some(tx: Transaction, zone_id: str, limit: int) -> bool:
    """Forget some names of a zone. Returns whether none is left."""
    return tx.run(DELETE_SOME, (zone_id, zone_id, limit)) < limit


def count(reader: Reader, zone_id: str) -> int:
    found = reader.row(COUNT_NAMES, (zone_id,))
    return int(found[0]) if found else 0
