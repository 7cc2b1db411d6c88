"""Records that an earlier version stored are answered with the settings that were set, like new ones."""

import msgspec
import pytest

from edgestead.sqlite.control import SqliteControlStore
from edgestead.tables import records
from edgestead.tables.schema import MIGRATIONS
from edgestead.usecases.change import view

BEFORE = [step.name for step in MIGRATIONS].index("settings of records as they were set")
COMMENT = 'a quoted "settings":{"ipv4_only":false,"ipv6_only":false} and ,"ipv6_only":false}'


def stored(type_, proxied, settings, shown):
    """A row whose body has `settings` as the earlier version showed them."""
    row = records.RecordRow(
        id="a" * 32,
        zone_id="z" * 32,
        name="www.example.com",
        type=type_,
        rdata=b"\xc0\x00\x02\x01" if type_ == "A" else b"\x06origin\x07example\x03net\x00",
        ttl=1,
        proxied=proxied,
        priority=None,
        content="192.0.2.1" if type_ == "A" else "origin.example.net",
        content_folded="",
        data=None,
        settings=settings,
        comment=COMMENT,
        tags="[]",
        created_us=0,
        modified_us=0,
        comment_modified_us=None,
        tags_modified_us=None,
        body=b"",
    )
    body = msgspec.json.decode(view.render(row))
    return row._replace(body=msgspec.json.encode(body | {"settings": msgspec.json.decode(shown)}))


@pytest.mark.parametrize(
    ("type_", "proxied", "settings", "shown"),
    [
        ("A", 1, "{}", '{"ipv4_only":false,"ipv6_only":false}'),
        ("A", 1, '{"ipv4_only":true}', '{"ipv4_only":true,"ipv6_only":false}'),
        ("A", 1, '{"ipv4_only":false}', '{"ipv4_only":false,"ipv6_only":false}'),
        ("A", 1, '{"ipv6_only":true}', '{"ipv4_only":false,"ipv6_only":true}'),
        ("A", 1, '{"ipv4_only":false,"ipv6_only":false}', '{"ipv4_only":false,"ipv6_only":false}'),
        ("A", 0, "{}", "{}"),
        ("CNAME", 1, "{}", '{"flatten_cname":false,"ipv4_only":false,"ipv6_only":false}'),
        ("CNAME", 1, '{"ipv6_only":true}', '{"flatten_cname":false,"ipv4_only":false,"ipv6_only":true}'),
        ("CNAME", 0, '{"flatten_cname":true}', '{"flatten_cname":true}'),
    ],
)
def test_settings_of_a_stored_record_are_those_that_were_set(tmp_path, type_, proxied, settings, shown):
    row = stored(type_, proxied, settings, shown)
    before = SqliteControlStore(tmp_path / "control.db", MIGRATIONS[:BEFORE])
    before.write(lambda tx: tx.run(records.INSERT, row)).result(60)
    before.close()

    store = SqliteControlStore(tmp_path / "control.db", MIGRATIONS)
    found = store.read(lambda reader: records.record(reader, row.zone_id, row.id))
    store.close()

    assert found is not None
    assert found.body == view.render(row)
