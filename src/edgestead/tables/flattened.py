"""The rows of CNAME flattening: which answers hang on which names, and what the world outside said.

Owns  the tables `flattened_via`, `flattened_targets` and `zone_refreshes`: their schema and statements.
Not   chasing an alias; asking a resolver.

A row of `flattened_via` says that what `name` of a zone serves depends on the name at `place`: when something
changes there, `name` has to be rendered again. A place is a name's labels from the root on, each with its dot
(`com.example.www.`), so that all that lies at or below a name is one range of the key. A row of
`flattened_targets` is a name outside of our zones at which a chain ends; `rrsets` is its last good answer
(model.served), None before the first one. Names are lower-case text without the last dot. A target that
nothing depends on is forgotten when it is next due. `due_us` of a target that was never asked is the time of
its birth, negative: in the order of `due_us` these come before all others, the newest first.
A row of `zone_refreshes` is a zone of which every name behind `after` is to be rendered again.
"""

from collections.abc import Iterable
from typing import NamedTuple

from edgestead.store.control import Reader, Transaction

CREATE = """
create table flattened_via (
  via text not null,
  zone_id text not null,
  name text not null,
  primary key (via, zone_id, name)
);
create index flattened_via_by_name on flattened_via (zone_id, name);
create table flattened_targets (
  name text primary key,
  rrsets blob,
  answered_us integer,
  failures integer not null,
  due_us integer not null
);
create index flattened_targets_by_due on flattened_targets (due_us);
create table zone_refreshes (
  zone_id text primary key,
  after text not null
);
"""
# `via` was the name itself: what lies below a zone could be found by walking all rows alone.
BY_PLACE = """
drop index flattened_via_by_name;
alter table flattened_via rename to flattened_via_by_end;
create table flattened_via (
  place text not null,
  zone_id text not null,
  name text not null,
  primary key (place, zone_id, name)
);
insert into flattened_via (place, zone_id, name)
  with recursive walked (rest, place, zone_id, name) as (
    select via || '.', '', zone_id, name from flattened_via_by_end
    union all
    select substr(rest, instr(rest, '.') + 1), substr(rest, 1, instr(rest, '.')) || place, zone_id, name
    from walked where rest <> ''
  )
  select place, zone_id, name from walked where rest = '';
drop table flattened_via_by_end;
create index flattened_via_by_name on flattened_via (zone_id, name);
"""

INSERT_VIA = "insert into flattened_via (place, zone_id, name) values (?, ?, ?)"
DELETE_VIA = "delete from flattened_via where zone_id = ? and name = ?"
DELETE_VIA_OF_ZONE = "delete from flattened_via where zone_id = ?"
SELECT_DEPENDENTS = "select zone_id, name from flattened_via where place = ? order by zone_id, name limit ?"
SELECT_ZONES_BELOW = (
    "select distinct zone_id from flattened_via where place >= ? and place < ? order by zone_id"
)
UPSERT_REFRESH = (
    "insert into zone_refreshes (zone_id, after) values (?, ?)"
    " on conflict (zone_id) do update set after = excluded.after"
)
UPSERT_REFRESHES = (
    "insert into zone_refreshes (zone_id, after) select id, '' from zones where true"
    " on conflict (zone_id) do update set after = excluded.after"
)
UPSERT_REFRESHES_BY_SETTING = (
    "insert into zone_refreshes (zone_id, after)"
    " select z.id, '' from settings s join zones z on z.id = s.scope_id"
    " where s.id = ? and s.value = ? and z.account_id = ?"
    " on conflict (zone_id) do update set after = excluded.after"
)
UPSERT_REFRESHES_HANGING = (
    "insert into zone_refreshes (zone_id, after)"
    " select distinct zone_id, '' from flattened_via where place = ?"
    " on conflict (zone_id) do update set after = excluded.after"
)
# The smallest `after` first: no zone waits for all names of a large one.
SELECT_REFRESH = "select zone_id, after from zone_refreshes order by after, zone_id limit 1"
SELECT_REFRESHES = "select count(*) from zone_refreshes"
DELETE_REFRESH = "delete from zone_refreshes where zone_id = ?"
SELECT_IS_NEEDED = "select 1 from flattened_via where place = ? limit 1"
SELECT_EXISTS = "select 1 from flattened_targets where name = ?"
SELECT_TARGET = "select rrsets from flattened_targets where name = ?"
INSERT_TARGET = (
    "insert into flattened_targets (name, rrsets, answered_us, failures, due_us) values (?, null, null, 0, ?)"
    " on conflict (name) do nothing"
)
UPDATE_ANSWERED = (
    "update flattened_targets set rrsets = ?, answered_us = ?, failures = 0, due_us = ? where name = ?"
)
UPDATE_FAILED = "update flattened_targets set failures = failures + 1, due_us = ? where name = ?"
DELETE_TARGET = "delete from flattened_targets where name = ?"
SELECT_DUE = "select name, failures from flattened_targets where due_us <= ? order by due_us, name limit ?"
UPDATE_DUE = "update flattened_targets set due_us = ? where due_us > ?"
SELECT_COUNTS = "select count(*), count(rrsets) from flattened_targets"


class Dependent(NamedTuple):
    """A name whose answer is flattened."""

    zone_id: str
    name: str


class Due(NamedTuple):
    """A target to be asked for again. `failures` counts the tries since the last good answer."""

    name: str
    failures: int


def set_via(tx: Transaction, zone_id: str, name: str, vias: Iterable[str]) -> None:
    """Say what a name depends on from now on; nothing, when it is not flattened."""
    tx.run(DELETE_VIA, (zone_id, name))
    for via in vias:
        tx.run(INSERT_VIA, (_place(via), zone_id, name))


def forget_zone(tx: Transaction, zone_id: str) -> None:
    tx.run(DELETE_VIA_OF_ZONE, (zone_id,))


def dependents(reader: Reader, via: str, limit: int) -> list[Dependent]:
    return [Dependent(*found) for found in reader.rows(SELECT_DEPENDENTS, (_place(via), limit))]


def is_needed(reader: Reader, target: str) -> bool:
    return reader.row(SELECT_IS_NEEDED, (_place(target),)) is not None


def answer(reader: Reader, target: str) -> bytes | None:
    """The last good answer, None before the first one."""
    found = reader.row(SELECT_TARGET, (target,))
    return found[0] if found else None


def exists(reader: Reader, target: str) -> bool:
    return reader.row(SELECT_EXISTS, (target,)) is not None


def want(tx: Transaction, target: str, now_us: int) -> None:
    """Have a target asked for, before all that were; nothing changes when it is known already."""
    tx.run(INSERT_TARGET, (target, -now_us))


def set_answered(tx: Transaction, target: str, rrsets: bytes, now_us: int, due_us: int) -> None:
    tx.run(UPDATE_ANSWERED, (rrsets, now_us, due_us, target))


def set_failed(tx: Transaction, target: str, due_us: int) -> None:
    tx.run(UPDATE_FAILED, (due_us, target))


def forget_target(tx: Transaction, target: str) -> None:
    tx.run(DELETE_TARGET, (target,))


def due(reader: Reader, now_us: int, limit: int) -> list[Due]:
    return [Due(*found) for found in reader.rows(SELECT_DUE, (now_us, limit))]


def due_no_later(tx: Transaction, due_us: int) -> None:
    tx.run(UPDATE_DUE, (due_us, due_us))


def counts(reader: Reader) -> tuple[int, int, int]:
    """How many targets there are, how many of them never had an answer, how many zones wait."""
    targets, answered = reader.row(SELECT_COUNTS, ()) or (0, 0)
    (waiting,) = reader.row(SELECT_REFRESHES, ()) or (0,)
    return targets, targets - answered, waiting


def zones_hanging_below(reader: Reader, apex: str) -> list[str]:
    """Ids of zones with a name that hangs on something at or below `apex`."""
    place = _place(apex)
    behind = place[:-1] + chr(ord(".") + 1)
    return [zone_id for (zone_id,) in reader.rows(SELECT_ZONES_BELOW, (place, behind))]


def set_refresh(tx: Transaction, zone_id: str, after: str) -> None:
    tx.run(UPSERT_REFRESH, (zone_id, after))


def refresh_every_zone(tx: Transaction) -> None:
    tx.run(UPSERT_REFRESHES)


def refresh_zones_hanging(tx: Transaction, via: str) -> None:
    """Every zone with a name that hangs on `via`."""
    tx.run(UPSERT_REFRESHES_HANGING, (_place(via),))


def refresh_zones_with(tx: Transaction, account_id: str, id_: str, value: str) -> None:
    """Those of an account that have this value (JSON text) of a setting."""
    tx.run(UPSERT_REFRESHES_BY_SETTING, (id_, value, account_id))


def next_refresh(reader: Reader) -> tuple[str, str] | None:
    """(zone_id, after) of one zone that waits."""
    found = reader.row(SELECT_REFRESH, ())
    return (found[0], found[1]) if found else None


def end_refresh(tx: Transaction, zone_id: str) -> None:
    tx.run(DELETE_REFRESH, (zone_id,))


def _place(name: str) -> str:
    return ".".join(reversed(name.split("."))) + "."
