"""Objects are carried from files into a cluster's database and back: equal, with their past."""

import asyncio
import os
import secrets
from collections.abc import Iterator
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import apsw
import pytest

from edgestead import StatefulObject
from edgestead.cluster.placement import SLOTS
from edgestead.objects import ids
from edgestead.objects.runtime.classes import describe
from edgestead.postgres.connection import Link
from edgestead.postgres.objectlog import bases, opening
from edgestead.postgres.objectlog import carrying as postgres_carrying
from edgestead.postgres.objectlog.carrying import PostgresArriving, PostgresLeaving
from edgestead.postgres.objectlog.log import PostgresObjectLog
from edgestead.postgres.objectlog.opening import CHUNK_BYTES
from edgestead.server.founding import objects as founding
from edgestead.server.objects import layout
from edgestead.server.objects.host import Host
from edgestead.sqlite.objectlog import carrying as sqlite_carrying
from edgestead.sqlite.objectlog.carrying import LocalArriving, LocalLeaving
from edgestead.sqlite.objectlog.checking import check_folder
from edgestead.sqlite.objectlog.files import LocalFiles
from edgestead.sqlite.objectlog.local import LocalObjectLog
from edgestead.sqlite.objectlog.paths import data_path
from edgestead.sqlite.objectlog.writer import GroupWriter
from edgestead.store.carrying import Arriving, Leaving, carry
from edgestead.store.history.restoring import differing_frames
from edgestead.store.history.thinning import Keeping
from edgestead.store.objectlog import Commit, CommitKind, LogError, NoSpace, ObjectRef, Target, Unknown
from edgestead.store.objects import ObjectStore
from edgestead.store.pages import PAGE_BYTES
from edgestead.store.runner import InlineRunner
from tests.store.contract.object_stores import Place, acquired, asked, keys, listed, pages, put, ref
from tests.support.postgres import Postgres

NOBODY = 65_534
LATER_MS = 4_000_000_000_000


class Ledger(StatefulObject):
    storage = "sql"

    async def on_start(self) -> None:
        self.ctx.storage.sql.exec("CREATE TABLE IF NOT EXISTS entries (n INTEGER PRIMARY KEY, text TEXT)")

    async def add(self, number: int) -> None:
        self.ctx.storage.sql.exec("INSERT INTO entries VALUES (?, ?)", number, secrets.token_hex(700))
        await self.ctx.storage.put("last", number)


class Counter(StatefulObject):
    async def add(self, ring: bool = False) -> None:
        await self.ctx.storage.put("count", await self.ctx.storage.get("count", default=0) + 1)
        if ring:
            await self.ctx.storage.set_alarm(LATER_MS)

    async def alarm(self) -> None: ...


CLASSES = {"Ledger": describe(Ledger), "Counter": describe(Counter)}


@pytest.fixture
def link(postgres: Postgres) -> Iterator[Link]:
    with closing(Link(postgres.emptied())) as made:
        yield made


def local(folder: str, **options: Any) -> LocalObjectLog:
    return LocalObjectLog(
        folder,
        files=LocalFiles(),
        commits=InlineRunner(),
        upkeep=InlineRunner(),
        now_us=founding._now_us,
        random=secrets.token_bytes,
        fatal=lambda error: None,
        **options,
    )


def clustered(link: Link, folder: Path, number: int = 1, **options: Any) -> PostgresObjectLog:
    log = PostgresObjectLog(
        link.dsn,
        str(folder),
        owner=Place(link.dsn, number),
        files=LocalFiles(),
        writer=InlineRunner(),
        reader=InlineRunner(),
        upkeep=InlineRunner(),
        now_us=founding._now_us,
        fatal=lambda error: None,
        **options,
    )
    log.gained(range(SLOTS))
    return log


def used(root: Path) -> str:
    """A log on files whose objects have rows, keys, an alarm, pins and sessions; its folder."""
    folder = str(layout.settle(root, 0, 1))

    async def use() -> None:
        host = Host(folder, CLASSES)
        for number in range(30):
            await host.node.env.Ledger["a"].add(number)
            await host.node.env.Counter["b"].add(number == 7)
        await host.node.env.Ledger["é"].add(1)
        await host.close()

    asyncio.run(use())
    layout.bring_up(root)
    with closing(local(folder)) as log:
        store = log.store
        lease = acquired(store, ids.from_name("Counter", "b"))
        put(store, lease, keys(other=b"\x01"))
        assert lease.pin(lease.head - 3) is not None
        _, state = asked(store, lambda done: store.past.recall(lease.ref, Target(0, lease.head - 5), 0, done))
        asked(store, lambda done: store.past.restore(lease, state, lambda error: done(None, error)))
        put(store, lease, keys(other=b"\x02"))
        lease.release({"other": b"\x02"})
    return folder


def leaving(root: Path) -> LocalLeaving:
    return LocalLeaving(LocalFiles(), layout.bring_up(root), 0)


def arriving(root: Path, life: int = 1) -> LocalArriving:
    return LocalArriving(
        LocalFiles(),
        str(layout.settle(root, 0, 1)),
        life=life,
        now_us=founding._now_us,
        random=secrets.token_bytes,
        bring_up=lambda: founding._brought_up(root),
    )


def moved(source: Leaving, target: Arriving) -> list[int]:
    told: list[int] = []
    assert carry(source, target, lambda octets, objects: told.append(objects)) == sum(told)
    return told


def dump(source: Leaving) -> dict[str, tuple[Any, ...]]:
    """All of each object, in a form that does not depend on where it is."""
    found = {}
    for opened in source.objects():
        with opened as one:
            assert one is not None
            facts = one._replace(image=b"".join(one.image), blocks=(), snapshots=(), pins=dict(one.pins))
            blocks = [(_place(row), row.thinned, row.pages, bytes(body)) for row, body in one.blocks]
            states = {row.position: (_place(row), row.rest, b"".join(parts)) for row, parts in one.snapshots}
        found[f"{one.ref.class_name}/{one.ref.name}"] = (facts, blocks, states)
    return found


def _place(row: Any) -> tuple[int, ...]:
    first = (row.first, row.last, row.last_us) if hasattr(row, "first") else (row.position, row.time_us)
    return (*first, row.generation, row.session)


def recalled(store: ObjectStore, of: ObjectRef, target: Target, generation: int) -> Any:
    return asked(store, lambda done: store.past.recall(of, target, generation, done))


def states_of(store: ObjectStore, upto: int = 2**62) -> dict[Any, Any]:
    """Every moment of every object that can be named by a bookmark, and the state that it opens."""
    found = {}
    for entry in listed(store):
        of = entry.ref
        moments = asked(store, lambda done, of=of: store.past.moments(of, 0, 2**62, 10_000, done))
        for one in moments:
            if one.position > upto:
                continue
            located, state = recalled(store, of, Target(one.session, one.position), one.generation)
            image, tail = bytes(state.image), dict(state.tail)
            key = (of.class_name, of.id, one.generation, one.session, one.position)
            found[key] = (located.time_us, one.pinned, image, tail, state.alarm_us)
    return found


def test_objects_are_equal_in_a_database_and_in_files_again(tmp_path: Path, link: Link) -> None:
    used(tmp_path / "old")
    before = dump(leaving(tmp_path / "old"))
    with closing(local(str(tmp_path / "old/1/0"))) as log:
        past = states_of(log.store)

    told = moved(leaving(tmp_path / "old"), PostgresArriving(link))
    inside = dump(PostgresLeaving(link))
    assert sorted(link.rows("SELECT class, region FROM object_classes")) == [
        (b"Counter", ""),
        (b"Ledger", ""),
    ]
    assert link.rows("SELECT DISTINCT incarnation FROM slots") == [(None,)]
    with closing(clustered(link, tmp_path / "cache", life=1)) as log:
        assert states_of(log.store) == past
    moved(PostgresLeaving(link), arriving(tmp_path / "new"))
    after = dump(leaving(tmp_path / "new"))
    with closing(local(str(tmp_path / "new/1/0"))) as log:
        assert states_of(log.store) == past

    assert sum(told) == len(before) == 3
    assert len(past) > 60
    for name, (facts, blocks, states) in before.items():
        base = {facts.head: inside[name][2][facts.head]}
        assert inside[name] == (facts, blocks, states | base)
        assert after[name] == (facts, blocks, states | base)
    counter = before["Counter/b"][0]
    assert (counter.session, counter.alarm_us) == (1, LATER_MS * 1_000)
    assert counter.pins
    assert before["Ledger/a"][0].pages > 10


def changed(path: str, statement: str) -> Commit:
    """A commit of what a statement changes in a database's file, which is changed."""
    before = Path(path).read_bytes()
    with closing(apsw.Connection(path)) as db:
        for one in statement.split(";"):
            db.execute(one).fetchall()
    frames = differing_frames(before, Path(path).read_bytes())
    assert frames is not None
    return Commit(CommitKind.PAGES, frames)


def made_base(link: Link, of: ObjectRef) -> int | None:
    found = opening.find(link, of)
    assert found is not None
    return bases.make(link, 1, found.number)


SHRINK = "DELETE FROM entries WHERE n > 2; VACUUM"
GROW = (
    "WITH RECURSIVE s(n) AS (SELECT 100 UNION SELECT n + 1 FROM s WHERE n < 140) "
    "INSERT INTO entries SELECT n, hex(randomblob(900)) FROM s"
)


@pytest.mark.parametrize("based", [False, True])
def test_objects_that_were_written_in_the_cluster_come_out_as_they_are(
    tmp_path: Path, link: Link, based: bool
) -> None:
    used(tmp_path / "old")
    moved(leaving(tmp_path / "old"), PostgresArriving(link))
    ledger = ids.from_name("Ledger", "a")
    with closing(clustered(link, tmp_path / "cache")) as log:
        store = log.store
        lease = acquired(store, ledger)
        head = lease.head
        put(store, lease, changed(lease.path, SHRINK))
        assert not based or made_base(link, ledger) == head + 1
        put(store, lease, changed(lease.path, GROW), keys(k=b"\x05"), alarm=99)
        assert lease.head == head + 3
        image = Path(lease.path).read_bytes()
        new = acquired(store, ref("new", "Counter"))
        put(store, new, keys(k=b"\x01"), alarm=7)
        past = states_of(store)

    moved(PostgresLeaving(link), arriving(tmp_path / "new"))

    folder = str(tmp_path / "new/1/0")
    assert Path(data_path(folder, ledger)).stat().st_size >= len(image)
    with closing(local(folder)) as log:
        again = states_of(log.store)
        entries = {entry.ref.name: entry for entry in listed(log.store)}
        assert asked(log.store, log.past.check_all) == []
        assert asked(log.store, lambda done: log.past.check([one.ref for one in entries.values()], done)) == [
            [] for _ in entries
        ]
    assert {key: again[key] for key in past} == past
    assert past[ledger.class_name, ledger.id, 0, 0, head + 3][2] == image
    assert {name: entry.alarm_us for name, entry in entries.items()} == {
        "a": 99,
        "b": LATER_MS * 1_000,
        "new": 7,
        "é": None,
    }
    assert entries["a"].head > head + 3  # the keys that its database lacked became pages
    assert check_folder(folder) == []


def test_a_bookmark_of_what_came_behind_the_copy_is_refused(tmp_path: Path, link: Link) -> None:
    with closing(clustered(link, tmp_path / "cache", life=1)) as log:
        lease = acquired(log.store, ref())
        put(log.store, lease, keys(k=b"\x01"))
        assert founding.take_out(link, 1, tmp_path / "out", lambda octets, objects: None) == 1
        copied = lease.head
        put(log.store, lease, keys(k=b"\x02"), keys(k=b"\x03"))
    root = tmp_path / "out/objects"
    layout.adopt(root)

    with closing(local(str(root / "1/0"))) as log:
        ((_, inside),) = states_of(log.store, upto=copied).items()
        assert inside[3] == {"k": b"\x01"}
        for behind in (copied + 1, copied + 2):
            with pytest.raises(Unknown):
                recalled(log.store, ref(), Target(0, behind), 1)


def test_a_copy_of_a_cluster_without_objects_knows_what_its_bookmarks_were(
    tmp_path: Path, link: Link
) -> None:
    assert founding.take_out(link, 4, tmp_path / "out", lambda octets, objects: None) == 0
    root = tmp_path / "out/objects"
    assert check_folder(str(root / "1/0")) == []
    layout.adopt(root)

    with closing(local(str(root / "1/0"))) as log:
        put(log.store, acquired(log.store, ref()), keys(k=b"\x01"))
        with pytest.raises(Unknown):
            recalled(log.store, ref(), Target(0, 1), 4)


def test_what_a_database_lost_does_not_come_back_when_it_grows_again(tmp_path: Path, link: Link) -> None:
    with closing(clustered(link, tmp_path / "cache")) as log:
        lease = acquired(log.store, ref())
        put(log.store, lease, pages(b"a", b"b", b"c"))
        assert made_base(link, ref()) == 1
        put(log.store, lease, pages(b"x"))
        put(log.store, lease, pages(b"y", total=3))
        _, state = asked(log.store, lambda done: log.past.recall(ref(), Target(0, 3), 1, done))

    ((facts, _, _),) = dump(PostgresLeaving(link)).values()

    assert facts.image == bytes(state.image) == b"y" * PAGE_BYTES + bytes(2 * PAGE_BYTES)


def test_what_the_log_has_alone_is_not_forgotten(tmp_path: Path, link: Link) -> None:
    used(tmp_path / "old")
    moved(leaving(tmp_path / "old"), PostgresArriving(link))
    with closing(clustered(link, tmp_path / "cache")) as log:
        put(log.store, acquired(log.store, ids.from_name("Ledger", "a")), keys(k=b"\x05"))
    target = arriving(tmp_path / "new")
    target._bring_up = lambda: None

    with pytest.raises(LogError, match="in no database yet"):
        carry(PostgresLeaving(link), target, lambda octets, objects: None)


def test_a_past_that_has_expired_in_part_is_read_from_where_it_begins(tmp_path: Path, link: Link) -> None:
    used(tmp_path / "old")
    keeping = Keeping(window_us=1, recent_us=1 << 60)
    with closing(local(str(tmp_path / "old/1/0"), keeping=keeping)) as log:
        log.settle()
        log.tend()
    moved(leaving(tmp_path / "old"), PostgresArriving(link))
    ledger = ids.from_name("Ledger", "a")

    with closing(clustered(link, tmp_path / "cache")) as log:
        lease = acquired(log.store, ledger)
        expired = lease.head
        for value in (b"\x01", b"\x02"):
            put(log.store, lease, keys(k=value))
            assert made_base(link, ledger) == lease.head
        found = {key[4]: state[3] for key, state in states_of(log.store).items() if key[1] == ledger.id}

    assert found == {expired + 1: {"k": b"\x01"}, expired + 2: {"k": b"\x02"}}


def test_a_database_that_is_cut_short_on_the_way_is_not_taken(tmp_path: Path, link: Link) -> None:
    used(tmp_path / "old")
    source = leaving(tmp_path / "old")
    source._image = lambda path: iter([b"x" * 4096])  # type: ignore[method-assign]

    with pytest.raises(LogError, match="is not whole"):
        moved(source, PostgresArriving(link))


def test_an_object_whose_base_is_gone_is_not_taken_for_an_empty_one(tmp_path: Path, link: Link) -> None:
    with closing(clustered(link, tmp_path / "cache")) as log:
        lease = acquired(log.store, ref())
        put(log.store, lease, pages(b"a"))
        assert made_base(link, ref()) == 1
    link.run("DELETE FROM object_bases")

    with pytest.raises(LogError, match=r"the base of Counter/.* is not in the database"):
        dump(PostgresLeaving(link))


def test_keys_that_a_log_refuses_end_the_copy(
    tmp_path: Path, link: Link, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(clustered(link, tmp_path / "cache")) as log:
        put(log.store, acquired(log.store, ref()), keys(k=b"\x01"))
    target = arriving(tmp_path / "new")
    target._bring_up = lambda: pytest.fail("what was refused is taken for what is there")

    with monkeypatch.context() as patch:
        patch.setattr(GroupWriter, "_choose", lambda writer, length: writer._refuse(NoSpace("no space left")))
        with pytest.raises(NoSpace):
            carry(PostgresLeaving(link), target, lambda octets, objects: None)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make files for others")
@pytest.mark.parametrize("error", [None, LogError("cut short")])
def test_a_folder_that_root_moves_in_stays_its_owners(
    tmp_path: Path, link: Link, monkeypatch: pytest.MonkeyPatch, error: LogError | None
) -> None:
    with closing(local(str(layout.settle(tmp_path / "old/objects", 0, 1)))) as log:
        put(log.store, acquired(log.store, ref()), keys(k=b"\x01"))  # which is in no database yet
    for path in (tmp_path / "old/objects", *(tmp_path / "old").rglob("*")):
        os.chown(path, NOBODY, NOBODY)

    with monkeypatch.context() as patch:
        if error is not None:
            patch.setattr(PostgresArriving, "put", Mock(side_effect=error))
        with nullcontext() if error is None else pytest.raises(LogError):
            founding.bring_in(link, tmp_path / "old", lambda words: None)

    assert {path.stat().st_uid for path in (tmp_path / "old/objects").rglob("*")} == {NOBODY}


def test_batches_of_one_and_databases_of_several_chunks_are_carried(
    tmp_path: Path, link: Link, monkeypatch: pytest.MonkeyPatch
) -> None:
    for place, name in (
        (postgres_carrying, "PAGE_OBJECTS"),
        (postgres_carrying, "BATCH_ROWS"),
        (postgres_carrying, "BATCH_BYTES"),
        (sqlite_carrying, "BATCH_OBJECTS"),
        (sqlite_carrying, "BATCH_BYTES"),
    ):
        monkeypatch.setattr(place, name, 1)
    used(tmp_path / "old")
    moved(leaving(tmp_path / "old"), PostgresArriving(link))
    with closing(clustered(link, tmp_path / "cache")) as log:
        lease = acquired(log.store, ids.from_name("Ledger", "a"))
        put(log.store, lease, changed(lease.path, GROW.replace("140", "1700")))
        assert Path(lease.path).stat().st_size > 2 * CHUNK_BYTES
        put(log.store, lease, keys(k=b"\x01"))
        for other in (ids.from_name("Ledger", "é"), ids.from_name("Counter", "b")):
            put(log.store, acquired(log.store, other), keys(k=b"\x02"))
        past = states_of(log.store)
    target = arriving(tmp_path / "new")
    real, open_while = target._bring_up, []

    def brought_up() -> None:
        open_while.append(link._in_transaction)
        real()

    target._bring_up = brought_up
    moved(PostgresLeaving(link), target)
    with closing(local(str(tmp_path / "new/1/0"))) as files:
        again = states_of(files.store)

    assert open_while == [False] * 3
    assert {key: again[key] for key in past} == past
    assert check_folder(str(tmp_path / "new/1/0")) == []
