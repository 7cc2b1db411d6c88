"""Comments and tags of records that were there before filters looked for them."""

from edgestead.sqlite.control import SqliteControlStore
from edgestead.tables.record_notes import CREATE
from edgestead.tables.schema import MIGRATIONS

INSERT = (
    "insert into records (id, zone_id, name, type, rdata, ttl, proxied, content, content_folded, settings,"
    " comment, tags, created_us, modified_us, body) values (?, 'z', 'a', 'A', '', 1, 0, '', '', '{}', ?, ?,"
    " 1, 1, '')"
)
ROWS = (
    ("1", None, "[]"),
    ("2", "Main site", '["team:Web","prod","prod:"]'),
    ("3", None, '["a:b:c","x:1,2"]'),
)
NOTES = [
    ("2", "", "main site"),
    ("2", "prod", ""),
    ("2", "team", "web"),
    ("3", "a", "b:c"),
    ("3", "x", "1,2"),
]


def test_an_upgrade_finds_the_comments_and_tags_that_are_there(tmp_path):
    before = [
        step for step in MIGRATIONS if step.number < next(s.number for s in MIGRATIONS if s.sql == CREATE)
    ]
    store = SqliteControlStore(tmp_path / "control.db", before)
    store.write(lambda tx: [tx.run(INSERT, row) for row in ROWS]).result(60)
    store.close()

    store = SqliteControlStore(tmp_path / "control.db", MIGRATIONS)
    try:
        notes = store.read(lambda reader: reader.rows("select record_id, name, value from record_notes"))
    finally:
        store.close()

    assert sorted(notes) == NOTES
