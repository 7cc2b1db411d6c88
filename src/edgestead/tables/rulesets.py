"""The rows of rulesets, of their versions, and of who names whom.

Owns  the tables `rulesets`, `ruleset_versions`, `ruleset_uses`: their schema and statements.
Not   what is inside a rule: rules are one JSON text.

A ruleset belongs to a zone or an account (`scope`, `scope_id`). Its contents are in its versions, which never
change; `version` names the current one. `ruleset_uses` says which rulesets name which in the rules of their
current version, to execute or to skip them, so that one that is named is not deleted.
"""

from typing import NamedTuple

from edgestead.store.control import Reader, Transaction

CREATE = """
create table rulesets (
  id text primary key,
  scope text not null,
  scope_id text not null,
  kind text not null,
  phase text not null,
  name text not null,
  version integer not null
);
create index rulesets_by_scope on rulesets (scope_id, phase, kind);
create unique index rulesets_entrypoints on rulesets (scope_id, scope, phase) where kind <> 'custom';
create table ruleset_versions (
  ruleset_id text not null references rulesets (id),
  version integer not null,
  description text not null,
  rules text not null,
  octets integer not null,
  updated_us integer not null,
  primary key (ruleset_id, version)
);
create table ruleset_uses (
  executed_id text not null,
  ruleset_id text not null references rulesets (id),
  primary key (executed_id, ruleset_id)
);
create index ruleset_uses_by_ruleset on ruleset_uses (ruleset_id);
"""

_RULESET = "r.id, r.scope, r.scope_id, r.kind, r.phase, r.name"
_JOIN = "from rulesets r join ruleset_versions v on v.ruleset_id = r.id"
_CURRENT = f"{_JOIN} and v.version = r.version"

SELECT = f"select {_RULESET}, v.version, v.description, v.updated_us, v.rules {_CURRENT} where r.id = ?"
SELECT_ENTRYPOINT = (
    f"select {_RULESET}, v.version, v.description, v.updated_us, v.rules {_CURRENT}"
    " where r.scope_id = ? and r.scope = ? and r.phase = ? and r.kind <> 'custom'"
)
SELECT_VERSION = (
    f"select {_RULESET}, v.version, v.description, v.updated_us, v.rules {_JOIN}"
    " where r.id = ? and v.version = ?"
)
SELECT_SUMMARIES = (
    f"select {_RULESET}, v.version, v.description, v.updated_us, '' {_CURRENT}"
    " where r.scope_id = ? and r.scope = ?"
)
SELECT_CUSTOM = (
    f"select {_RULESET}, v.version, v.description, v.updated_us, '' {_CURRENT}"
    " where r.scope_id = ? and r.scope = 'account' and r.kind = 'custom'"
)
SELECT_VERSIONS = (
    f"select {_RULESET}, v.version, v.description, v.updated_us, '' {_JOIN} where r.id = ? order by v.version"
)
SELECT_IDS = "select id from rulesets where scope_id = ? and scope = ?"

INSERT = "insert into rulesets (id, scope, scope_id, kind, phase, name, version) values (?, ?, ?, ?, ?, ?, ?)"
UPDATE_VERSION = "update rulesets set version = ? where id = ?"
INSERT_VERSION = (
    "insert into ruleset_versions (ruleset_id, version, description, rules, octets, updated_us)"
    " values (?, ?, ?, ?, ?, ?)"
)
SELECT_SIZES = "select version, octets from ruleset_versions where ruleset_id = ? order by version desc"
DELETE_VERSION = "delete from ruleset_versions where ruleset_id = ? and version = ?"
DELETE_VERSIONS = "delete from ruleset_versions where ruleset_id = ?"
DELETE = "delete from rulesets where id = ?"

INSERT_USE = "insert into ruleset_uses (executed_id, ruleset_id) values (?, ?)"
SELECT_USERS = (
    "select ruleset_id from ruleset_uses where executed_id = ? and ruleset_id <> ? order by ruleset_id"
)
DELETE_USES = "delete from ruleset_uses where ruleset_id = ?"


class RulesetRow(NamedTuple):
    """A ruleset in one of its versions. `rules` is a JSON array; empty text in lists."""

    id: str
    scope: str
    scope_id: str
    kind: str
    phase: str
    name: str
    version: int
    description: str
    updated_us: int
    rules: str


def ruleset(reader: Reader, ruleset_id: str) -> RulesetRow | None:
    return _one(reader, SELECT, ruleset_id)


def entrypoint(reader: Reader, scope: str, scope_id: str, phase: str) -> RulesetRow | None:
    return _one(reader, SELECT_ENTRYPOINT, scope_id, scope, phase)


def ruleset_version(reader: Reader, ruleset_id: str, version: int) -> RulesetRow | None:
    return _one(reader, SELECT_VERSION, ruleset_id, version)


def summaries(reader: Reader, scope: str, scope_id: str) -> list[RulesetRow]:
    """In no order: there are few."""
    return [RulesetRow(*found) for found in reader.rows(SELECT_SUMMARIES, (scope_id, scope))]


def custom_rulesets(reader: Reader, account_id: str) -> list[RulesetRow]:
    return [RulesetRow(*found) for found in reader.rows(SELECT_CUSTOM, (account_id,))]


def versions(reader: Reader, ruleset_id: str) -> list[RulesetRow]:
    """Oldest first."""
    return [RulesetRow(*found) for found in reader.rows(SELECT_VERSIONS, (ruleset_id,))]


def insert(tx: Transaction, row: RulesetRow) -> None:
    tx.run(INSERT, (*row[:6], row.version))
    _insert_version(tx, row)


def add_version(tx: Transaction, row: RulesetRow) -> None:
    """Make the row's version the current one."""
    tx.run(UPDATE_VERSION, (row.version, row.id))
    _insert_version(tx, row)


def surplus_versions(reader: Reader, ruleset_id: str, versions_max: int, octets_max: int) -> list[int]:
    """The oldest versions, those beyond either limit; the newest is never one of them."""
    octets, newest_first = 0, reader.rows(SELECT_SIZES, (ruleset_id,))
    for kept, (_, size) in enumerate(newest_first):
        octets += size
        if kept and (kept >= versions_max or octets > octets_max):
            return [version for version, _ in newest_first[kept:]]
    return []


def delete_version(tx: Transaction, ruleset_id: str, version: int) -> None:
    tx.run(DELETE_VERSION, (ruleset_id, version))


def delete(tx: Transaction, ruleset_id: str) -> None:
    for sql in (DELETE_USES, DELETE_VERSIONS, DELETE):
        tx.run(sql, (ruleset_id,))


def delete_all(tx: Transaction, scope: str, scope_id: str) -> None:
    """Everything of one zone or account."""
    for (ruleset_id,) in tx.rows(SELECT_IDS, (scope_id, scope)):
        delete(tx, ruleset_id)


def set_uses(tx: Transaction, ruleset_id: str, named_ids: frozenset[str]) -> None:
    tx.run(DELETE_USES, (ruleset_id,))
    for named_id in sorted(named_ids):
        tx.run(INSERT_USE, (named_id, ruleset_id))


def users_of(reader: Reader, ruleset_id: str) -> list[str]:
    """The other rulesets whose rules execute or skip this one."""
    return [user_id for (user_id,) in reader.rows(SELECT_USERS, (ruleset_id, ruleset_id))]


def _insert_version(tx: Transaction, row: RulesetRow) -> None:
    octets = len(row.rules.encode())
    tx.run(INSERT_VERSION, (row.id, row.version, row.description, row.rules, octets, row.updated_us))


def _one(reader: Reader, sql: str, *parameters: str | int) -> RulesetRow | None:
    found = reader.row(sql, parameters)
    return RulesetRow(*found) if found else None
