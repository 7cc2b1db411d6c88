"""Copies of the control log: equal on every node, and written to by the one process that leads."""

import random
import shutil
import threading
import zlib
from contextlib import closing, suppress
from unittest.mock import Mock

import apsw
import msgspec
import pytest

from edgestead.model.refusals import Unavailable
from edgestead.sqlite import logged, replica
from edgestead.sqlite.logged import LOCAL_TABLES
from edgestead.sqlite.replica import ReplicaControlStore, copy_parts, load
from edgestead.store.answered import ANSWER_BYTES_MAX, Passed
from edgestead.store.control import Answered
from edgestead.store.controllog import Diverged, Kind, NotLeader, Position, Unknown, chained
from edgestead.store.migrations import Migration, SchemaTooNew
from tests.support.memory_log import MemoryControlLog, begin_log, catch_up, lead, open_copy

SCHEMA = """
CREATE TABLE notes (id text PRIMARY KEY, body text NOT NULL, size integer);
CREATE TABLE marks (id text PRIMARY KEY, note text NOT NULL REFERENCES notes (id) ON DELETE CASCADE);
"""
NOTES = (Migration(1, "notes", SCHEMA),)
MORE = (
    *NOTES,
    Migration(2, "colours", "ALTER TABLE notes ADD COLUMN colour text; UPDATE notes SET colour = 'red';"),
)
MANY = (*MORE, Migration(3, "weights", "ALTER TABLE notes ADD COLUMN weight integer;"))


class Cluster:
    """Nodes over one log; the log's fence is what the database's is."""

    def __init__(self, folder):
        self.folder, self.log, self.lost = folder, MemoryControlLog(), []
        begin_log(self.log, folder, NOTES)
        self.stores: list[ReplicaControlStore] = []

    def node(self, name, migrations=NOTES):
        store = open_copy(self.log, self.folder / f"{name}.db", migrations, on_lost=self.lost.append)
        self.stores.append(store)
        return store

    def close(self):
        for store in self.stores:
            store.close()


@pytest.fixture
def cluster(tmp_path):
    made = Cluster(tmp_path)
    yield made
    made.close()


def write(store, fn):
    return store.write(fn).result(60)


def put(name, body="text"):
    return lambda tx: tx.run(
        "INSERT INTO notes (id, body) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET body = excluded.body",
        (name, body),
    )


def contents(store):
    """Every row of every table that the log carries."""
    names = [
        name
        for (name,) in store.read(
            lambda r: r.rows("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")
        )
        if name not in LOCAL_TABLES and not name.startswith("sqlite_")
    ]
    return {
        name: sorted(map(repr, store.read(lambda r, n=name: r.rows(f"SELECT * FROM {n}")))) for name in names
    }


def test_a_copy_that_does_not_lead_accepts_no_write(cluster):
    store = cluster.node("a")

    with pytest.raises(NotLeader):
        write(store, put("x"))


def test_copies_are_equal_after_random_changes(cluster):
    rnd = random.Random(7)
    leader, follower = cluster.node("a"), cluster.node("b")
    lead(leader, cluster.log, 1)
    heard = []
    follower.on_commit(heard.extend)

    def change(tx):
        for _ in range(rnd.randrange(1, 6)):
            name = f"n{rnd.randrange(40)}"
            kind = rnd.random()
            if kind < 0.5:
                put(name, "x" * rnd.randrange(200))(tx)
                tx.emit("z", "name", name, b"doc")
            elif kind < 0.7:
                tx.run("UPDATE notes SET size = ? WHERE id = ?", (rnd.choice([None, 1, 2**40]), name))
            else:
                tx.run("DELETE FROM notes WHERE id = ?", (name,))
                tx.emit("z", "name", name, None)
        if rnd.random() < 0.2:
            raise ValueError("undone")

    for _ in range(40):
        futures = [leader.write(change) for _ in range(rnd.randrange(1, 8))]
        [future.exception(60) for future in futures]
        if rnd.random() < 0.3:
            catch_up(follower, cluster.log)
    catch_up(follower, cluster.log)

    assert contents(follower) == contents(leader)
    assert follower.position == leader.position
    assert [one.sequence for one in heard] == list(range(1, leader.feed.head() + 1))
    assert follower.feed.feed_id == leader.feed.feed_id


def test_what_a_deletion_takes_with_it_is_gone_from_every_copy(cluster):
    leader, follower = cluster.node("a"), cluster.node("b")
    lead(leader, cluster.log, 1)
    write(leader, put("x"))
    write(leader, lambda tx: tx.run("INSERT INTO marks (id, note) VALUES ('m', 'x')"))
    catch_up(follower, cluster.log)
    assert len(contents(follower)["marks"]) == 1

    write(leader, lambda tx: tx.run("DELETE FROM notes"))
    catch_up(follower, cluster.log)

    assert contents(follower) == contents(leader)
    assert contents(follower)["marks"] == []


def test_references_hold_where_a_process_leads_that_followed_before(cluster):
    """Followers check none: they would undo what the log says."""
    first, second = cluster.node("a"), cluster.node("b")
    lead(first, cluster.log, 1)
    write(first, put("x"))
    catch_up(second, cluster.log)
    lead(second, cluster.log, 2)

    with pytest.raises(apsw.ConstraintError):
        second.write(lambda tx: tx.run("INSERT INTO marks (id, note) VALUES ('m', 'nowhere')")).result(60)
    write(second, lambda tx: tx.run("INSERT INTO marks (id, note) VALUES ('m', 'x')"))
    write(second, lambda tx: tx.run("DELETE FROM notes WHERE id = 'x'"))
    assert second.read(lambda r: r.rows("SELECT * FROM marks")) == []


def test_a_follower_does_not_read_its_schema_anew_with_each_entry(cluster):
    """Which SQLite's own way to apply a changeset without cascades does: it was a fifth of the work."""
    leader, follower = cluster.node("a"), cluster.node("b")
    lead(leader, cluster.log, 1)
    catch_up(follower, cluster.log)
    prepared = []

    def ran(event):
        prepared.append(event["stmt_status"]["SQLITE_STMTSTATUS_REPREPARE"])

    follower._db.trace_v2(apsw.SQLITE_TRACE_PROFILE, ran)
    for name in "xyz":
        write(leader, put(name))
        catch_up(follower, cluster.log)

    assert len(prepared) > 3
    assert set(prepared) == {0}


def test_a_follower_keeps_no_second_copy_of_what_an_entry_changes(cluster):
    """A savepoint does, of each page, in a file from 64 KiB on. What fails is undone as a whole."""
    leader, follower = cluster.node("a"), cluster.node("b")
    lead(leader, cluster.log, 1)
    catch_up(follower, cluster.log)
    ran = []
    follower._db.trace_v2(apsw.SQLITE_TRACE_STMT, lambda event: ran.append(event["sql"]))

    write(leader, put("x"))
    catch_up(follower, cluster.log)

    assert any("notes" in sql for sql in ran)
    assert not [sql for sql in ran if "SAVEPOINT" in sql]


def test_a_leader_that_was_fenced_answers_nothing_and_follows_again(cluster):
    old, new = cluster.node("a"), cluster.node("b")
    lead(old, cluster.log, 1)
    write(old, put("kept"))
    lead(new, cluster.log, 2)

    with pytest.raises(NotLeader):
        write(old, put("late"))
    write(new, put("next"))
    catch_up(old, cluster.log)

    assert cluster.log.fenced == 1
    assert not old.leads
    assert len(cluster.lost) == 1
    assert contents(old) == contents(new)
    assert "late" not in str(contents(new)["notes"])


@pytest.mark.parametrize("landed", [True, False])
def test_a_lost_answer_gives_up_leading_and_the_log_decides(cluster, landed):
    store = cluster.node("a")
    lead(store, cluster.log, 1)
    cluster.log.lose_answers.append(landed)

    with pytest.raises(Unknown):
        write(store, put("x"))
    with pytest.raises(NotLeader):
        write(store, put("y"))
    catch_up(store, cluster.log)

    assert len(contents(store)["notes"]) == int(landed)


def test_who_follows_has_no_trouble_with_the_append_that_ended_its_office(cluster):
    store = cluster.node("a")
    lead(store, cluster.log, 1)
    cluster.log.lose_answers.append(True)

    with pytest.raises(Unknown):
        write(store, put("x"))
    assert store.database.trouble
    store.database.probe()

    assert not store.database.trouble


def test_a_commit_that_fails_after_the_append_is_found_in_the_log(cluster, monkeypatch):
    store = cluster.node("a")
    lead(store, cluster.log, 1)
    failing = [True]

    def refuse():
        if failing.pop():
            failing.append(False)
            return True
        failing.append(False)
        return False

    store._db.set_commit_hook(refuse)
    with pytest.raises(Unknown):  # not that nothing was written
        write(store, put("x"))
    assert not store.leads
    catch_up(store, cluster.log)

    assert len(contents(store)["notes"]) == 1


def test_a_write_that_is_too_large_for_an_entry_is_refused_and_the_next_one_is_not(cluster, monkeypatch):
    monkeypatch.setattr(logged, "ENTRY_BYTES_MAX", 500)
    leader, follower = cluster.node("a"), cluster.node("b")
    lead(leader, cluster.log, 1)
    write(leader, put("before"))

    with pytest.raises(Unavailable):
        write(leader, put("large", random.Random(1).randbytes(500).hex()))
    write(leader, put("after"))

    catch_up(follower, cluster.log)
    names = follower.read(lambda r: r.rows("SELECT id FROM notes ORDER BY id"))
    assert names == [("after",), ("before",)]
    assert contents(leader) == contents(follower)
    assert cluster.lost == []


def test_a_caller_that_is_gone_does_not_end_the_writer(cluster):
    leader, follower = cluster.node("a"), cluster.node("b")
    lead(leader, cluster.log, 1)
    write(leader, put("x"))
    entered, leave = threading.Event(), threading.Event()
    held = follower._writer.between(lambda: [entered.set(), leave.wait(60)][:0])
    assert entered.wait(60)
    gone = follower.apply(cluster.log.read(follower.position.sequence))

    assert gone.cancel()
    assert not held.cancel()
    leave.set()
    catch_up(follower, cluster.log)

    assert held.result(60) is None
    assert contents(follower) == contents(leader)


def test_a_table_made_from_a_copy_and_told_of_its_commits_misses_no_entry(cluster):
    """A token that is deleted while a node starts is not in what it knows."""
    leader, follower = cluster.node("a"), cluster.node("b")
    lead(leader, cluster.log, 1)
    write(leader, put("token"))
    catch_up(follower, cluster.log)
    write(leader, lambda tx: [tx.run("DELETE FROM notes"), tx.emit("z", "name", "token", None)])
    known, applying = set(), []
    follower.on_commit(lambda changes: known.difference_update(change.key for change in changes))

    def load(reader):
        names = {name for (name,) in reader.rows("SELECT id FROM notes")}
        applying.append(follower.apply(cluster.log.read(follower.position.sequence)))
        with suppress(TimeoutError):
            applying[0].result(0.2)
        known.update(names)

    follower.read_between(load).result(60)
    applying[0].result(60)

    assert known == set()


def test_a_leader_takes_no_office_behind_the_log(cluster):
    leader, behind = cluster.node("a"), cluster.node("b")
    lead(leader, cluster.log, 1)
    cluster.log.living = {2}

    with pytest.raises(NotLeader):
        behind.take_office(2).result(60)
    assert not behind.leads


@pytest.mark.parametrize("then", ["lost", "another"])
def test_nor_where_its_last_entry_is_not_the_logs(cluster, then):
    """A failover has lost it after this copy had read it, and another process may have led since."""
    leader, ahead = cluster.node("a"), cluster.node("b")
    lead(leader, cluster.log, 1)
    write(leader, put("x"))
    catch_up(ahead, cluster.log)
    last = cluster.log.entries.pop(ahead.position.sequence)
    if then == "another":
        cluster.log.entries[last.sequence] = msgspec.structs.replace(last, chain=b"another")
    cluster.log.living = {2}

    with pytest.raises(Diverged):
        ahead.take_office(2).result(60)
    assert not ahead.leads


def test_nor_where_what_follows_it_is_deleted_already(cluster, monkeypatch):
    store = cluster.node("a")
    cluster.log.living = {1}
    monkeypatch.setattr(cluster.log, "read", lambda after, bytes_max=0: None)

    with pytest.raises(NotLeader):
        store.take_office(1).result(60)
    assert not store.leads


def test_a_migration_is_an_entry_that_followers_run(cluster):
    first = cluster.node("a")
    lead(first, cluster.log, 1)
    write(first, put("x"))
    newer, follower = cluster.node("b", MORE), cluster.node("c", MORE)
    assert newer.lacks_migrations

    lead(newer, cluster.log, 2)
    catch_up(follower, cluster.log)

    assert not newer.lacks_migrations
    assert not follower.lacks_migrations
    assert contents(follower) == contents(newer)
    assert "red" in str(contents(follower)["notes"])
    with pytest.raises(SchemaTooNew):
        catch_up(first, cluster.log)


def test_an_entry_of_a_kind_that_only_a_newer_program_knows_is_refused_in_words(cluster):
    """As changes it would fit no copy: the file would be loaded again, for ever."""
    leader, follower = cluster.node("a"), cluster.node("b")
    lead(leader, cluster.log, 1)
    write(leader, put("x"))
    catch_up(follower, cluster.log)
    before = follower.position
    entry = cluster.log.read(0)[-1]
    newer = max(Kind) + 1
    chain = chained(before.chain, before.sequence + 1, newer, entry.body)
    unknown = msgspec.structs.replace(entry, sequence=before.sequence + 1, kind=newer, chain=chain)

    with pytest.raises(SchemaTooNew, match="start the newer program"):
        follower.apply([unknown]).result(60)

    assert follower.position == before


@pytest.mark.parametrize("landed", [True, False])
def test_a_migration_whose_leader_is_lost_in_it_is_whole_or_absent(cluster, landed):
    first = cluster.node("a")
    lead(first, cluster.log, 1)
    write(first, put("x"))
    lost, next_, follower = (cluster.node(name, MORE) for name in "bcd")
    cluster.log.lose_answers.append(landed)
    with pytest.raises(Unknown):
        lead(lost, cluster.log, 2)
    assert not lost.leads

    lead(next_, cluster.log, 3)
    write(next_, put("y"))
    for store in (lost, follower):
        catch_up(store, cluster.log)

    assert contents(lost) == contents(follower) == contents(next_)
    assert str(contents(next_)["notes"]).count("red") == 1
    kinds = [entry.kind for entry in cluster.log.entries.values()]
    assert kinds.count(Kind.SCHEMA) == 1, "it was made once"


def test_a_migration_that_is_made_is_not_made_again_when_the_next_one_failed(cluster, monkeypatch):
    first = cluster.node("a")
    lead(first, cluster.log, 1)
    write(first, put("x"))
    newer, follower = cluster.node("b", MANY), cluster.node("c", MANY)
    append, away = cluster.log.append, iter((False, True))

    def append_unless_away(incarnation, entry):
        if next(away, False):
            raise Unavailable
        append(incarnation, entry)

    monkeypatch.setattr(cluster.log, "append", append_unless_away)
    with pytest.raises(Unavailable):
        lead(newer, cluster.log, 2)
    assert newer.lacks_migrations

    lead(newer, cluster.log, 3)
    catch_up(follower, cluster.log)

    assert not newer.lacks_migrations
    assert contents(follower) == contents(newer)


def test_a_migration_that_could_not_be_committed_is_lacking(cluster):
    first = cluster.node("a")
    lead(first, cluster.log, 1)
    newer, follower = cluster.node("b", MORE), cluster.node("c", MORE)
    lead(newer, cluster.log, 2)

    follower._db.set_commit_hook(lambda: True)  # no
    with pytest.raises(apsw.ConstraintError):
        catch_up(follower, cluster.log)
    assert follower.lacks_migrations

    follower._db.set_commit_hook(None)
    catch_up(follower, cluster.log)
    assert not follower.lacks_migrations
    assert contents(follower) == contents(newer)


@pytest.mark.parametrize("leads", [True, False])
def test_the_journal_of_a_copy_is_short_where_the_disk_is_nearly_full(cluster, leads):
    store = cluster.node("a")
    if leads:
        lead(store, cluster.log, 1)
    long = store._db.pragma("journal_size_limit")

    store.database.let_journal_grow(False)
    short = store._db.pragma("journal_size_limit")
    store.database.let_journal_grow(True)

    assert 0 < short < long
    assert store._db.pragma("journal_size_limit") == long


def test_the_writer_outlives_a_disk_that_fails_between_two_groups(cluster):
    leader = cluster.node("a")
    lead(leader, cluster.log, 1)

    def run(sql):
        return leader._writer.between(lambda: leader._db.execute(sql).fetchall()).exception(60)

    assert run("ALTER TABLE commits RENAME TO cannot_be_read") is None
    assert run("ALTER TABLE cannot_be_read RENAME TO commits") is None
    write(leader, put("x"))

    assert "x" in str(contents(leader)["notes"])


def test_a_follower_whose_disk_is_full_stays_where_it_was_and_goes_on_when_there_is_room(cluster):
    leader, follower = cluster.node("a"), cluster.node("b")
    lead(leader, cluster.log, 1)
    write(leader, put("before"))
    catch_up(follower, cluster.log)
    before, position = contents(follower), follower.position
    pages = follower._db.pragma("page_count")
    follower._db.pragma("max_page_count", pages)
    write(leader, put("large", "x" * 100_000))

    with pytest.raises(apsw.FullError):
        catch_up(follower, cluster.log)
    assert (contents(follower), follower.position) == (before, position)
    follower._db.pragma("max_page_count", pages + 1_000)
    catch_up(follower, cluster.log)

    assert contents(follower) == contents(leader)


def test_a_copy_that_differs_is_detected_and_loaded_again(cluster, tmp_path):
    leader, follower = cluster.node("a"), cluster.node("b")
    lead(leader, cluster.log, 1)
    write(leader, put("x", "one"))
    catch_up(follower, cluster.log)
    follower._writer.between(
        lambda: follower._db.execute("UPDATE notes SET body = 'other'").fetchall()
    ).result(60)
    before, position = contents(follower), follower.position
    write(leader, put("fits"))
    write(leader, lambda tx: [put(name, "two")(tx) for name in ("a", "x", "z")])

    with pytest.raises(Diverged):
        follower.apply(cluster.log.read(position.sequence)).result(60)
    assert (contents(follower), follower.position) == (before, position)
    assert "other" in str(before["notes"])


def test_a_copy_of_another_history_is_not_gone_on_with(cluster, tmp_path):
    """What a failover of the database lost, and this copy had read."""
    leader, follower = cluster.node("a"), cluster.node("b")
    lead(leader, cluster.log, 1)
    write(leader, put("lost"))
    catch_up(follower, cluster.log)
    follower.close()
    del cluster.log.entries[max(cluster.log.entries)]
    other = cluster.node("c")
    lead(other, cluster.log, 2)

    assert load(tmp_path / "b.db", cluster.log)
    again = cluster.node("b")

    assert contents(again) == contents(other)


def test_a_base_and_the_tail_make_a_copy_when_the_beginning_is_gone(cluster, tmp_path):
    leader, follower = cluster.node("a"), cluster.node("b")
    lead(leader, cluster.log, 1)
    for number in range(5):
        write(leader, put(f"n{number}"))
        catch_up(follower, cluster.log)
        with copy_parts(tmp_path / "b.db") as base:
            cluster.log.put_base(*base)
    cluster.log.trim()
    write(leader, put("tail"))

    assert cluster.log.read(0) is None
    assert contents(cluster.node("c")) == contents(leader)


@pytest.mark.parametrize("moment", ["while it is made", "before it is read", "while it is read"])
def test_nothing_stays_of_a_base_that_cannot_be_stored(cluster, tmp_path, moment, monkeypatch):
    """On a full disk it would have the last blocks, and this node could apply nothing any more."""
    cluster.node("b")
    if moment == "while it is made":
        monkeypatch.setattr(replica, "pragma", Mock(side_effect=apsw.FullError))

    def store():
        with copy_parts(tmp_path / "b.db") as (_, parts):
            assert (tmp_path / "b.db.base").stat().st_mode & 0o777 == 0o600
            if moment == "while it is read":
                next(parts)
            raise Unavailable

    with pytest.raises((apsw.FullError, Unavailable)):
        store()
    assert not list(tmp_path.glob("*.base*"))


def test_nothing_stays_of_a_base_that_does_not_come_to_its_end(cluster, tmp_path, monkeypatch):
    def stops(base):
        yield zlib.compress(b"its first part")
        raise Unavailable

    monkeypatch.setattr(cluster.log, "read_base", stops)

    with pytest.raises(Unavailable):
        load(tmp_path / "c.db", cluster.log)

    assert not list(tmp_path.glob("c.db*"))


def test_a_journal_that_a_killed_load_left_is_not_played_back_into_the_next_one(cluster, tmp_path):
    left = tmp_path / "left.db"
    with closing(apsw.Connection(str(left))) as db:
        db.execute("CREATE TABLE other (one); BEGIN; INSERT INTO other VALUES (zeroblob(100000))").fetchall()
        db.cache_flush()
        shutil.copy(f"{left}-journal", tmp_path / "c.db.loading-journal")

    load(tmp_path / "c.db", cluster.log)

    assert contents(cluster.node("c")) == contents(cluster.node("a"))
    assert not (tmp_path / "c.db.loading-journal").exists()


def test_a_restarted_node_goes_on_with_its_file(cluster, tmp_path):
    leader, follower = cluster.node("a"), cluster.node("b")
    lead(leader, cluster.log, 1)
    write(leader, put("x"))
    catch_up(follower, cluster.log)
    follower.close()

    assert not load(tmp_path / "b.db", cluster.log)
    assert cluster.node("b").position == leader.position


def test_positions_of_different_clusters_never_agree(tmp_path):
    logs = [MemoryControlLog(), MemoryControlLog()]
    for number, log in enumerate(logs):
        (tmp_path / str(number)).mkdir()
        begin_log(log, tmp_path / str(number), NOTES)
    open_copy(logs[0], tmp_path / "copy.db", NOTES).close()

    assert load(tmp_path / "copy.db", logs[1])
    assert Position(0, b"") not in logs[0].bases


# Requests that another node passed on, and whose answer was lost with their leader.


def noted(request, fn, answer=b"answer", *, holds=True):
    passed = Passed(request, lambda: holds)
    passed.answer = answer
    return passed.noted(fn)


def test_a_copy_knows_what_the_requests_that_it_waits_for_were_answered(cluster):
    leader, follower = cluster.node("a"), cluster.node("b")
    lead(leader, cluster.log, 1)
    write(leader, noted("before", put("x")))

    with follower.answers.waited_for("here"), follower.answers.waited_for("nothing"):
        write(leader, noted("elsewhere", put("y")))
        write(leader, noted("here", put("z")))
        assert follower.answers.of("here") is None
        catch_up(follower, cluster.log)

        assert follower.answers.of("here") == b"answer"
        assert follower.answers.of("nothing") is None
    assert contents(follower) == contents(leader)
    assert not follower.answers._found


def test_a_function_that_was_undone_has_written_nothing(cluster):
    """Those of its group have."""
    leader, follower = cluster.node("a"), cluster.node("b")
    lead(leader, cluster.log, 1)
    stand, go_on = threading.Event(), threading.Event()

    def fails(tx):
        put("x")(tx)
        tx.answered(Answered("fails", b"no"))
        raise KeyError

    with follower.answers.waited_for("fails"), follower.answers.waited_for("kept"):
        first = leader.write(lambda tx: stand.set() or go_on.wait(60))
        assert stand.wait(60)
        together = [leader.write(fails), leader.write(noted("kept", put("y"))), leader.write(fails)]
        go_on.set()
        first.result(60)
        assert [type(one.exception(60)) for one in together] == [KeyError, type(None), KeyError]
        catch_up(follower, cluster.log)

        assert (follower.answers.of("fails"), follower.answers.of("kept")) == (None, b"answer")


@pytest.mark.parametrize(
    ("answers", "known"),
    [([b"a"], b"a"), ([b"a", b"b"], b""), ([b""], b""), ([b"x" * (ANSWER_BYTES_MAX + 1)], b"")],
    ids=["one", "two writes", "not kept", "long"],
)
def test_an_answer_is_whole_or_only_known_to_have_been(cluster, answers, known):
    leader, follower = cluster.node("a"), cluster.node("b")
    lead(leader, cluster.log, 1)
    passed = Passed("r", lambda: True)

    with follower.answers.waited_for("r"):
        for number, answer in enumerate(answers):
            passed.answer = answer
            write(leader, passed.noted(put(f"n{number}")))
        catch_up(follower, cluster.log)

        assert follower.answers.of("r") == passed.kept == known


def test_a_request_of_a_leader_that_leads_anew_writes_nothing(cluster):
    """Who passed it on has seen the office change, and believes that nothing comes any more."""
    leader = cluster.node("a")
    lead(leader, cluster.log, 1)

    with pytest.raises(NotLeader):
        write(leader, noted("r", put("x"), holds=False))
    assert contents(leader)["notes"] == []
