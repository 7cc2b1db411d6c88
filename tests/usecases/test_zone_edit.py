"""What the feed hears of a change: each name as it is now, the journal's row, the zone's new serial."""

import pytest

from edgestead.model import names, served
from edgestead.model.edge import KIND_EDGE_NAME, KIND_EDGE_ZONE
from edgestead.model.records import TYPES
from edgestead.sqlite.outbox import INSERT_CHANGE
from edgestead.sqlite.witness import COUNT_COMMITS
from tests.support.api import FIRST_US

BORN = FIRST_US // 1_000_000
APEX = names.wire_from_text("example.com").hex()
WWW = names.wire_from_text("www.example.com").hex()
EDGE_KINDS = (KIND_EDGE_NAME, KIND_EDGE_ZONE)
A = {"type": "A", "name": "www", "content": "192.0.2.1", "ttl": 300}


@pytest.fixture
def zone_id(api):
    return api.post("/zones", {"name": "example.com"}).result["id"]


@pytest.fixture
def records(api, zone_id):
    api.changes.clear()
    return f"/zones/{zone_id}/dns_records"


def told(api):
    """What DNS is told since the last time, the journal apart, as (kind, key, types or serial, first)."""
    found = [
        (change.kind, change.key, _meaning(change), change.first)
        for change in api.changes
        if change.kind in (served.KIND_NAME, served.KIND_ZONE)
    ]
    api.changes.clear()
    return found


def _meaning(change):
    if change.doc is None:
        return None
    if change.kind == served.KIND_ZONE:
        soa = served.decode_zone(change.doc).soa_rdata
        return TYPES["SOA"].rdata.from_wire(soa).serial
    return [rrset.type for rrset in served.decode_name(change.doc).rrsets]


def test_a_new_zone_is_told_with_its_apex(api, zone_id):
    assert {change.scope for change in api.changes} == {zone_id}
    assert told(api) == [("name", APEX, [2], ""), ("zone", "", BORN, "")]


def test_every_change_is_one_serial_further(api, records):
    made = api.post(records, A).result
    assert told(api) == [("name", WWW, [1], ""), ("zone", "", BORN + 1, "")]

    api.patch(f"{records}/{made['id']}", {"ttl": 60})
    assert told(api) == [("name", WWW, [1], ""), ("zone", "", BORN + 2, "")]

    api.delete(f"{records}/{made['id']}")
    assert told(api) == [("name", WWW, None, ""), ("zone", "", BORN + 3, "")]


def test_a_moved_record_changes_two_names_in_one_serial(api, records):
    made = api.post(records, A).result
    told(api)

    api.patch(f"{records}/{made['id']}", {"name": "web"})

    web = names.wire_from_text("web.example.com").hex()
    assert told(api) == [("name", web, [1], ""), ("name", WWW, None, ""), ("zone", "", BORN + 2, "")]


def journaled(api):
    """The journal's rows since the last time, as (serial before, after, removed, added)."""
    rows = [served.decode_change(c.doc) for c in api.changes if c.kind == served.KIND_JOURNAL]
    api.changes.clear()
    return [(_serial(row.before), _serial(row.after), _texts(row.removed), _texts(row.added)) for row in rows]


def _serial(zone):
    return TYPES["SOA"].rdata.from_wire(zone.soa_rdata).serial


def _texts(owned):
    return [
        (names.text_from_wire(owner), rrset.type, rrset.ttl_seconds, rdata[-1])
        for owner, rrsets in owned
        for rrset in rrsets
        for rdata in rrset.rdatas
    ]


def test_the_journal_holds_the_records_that_went_and_came(api, records):
    name = "www.example.com"
    made = api.post(records, A).result
    assert journaled(api) == [(BORN, BORN + 1, [], [(name, 1, 300, 1)])]

    api.post(records, A | {"content": "192.0.2.2"})
    assert journaled(api) == [(BORN + 1, BORN + 2, [], [(name, 1, 300, 2)])]

    api.patch(f"{records}/{made['id']}", {"ttl": 60})  # an RRset has one TTL
    assert journaled(api) == [
        (
            BORN + 2,
            BORN + 3,
            [(name, 1, 300, 1), (name, 1, 300, 2)],
            [(name, 1, 60, 1), (name, 1, 60, 2)],
        )
    ]

    api.delete(f"{records}/{made['id']}")
    removed, added = [(name, 1, 60, 1), (name, 1, 60, 2)], [(name, 1, 300, 2)]
    assert journaled(api) == [(BORN + 3, BORN + 4, removed, added)]


def test_a_change_that_serves_nothing_else_journals_its_serial_alone(api, records):
    api.post(records, A | {"type": "CNAME", "content": "example.net"})
    api.changes.clear()

    api.post(records, {"type": "TXT", "name": "www", "content": "not served beside an alias", "ttl": 300})

    assert journaled(api) == [(BORN + 1, BORN + 2, [], [])]


def test_a_change_that_dns_does_not_see_is_not_journaled(api, records):
    made = api.post(records, A).result
    api.changes.clear()

    api.patch(f"{records}/{made['id']}", {"comment": "only words"})

    assert journaled(api) == []


def test_edges_hear_first_that_a_name_becomes_proxied_and_dns_that_it_stops(api, records):
    made = api.post(records, A).result
    path = f"{records}/{made['id']}"
    told(api)

    api.patch(path, {"proxied": True})
    assert [change[3] for change in told(api)] == ["edge", ""]
    api.patch(path, {"content": "192.0.2.9"})
    assert [change[3] for change in told(api)] == ["", ""]
    api.patch(path, {"proxied": False})
    assert [change[3] for change in told(api)] == ["dns", ""]


def test_a_name_that_is_born_proxied_is_heard_by_edges_first_and_dies_in_dns_first(api, records):
    made = api.post(records, {**A, "proxied": True}).result
    assert [change[3] for change in told(api)] == ["edge", ""]

    api.delete(f"{records}/{made['id']}")
    assert [change[3] for change in told(api)] == ["dns", ""]


def test_a_proxied_record_that_moves_is_heard_by_each_names_own_first(api, records):
    made = api.post(records, {**A, "proxied": True}).result
    told(api)

    api.patch(f"{records}/{made['id']}", {"name": "web"})

    assert [(change[1], change[3]) for change in told(api)[:2]] == [
        (names.wire_from_text("web.example.com").hex(), "edge"),
        (WWW, "dns"),
    ]


def test_a_second_proxied_record_does_not_change_who_hears_first(api, records):
    first = api.post(records, {**A, "proxied": True}).result
    api.post(records, {**A, "content": "192.0.2.2", "proxied": True})
    told(api)

    api.delete(f"{records}/{first['id']}")

    assert [change[3] for change in told(api)] == ["", ""]


def test_dns_does_not_hear_the_origin_of_a_proxied_name(api, records):
    api.post(records, {**A, "content": "192.0.2.77", "proxied": True})
    api.post(records, {"type": "CNAME", "name": "c", "content": "secret-origin.test", "proxied": True})

    documents = b"".join(change.doc or b"" for change in api.changes if change.kind not in EDGE_KINDS)
    assert bytes((192, 0, 2, 77)) not in documents
    assert b"secret-origin" not in documents


def test_a_refused_change_tells_nothing_and_costs_no_serial(api, records):
    api.post(records, A)
    told(api)

    assert api.post(records, A).status == 400
    assert told(api) == []
    api.post(records, {**A, "name": "next"})
    assert told(api)[-1] == ("zone", "", BORN + 2, "")


def test_a_serial_goes_on_behind_its_largest_number(api, records, zone_id):
    sql = "UPDATE zones SET serial = ? WHERE id = ?"
    api.store.write(lambda tx: tx.run(sql, (2**32 - 1, zone_id))).result()

    api.post(records, A)

    assert told(api)[-1] == ("zone", "", 0, "")


def test_a_deleted_zone_is_forgotten_in_one_change(api, records, zone_id):
    api.post(records, A)
    api.changes.clear()

    api.delete(f"/zones/{zone_id}")

    (change,) = api.changes
    assert change.drops_scope
    assert change.scope == zone_id


STATEMENTS_MAX = 10  # of one write of a plain record, two of them the audit log's; its group runs others


@pytest.fixture
def statements(api):
    """The statements of the store's writer since it was last cleared."""
    found = []
    api.store.database._db.set_exec_trace(lambda cursor, sql, bindings: found.append(sql) or True)
    yield found
    api.store.database._db.set_exec_trace(None)


GROUPS_OWN = (INSERT_CHANGE, COUNT_COMMITS)  # what a group runs first for itself, whether it emitted or not


def own(statements):
    """Those of one write, which ran alone in its group."""
    of_the_group = next(place for place, sql in enumerate(statements) if sql in GROUPS_OWN)
    return statements[statements.index("BEGIN IMMEDIATE") + 1 : of_the_group]


WRITES = {
    "a new record": lambda api, records, made: api.post(records, {**A, "name": "new"}),
    "another of its name": lambda api, records, made: api.post(records, {**A, "content": "192.0.2.2"}),
    "other content": lambda api, records, made: api.patch(
        f"{records}/{made['id']}", {"content": "192.0.2.9"}
    ),
    "a comment": lambda api, records, made: api.patch(f"{records}/{made['id']}", {"comment": "why"}),
    "put": lambda api, records, made: api.put(f"{records}/{made['id']}", {**A, "ttl": 60}),
    "gone": lambda api, records, made: api.delete(f"{records}/{made['id']}"),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_a_plain_records_write_takes_few_statements(api, records, statements, write):
    made = api.post(records, A).result
    statements.clear()

    assert write(api, records, made).status == 200

    assert len(own(statements)) <= STATEMENTS_MAX, own(statements)


def test_a_batch_reads_each_name_once(api, records, statements):
    made = [api.post(records, {**A, "content": f"192.0.2.{last}"}).result for last in range(1, 6)]
    statements.clear()

    gone = [{"id": one["id"]} for one in made]
    assert api.post(f"{records}/batch", {"deletes": gone}).status == 200

    reads = [sql for sql in own(statements) if sql.startswith("select")]
    assert len(reads) < 5 + len(made), reads
