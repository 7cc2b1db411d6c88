"""The past as it is kept: blocks and snapshots, what is found in them, and what of them goes."""

import random
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from edgestead.sqlite.objectlog import archive, history
from edgestead.sqlite.objectlog.archive import Archive
from edgestead.sqlite.objectlog.history import Cursor, History
from edgestead.store.history import reader, thinning
from edgestead.store.history.blocks import (
    Images,
    PastEntry,
    apply_pages,
    pack_block,
    pack_frames,
    pack_pages,
    page_count,
    page_numbers,
    unpack_block,
)
from edgestead.store.history.reader import PastReader
from edgestead.store.history.rows import BlockRow
from edgestead.store.history.thinning import Keeping, Thinning
from edgestead.store.objectlog import UNCHANGED, Alarm, CommitKind, Restored, Target, Unknown
from edgestead.store.pages import FRAME_HEADER_BYTES, PAGE_BYTES
from edgestead.store.past import END_OF_SESSION, ObjectState
from tests.objects.logs import Logs, keys, put, ref

KEYS_OF_NONE = msgspec.msgpack.encode({})


class Kept:
    """A history that is written by hand, with one object unless another one is named."""

    def __init__(self, folder: Path) -> None:
        self.history = History(str(folder / "history.db"))
        self.past = PastReader(self.history)

    def block(
        self,
        *entries: PastEntry,
        number: int = 1,
        generation: int = 0,
        session: int = 0,
        first: int | None = None,
        thinned: bool = False,
    ) -> BlockRow:
        """`first` where the block begins before its first entry, because others were merged into that."""
        body, raw = pack_block(entries)
        begins, ends = entries[0], entries[-1]
        pages = sum(page_count(one.body) for one in entries if one.kind == CommitKind.PAGES)
        row = BlockRow(
            number,
            begins.position if first is None else first,
            ends.position,
            begins.time_us,
            ends.time_us,
            generation,
            session,
            thinned,
            pages,
            raw,
            len(body),
        )
        self.history.add_block(row, body)
        return row

    def snapshot(self, position: int, time_us: int, tail: dict[str, bytes], **where: int) -> None:
        state = ObjectState(position, bytearray(), dict(tail), None)
        begun = {"number": 1, "generation": 0, "session": 0} | where
        self.past.begin_with(reader.Begun(time_us=time_us, **begun), state)

    def positions(self, number: int = 1) -> list[tuple[int, int]]:
        return [(row.first, row.last) for row in self.history.blocks(number, 0, 2**62)]


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[Kept]:
    made = Kept(tmp_path)
    yield made
    made.history.close()


def one(position: int, time_us: int, alarm: Alarm = UNCHANGED, **changes: bytes | None) -> PastEntry:
    return PastEntry(position, time_us, CommitKind.KEYS, alarm, msgspec.msgpack.encode(changes))


def restored(position: int, time_us: int, session: int, follows: int) -> PastEntry:
    body = msgspec.msgpack.encode(Restored(session, 0, follows))
    return PastEntry(position, time_us, CommitKind.RESTORED, UNCHANGED, body)


def of_pages(position: int, time_us: int, total: int, images: Images, **pages: bytes) -> PastEntry:
    """`p3=b"x"` fills page 3 with x."""
    body = pack_pages(total, {int(name[1:]): byte * PAGE_BYTES for name, byte in pages.items()}, images)
    return PastEntry(position, time_us, CommitKind.PAGES, UNCHANGED, body)


# blocks


def frames(total: int, *pages: tuple[int, bytes]) -> bytes:
    parts = []
    for left, (page, image) in zip(reversed(range(len(pages))), pages, strict=True):
        size = 0 if left else total
        header = page.to_bytes(4, "big") + size.to_bytes(4, "big")
        parts.append(header.ljust(FRAME_HEADER_BYTES, b"\0") + image)
    return b"".join(parts)


@pytest.mark.parametrize("seed", range(5))
def test_pages_of_any_commits_come_back_from_their_differences(seed: int) -> None:
    chance, images, image, model = random.Random(seed), Images(), bytearray(), {}
    for _ in range(40):
        total = chance.randrange(1, 8)
        changed = {page: random_page(chance, model.get(page)) for page in chance.sample(range(1, 8), 4)}
        body = pack_frames(frames(total, *changed.items()), images)

        model = {page: (model | changed).get(page, bytes(PAGE_BYTES)) for page in range(1, total + 1)}
        apply_pages(body, image)

        assert bytes(image) == b"".join(model.values())
        within = sorted(page for page in changed if page <= total)
        assert page_numbers(body) == (total, within)
        assert page_count(body) == len(within)


def random_page(chance: random.Random, before: bytes | None) -> bytes:
    how = chance.choice(("new", "alike", "shifted"))
    if before is None or how == "new":
        return chance.randbytes(PAGE_BYTES)
    if how == "alike":
        return before[:100] + chance.randbytes(8) + before[108:]
    return chance.randbytes(50) + before[:-50]


NOISE = random.Random(1).randbytes(PAGE_BYTES)
CHANGES = {
    "a few bytes": (NOISE[:9] + b"!" + NOISE[10:], 100),
    "rows that moved": (NOISE[300:] + NOISE[:300], 200),
    "nothing": (NOISE, 100),
}


@pytest.mark.parametrize(("after", "bytes_max"), CHANGES.values(), ids=CHANGES)
def test_a_page_that_changed_little_takes_little_room(after: bytes, bytes_max: int) -> None:
    """The last page of the database is no exception."""
    images = Images()
    first = pack_frames(frames(2, (2, NOISE)), images)
    then = pack_frames(frames(2, (2, after)), images)
    body, raw = pack_block([PastEntry(1, 1, CommitKind.PAGES, UNCHANGED, then)])

    assert len(first) > PAGE_BYTES
    assert len(body) < bytes_max
    assert raw == len(zlib.decompress(body))


def test_a_page_that_was_cut_off_meanwhile_is_kept_whole() -> None:
    images = Images()
    pack_frames(frames(2, (2, NOISE)), images)
    pack_frames(frames(1, (1, NOISE)), images)

    assert len(pack_frames(frames(2, (2, NOISE)), images)) > PAGE_BYTES


ALARMS: list[Alarm] = [UNCHANGED, None, 0, -1, 2**62]


def test_the_entries_of_a_block_come_back() -> None:
    entries = [one(n, n * 10, alarm, a=b"x" * n) for n, alarm in enumerate(ALARMS, 1)]

    body, _ = pack_block(entries)

    found = [msgspec.structs.replace(entry, body=bytes(entry.body)) for entry in unpack_block(body)]
    assert found == entries


# what is found


def test_a_position_is_found_in_its_block_and_only_in_its_own_history(kept: Kept) -> None:
    kept.block(one(1, 10), one(2, 20))
    kept.block(one(3, 30), generation=2, session=1)

    found = [kept.past.find(1, Target(0, position), 0).time_us for position in (0, 1, 2)]
    assert found == [10, 10, 20]
    assert kept.past.find(1, Target(1, 3), 2).time_us == 30
    for target, generation in ((Target(1, 3), 1), (Target(0, 3), 2), (Target(1, 2), 2), (Target(0, 4), 9)):
        with pytest.raises(Unknown):
            kept.past.find(1, target, generation)


def test_a_position_is_found_in_a_snapshot_when_its_block_is_gone(kept: Kept) -> None:
    kept.snapshot(7, 70, {}, generation=1, session=2)
    kept.block(one(8, 80), generation=1, session=2)

    assert kept.past.find(1, Target(2, 7), 1).time_us == 70
    for target, generation in ((Target(2, 7), 0), (Target(1, 7), 1), (Target(2, 6), 1), (Target(2, 0), 1)):
        with pytest.raises(Unknown):
            kept.past.find(1, target, generation)


def test_the_end_of_a_session_is_its_last_commit_that_is_kept(kept: Kept) -> None:
    kept.block(one(1, 10), one(2, 20))
    kept.block(one(3, 30), one(4, 40), session=1)
    kept.snapshot(2, 20, {}, number=2, session=3)

    def end(number: int, session: int) -> int:
        return kept.past.find(number, Target(session, END_OF_SESSION), 0).position

    assert [end(1, 0), end(1, 1), end(2, 3)] == [2, 4, 2]
    for number, session in ((1, 2), (2, 1), (2, 0), (3, 0)):
        with pytest.raises(Unknown):
            end(number, session)


def test_the_end_of_a_first_session_without_commits_is_the_beginning(kept: Kept) -> None:
    kept.block(one(1, 10), session=1)

    assert kept.past.find(1, Target(0, END_OF_SESSION), 0).position == 0


def test_a_time_finds_the_last_commit_before_it(kept: Kept) -> None:
    kept.block(one(1, 10), one(2, 20))
    kept.block(one(3, 40), one(4, 40))

    times = (9, 10, 19, 20, 39, 40, 99)

    assert [kept.past.at_time(1, time_us).position for time_us in times] == [0, 1, 1, 2, 2, 4, 4]
    with pytest.raises(Unknown):
        kept.past.at_time(2, 99)


def test_a_time_before_the_blocks_finds_the_snapshot_and_nothing_older(kept: Kept) -> None:
    kept.snapshot(5, 50, {})
    kept.block(one(6, 60), one(7, 70))

    assert [kept.past.at_time(1, time_us).position for time_us in (50, 59, 60, 70)] == [5, 5, 6, 7]
    with pytest.raises(Unknown):
        kept.past.at_time(1, 49)


def test_commits_between_two_positions_come_in_order(kept: Kept) -> None:
    kept.block(one(1, 10), one(2, 20), one(3, 30))
    kept.block(one(4, 40), one(5, 50))

    def between(after: int, upto: int) -> list[int]:
        return [found.position for found in kept.past.positions(1, after, upto)]

    assert between(0, 5) == [1, 2, 3, 4, 5]
    assert between(1, 4) == [2, 3, 4]
    assert between(3, 4) == [4]
    assert between(2, 2) == between(7, 7) == []
    with pytest.raises(Unknown):
        between(5, 6)


def test_moments_between_two_times_come_newest_first(kept: Kept) -> None:
    for first in (1, 3, 5):
        kept.block(one(first, first * 10, a=b"x" * 99), one(first + 1, first * 10 + 10, a=b"y" * 99))
    kept.history.pin(1, 4, 1)

    def moments(since_us: int, until_us: int, limit: int = 9) -> list[int]:
        return [found.position for found in kept.past.moments(1, since_us, until_us, limit)]

    assert moments(0, 99) == [6, 5, 4, 3, 2, 1]
    assert moments(20, 50) == [5, 4, 3, 2]
    assert moments(21, 49) == [4, 3]
    assert [moments(0, 99, limit) for limit in (0, 1, 3)] == [[], [6], [6, 5, 4]]
    assert moments(0, 9) == moments(61, 99) == []
    assert [found.position for found in kept.past.moments(1, 0, 99, 9) if found.pinned] == [4]
    assert all(found.stored > 0 for found in kept.past.moments(1, 0, 99, 9))


def test_a_restore_is_one_moment_with_all_that_is_kept_for_it(kept: Kept) -> None:
    kept.block(one(1, 10))
    kept.block(restored(2, 20, 1, 2), one(3, 20, a=b"x"), one(4, 20, b=b"y" * 99), one(5, 30), session=1)

    later, back, first = kept.past.moments(1, 0, 99, 9)

    assert [later.position, back.position, first.position] == [5, 4, 1]
    assert [later.kind, back.kind, first.kind] == [CommitKind.KEYS, CommitKind.RESTORED, CommitKind.KEYS]
    assert back.stored == sum(found.stored for found in kept.past.positions(1, 1, 4))
    assert kept.past.restoring(1, 1) == range(2, 4)
    assert kept.past.restoring(1, 0) == kept.past.restoring(1, 9) == range(0)
    (only,) = kept.past.moments(1, 0, 20, 1)
    assert only.position == 4


def test_a_session_is_the_last_one_that_is_kept(kept: Kept) -> None:
    assert kept.past.last_session(1) == 0
    kept.snapshot(1, 1, {}, session=2)
    assert kept.past.last_session(1) == 2
    kept.block(one(2, 2), session=1)
    assert kept.past.last_session(1) == 2
    kept.block(one(3, 3), session=3)
    assert kept.past.last_session(1) == 3


# states


def test_a_state_is_what_all_commits_up_to_it_made(kept: Kept) -> None:
    images = Images()
    kept.block(one(1, 10, 5, a=b"1"), one(2, 20, b=b"2"), one(3, 30, a=None))
    kept.block(of_pages(4, 40, 2, images, p1=b"A", p2=b"B"), one(5, 50, None, c=b"3"))
    kept.block(restored(6, 60, 1, 2), of_pages(7, 60, 1, images, p1=b"D"), one(8, 60, 7, d=b"4"), session=1)

    def state(position: int) -> tuple[bytes, dict[str, bytes | None], int | None]:
        found = kept.past.state(1, position)
        assert found.position == position
        return bytes(found.image[::PAGE_BYTES]), found.tail, found.alarm_us

    assert state(0) == (b"", {}, None)
    assert state(1) == (b"", {"a": b"1"}, 5)
    assert state(3) == (b"", {"a": None, "b": b"2"}, 5)
    assert state(4) == (b"AB", {}, 5)
    assert state(5) == (b"AB", {"c": b"3"}, None)
    assert state(6) == (b"AB", {}, None)
    assert state(8) == (b"D", {"d": b"4"}, 7)
    with pytest.raises(Unknown):
        state(9)


@pytest.mark.parametrize("pieces", [1, 3])
def test_a_state_begins_at_the_last_snapshot_before_it(
    kept: Kept, monkeypatch: pytest.MonkeyPatch, pieces: int
) -> None:
    monkeypatch.setattr(history, "PIECE_BYTES", 2 * PAGE_BYTES // pieces)
    images = Images()
    kept.block(of_pages(1, 10, 2, images, p1=b"A", p2=b"B"), one(2, 20, 9, a=b"1"))
    kept.block(one(3, 30, b=b"2"))
    before = kept.past.state(1, 2)
    kept.past.make_snapshot(1, 2)
    kept.history.remove_blocks(1, 2)

    assert kept.past.state(1, 2) == before
    row = kept.history.snapshot(1, 2)
    assert row is not None
    assert (row.time_us, row.total, row.stored < PAGE_BYTES) == (20, 2, True)
    assert kept.past.state(1, 3).tail == {"a": b"1", "b": b"2"}
    with pytest.raises(Unknown):
        kept.past.state(1, 1)
    with pytest.raises(Unknown):
        kept.past.make_snapshot(1, 9)


def test_of_a_lost_beginning_a_state_begins_with_a_commit_that_has_every_page(kept: Kept) -> None:
    """Another object's differences stand on nothing; what stands alone does not need what is gone."""
    kept.block(one(4, 40, a=b"1"), of_pages(5, 50, 2, Images(), p2=b"B"))
    kept.block(of_pages(6, 60, 2, Images(), p1=b"A", p2=b"B"), one(7, 70, c=b"3"))

    with pytest.raises(Unknown):
        kept.past.state(1, 5)
    found = kept.past.state(1, 7)

    assert (bytes(found.image[::PAGE_BYTES]), found.tail) == (b"AB", {"c": b"3"})


def test_a_damaged_snapshot_is_no_state(kept: Kept) -> None:
    kept.past.begin_with(reader.Begun(1, 1, 0, 0), ObjectState(1, bytearray(2 * PAGE_BYTES), {}, None))
    kept.history._run("DELETE FROM pieces")

    with pytest.raises(Unknown, match="damaged"):
        kept.past.state(1, 1)


# examination


def test_a_whole_past_has_no_fault(kept: Kept) -> None:
    kept.block(one(1, 10), one(2, 20))
    kept.block(one(3, 30))

    assert kept.past.check(1, 3) == kept.past.check(2, 0) == kept.past.check_all() == []


def overwrite(*entries: PastEntry, body: bytes | None = None) -> Callable[[Kept], Any]:
    found = pack_block(entries)[0] if body is None else body
    return lambda kept: kept.history._run("UPDATE blocks SET body = ? WHERE last = 2", (found,))


DAMAGE: dict[str, tuple[Callable[[Kept], Any], str]] = {
    "a gap": (lambda kept: kept.block(one(5, 50)), "commits 3 to 4 are missing"),
    "no zlib": (overwrite(body=b"x"), "cannot be read"),
    "half an entry": (overwrite(body=zlib.compress(b"x")), "cannot be read"),
    "another end": (overwrite(one(1, 10)), "the block up to 2 ends at 1"),
    "no keys": (overwrite(PastEntry(2, 2, CommitKind.KEYS, None, b"\xc1")), "cannot be read"),
    "an empty block": (overwrite(), "cannot be read"),
}


@pytest.mark.parametrize(("harm", "words"), DAMAGE.values(), ids=DAMAGE)
def test_damage_of_a_past_is_told_in_words(kept: Kept, harm: Callable[[Kept], Any], words: str) -> None:
    kept.block(one(1, 10), one(2, 20))
    harm(kept)

    found = kept.past.check(1, 2)

    assert any(words in one for one in found), found


def test_an_object_whose_newest_commits_are_not_kept_has_a_fault(kept: Kept) -> None:
    kept.block(one(1, 10))

    assert len(kept.past.check(1, 2)) == 1


# snapshots, by what reading would cost

COSTS = {  # (page images and bytes behind the snapshot, whether that is too much)
    "as many pages as it may be": (reader.SNAPSHOT_PAGES_LEAST, 0, 0, False),
    "one more": (reader.SNAPSHOT_PAGES_LEAST + 1, 0, 0, True),
    "more of a large database": (reader.SNAPSHOT_PAGES_LEAST + reader.SNAPSHOT_PAGES * 3, 0, 3, False),
    "and one more": (reader.SNAPSHOT_PAGES_LEAST + reader.SNAPSHOT_PAGES * 3 + 1, 0, 3, True),
    "as many bytes": (0, reader.SNAPSHOT_RAW_LEAST + reader.SNAPSHOT_PAGES_LEAST * PAGE_BYTES, 0, False),
    "one byte more": (0, reader.SNAPSHOT_RAW_LEAST + reader.SNAPSHOT_PAGES_LEAST * PAGE_BYTES + 1, 0, True),
}


@pytest.mark.parametrize(("pages", "raw", "total", "too_much"), COSTS.values(), ids=COSTS)
def test_a_snapshot_is_due_when_reading_costs_much_more(
    kept: Kept, pages: int, raw: int, total: int, too_much: bool
) -> None:
    if total:
        kept.past.begin_with(
            reader.Begun(1, 1, 0, 0), ObjectState(1, bytearray(total * PAGE_BYTES), {}, None)
        )
    kept.history.add_block(BlockRow(1, 2, 9, 1, 2, 0, 0, False, pages, raw, 1), b"x")

    assert kept.past.reading_costs_too_much(1, 9) is too_much


# following the log


def follow(
    logs: Logs, tmp_path: Path, batch_bytes: int = archive.BATCH_BYTES
) -> tuple[Kept, Cursor, list[float]]:
    """Another history of a log that is open, and how often it paused."""
    log, kept, pauses = logs.opened[-1], Kept(tmp_path), []
    made = Archive(
        kept.history, logs.disk, "/objects/log", log._catalogue.folder_id, lambda segment: 7, pauses.append
    )
    return kept, made.follow(log._durable(), batch_bytes), pauses


@pytest.mark.parametrize(("commits", "pauses"), [(126, 0), (127, 1), (254, 1), (255, 2)])
def test_following_pauses_between_small_pieces_of_work(
    logs: Logs, tmp_path: Path, commits: int, pauses: int
) -> None:
    log = logs.open()
    put(log, log.lease(ref()), *(keys(a=b"1") for _ in range(commits)))  # and the object's name

    kept, cursor, paused = follow(logs, tmp_path)

    assert len(paused) == pauses
    assert kept.past.check(1, commits) == []
    assert cursor == kept.history.cursor()
    kept.history.close()


@pytest.mark.parametrize(("commits", "pauses"), [(14, 0), (15, 1), (29, 2)])
def test_pages_are_more_work_than_keys(logs: Logs, tmp_path: Path, commits: int, pauses: int) -> None:
    log = logs.open()
    lease = log.lease(ref())
    page = msgspec.structs.replace(keys(), kind=CommitKind.PAGES, body=frames(1, (1, NOISE)))
    put(log, lease, *[page] * commits)

    kept, _, paused = follow(logs, tmp_path)

    assert len(paused) == pauses
    kept.history.close()


@pytest.mark.parametrize("batch_bytes", [1, 200, 1 << 20])
def test_what_is_followed_in_batches_of_any_size_is_the_same(
    logs: Logs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, batch_bytes: int
) -> None:
    monkeypatch.setattr(archive, "WINDOW_BYTES", 300)
    log = logs.open()
    one_, two = log.lease(ref("one")), log.lease(ref("two"))
    for n in range(20):
        put(log, one_, keys(a=b"%d" % n), keys(b=b"x" * 40 * n), alarm=n)
        put(log, two, keys(a=b"%d" % n))
        if n == 10:
            one_.pin(5)

    kept, cursor, _ = follow(logs, tmp_path, batch_bytes)

    assert kept.past.state(1, 40).tail == {"a": b"19", "b": b"x" * 760}
    assert kept.past.state(1, 40).alarm_us == 19
    assert kept.past.state(1, 7).tail == {"a": b"3", "b": b"x" * 80}
    assert kept.past.state(2, 20).tail == {"a": b"19"}
    assert kept.history.pins(1).keys() == {5}
    assert {row.generation for row in kept.history.blocks(1, 0, 99)} == {7}
    active = log._upkeep.active
    assert active is not None
    assert cursor == Cursor(active.generation, active.offset, cursor.time_us)
    assert cursor.time_us == kept.past.positions(2, 19, 20)[0].time_us
    kept.history.close()


def test_following_goes_on_where_it_was(logs: Logs, tmp_path: Path) -> None:
    log = logs.open()
    lease = log.lease(ref())
    put(log, lease, keys(a=b"1"))
    kept, first, _ = follow(logs, tmp_path)
    kept.history.close()
    while log._upkeep.generation < 3:
        put(log, lease, keys(a=b"x" * 8_000))

    kept, last, _ = follow(logs, tmp_path)

    assert kept.past.check(1, lease.head) == []
    assert len(kept.positions()) >= 3
    assert (first.segment, last.segment) == (1, 3)
    kept.history.close()


def test_a_block_is_cut_where_it_is_large_and_where_a_session_begins(
    logs: Logs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "BLOCK_RAW_BYTES", 2_000)
    log = logs.open()
    lease = log.lease(ref())
    begins = msgspec.structs.replace(
        keys(), kind=CommitKind.RESTORED, body=msgspec.msgpack.encode(Restored(1, 2, 1))
    )
    put(log, lease, *[keys(a=b"x" * 990)] * 4, begins, keys(a=b"1"), keys(a=b"2"))

    kept, _, _ = follow(logs, tmp_path)

    assert [(row.first, row.last, row.session) for row in kept.history.blocks(1, 0, 99)] == [
        (1, 2, 0),
        (3, 4, 0),
        (5, 7, 1),
    ]
    assert kept.history.snapshot_positions(1) == set()
    kept.history.close()


def test_a_past_that_costs_much_to_read_gets_a_snapshot(
    logs: Logs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "SNAPSHOT_PAGES_LEAST", 3)
    monkeypatch.setattr(reader, "SNAPSHOT_PAGES", 1)
    monkeypatch.setattr(archive, "BLOCK_RAW_BYTES", 1)
    log = logs.open()
    page = msgspec.structs.replace(keys(), kind=CommitKind.PAGES, body=frames(1, (1, NOISE)))
    put(log, log.lease(ref()), *[page] * 12)

    kept, _, _ = follow(logs, tmp_path)

    assert kept.history.snapshot_positions(1) == {4, 9}
    kept.history.close()


# what goes

DAY_US = 24 * 3600 * thinning.SECOND_US
KEEPING = Keeping(window_us=1_000, recent_us=100, spacing_us=10, bytes_max=0)


def test_of_each_spacing_the_last_commit_stays_and_what_is_pinned(kept: Kept) -> None:
    kept.block(one(1, 10, a=b"1"), one(2, 19, b=b"2"), one(3, 20, a=b"3"), one(4, 21, 5, c=b"4"))
    kept.block(one(5, 22, d=b"5"), one(6, 23, e=b"6"))
    kept.history.pin(1, 3, 900)
    states = {position: kept.past.state(1, position) for position in (2, 3, 6)}

    Thinning(kept.history, KEEPING).step(124)

    assert [found.position for found in kept.past.positions(1, 0, 6)] == [2, 3, 6]
    assert {position: kept.past.state(1, position) for position in states} == states
    assert kept.positions() == [(1, 6)]
    assert kept.past.check(1, 6) == []
    assert [row.thinned for row in kept.history.blocks(1, 0, 9)] == [True]


def test_a_damaged_past_stays_as_it_is_and_keeps_no_other_from_being_thinned(kept: Kept) -> None:
    kept.block(one(1, 10), one(2, 11))
    kept.history._run("UPDATE blocks SET body = x'00'")
    kept.block(one(1, 12), one(2, 13), number=2)
    thinner = Thinning(kept.history, KEEPING)

    for _ in range(2):
        thinner.step(200)

    assert thinner.found_faults
    assert [row.thinned for row in kept.history.blocks(1, 0, 9)] == [True]
    assert len(kept.past.positions(2, 0, 2)) == 1
    thinner.step(2_000)  # its window is over: nothing fails, and nothing of it goes
    assert kept.positions() == [(1, 2)]


def test_what_is_recent_is_not_thinned(kept: Kept) -> None:
    kept.block(one(1, 10), one(2, 11))

    Thinning(kept.history, KEEPING).step(111)
    assert len(kept.past.positions(1, 0, 2)) == 2
    Thinning(kept.history, msgspec.structs.replace(KEEPING, spacing_us=0)).step(500)
    assert len(kept.past.positions(1, 0, 2)) == 2
    Thinning(kept.history, KEEPING).step(112)
    assert len(kept.past.positions(1, 0, 2)) == 1


def test_thinning_never_merges_over_a_session_or_a_life(kept: Kept) -> None:
    kept.block(one(1, 1, a=b"1"))
    kept.block(one(2, 2, a=b"2"), generation=1)
    kept.block(restored(3, 3, 1, 1), one(4, 3, a=b"1"), generation=1, session=1)
    thinner = Thinning(kept.history, KEEPING)

    for _ in range(3):
        thinner.step(200)

    assert kept.positions() == [(1, 1), (2, 2), (3, 4)]
    assert [kept.past.state(1, position).tail["a"] for position in (1, 2, 4)] == [b"1", b"2", b"1"]


def test_merged_commits_are_cut_into_blocks(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thinning, "BLOCK_RAW_BYTES", 100)
    kept.block(*[one(n, n, **{f"k{n}": b"x" * 60}) for n in range(1, 41)])
    states = {position: kept.past.state(1, position) for position in (9, 19, 29, 39, 40)}

    Thinning(kept.history, KEEPING).step(500)

    assert len(kept.positions()) == 5
    assert kept.past.check(1, 40) == []
    assert {position: kept.past.state(1, position) for position in states} == states


@pytest.mark.parametrize(("spare_bytes", "blocks"), [(0, [2, 2, 2, 1]), (1, [3, 3, 1])])
def test_a_thinned_block_takes_as_much_as_it_may_and_no_more(
    kept: Kept, monkeypatch: pytest.MonkeyPatch, spare_bytes: int, blocks: list[int]
) -> None:
    body_bytes = len(one(1, 1, a=b"x" * 50).body)
    monkeypatch.setattr(thinning, "BLOCK_RAW_BYTES", 2 * body_bytes + spare_bytes)
    kept.block(*[one(n, 10 * n, a=b"x" * 50) for n in range(1, 8)])

    Thinning(kept.history, KEEPING).step(500)

    assert [last - first + 1 for first, last in kept.positions()] == blocks


def test_a_block_that_ends_where_the_recent_begins_is_recent(kept: Kept) -> None:
    kept.block(one(1, 1))
    kept.block(one(2, 2))

    Thinning(kept.history, KEEPING).step(102)

    assert [row.thinned for row in kept.history.blocks(1, 0, 9)] == [True, False]


def test_what_stands_before_a_run_is_no_part_of_it(kept: Kept) -> None:
    images = Images()
    kept.block(of_pages(1, 1, 1, images, p1=b"A"), of_pages(2, 2, 1, images, p1=b"B"))
    kept.block(of_pages(3, 3, 1, images, p1=b"C"), of_pages(4, 4, 1, images, p1=b"D"), generation=1)
    thinner = Thinning(kept.history, KEEPING)

    for _ in range(2):
        thinner.step(500)

    assert [found.position for found in kept.past.positions(1, 0, 9)] == [2, 4]
    assert [bytes(kept.past.state(1, position).image[:1]) for position in (2, 4)] == [b"B", b"D"]


def test_the_commit_that_completed_a_restore_stays(kept: Kept) -> None:
    kept.block(one(1, 1, a=b"1"))
    kept.block(restored(2, 2, 1, 1), one(3, 2, a=b"1"), one(4, 3, b=b"2"), session=1)
    thinner = Thinning(kept.history, KEEPING)

    for _ in range(2):
        thinner.step(500)

    assert [found.position for found in kept.past.moments(1, 0, 99, 9)] == [4, 3, 1]
    assert kept.past.state(1, 3).tail == {"a": b"1"}


def test_pages_that_are_merged_hold_each_page_once_and_its_newest_image(kept: Kept) -> None:
    images = Images()
    kept.block(of_pages(1, 1, 3, images, p1=b"A", p2=b"B", p3=b"C"))
    kept.block(of_pages(2, 11, 3, images, p2=b"D"), of_pages(3, 12, 2, images, p1=b"E"))
    kept.block(of_pages(4, 13, 3, images, p3=b"F", p2=b"G"), one(5, 14, 8, a=b"1"))
    kept.block(of_pages(6, 21, 3, images, p1=b"H"))
    states = {position: kept.past.state(1, position) for position in (1, 4, 5, 6)}

    Thinning(kept.history, KEEPING).step(500)

    assert [found.position for found in kept.past.positions(1, 0, 6)] == [1, 4, 5, 6]
    assert {position: kept.past.state(1, position) for position in states} == states
    (row,) = kept.history.blocks(1, 0, 9)
    assert row.pages == 3 + 3 + 1


def test_what_nothing_is_known_before_is_left_as_it_is(kept: Kept) -> None:
    kept.block(one(5, 1, a=b"1"), one(6, 2, b=b"2"))
    thinner = Thinning(kept.history, KEEPING)

    thinner.step(500)

    assert [found.position for found in kept.past.positions(1, 0, 6)] == [5, 6]
    assert kept.history.unthinned(500) is None


def test_behind_a_snapshot_thinning_knows_what_was_before(kept: Kept) -> None:
    kept.snapshot(4, 1, {"z": b"0"})
    kept.block(one(5, 11, a=b"1"), one(6, 12, b=b"2"))

    Thinning(kept.history, KEEPING).step(500)

    assert [found.position for found in kept.past.positions(1, 4, 6)] == [6]
    assert kept.past.state(1, 6).tail == {"z": b"0", "a": b"1", "b": b"2"}


def test_before_the_window_goes_all_but_the_state_at_its_beginning(kept: Kept) -> None:
    for position in range(1, 6):
        kept.block(one(position, position * 10, **{f"k{position}": b"x"}))
    kept.history.pin(1, 1, 29)
    kept.history.pin(1, 5, 30)
    state = kept.past.state(1, 3)
    thinner = Thinning(kept.history, msgspec.structs.replace(KEEPING, spacing_us=0))

    thinner.step(1_030)
    thinner.step(1_030)

    assert kept.positions() == [(4, 4), (5, 5)]
    assert kept.history.snapshot_positions(1) == {3}
    assert kept.past.state(1, 3) == state
    assert kept.history.pins(1) == {5: 30}
    assert kept.past.at_time(1, 30).position == 3
    with pytest.raises(Unknown):
        kept.past.at_time(1, 29)


def test_a_block_that_reaches_into_the_window_stays_whole(kept: Kept) -> None:
    kept.block(one(1, 10), one(2, 30))

    Thinning(kept.history, msgspec.structs.replace(KEEPING, spacing_us=0)).step(1_030)

    assert kept.positions() == [(1, 2)]


def test_a_step_expires_some_objects_and_the_next_one_the_others(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(thinning, "OBJECTS_AT_ONCE", 2)
    for number in range(1, 6):
        kept.block(one(1, 1), number=number)
        kept.block(one(2, 2), number=number)
    thinner = Thinning(kept.history, msgspec.structs.replace(KEEPING, spacing_us=0))
    left = []

    for _ in range(5):
        thinner.step(1_002)
        left.append([number for number in range(1, 6) if len(kept.positions(number)) == 2])

    assert left == [[3, 4, 5], [5], [], [], []]
    kept.block(one(3, 3))
    kept.block(one(4, 4))
    thinner.step(1_004)
    assert kept.positions() == [], "the first one has its turn again"


def test_the_largest_past_loses_its_older_half(kept: Kept) -> None:
    chance = random.Random(1)
    for position in range(1, 9):
        kept.block(one(position, position, a=chance.randbytes(1_000)))
        kept.block(one(position, position, a=chance.randbytes(100)), number=2)
    state = kept.past.state(1, 8)

    Thinning(kept.history, KEEPING).make_room()

    assert kept.positions() == [(n, n) for n in range(5, 9)]
    assert len(kept.positions(2)) == 8
    assert kept.past.state(1, 8) == state
    assert kept.past.state(1, 4).position == 4


def test_a_past_of_one_commit_can_be_let_go(kept: Kept) -> None:
    kept.block(one(1, 1, a=b"1"))

    Thinning(kept.history, KEEPING).make_room()

    assert kept.positions() == []
    assert kept.past.state(1, 1).tail == {"a": b"1"}
    Thinning(kept.history, KEEPING).make_room()  # nothing is left to let go


def test_half_of_a_past_is_no_less_than_its_half(kept: Kept) -> None:
    chance = random.Random(1)
    for position, length in ((1, 1_000), (2, 1_001)):
        kept.block(one(position, position, a=chance.randbytes(length)))
    first, second = kept.history.blocks(1, 0, 9)
    assert second.stored == first.stored + 1

    Thinning(kept.history, KEEPING).make_room()

    assert kept.positions() == []


def test_a_past_of_more_commits_than_anything_else_has_is_halved_too(kept: Kept) -> None:
    for position in range(1, 301):
        kept.block(one(position, position, a=b"1"))

    Thinning(kept.history, KEEPING).make_room()

    assert 140 < kept.positions()[0][0] < 160


@pytest.mark.parametrize(("spare_bytes", "shrinks"), [(0, False), (-1, True)])
def test_the_quota_is_what_the_file_has_in_use(kept: Kept, spare_bytes: int, shrinks: bool) -> None:
    chance = random.Random(1)
    for position in range(1, 9):
        kept.block(one(position, position, a=chance.randbytes(10_000)))
    quota = kept.history.total_bytes() + spare_bytes

    Thinning(kept.history, Keeping(spacing_us=0, bytes_max=quota)).step(1)

    assert (len(kept.positions()) < 8) is shrinks


# the file


def test_room_is_reserved_and_what_is_free_beyond_it_goes_back(kept: Kept, tmp_path: Path) -> None:
    def free() -> int:
        return int(kept.history._run("PRAGMA freelist_count")[0][0]) * PAGE_BYTES

    assert free() >= history.RESERVE_BYTES
    reserved = free()
    kept.block(one(1, 1, a=random.Random(1).randbytes(6 << 20)))
    kept.history.remove_blocks(1, 1)
    for _ in range(50):
        kept.history.trim()

    assert reserved <= free() <= reserved + (history.VACUUM_PAGES + 8) * PAGE_BYTES
    assert kept.history.total_bytes() == (tmp_path / "history.db").stat().st_size - free()


def test_objects_are_numbered_and_the_largest_is_found(kept: Kept) -> None:
    assert (kept.history.largest(), kept.history.numbers(0, 9)) == (None, [])
    kept.block(one(1, 1, a=b"x" * 10), number=3)
    kept.block(one(1, 1, a=random.Random(1).randbytes(99)), number=5)
    kept.block(one(1, 1), number=9)

    assert kept.history.largest() == 5
    assert kept.history.numbers(3, 9) == [5, 9]
    assert kept.history.numbers(0, 2) == [3, 5]


def test_a_copy_of_history_has_everything(kept: Kept, tmp_path: Path) -> None:
    kept.block(one(1, 1, a=b"1"))
    kept.history.copy(str(tmp_path / "copy.db"))

    copied = History(str(tmp_path / "copy.db"))
    assert PastReader(copied).state(1, 1).tail == {"a": b"1"}
    copied.close()


def test_the_past_of_some_objects_moves_to_another_history(kept: Kept, tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    old = Kept(tmp_path / "old")
    old.block(one(1, 1, a=b"1"), one(2, 2, b=b"2"), number=4)
    old.block(one(1, 1), number=5)
    old.past.make_snapshot(4, 2)
    old.history.pin(4, 2, 2)
    old.history.close()

    kept.history.copy_from(str(tmp_path / "old/history.db"), [(4, 1)])

    assert kept.history.numbers(0, 9) == [1]
    assert (kept.history.pins(1), kept.history.snapshot_positions(1)) == ({2: 2}, {2})
    assert kept.past.state(1, 2).tail == {"a": b"1", "b": b"2"}
    kept.history.copy_from(str(tmp_path / "old/history.db"), [])  # it holds nothing of it open
