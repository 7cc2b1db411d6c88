"""What is known of a statement when the database fails, and which settings are refused."""

import select
import threading
import time
from contextlib import closing, suppress

import psycopg
import pytest

from edgestead.postgres.connection import Away, Link, Misconfigured, Unknown, Watch
from tests.support.postgres import pair

TABLE = "CREATE TABLE notes (id bigint PRIMARY KEY, body bytea)"
INSERT = "INSERT INTO notes (id, body) VALUES (%b, %b)"
COUNT = "SELECT count(*) FROM notes"
DEADLINE_SECONDS = 0.1
REFUSED_SETTINGS = {
    "ALTER DATABASE {name} SET synchronous_commit = off": "synchronous_commit is off",
    "ALTER DATABASE {name} SET synchronous_commit = local": "synchronous_commit is local",
}


@pytest.fixture
def link(postgres):
    with closing(Link(postgres.empty())) as made:
        made.run(TABLE)
        yield made


@pytest.fixture(scope="module")
def two(postgres_binaries):
    with pair(postgres_binaries) as running:
        yield running


def count(link):
    return link.row(COUNT)[0]


def test_rows_come_back_as_they_went(link):
    assert link.run(INSERT, (2**40, b"\x00\xff")) == 1

    assert link.rows("SELECT id, body FROM notes WHERE id = %b", (2**40,)) == [(2**40, b"\x00\xff")]
    assert link.row("SELECT 1 FROM notes WHERE id = %b", (1,)) is None


def test_lists_are_one_parameter(link):
    link.run(
        "INSERT INTO notes SELECT * FROM unnest(%b::bigint[], %b::bytea[])",
        ([1, 2**40, 3], [b"a", None, b"c"]),
    )

    assert link.rows("SELECT id, body FROM notes ORDER BY id") == [(1, b"a"), (3, b"c"), (2**40, None)]


def test_an_exception_undoes_a_transaction_and_is_raised(link):
    def fail_halfway():
        with link.transaction():
            link.run(INSERT, (1, b""))
            raise ValueError("why")

    with pytest.raises(ValueError, match="why"):
        fail_halfway()

    assert count(link) == 0


def test_a_savepoint_undoes_its_own_part(link):
    def fail_halfway():
        with link.savepoint():
            link.run(INSERT, (2, b""))
            link.run(INSERT, (1, b""))

    with link.transaction():
        link.run(INSERT, (1, b""))
        with pytest.raises(psycopg.errors.UniqueViolation):
            fail_halfway()

    assert link.rows("SELECT id FROM notes") == [(1,)]


def test_an_error_that_was_swallowed_does_not_look_like_a_commit(link):
    def swallow():
        with link.transaction():
            link.run(INSERT, (1, b""))
            with suppress(psycopg.errors.UniqueViolation):
                link.run(INSERT, (1, b""))

    with pytest.raises(Away, match="ROLLBACK"):
        swallow()

    assert count(link) == 0


def test_nobody_listens_is_away(tmp_path):
    with pytest.raises(Away), closing(Link(f"host={tmp_path} user=postgres")) as link:
        link.row("SELECT 1")


def test_a_session_that_ends_while_it_is_idle_loses_no_statement(postgres, link):
    ((pid,),) = link.rows("SELECT pg_backend_pid()")

    postgres.server.psql(f"SELECT pg_terminate_backend({pid}, 60000);", check=True)

    assert link.run(INSERT, (1, b"")) == 1
    assert count(link) == 1


def test_a_session_that_ends_inside_of_a_transaction_has_written_nothing(postgres, link):
    def lose_it():
        with link.transaction():
            link.run(INSERT, (1, b""))
            ((pid,),) = link.rows("SELECT pg_backend_pid()")
            postgres.server.psql(f"SELECT pg_terminate_backend({pid}, 60000);", check=True)
            link.run(INSERT, (2, b""))

    with pytest.raises(Away):
        lose_it()

    assert count(link) == 0


@pytest.mark.parametrize("idle_ms_max", [0, 1_000])
def test_a_session_that_ends_with_the_begin_of_a_transaction_has_written_nothing(
    postgres, link, monkeypatch, idle_ms_max
):
    """In the moment after it was looked at."""
    ((pid,),) = link.rows("SELECT pg_backend_pid()")
    postgres.server.psql(f"SELECT pg_terminate_backend({pid}, 60000);", check=True)
    monkeypatch.setattr("edgestead.postgres.connection._has_ended", lambda connection: False)

    with pytest.raises(Away), link.transaction(idle_ms_max=idle_ms_max):
        pass


def test_a_commit_is_never_sent_over_another_connection(postgres, link):
    """There it would succeed, outside of any transaction."""

    def lose_it():
        with link.transaction():
            link.run(INSERT, (1, b""))
            ((pid,),) = link.rows("SELECT pg_backend_pid()")
            postgres.server.psql(f"SELECT pg_terminate_backend({pid}, 60000);", check=True)

    with pytest.raises(Away):
        lose_it()

    assert count(link) == 0


def test_a_transaction_that_stands_still_is_undone_by_the_server(postgres, link):
    def stand_still():
        with link.transaction(idle_ms_max=50):
            link.run(INSERT, (1, b""))
            _until(lambda: _readable(link))

    with pytest.raises(Away):
        stand_still()

    assert count(link) == 0


def test_a_deadline_closes_the_socket_and_the_outcome_is_unknown(postgres):
    with closing(Link(postgres.empty())) as link:
        link.open()
        link._deadline_s = DEADLINE_SECONDS  # only now: what a new connection asks first takes its time

        with pytest.raises(Unknown):
            link.row("SELECT pg_sleep(60)")


def test_a_machine_that_has_no_thread_left_once_has_deadlines_afterwards(postgres, monkeypatch):
    def refuse(thread):
        raise RuntimeError("can't start new thread")

    with closing(Link(postgres.empty(), watch=Watch())) as link:
        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", refuse)
            with pytest.raises(RuntimeError):
                link.rows("SELECT 1")
        link.open()
        link._deadline_s = DEADLINE_SECONDS

        with pytest.raises(Unknown):
            link.rows("SELECT pg_sleep(60)")


def test_another_thread_may_cut_a_statement(postgres):
    dsn = postgres.empty()
    with closing(Link(dsn)) as link, closing(Link(dsn)) as other:
        ((pid,),) = link.rows("SELECT pg_backend_pid()")
        sleeps = f"SELECT wait_event = 'PgSleep' FROM pg_stat_activity WHERE pid = {pid}"
        cutter = threading.Thread(target=lambda: _until(lambda: other.row(sleeps) == (True,)) or link.cut())
        cutter.start()
        with pytest.raises(Unknown):
            link.row("SELECT pg_sleep(60)")
        cutter.join()


@pytest.mark.parametrize(("statement", "message"), REFUSED_SETTINGS.items())
def test_settings_that_lose_what_was_acknowledged_are_refused(postgres, statement, message):
    dsn = postgres.empty()
    name = dsn.rpartition("=")[2]
    postgres.server.psql(f"{statement.format(name=name)};", check=True)

    with pytest.raises(Misconfigured, match=message), closing(Link(dsn)) as link:
        link.row("SELECT 1")


def test_an_encoding_that_is_not_utf8_is_refused(postgres):
    postgres.server.psql("CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0;", check=True)

    with pytest.raises(Misconfigured, match="LATIN1"), closing(Link(postgres.server.dsn("latin"))) as link:
        link.row("SELECT 1")


def test_a_link_that_is_not_synced_does_not_wait(postgres):
    with closing(Link(postgres.empty(), synced=False)) as link:
        assert link.row("SHOW synchronous_commit") == ("off",)


def test_it_says_how_many_copies_there_are(postgres, two):
    with closing(Link(postgres.empty())) as alone, closing(Link(two.dsn("postgres"))) as followed:
        alone.row("SELECT 1")
        followed.row("SELECT 1")

        assert (alone.copies.is_one, followed.copies.is_one) == (True, False)


def test_a_wait_for_the_standby_that_somebody_cancels_is_no_success(two):
    dsn = two.database("cancelled")
    with closing(Link(dsn)) as link, closing(Link(dsn, synced=False)) as other:
        link.run(TABLE)
        ((pid,),) = link.rows("SELECT pg_backend_pid()")
        two.standby.pause()
        try:
            waits = f"SELECT wait_event = 'SyncRep' FROM pg_stat_activity WHERE pid = {pid}"
            canceller = threading.Thread(
                target=lambda: (
                    _until(lambda: other.row(waits) == (True,))
                    or other.row(f"SELECT pg_cancel_backend({pid})")
                )
            )
            canceller.start()
            with pytest.raises(Unknown, match="standby"):
                link.run(INSERT, (1, b""))
            canceller.join()
        finally:
            two.standby.resume()


def test_what_was_acknowledged_is_there_after_the_primary_was_killed(two):
    dsn = two.database("failover")
    with closing(Link(dsn)) as link:
        link.run(TABLE)
        link.run(INSERT, (1, b"kept"))

        two.primary.kill()
        two.promote()

        assert link.rows("SELECT body FROM notes WHERE id = 1") == [(b"kept",)]
        two.rejoin()
        assert link.run(INSERT, (3, b"on two again")) == 1


def _readable(link):
    return bool(select.select([link._connection.fileno()], [], [], 0)[0])


def _until(is_so):
    while not is_so():
        time.sleep(0.01)
