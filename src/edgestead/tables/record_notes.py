"""The rows of users' notes on records: comments and tags, folded, where filters find them.

Owns  the table `record_notes`: its schema and statements.
Not   what an answer shows: that is in the record's own row, spelled as it was sent.

A comment has the name ``, which no tag can have. A tag without a value has the value ``. The rows of a
deleted record go with it.
"""

from collections.abc import Sequence

from edgestead.store.control import Transaction

# The index makes "every record with this tag" one range, and starts with the zone: a caller searches in one.
# What was there before is folded by `lower`, which knows ASCII only, until it is written again.
CREATE = """
create table record_notes (
  record_id text not null references records (id) on delete cascade,
  name text not null,
  value text not null,
  zone_id text not null,
  primary key (record_id, name, value)
);
create index record_notes_by_name on record_notes (zone_id, name, value, record_id);
insert into record_notes (record_id, name, value, zone_id)
  select id, '', lower(comment), zone_id from records where comment is not null;
insert into record_notes (record_id, name, value, zone_id)
  with recursive tags (id, zone_id, tag, rest) as (
    select id, zone_id, '', lower(substr(tags, 3, length(tags) - 4)) || '","' from records where tags <> '[]'
    union all
    select id, zone_id, substr(rest, 1, instr(rest, '","') - 1), substr(rest, instr(rest, '","') + 3)
      from tags where rest <> ''
  )
  select distinct id, substr(tag || ':', 1, instr(tag || ':', ':') - 1),
      substr(tag, instr(tag || ':', ':') + 1), zone_id
    from tags where tag <> '';
create index records_by_content on records (zone_id, substr(content_folded, 1, 64));
"""

COMMENT = ""  # the name of a comment's row

INSERT = "insert into record_notes (record_id, name, value, zone_id) values (?, ?, ?, ?)"
DELETE = "delete from record_notes where record_id = ?"


def insert(tx: Transaction, record_id: str, zone_id: str, notes: Sequence[tuple[str, str]]) -> None:
    """`notes` are different pairs of a name and a value, both folded."""
    for name, value in notes:
        tx.run(INSERT, (record_id, name, value, zone_id))


def delete(tx: Transaction, record_id: str) -> None:
    tx.run(DELETE, (record_id,))
