"""A data folder that was copied: it is told, refused, and made a folder of its own. And moved pasts."""

import asyncio
import shutil
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from edgestead.objects.errors import BookmarkError
from edgestead.objects.operate.operations import Operations
from edgestead.objects.runtime.classes import describe
from edgestead.objects.runtime.node import Node
from edgestead.server.objects import layout as layout
from edgestead.server.objects.host import Host
from edgestead.server.objects.shared import locked
from edgestead.sqlite.objectlog.adoption import Copied, adopt
from edgestead.store.migrations import quiet
from tests.objects.logs import Logs, entries, keys, put, ref
from tests.objects.nodes import run
from tests.objects.test_recovery import Diary


@asynccontextmanager
async def living(folder: Path) -> AsyncIterator[Node]:
    """A node on real files."""
    host = Host(str(folder), {"Diary": describe(Diary)})
    try:
        yield host.node
    finally:
        await host.close()


def test_a_folder_on_another_disk_is_refused_until_it_is_adopted(logs: Logs) -> None:
    logs.open().close()
    logs.disk.device = 2

    with pytest.raises(Copied, match="edgecli object adopt"):
        logs.open()
    logs.disk.restart()
    assert adopt("/objects", logs.disk, logs.vfs) == 1

    log = logs.open()
    assert log.life == 1
    log.close()
    assert logs.open().life == 1


def test_a_held_folder_is_not_adopted(logs: Logs) -> None:
    logs.open()

    with pytest.raises(BlockingIOError):
        adopt("/objects", logs.disk, logs.vfs)


@pytest.mark.parametrize("end", ["closed", "killed"])
def test_bookmarks_of_what_a_copy_holds_stay_good_and_others_are_refused(logs: Logs, end: str) -> None:
    marks: list[str] = []

    async def before(node: Node) -> None:
        diary = node.env.Diary["one"]
        marks.append(await diary.write(1, "both have it"))
        marks.append(await diary.write(2, "both have it"))

    async def original_goes_on(node: Node) -> None:
        marks.append(await node.env.Diary["one"].write(3, "only the original has it"))

    async def copy_goes_on(node: Node) -> None:
        diary = node.env.Diary["one"]
        marks.extend([await diary.write(10 + n, "only the copy has it") for n in range(5)])
        rows = (await diary.read())["rows"]
        with pytest.raises(BookmarkError):
            await diary.plan(marks[2])
        for mark, count in ((marks[0], 1), (marks[1], 2), (marks[-1], len(rows))):
            await Operations(node).restore(entries(node.log)[0].ref, mark)
            assert len((await diary.read())["rows"]) == count
        assert marks == sorted(marks)

    run(logs, before, Diary, close=end == "closed")
    logs.killed()
    copied = {path: bytes(inode.data) for path, inode in logs.disk.inodes.items()}
    run(logs, original_goes_on, Diary)
    logs.killed()
    for path in list(logs.disk.inodes):
        logs.disk.remove(path)
    for path, data in copied.items():
        logs.disk.open(path, create=True).write(data, 0)
    logs.disk.device = 2
    adopt("/objects", logs.disk, logs.vfs)
    logs.disk.restart()
    run(logs, copy_goes_on, Diary)


def test_adopting_twice_keeps_the_bookmarks_of_all_lives(logs: Logs) -> None:
    marks: list[str] = []

    async def write(node: Node) -> None:
        marks.append(await node.env.Diary["one"].write(len(marks)))

    async def judge(node: Node) -> None:
        entry = entries(node.log)[0]
        for number, mark in enumerate(marks):
            await Operations(node).restore(entry.ref, mark)
            assert len((await node.env.Diary["one"].read())["rows"]) == number + 1

    for _ in range(3):
        run(logs, write, Diary)
        logs.killed()
        adopt("/objects", logs.disk, logs.vfs)
        logs.disk.restart()
        adopt("/objects", logs.disk, logs.vfs)
        logs.disk.restart()
    run(logs, judge, Diary)


def test_a_plain_copy_of_real_files_is_told(tmp_path: Path) -> None:
    async def life(folder: Path) -> None:
        async with living(folder) as node:
            await node.env.Diary["one"].write(1)

    asyncio.run(life(tmp_path / "original"))
    shutil.copytree(tmp_path / "original", tmp_path / "copy")

    with pytest.raises(Copied):
        asyncio.run(life(tmp_path / "copy"))
    adopt(str(tmp_path / "copy"))
    asyncio.run(life(tmp_path / "copy"))
    (tmp_path / "original").rename(tmp_path / "renamed")
    asyncio.run(life(tmp_path / "renamed"))


def test_the_past_moves_with_an_object_to_another_process(tmp_path: Path) -> None:
    names = [str(number) for number in range(6)]
    marks: dict[str, str] = {}

    async def write(folder: Path) -> None:
        async with living(folder) as node:
            for name in names:
                marks[name] = await node.env.Diary[name].write(1, name)
                await node.env.Diary[name].write(2, "later")

    async def go_back(folders: list[Path]) -> None:
        for folder in folders:
            async with living(folder) as node:
                for entry in list(entries(node.log)):
                    assert entry.ref.name is not None
                    assert await Operations(node).verify(entry.ref) == []
                    await Operations(node).restore(entry.ref, marks.pop(entry.ref.name))
                    assert (await node.env.Diary[entry.ref.name].read())["rows"] == [[1, entry.ref.name]]

    asyncio.run(write(layout.settle(tmp_path, 0, 1)))
    said: list[str] = []
    asyncio.run(go_back([layout.settle(tmp_path, worker, 2, doing=said.append) for worker in range(2)]))
    assert not marks
    assert "5 databases are brought up to the log" in said
    assert "6 objects are dealt out" in said
    assert [words for words in said if words.startswith("the past of")]


def test_who_waits_for_another_process_that_deals_out_says_so(tmp_path: Path) -> None:
    layout.settle(tmp_path, 0, 1)
    with locked(tmp_path / "lock"):
        said = threading.Event()
        waiting = threading.Thread(target=layout.settle, args=(tmp_path, 0, 1, (), (), lambda _: said.set()))
        waiting.start()
        assert said.wait(60)
    waiting.join()


def test_a_recovery_says_what_it_reads_and_redoes(logs: Logs) -> None:
    log = logs.open()
    said: list[str] = []
    put(log, log.lease(ref()), keys(a=b"1"))
    logs.killed()

    logs.open(doing=said.append)

    assert said == [
        "reading segment-0001.log, 1 of at most 2",
        "0 of 1 databases have what was logged",
    ]


def test_a_position_is_kept_only_for_objects_that_exist(logs: Logs) -> None:
    log = logs.open()

    assert log.lease(ref()).pin(0) is None


def test_a_folder_that_lost_its_history_begins_a_new_one(logs: Logs) -> None:
    marks: list[str] = []

    async def before(node: Node) -> None:
        marks.extend([await node.env.Diary["one"].write(n, "x" * 5_000) for n in range(3)])
        await asyncio.sleep(0.1)
        assert await node.bring_up(quiet) is None

    async def after(node: Node) -> None:
        diary = node.env.Diary["one"]
        entry = entries(node.log)[0]
        now = await Operations(node).bookmark(entry.ref)
        state = await diary.read()
        await diary.write(9)
        with pytest.raises(BookmarkError):
            await Operations(node).restore(entry.ref, marks[0])
        await Operations(node).restore(entry.ref, now)
        assert await diary.read() == state

    run(logs, before, Diary)
    logs.killed()
    for path in list(logs.disk.inodes):
        if "history.db" in path:
            logs.disk.remove(path)
    run(logs, after, Diary)
