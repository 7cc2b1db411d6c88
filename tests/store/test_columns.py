"""Statements that are made of row types are the ones that were written by hand."""

from typing import NamedTuple

import pytest

from edgestead.tables import (
    accounts,
    columns,
    custom_nameservers,
    dated_uses,
    history,
    namespaces,
    records,
    token_log,
    tokens,
    zones,
)


class Note(NamedTuple):
    id: str
    body: str
    born_us: int


GOLDEN = [
    (
        accounts.INSERT_ACCOUNT,
        "insert into accounts (id, name, type, zone_count, created_us) values (?, ?, ?, ?, ?)",
    ),
    (
        accounts.SELECT_USER,
        "select id, email, email_folded, key_hash, created_us from users where id = ?",
    ),
    (
        accounts.INSERT_USER,
        "insert into users (id, email, email_folded, key_hash, created_us) values (?, ?, ?, ?, ?)",
    ),
    (
        custom_nameservers.SELECT,
        "select ns_name, ns_set from custom_nameservers where account_id = ? and ns_name = ?",
    ),
    (
        dated_uses.UPSERT,
        "insert into dated_uses (credential_id, subject, endpoint, member, uses, first_us, last_us) "
        "values (?, ?, ?, ?, ?, ?, ?) on conflict (credential_id, subject, endpoint, member) do update "
        "set uses = dated_uses.uses + excluded.uses, last_us = case when "
        "excluded.last_us > dated_uses.last_us then excluded.last_us else dated_uses.last_us end",
    ),
    (
        history.INSERT,
        "insert into history (zone_id, sequence, made_us, origin, reverts, actor, request_id, "
        "item_count) values (?, ?, ?, ?, ?, ?, ?, ?)",
    ),
    (
        history.INSERT_ITEM,
        "insert into history_items (zone_id, sequence, position, kind, item_id, name, was, became) "
        "values (?, ?, ?, ?, ?, ?, ?, ?)",
    ),
    (
        history.SELECT_ONE,
        "select sequence, made_us, origin, reverts, actor, request_id, item_count from history where "
        "zone_id = ? and sequence = ?",
    ),
    (
        namespaces.INSERT,
        "insert into namespaces (id, account_id, title, created_us) values (?, ?, ?, ?)",
    ),
    (
        records.INSERT,
        "insert into records (id, zone_id, name, type, rdata, ttl, proxied, priority, content, "
        "content_folded, data, settings, comment, tags, created_us, modified_us, comment_modified_us, "
        "tags_modified_us, body) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    ),
    (
        records.UPDATE,
        "update records set name = ?, rdata = ?, ttl = ?, proxied = ?, priority = ?, content = ?, "
        "content_folded = ?, data = ?, settings = ?, comment = ?, tags = ?, modified_us = ?, "
        "comment_modified_us = ?, tags_modified_us = ?, body = ? where id = ?",
    ),
    (
        records.SELECT_AT_NAME,
        "select id, type, rdata, ttl, proxied, settings, comment, tags from records where zone_id = ? "
        "and name = ?",
    ),
    (
        token_log.INSERT,
        "insert into token_log (id, owner_kind, owner_id, made_us, action, token_id, token_name, actor, "
        "request_id) values (?, ?, ?, ?, ?, ?, ?, ?, ?)",
    ),
    (
        tokens.INSERT,
        "insert into tokens (id, owner_kind, owner_id, name, hash, status, policies, condition, "
        "not_before_us, expires_us, issued_us, modified_us, parent_id) "
        "values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    ),
    (
        tokens.UPDATE,
        "update tokens set name = ?, hash = ?, status = ?, policies = ?, condition = ?, not_before_us = "
        "?, expires_us = ?, modified_us = ?, parent_id = ? where id = ?",
    ),
    (
        zones.INSERT,
        "insert into zones (id, account_id, name, type, status, paused, plan, serial, record_count, "
        "version, created_us, modified_us, activated_us) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    ),
    (
        zones.SELECT_BY_SETTING,
        "select z.id, z.account_id, z.name, z.type, z.status, z.paused, z.plan, z.serial, "
        "z.record_count, z.version, z.created_us, z.modified_us, z.activated_us from settings s join "
        "zones z on z.id = s.scope_id where s.id = ? and s.value = ? and z.account_id = ? order by z.id "
        "limit ?",
    ),
]


@pytest.mark.parametrize(("made", "written"), GOLDEN)
def test_statements_are_as_they_were_written(made, written):
    assert made == written


def test_every_column_has_its_value():
    assert columns.names(Note) == "id, body, born_us"
    assert columns.names(Note, "n") == "n.id, n.body, n.born_us"
    assert columns.insert("notes", Note, before=("zone",)) == (
        "insert into notes (zone, id, body, born_us) values (?, ?, ?, ?)"
    )
    assert columns.update("notes", Note, ("id", "born_us")) == "update notes set body = ? where id = ?"
    assert columns.changing(Note, ("id", "born_us"))(Note("a", "text", 1)) == ("text", "a")
