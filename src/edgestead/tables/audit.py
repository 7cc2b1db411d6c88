"""The rows of the audit log: who changed what, and from where.

Owns  the table `audit`: its schema and statements; how what a row is about was called before.
Not   what a request changes (`rest.audited`); the words of clients (`usecases.audit`).

Rows are only added, and go oldest first. `network` is the address as 16 octets, so that a network is a range.
A row about a user's own things is in the log of the first account that the user belongs to.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from edgestead.store.control import Reader, Transaction
from edgestead.tables import columns

CREATE = """
create table audit (
  sequence integer primary key,
  made_us integer not null,
  account_id text,
  scope text not null,
  zone_id text,
  zone_name text,
  actor_kind text not null,
  actor_id text not null,
  actor_email text,
  token_id text,
  token_name text,
  address text,
  network blob,
  interface text not null,
  action text not null,
  resource_type text not null,
  resource_id text not null,
  was text,
  became text,
  request_id text not null,
  octets integer not null
);
create index audit_by_account on audit (account_id, sequence);
"""


class AuditRow(NamedTuple):
    """One change. `was` and `became` are JSON text of identifiers, None where there was or is nothing.

    `actor_kind` is `user`, `account` or `operator`; `scope` is `zone`, `account` or `user`.
    """

    made_us: int
    account_id: str | None
    scope: str
    zone_id: str | None
    zone_name: str | None
    actor_kind: str
    actor_id: str
    actor_email: str | None
    token_id: str | None
    address: str | None
    network: bytes | None
    interface: str
    action: str
    resource_type: str
    resource_id: str
    was: str | None
    became: str | None
    request_id: str
    octets: int


class FoundRow(NamedTuple):
    """A row as it is read."""

    sequence: int
    token_name: str | None
    row: AuditRow


_COLUMNS = columns.names(AuditRow)
# Sequences grow from what is there. Of a zone that is still there its account and name are looked up; the
# first account is the one that the operator's own things belong to.
INSERT = (
    f"insert into audit (sequence, token_name, {_COLUMNS}) select"
    " (select coalesce(max(sequence), 0) + 1 from audit), (select name from tokens where id = ?),"
    " ?, coalesce(?, (select account_id from zones where id = ?),"
    " (select account_id from memberships where user_id = ? order by created_us, id limit 1),"
    " (select id from accounts order by created_us, id limit 1)),"
    " ?, ?, coalesce(?, (select name from zones where id = ?))" + ", ?" * (len(AuditRow._fields) - 5)
)
SELECT = f"select sequence, token_name, {_COLUMNS} from audit"
COUNT = "select count(*) from audit"
SUM_OCTETS = "select coalesce(sum(octets), 0) from audit"
SELECT_BEYOND = (
    "select coalesce(max(sequence), 0) from (select sequence, sum(octets) over (order by sequence desc) as"
    " total from audit) as summed where total > ?"
)
SELECT_OLD = "select coalesce(max(sequence), 0) from audit where made_us < ?"
DELETE = (
    "delete from audit where sequence in (select sequence from audit where sequence <= ?"
    " order by sequence limit ?)"
)
NAMES = {  # of what a path names, by the type of resource
    "account": "select name from accounts where id = ?",
    "member": "select u.email from memberships m join users u on u.id = m.user_id where m.id = ?",
    "membership": "select a.name from memberships m join accounts a on a.id = m.account_id where m.id = ?",
    "namespace": "select title from namespaces where id = ?",
    "record": "select name || ' ' || type from records where id = ?",
    "token": "select name from tokens where id = ?",
}
SELECT_ZONE = "select account_id, name from zones where id = ?"


class Wanted(NamedTuple):
    """What a list asks for; None asks for nothing. `networks` are the first and last address of one."""

    account_id: str | None = None
    actor_id: str | None = None
    sequence: int | None = None
    since_us: int | None = None
    before_us: int | None = None
    email: str | None = None
    networks: tuple[bytes, bytes] | None = None
    action: str | None = None
    zone_name: str | None = None
    without_user: bool = False


_CONDITIONS = {
    "account_id": "account_id = ?",
    "actor_id": "actor_id = ?",
    "sequence": "sequence = ?",
    "since_us": "made_us >= ?",
    "before_us": "made_us < ?",
    "email": "lower(actor_email) = lower(?)",
    "networks": "network between ? and ?",
    "action": "action = ?",
    "zone_name": "zone_name = ?",
}


def insert(tx: Transaction, row: AuditRow) -> None:
    account = (row.account_id, row.zone_id, row.actor_id)
    zone = (row.scope, row.zone_id, row.zone_name, row.zone_id)
    tx.run(INSERT, (row.token_id, row.made_us, *account, *zone, *row[5:]))


def name_of(reader: Reader, resource_type: str, resource_id: str) -> str | None:
    """How a resource is called now; None where it is not there, or has no name."""
    sql = NAMES.get(resource_type)
    found = reader.row(sql, (resource_id,)) if sql else None
    return found[0] if found else None


def zone(reader: Reader, zone_id: str) -> tuple[str, str] | None:
    """Its account and its name."""
    found = reader.row(SELECT_ZONE, (zone_id,))
    return (found[0], found[1]) if found else None


def listed(reader: Reader, wanted: Wanted, *, descending: bool, limit: int, offset: int) -> list[FoundRow]:
    where, parameters = _where(wanted)
    found = reader.rows(_page(where, descending), (*parameters, limit, offset))
    return [FoundRow(one[0], one[1], AuditRow(*one[2:])) for one in found]


def count(reader: Reader, wanted: Wanted) -> int:
    where, parameters = _where(wanted)
    found = reader.row(COUNT + where, parameters)
    return int(found[0]) if found else 0


def _page(where: str, descending: bool) -> str:
    return f"{SELECT}{where} order by sequence {'desc' if descending else 'asc'} limit ? offset ?"


def statements() -> Iterator[str]:
    """Lists with each condition, and all of them, in both orders; the others are constants."""
    everything = Wanted("", "", 0, 0, 0, "", (b"", b""), "", "", True)
    alone = [Wanted()._replace(**{name: getattr(everything, name)}) for name in Wanted._fields]
    for wanted in (Wanted(), everything, *alone):
        where, _ = _where(wanted)
        yield COUNT + where
        yield from (_page(where, descending) for descending in (False, True))


def _where(wanted: Wanted) -> tuple[str, Sequence[Any]]:
    parts = ["1 = 1"] + (["scope <> 'user'"] if wanted.without_user else [])
    parameters: list[Any] = []
    for field, condition in _CONDITIONS.items():
        value = getattr(wanted, field)
        if value is not None:
            parts.append(condition)
            parameters += value if field == "networks" else (value,)
    return " where " + " and ".join(parts), parameters


def due(reader: Reader, octets_max: int, older_than_us: int) -> int:
    """The newest row that is too old, or has too much behind it; 0 for none. It reads the whole table."""
    floor = _number(reader, SELECT_OLD, older_than_us)
    if _number(reader, SUM_OCTETS) > octets_max:
        floor = max(floor, _number(reader, SELECT_BEYOND, octets_max))
    return floor


def delete_some(tx: Transaction, floor: int, rows_max: int) -> int:
    """Delete rows up to `floor`, the oldest first; returns how many."""
    return tx.run(DELETE, (floor, rows_max))


def _number(reader: Reader, sql: str, *parameters: int) -> int:
    found = reader.row(sql, parameters)
    return int(found[0] or 0) if found else 0
