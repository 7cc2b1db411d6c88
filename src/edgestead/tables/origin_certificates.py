"""The rows of certificates that this server signs for origins, and of the authority that signs them.

Owns  the tables `origin_certificates` and `origin_authority`: their schema and statements.
Not   signing (`usecases.certificate.origin`), X.509.

`hosts` is JSON text, `serial` upper-case hexadecimal as OpenSSL shows it. `revoked_us` is 0 until it is
revoked. Rows of a deleted zone are revoked and stay until they end: what was signed outlives its zone.
"""

from typing import Final, NamedTuple

from edgestead.store.control import Reader, Transaction
from edgestead.tables import columns

CREATE = """
create table origin_certificates (
  id text primary key,
  zone_id text not null,
  serial text not null,
  hosts text not null,
  request_type text not null,
  validity_days integer not null,
  csr text not null,
  certificate text not null,
  created_us integer not null,
  ends_us integer not null,
  revoked_us integer not null
);
create index origin_certificates_by_zone on origin_certificates (zone_id, created_us);
create index origin_certificates_by_revocation on origin_certificates (revoked_us, ends_us);
create table origin_authority (
  id text primary key,
  certificate text not null,
  sealed blob not null
);
"""
AUTHORITIES_MAX: Final = 16  # that the edge trusts, the newest: there is another one after a seal was lost


class OriginRow(NamedTuple):
    id: str
    zone_id: str
    serial: str
    hosts: str
    request_type: str
    validity_days: int
    csr: str
    certificate: str
    created_us: int
    ends_us: int
    revoked_us: int


COLUMNS = columns.names(OriginRow)
INSERT = columns.insert("origin_certificates", OriginRow)
SELECT = f"select {COLUMNS} from origin_certificates where id = ?"
SELECT_OF_ZONE = (
    f"select {COLUMNS} from origin_certificates where zone_id = ? and revoked_us = 0"
    " order by created_us desc, id limit ? offset ?"
)
COUNT_OF_ZONE = "select count(*) from origin_certificates where zone_id = ? and revoked_us = 0"
COUNT_REVOKED = (
    "select count(*) from origin_certificates where zone_id = ? and revoked_us > 0 and ends_us > ?"
)
COUNT_ALL = "select count(*) from origin_certificates"
REVOKE = "update origin_certificates set revoked_us = ? where id = ?"
REVOKE_OF_ZONE = "update origin_certificates set revoked_us = ? where zone_id = ? and revoked_us = 0"
SELECT_REVOKED = (
    "select serial from origin_certificates where revoked_us > 0 and ends_us > ?"
    " order by revoked_us desc limit ?"
)
DELETE_ENDED = "delete from origin_certificates where revoked_us > 0 and ends_us <= ?"
SELECT_AUTHORITIES = "select certificate, sealed from origin_authority order by id desc limit ?"
INSERT_AUTHORITY = "insert into origin_authority (id, certificate, sealed) values (?, ?, ?)"


def insert(tx: Transaction, row: OriginRow) -> None:
    tx.run(INSERT, row)


def one(reader: Reader, certificate_id: str) -> OriginRow | None:
    found = reader.row(SELECT, (certificate_id,))
    return OriginRow(*found) if found else None


def of_zone(reader: Reader, zone_id: str, limit: int, offset: int) -> list[OriginRow]:
    """Those that are not revoked, the newest first."""
    return [OriginRow(*found) for found in reader.rows(SELECT_OF_ZONE, (zone_id, limit, offset))]


def count(reader: Reader, zone_id: str) -> int:
    found = reader.row(COUNT_OF_ZONE, (zone_id,))
    return int(found[0]) if found else 0


def count_revoked(reader: Reader, zone_id: str, now_us: int) -> int:
    """Those that would be valid still."""
    found = reader.row(COUNT_REVOKED, (zone_id, now_us))
    return int(found[0]) if found else 0


def count_all(reader: Reader) -> int:
    """Of all zones, also deleted ones."""
    found = reader.row(COUNT_ALL)
    return int(found[0]) if found else 0


def revoke(tx: Transaction, certificate_id: str, now_us: int) -> None:
    tx.run(REVOKE, (now_us, certificate_id))


def revoke_zone(tx: Transaction, zone_id: str, now_us: int) -> bool:
    """Returns whether the zone had any."""
    return bool(tx.run(REVOKE_OF_ZONE, (now_us, zone_id)))


def revoked(reader: Reader, now_us: int, limit: int) -> list[str]:
    """Serials of those that would be valid still, the latest first."""
    return [serial for (serial,) in reader.rows(SELECT_REVOKED, (now_us, limit))]


def forget_ended(tx: Transaction, now_us: int) -> None:
    tx.run(DELETE_ENDED, (now_us,))


def authorities(reader: Reader) -> list[tuple[str, bytes]]:
    """The certificate (PEM) and the sealed key of each, the newest first."""
    found = reader.rows(SELECT_AUTHORITIES, (AUTHORITIES_MAX,))
    return [(certificate, sealed) for certificate, sealed in found]


def add_authority(tx: Transaction, now_us: int, certificate: str, sealed: bytes) -> None:
    """The newest one. Its id is the time that it was made."""
    tx.run(INSERT_AUTHORITY, (f"{now_us:016x}", certificate, sealed))
