"""The rows of DNS records.

Owns  the table `records`: its schema and statements.
Not   lists (`tables.record_lists`); what makes a record valid; what DNS serves.

A row keeps a record in the three forms that its readers want, so that none of them parses another's:
columns for filters and rules, `rdata` in wire form for `usecases.serving`, and `body`, the JSON object that
the newest API date answers. A list is a join of ready bodies. `name` is lower-case text without its
last dot; `content_folded` is what filters compare: decoded text, lower case, white space folded.
"""

from typing import NamedTuple

from edgestead.store.control import Reader, Transaction
from edgestead.tables import columns

# One index for each order that lists are asked for most. The second also finds a name's neighbours; with
# fewer columns a planner without statistics would walk the zone in the first one to save itself a sort.
# There is no foreign key to zones: a deleted zone's records go later, some at a time.
CREATE = """
create table records (
  id text primary key,
  zone_id text not null,
  name text not null,
  type text not null,
  rdata blob not null,
  ttl integer not null,
  proxied integer not null,
  priority integer,
  content text not null,
  content_folded text not null,
  data text,
  settings text not null,
  comment text,
  tags text not null,
  created_us integer not null,
  modified_us integer not null,
  comment_modified_us integer,
  tags_modified_us integer,
  body blob not null
);
create index records_by_type on records (zone_id, type, name, created_us desc, id);
create index records_by_name on records (zone_id, name, type, created_us desc, id);
"""
SETTINGS_AS_SET = """
-- Bodies of proxied records had members of settings that nobody had set. No text of a user holds these
-- patterns: inside of a JSON string a quote is escaped.
update records
  set body = cast(replace(cast(body as text), '"ipv4_only":false,"ipv6_only":', '"ipv6_only":') as blob)
  where proxied = 1 and instr(settings, '"ipv4_only"') = 0;
update records
  set body = cast(
    replace(replace(cast(body as text), ',"ipv6_only":false}', '}'), '{"ipv6_only":false}', '{}') as blob
  )
  where proxied = 1 and instr(settings, '"ipv6_only"') = 0;
"""


class RecordRow(NamedTuple):
    """A whole record. `data`, `settings` and `tags` are JSON text; `ttl` 1 is Auto; `proxied` is 0 or 1."""

    id: str
    zone_id: str
    name: str
    type: str
    rdata: bytes
    ttl: int
    proxied: int
    priority: int | None
    content: str
    content_folded: str
    data: str | None
    settings: str
    comment: str | None
    tags: str
    created_us: int
    modified_us: int
    comment_modified_us: int | None
    tags_modified_us: int | None
    body: bytes


class Neighbour(NamedTuple):
    """What the rules between records and the rendering of a name need to know of one record."""

    id: str
    type: str
    rdata: bytes
    ttl: int
    proxied: int
    settings: str
    comment: str | None
    tags: str


class StoredRecord(NamedTuple):
    """What a zone file says of one record."""

    id: str
    name: str
    type: str
    rdata: bytes
    ttl: int
    proxied: int
    settings: str
    comment: str | None
    tags: str


COLUMNS = columns.names(RecordRow)
INSERT = columns.insert("records", RecordRow)
_FIXED = ("id", "zone_id", "type", "created_us")
UPDATE = columns.update("records", RecordRow, _FIXED)
SELECT = f"select {COLUMNS} from records where id = ? and zone_id = ?"
SELECT_BESIDE = (
    f"select {COLUMNS} from records where zone_id = ?"
    " and name = (select name from records where id = ? and zone_id = ?)"
)
SELECT_BODY = (
    "select r.body, z.name from records r join zones z on z.id = r.zone_id where r.id = ? and r.zone_id = ?"
)
SELECT_ADDRESSES = (
    "select type, content from records where zone_id = ? and name = ? and type in ('A', 'AAAA')"
    " and proxied = 0 order by type, content"
)
SELECT_FLEXIBLE_NAMES = (
    "select distinct name from records where zone_id = ? and name > ?"
    " and (type in ('CNAME', 'DS') or proxied = 1) order by name limit ?"
)
SELECT_PROXIED_NAMES = (
    "select distinct name from records where zone_id = ? and name > ? and proxied = 1 order by name limit ?"
)
SELECT_AT_NAME = f"select {columns.names(Neighbour)} from records where zone_id = ? and name = ?"
# Without an index: a walk over the zone's names, as far as the first that is found.
SELECT_IS_ABOVE = (
    "select 1 from records where zone_id = ? and length(name) > ?"
    " and substr(name, length(name) - ?) = ? limit 1"
)
SELECT_NAMES = "select distinct name from records where zone_id = ? and name > ? order by name limit ?"
# Without an index, as above.
SELECT_NAMES_BELOW = (
    "select distinct name from records where zone_id = ? and length(name) > ?"
    " and substr(name, length(name) - ?) = ?"
)
SELECT_CUTS = "select distinct name from records where zone_id = ? and type = 'NS'"
SELECT_REDIRECT = "select 1 from records where zone_id = ? and name = ? and type = 'DNAME' limit 1"
SELECT_ALIAS = "select id, rdata from records where zone_id = ? and name = ? and type = 'CNAME'"
DELETE = "delete from records where id = ?"
DELETE_SOME = "delete from records where id in (select id from records where zone_id = ? limit ?)"

SELECT_STORED = (
    f"select {columns.names(StoredRecord)} from records"
    " where zone_id = ? and (name, type, id) > (?, ?, ?) order by name, type, id limit ?"
)


_changing = columns.changing(RecordRow, _FIXED)


def insert(tx: Transaction, row: RecordRow) -> None:
    tx.run(INSERT, row)


def update(tx: Transaction, row: RecordRow) -> None:
    """Everything but the identity: id, zone, type and birth stay."""
    tx.run(UPDATE, _changing(row))


def delete(tx: Transaction, record_id: str) -> None:
    tx.run(DELETE, (record_id,))


def delete_some(tx: Transaction, zone_id: str, rows_max: int) -> int:
    """Returns how many there were to delete, at most `rows_max`."""
    return tx.run(DELETE_SOME, (zone_id, rows_max))


def record(reader: Reader, zone_id: str, record_id: str) -> RecordRow | None:
    found = reader.row(SELECT, (record_id, zone_id))
    return RecordRow(*found) if found else None


def beside(reader: Reader, zone_id: str, record_id: str) -> list[RecordRow]:
    """A record and all others of its name; none when there is no such record."""
    found = reader.rows(SELECT_BESIDE, (zone_id, record_id, zone_id))
    return [RecordRow(*row) for row in found]


def body(reader: Reader, zone_id: str, record_id: str) -> tuple[bytes, str] | None:
    """Of a record in a zone that exists; and the zone's name."""
    found = reader.row(SELECT_BODY, (record_id, zone_id))
    return (found[0], found[1]) if found else None


def alias(reader: Reader, zone_id: str, name: str) -> tuple[str, bytes] | None:
    """The CNAME at a name: its id, and its target in wire form."""
    found = reader.row(SELECT_ALIAS, (zone_id, name))
    return (found[0], found[1]) if found else None


def at_name(reader: Reader, zone_id: str, name: str) -> list[Neighbour]:
    return [Neighbour(*found) for found in reader.rows(SELECT_AT_NAME, (zone_id, name))]


def stored(reader: Reader, zone_id: str, after: StoredRecord | None, limit: int) -> list[StoredRecord]:
    """Records by name and type, those behind `after`: a zone of any size in steps of one index."""
    key = ("", "", "") if after is None else (after.name, after.type, after.id)
    return [StoredRecord(*found) for found in reader.rows(SELECT_STORED, (zone_id, *key, limit))]


def flexible_names(reader: Reader, zone_id: str, after: str, limit: int) -> list[str]:
    """Those behind `after` that may serve something else than their records say: aliases, proxied names,
    and a DS, which serves nothing without its delegation."""
    return [name for (name,) in reader.rows(SELECT_FLEXIBLE_NAMES, (zone_id, after, limit))]


def proxied_names(reader: Reader, zone_id: str, after: str, limit: int) -> list[str]:
    """Names with a proxied record, those behind `after`."""
    return [name for (name,) in reader.rows(SELECT_PROXIED_NAMES, (zone_id, after, limit))]


def is_above(reader: Reader, zone_id: str, name: str) -> bool:
    """Whether the zone has records below a name. Takes milliseconds in a zone of 100,000."""
    suffix = f".{name}"
    found = reader.row(SELECT_IS_ABOVE, (zone_id, len(suffix), len(suffix) - 1, suffix))
    return found is not None


def has_redirect(reader: Reader, zone_id: str, name: str) -> bool:
    """Whether a name has a DNAME."""
    return reader.row(SELECT_REDIRECT, (zone_id, name)) is not None


def names_after(reader: Reader, zone_id: str, after: str, limit: int) -> list[str]:
    """The names of a zone that have records, those behind `after`."""
    return [name for (name,) in reader.rows(SELECT_NAMES, (zone_id, after, limit))]


def names_below(reader: Reader, zone_id: str, name: str) -> list[str]:
    """Names with records below a name. Takes milliseconds in a zone of 100,000."""
    suffix = f".{name}"
    found = reader.rows(SELECT_NAMES_BELOW, (zone_id, len(suffix), len(suffix) - 1, suffix))
    return [below for (below,) in found]


def cuts(reader: Reader, zone_id: str) -> list[str]:
    """Names with NS records: the apex, if it has any, and the delegations."""
    return [name for (name,) in reader.rows(SELECT_CUTS, (zone_id,))]


def addresses_at(reader: Reader, zone_id: str, name: str) -> list[tuple[str, str]]:
    """(type, content) of a name's A and AAAA records that are not proxied."""
    return [(type_, content) for type_, content in reader.rows(SELECT_ADDRESSES, (zone_id, name))]
