"""The rows of certificates: those that authorities issue to us, and those that were uploaded.

Owns  the tables `certificates`, `certificate_proofs` and `authority_accounts`: their schema and statements.
Not   sealing a key; what a state is (`usecases.certificate.states`); X.509.

`hosts` and `body` are JSON text. `chain` is PEM, empty until there is one; `sealed` is its key, and
`next_sealed` the key of an order under way. `due_us` is when the next step of its state is, NEVER where none
follows. A proof is one TXT record that an authority asks for; no list of a zone's records has it.
"""

from typing import Final, NamedTuple

from edgestead.store.control import Reader, Transaction
from edgestead.tables import columns

NEVER: Final = 1 << 62

CREATE = """
create table certificates (
  id text primary key,
  zone_id text not null,
  kind text not null,
  hosts text not null,
  state text not null,
  due_us integer not null,
  body text not null,
  chain text not null,
  sealed blob not null,
  next_sealed blob not null,
  starts_us integer not null,
  ends_us integer not null,
  created_us integer not null,
  modified_us integer not null
);
create index certificates_by_zone on certificates (zone_id, kind);
create index certificates_by_due on certificates (due_us);
create index certificates_by_end on certificates (ends_us);
create table certificate_proofs (
  zone_id text not null,
  name text not null,
  value text not null,
  certificate_id text not null,
  primary key (zone_id, name, value)
);
create index certificate_proofs_by_certificate on certificate_proofs (certificate_id);
create table authority_accounts (
  directory text primary key,
  email text not null,
  url text not null,
  sealed blob not null
);
"""


class CertificateRow(NamedTuple):
    id: str
    zone_id: str
    kind: str
    hosts: str
    state: str
    due_us: int
    body: str
    chain: str
    sealed: bytes
    next_sealed: bytes
    starts_us: int
    ends_us: int
    created_us: int
    modified_us: int


class AccountRow(NamedTuple):
    """An account at an authority. `url` is empty until the authority has said it."""

    directory: str
    email: str
    url: str
    sealed: bytes


class Served(NamedTuple):
    """What the edge needs of one certificate, and the name of its zone."""

    zone_id: str
    zone_name: str
    kind: str
    hosts: str
    body: str
    chain: str
    sealed: bytes


_FIXED = ("id", "zone_id", "kind", "created_us")
_ACCOUNT = columns.names(AccountRow)
COLUMNS = columns.names(CertificateRow)
INSERT = columns.insert("certificates", CertificateRow)
UPDATE = columns.update("certificates", CertificateRow, _FIXED)
SELECT = f"select {COLUMNS} from certificates where zone_id = ? and id = ?"
SELECT_OF_ZONE = f"select {COLUMNS} from certificates where zone_id = ? order by created_us desc, id"
SELECT_OF_KIND = (
    f"select {COLUMNS} from certificates where zone_id = ? and kind = ? order by created_us desc, id"
)
SELECT_DUE = f"select {COLUMNS} from certificates where due_us <= ? order by due_us, id limit ?"
SELECT_SERVED = (
    "select c.zone_id, z.name, c.kind, c.hosts, c.body, c.chain, c.sealed from certificates c"
    " join zones z on z.id = c.zone_id where c.chain <> '' order by c.starts_us desc, c.id limit ?"
)
SELECT_ENDING = (
    "select z.name, c.hosts, c.starts_us, c.ends_us from certificates c"
    " join zones z on z.id = c.zone_id where c.chain <> '' and c.ends_us < ? order by c.ends_us limit ?"
)
SELECT_FAILED = (
    "select z.name, c.body, case when c.chain = '' then 0 else 1 end, c.ends_us from certificates c"
    " join zones z on z.id = c.zone_id where c.state = ? order by c.modified_us desc limit ?"
)
COUNT_STATES = "select state, count(*) from certificates where kind <> ? group by state"
DELETE = "delete from certificates where id = ?"
DELETE_OF_ZONE = "delete from certificates where zone_id = ?"
# Zones that answer for proxied names and have no certificate of this kind.
SELECT_ZONES_WITHOUT = (
    "select z.id, z.name from zones z where z.status = 'active' and z.paused = 0"
    " and exists (select 1 from records r where r.zone_id = z.id and r.proxied = 1)"
    " and not exists (select 1 from certificates c where c.zone_id = z.id and c.kind = ?)"
    " and not exists (select 1 from settings s where s.scope_id = z.id and s.id = ? and s.value = ?)"
    " and z.id > ? order by z.id limit ?"
)
SELECT_HAS_PROXIED = "select 1 from records where zone_id = ? and proxied = 1 limit 1"
INSERT_PROOF = (
    "insert into certificate_proofs (zone_id, name, value, certificate_id) values (?, ?, ?, ?)"
    " on conflict (zone_id, name, value) do update set certificate_id = excluded.certificate_id"
)
SELECT_PROOFS = "select value from certificate_proofs where zone_id = ? and name = ? order by value"
SELECT_PROOFS_OF = "select name, value from certificate_proofs where certificate_id = ? order by name, value"
# Those that are no records: a slash is in no name.
SELECT_PROOFS_AT_EDGE = (
    "select name, value from certificate_proofs where instr(name, '/') > 0 order by name limit ?"
)
SELECT_SAID_HOW = (
    f"select {columns.names(CertificateRow, 'c')} from settings s"
    " join certificates c on c.zone_id = s.scope_id where s.id = ? and c.kind = ? and c.state in (?, ?)"
    " and s.scope_id > ? order by s.scope_id limit ?"
)
DELETE_PROOFS_OF = "delete from certificate_proofs where certificate_id = ?"
DELETE_PROOFS_OF_ZONE = "delete from certificate_proofs where zone_id = ?"
SELECT_ACCOUNT = f"select {_ACCOUNT} from authority_accounts where directory = ?"
UPSERT_ACCOUNT = (
    f"{columns.insert('authority_accounts', AccountRow)} on conflict (directory) do update set"
    " email = excluded.email, url = excluded.url, sealed = excluded.sealed"
)

_changing = columns.changing(CertificateRow, _FIXED)


def insert(tx: Transaction, row: CertificateRow) -> None:
    tx.run(INSERT, row)


def update(tx: Transaction, row: CertificateRow) -> None:
    tx.run(UPDATE, _changing(row))


def one(reader: Reader, zone_id: str, certificate_id: str) -> CertificateRow | None:
    found = reader.row(SELECT, (zone_id, certificate_id))
    return CertificateRow(*found) if found else None


def of_zone(reader: Reader, zone_id: str) -> list[CertificateRow]:
    """The newest first."""
    return [CertificateRow(*found) for found in reader.rows(SELECT_OF_ZONE, (zone_id,))]


def of_kind(reader: Reader, zone_id: str, kind: str) -> list[CertificateRow]:
    """The newest first."""
    return [CertificateRow(*found) for found in reader.rows(SELECT_OF_KIND, (zone_id, kind))]


def due(reader: Reader, now_us: int, limit: int) -> list[CertificateRow]:
    """Those whose next step is due, the longest waiting first."""
    return [CertificateRow(*found) for found in reader.rows(SELECT_DUE, (now_us, limit))]


def served(reader: Reader, limit: int) -> list[Served]:
    """Everything that has a chain, the newest chain first."""
    return [Served(*found) for found in reader.rows(SELECT_SERVED, (limit,))]


class Ending(NamedTuple):
    zone_name: str
    hosts: str
    starts_us: int
    ends_us: int


def ending(reader: Reader, before_us: int, limit: int) -> list[Ending]:
    """Certificates that end before a moment, the first to end first."""
    return [Ending(*found) for found in reader.rows(SELECT_ENDING, (before_us, limit))]


class Failed(NamedTuple):
    """`has_chain`: there is one that is served meanwhile."""

    zone_name: str
    body: str
    has_chain: bool
    ends_us: int


def failed(reader: Reader, state: str, limit: int) -> list[Failed]:
    """Those in a state, the latest first."""
    found = reader.rows(SELECT_FAILED, (state, limit))
    return [Failed(zone, body, bool(chain), ends) for zone, body, chain, ends in found]


def count_states(reader: Reader, but_kind: str) -> dict[str, int]:
    return {state: int(count) for state, count in reader.rows(COUNT_STATES, (but_kind,))}


def delete(tx: Transaction, certificate_id: str) -> None:
    tx.run(DELETE, (certificate_id,))
    tx.run(DELETE_PROOFS_OF, (certificate_id,))


def forget_zone(tx: Transaction, zone_id: str) -> bool:
    """Returns whether the zone had any."""
    tx.run(DELETE_PROOFS_OF_ZONE, (zone_id,))
    return bool(tx.run(DELETE_OF_ZONE, (zone_id,)))


def zones_without(
    reader: Reader, kind: str, setting: str, unless: str, after: str, limit: int
) -> list[tuple[str, str]]:
    """(id, name) of active zones with a proxied name, without a certificate of a kind, and without that value
    of a setting. In the order of their ids, those behind `after`."""
    found = reader.rows(SELECT_ZONES_WITHOUT, (kind, setting, unless, after, limit))
    return [(id_, name) for id_, name in found]


def has_proxied(reader: Reader, zone_id: str) -> bool:
    return reader.row(SELECT_HAS_PROXIED, (zone_id,)) is not None


def put_proof(tx: Transaction, zone_id: str, name: str, value: str, certificate_id: str) -> None:
    tx.run(INSERT_PROOF, (zone_id, name, value, certificate_id))


def proofs_at(reader: Reader, zone_id: str, name: str) -> list[str]:
    return [value for (value,) in reader.rows(SELECT_PROOFS, (zone_id, name))]


def proofs_of(reader: Reader, certificate_id: str) -> list[tuple[str, str]]:
    """(name, value) of each."""
    return [(name, value) for name, value in reader.rows(SELECT_PROOFS_OF, (certificate_id,))]


def proofs_at_edge(reader: Reader, limit: int) -> list[tuple[str, str]]:
    """(name, value) of those that are no records."""
    return [(name, value) for name, value in reader.rows(SELECT_PROOFS_AT_EDGE, (limit,))]


def where_set(
    reader: Reader, setting: str, kind: str, states: tuple[str, str], after: str, limit: int
) -> list[CertificateRow]:
    """Those of a kind and in one of the states, of zones that say something of a setting. In the order of the
    zones' ids, those behind `after`: a zone has one of the kind at most."""
    found = reader.rows(SELECT_SAID_HOW, (setting, kind, *states, after, limit))
    return [CertificateRow(*one) for one in found]


def forget_proofs(tx: Transaction, certificate_id: str) -> None:
    tx.run(DELETE_PROOFS_OF, (certificate_id,))


def account(reader: Reader, directory: str) -> AccountRow | None:
    found = reader.row(SELECT_ACCOUNT, (directory,))
    return AccountRow(*found) if found else None


def put_account(tx: Transaction, row: AccountRow) -> None:
    tx.run(UPSERT_ACCOUNT, row)
