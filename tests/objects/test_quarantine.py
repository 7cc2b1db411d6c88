"""Objects that end their process: tries that are counted, and who is not run any more."""

import asyncio
import errno
import random
from pathlib import Path
from typing import Any

import pytest

from edgestead import AlarmInfo, StatefulObject
from edgestead.objects.errors import Quarantined
from edgestead.objects.ids import from_name, owner_of
from edgestead.objects.runtime import quarantine
from edgestead.objects.runtime.gates import InputGate, marked
from edgestead.objects.runtime.quarantine import (
    CLASS_OBJECTS_MAX,
    ENDS_MAX,
    FORGIVEN_SECONDS,
    LIVES_MAX,
    Quarantine,
)
from edgestead.objects.runtime.stage import SLOT_BYTES, Left, Stage, map_stage, number_of
from edgestead.server.objects import layout as layout
from edgestead.server.objects.host import Host
from edgestead.sqlite.objectlog.files import LocalFiles
from edgestead.store.objectlog import LogAway, ObjectRef
from edgestead.testing.disks import SimulatedDisk
from edgestead.testing.node import ObjectNode

ONE, TWO = from_name("Slow", "one"), from_name("Slow", "two")
ALARM, ADD = number_of("alarm"), number_of("add")
DAY_SECONDS = 86_400
MINUTE_US = 60_000_000


class Slow(StatefulObject):
    """Its alarm takes ten seconds."""

    async def arm(self, seconds: int = 0) -> None:
        await self.ctx.storage.set_alarm(0)
        await self.ctx.storage.put("seconds", seconds)

    async def alarm(self, info: AlarmInfo) -> None:
        tries = [*await self.tries(), info.retry_count]
        await self.ctx.storage.put("tries", tries)
        await asyncio.sleep(await self.ctx.storage.get("seconds") or 10)

    async def tries(self) -> list[int]:
        return await self.ctx.storage.get("tries") or []

    async def due(self) -> int | None:
        return await self.ctx.storage.get_alarm()

    async def forget(self) -> None:
        await self.ctx.storage.delete_alarm()


class OwnSlow(Slow):
    durability = "sqlite"

    arm, alarm, tries, due = Slow.arm, Slow.alarm, Slow.tries, Slow.due


def crash_in_the_handler(objects: ObjectNode, one: Any) -> None:
    """The next try begins, and its process ends."""
    for _ in range(100):
        if one.due() is None:
            break
        objects.advance(1)
    objects.crash()


# a try that its process did not bring to an end


@pytest.mark.parametrize("kind", ["Slow", "OwnSlow"])
def test_a_handler_whose_process_ended_is_tried_again_and_counted(kind: str) -> None:
    with ObjectNode(Slow, OwnSlow) as objects:
        one = objects[kind]["one"]
        one.arm()
        crash_in_the_handler(objects, one)

        assert objects.now_ms + 2_000 <= one.due() <= objects.now_ms + 2_500
        crash_in_the_handler(objects, one)
        assert objects.now_ms + 4_000 <= one.due() <= objects.now_ms + 5_000
        objects.advance(60)

        assert one.tries() == [0, 1, 2]
        assert one.due() is None


def test_a_power_cut_is_nobodys_fault() -> None:
    with ObjectNode(Slow) as objects:
        one = objects.Slow["one"]
        for _ in range(LIVES_MAX + 2):
            one.arm()
            objects.advance(1)
            objects.crash(power=True)
        objects.advance(60)
        assert set(one.tries()) == {0}


def test_no_end_of_a_process_takes_an_alarm_away() -> None:
    with ObjectNode(Slow) as objects:
        both = objects.Slow["one"], objects.Slow["two"]
        for one in both:
            one.arm(DAY_SECONDS)
        for _ in range(12):
            objects.advance(200)
            objects.crash()
        assert all(one.tries()[-1] == 6 and one.due() is not None for one in both)


def test_a_handler_that_ended_before_the_process_did_is_not_counted() -> None:
    with ObjectNode(Slow) as objects:
        one = objects.Slow["one"]
        one.arm()
        objects.advance(20)
        objects.crash()
        objects.advance(20)
        assert one.tries() == [0]


# quarantine


def test_an_alarm_that_ends_three_processes_is_not_run_any_more() -> None:
    with ObjectNode(Slow) as objects:
        one, other = objects.Slow["one"], objects.Slow["other"]
        one.arm()
        for _ in range(LIVES_MAX):
            assert other.tries() == []
            crash_in_the_handler(objects, one)

        for call in (one.tries, one.due):
            with pytest.raises(Quarantined, match=r"Slow one is in quarantine: 3 processes .* its alarm ran"):
                call()
        with pytest.raises(Quarantined):
            objects.run_alarm(one)
        objects.advance(days=1)
        assert objects.storage(one).get("tries") == [0, 1, 2]
        assert other.tries() == []
        objects.crash()
        with pytest.raises(Quarantined):
            one.tries()

        objects.storage(one).delete_alarm()
        assert objects.release(one)
        assert not objects.release(one)
        assert one.tries() == [0, 1, 2]


def test_a_released_object_has_its_alarm_and_three_lives_again() -> None:
    with ObjectNode(Slow) as objects:
        one = objects.Slow["one"]
        one.arm()
        for _ in range(LIVES_MAX):
            crash_in_the_handler(objects, one)
        objects.advance(100)
        objects.release(one)
        objects.crash()
        crash_in_the_handler(objects, one)
        objects.advance(100)
        assert one.tries() == [0, 1, 2, 3, 4]


def ends(records: Quarantine) -> int:
    record = records.find(ONE)
    return len(record.ends) if record else 0


def blame(records: Quarantine, event: int, *, itself: bool = False, now_us: int = 0) -> None:
    records.blame(Left((ONE, event), []), now_us, ended_itself=itself)


def succeed(records: Quarantine, *events: int, now_us: int = 0) -> None:
    if forgive := records.forgiving(ONE, lambda: now_us):
        for event in events:
            forgive(event)


def test_another_event_does_not_make_up_for_it_and_the_same_one_does() -> None:
    records = Quarantine(SimulatedDisk(), "/objects")
    for number in (1, 2):
        blame(records, ADD)
        succeed(records, ALARM)
        assert ends(records) == number
    succeed(records, ADD)
    assert ends(records) == 0
    blame(records, ADD)
    assert ends(records) == 1


def test_what_ends_its_process_for_some_arguments_is_not_forgiven_by_the_others() -> None:
    records = Quarantine(SimulatedDisk(), "/objects")
    for number in range(1, LIVES_MAX + 1):
        assert not records.holds(ONE)
        blame(records, ADD, itself=True, now_us=number * MINUTE_US)
        succeed(records, ADD, ALARM, now_us=number * MINUTE_US)
    assert records.holds(ONE)
    assert "3 processes ended while its add ran" in str(records.why_held(ONE, ["add"]))


def test_what_ends_its_process_in_one_event_or_another_is_held() -> None:
    records = Quarantine(SimulatedDisk(), "/objects")
    for event in (ADD, ALARM, ADD):
        assert not records.holds(ONE)
        blame(records, event, itself=True)
    assert records.holds(ONE)
    assert "its add and alarm ran" in str(records.why_held(ONE, ["add"]))


def test_signals_from_outside_in_changing_events_hold_nobody() -> None:
    records = Quarantine(SimulatedDisk(), "/objects")
    for event in range(LIVES_MAX * 4):
        blame(records, event)
    assert not records.holds(ONE)
    assert ends(records) == ENDS_MAX


@pytest.mark.parametrize("clock_us", [FORGIVEN_SECONDS * 1_000_001, -FORGIVEN_SECONDS * 1_000_001])
def test_an_end_of_its_own_is_forgiven_by_a_success_when_it_is_old(clock_us: int) -> None:
    records = Quarantine(SimulatedDisk(), "/objects")
    blame(records, ADD, itself=True)
    succeed(records, ADD, now_us=FORGIVEN_SECONDS * 1_000_000)
    succeed(records, ALARM, now_us=clock_us)
    assert ends(records) == 1
    succeed(records, ADD, now_us=clock_us)
    assert ends(records) == 0


def test_an_alarm_that_only_waited_did_not_end_the_process() -> None:
    records = Quarantine(SimulatedDisk(), "/objects")
    for _ in range(LIVES_MAX):
        records.blame(Left(None, [(ONE, 1)]), 0, ended_itself=True)
        succeed(records, ALARM)
    assert ends(records) == 0


def test_what_was_counted_outlives_the_process_and_one_damaged_file() -> None:
    disk = SimulatedDisk()
    for number in range(1, LIVES_MAX + 1):
        blame(Quarantine(disk, "/objects"), ADD)
        assert ends(Quarantine(disk, "/objects")) == number
    assert Quarantine(disk, "/objects").holds(ONE)
    newest = f"/objects/quarantine-{LIVES_MAX % 2}.json"
    disk.open(newest).truncate(10)
    assert ends(Quarantine(disk, "/objects")) == LIVES_MAX - 1


def test_a_write_that_failed_is_made_again_where_it_failed() -> None:
    """In the other file is what counts until then."""
    disk = SimulatedDisk()
    made = Quarantine(disk, "/objects")
    blame(made, ADD)
    disk.fails_on = lambda operation, path: operation == "sync"
    disk.operations, disk.fail_at, disk.fail_errno = 0, 1, errno.EIO
    with pytest.raises(OSError, match="Input/output"):
        blame(made, ADD)
    written: set[str] = set()

    def note(operation: str, path: str) -> bool:
        if operation == "write":
            written.add(path)
        return False

    disk.fails_on = note
    made.tend()

    assert written == {"/objects/quarantine-0.json"}
    assert ends(Quarantine(disk, "/objects")) == 2


@pytest.mark.parametrize(
    ("left", "blamed"),
    [
        (Left(None, []), None),
        (Left((ONE, ADD), [(TWO, 1)]), (ONE, ADD)),
        (Left(None, [(ONE, 1)]), (ONE, ALARM)),
        (Left(None, [(ONE, 1), (TWO, 1)]), None),
    ],
)
def test_who_ran_is_to_blame_else_the_only_alarm(left: Left, blamed: tuple[ObjectRef, int] | None) -> None:
    record = Quarantine(SimulatedDisk(), "/objects").blame(left, 0, ended_itself=False)
    assert (record and (record.ref, record.ends[0].event)) == blamed


def test_another_number_of_processes_releases_nobody(tmp_path: Path) -> None:
    for worker in range(2):
        folder = str(layout.settle(tmp_path, worker, 2))
        LocalFiles().make_folder(folder)
        for ref in (ONE, TWO):
            if owner_of(ref, 2) == worker:
                for _ in range(LIVES_MAX):
                    Quarantine(LocalFiles(), folder).blame(Left((ref, ADD), []), 0, ended_itself=False)
    new = str(layout.settle(tmp_path, 0, 1))
    assert sorted(ref.name for ref in Quarantine(LocalFiles(), new).held()) == ["one", "two"]
    assert quarantine.read_newest(LocalFiles(), new).sequence == 1


def test_of_a_process_that_ends_for_its_disk_nobody_is_to_blame(tmp_path: Path) -> None:
    """What the log does when a sync fails: it tells `fatal`, while an alarm runs."""
    left: list[Left] = []

    async def run() -> None:
        def end(error: BaseException) -> None:
            left.append(host.stage.left)

        host = Host(str(tmp_path), {}, fatal=end)
        part = host.stage.take(ONE)
        part.alarm_begins(5)
        part.words[0] = ADD << 32 | part.number
        host.log._writer._fatal(OSError(5, "Input/output error"))
        left.append(Stage(host.stage._bytes, host.stage._boot.rstrip(b"\0")).left)
        await host.close()

    asyncio.run(run())
    assert left == [Left(None, [])] * 2


# a class in quarantine


def of_class(number: int, class_name: str = "Slow") -> ObjectRef:
    return from_name(class_name, f"object {number}")


def blame_many(records: Quarantine, count: int, *, itself: bool = True, apart_us: int = 0) -> None:
    for number in range(count):
        records.blame(Left((of_class(number), ADD), []), number * apart_us, ended_itself=itself)


def test_a_class_is_held_with_all_its_objects_when_many_of_them_ended_their_process() -> None:
    disk = SimulatedDisk()
    records = Quarantine(disk, "/objects")
    blame_many(records, CLASS_OBJECTS_MAX - 1)
    assert not records.holds(of_class(0))
    blame_many(records, CLASS_OBJECTS_MAX)
    records = Quarantine(disk, "/objects")

    assert all(records.holds(of_class(number)) for number in range(100))
    assert not records.holds(of_class(0, "Other"))
    assert "Class Slow is in quarantine: 5 of its objects" in str(records.why_held(of_class(77), []))
    assert records.release_class("Slow")
    assert not records.release_class("Slow")
    assert not Quarantine(disk, "/objects").holds(of_class(0))
    blame_many(records, 1)
    assert not records.holds(of_class(0)), "they begin without an end"


def test_signals_and_old_ends_hold_no_class() -> None:
    records = Quarantine(SimulatedDisk(), "/objects")
    blame_many(records, CLASS_OBJECTS_MAX * 2, itself=False)
    blame_many(records, CLASS_OBJECTS_MAX * 2, apart_us=FORGIVEN_SECONDS * 500_000)
    assert not records.held_classes()


def test_an_object_that_is_held_for_itself_stays_so_when_its_class_is_released() -> None:
    records = Quarantine(SimulatedDisk(), "/objects")
    for _ in range(LIVES_MAX):
        blame_many(records, CLASS_OBJECTS_MAX)
    assert records.release_class("Slow")
    assert set(records.held()) == set(map(of_class, range(CLASS_OBJECTS_MAX)))


def test_a_class_in_quarantine_runs_no_alarm_until_it_is_released() -> None:
    with ObjectNode(Slow) as objects:
        one = objects.Slow["one"]
        one.arm(1)
        node = objects._life.node
        assert node.quarantine is not None
        blame_many(node.quarantine, CLASS_OBJECTS_MAX)
        objects.crash()
        with pytest.raises(Quarantined, match=r"Class Slow is in quarantine"):
            objects.Slow["two"].tries()
        objects.advance(60)
        assert objects.storage(one).get("tries") in (None, [0])

        assert objects._run(objects._life.node.release_class("Slow"))
        objects.advance(60)
        assert one.tries()[-1] == 1


def test_a_release_that_failed_is_made_with_the_next_try(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with ObjectNode(Slow) as objects:
        one, node = objects.Slow["one"], objects._life.node
        one.arm(1)
        assert node.quarantine is not None
        blame_many(node.quarantine, CLASS_OBJECTS_MAX)
        for _ in range(LIVES_MAX):
            blame(node.quarantine, ADD)
        objects.crash()
        objects.advance(60)
        node = objects._life.node
        with monkeypatch.context() as patch:
            patch.setattr(quarantine, "write_file", refuse)
            with pytest.raises(OSError, match="Input/output"):
                objects._run(node.release_class("Slow"))
            with pytest.raises(OSError, match="Input/output"):
                node.release(ONE)
        with monkeypatch.context() as patch:
            patch.setattr(node.log, "catalogue", lambda after, limit, done: done(None, LogAway("away")))
            with pytest.raises(LogAway):
                objects._run(node.release_class("Slow"))
        with pytest.raises(Quarantined):
            one.tries()

        assert objects._run(node.release_class("Slow"))
        assert node.release(ONE)
        objects.advance(60)
        assert one.tries()[-1] == 1


class Account:
    """The two tables a second time, as plain lists of ends."""

    def __init__(self, objects: int) -> None:
        self.ends: dict[int, list[tuple[int, int, bool]]] = {number: [] for number in range(objects)}
        self.held: set[int] = set()
        self.is_class_held = False

    def blame(self, number: int, event: int, now_us: int, own: bool) -> None:
        if number not in self.held:
            self.ends[number] = [*self.ends[number], (event, now_us, own)][-ENDS_MAX:]
        events = [one for one, _, _ in self.ends[number]]
        if (
            max(map(events.count, events)) >= LIVES_MAX
            or sum(own for *_, own in self.ends[number]) >= LIVES_MAX
        ):
            self.held.add(number)
        lately = [any(own and not is_old(at, now_us) for _, at, own in one) for one in self.ends.values()]
        self.is_class_held |= sum(lately) >= CLASS_OBJECTS_MAX

    def succeed(self, number: int, event: int, now_us: int) -> None:
        if not self.is_class_held and number not in self.held:
            self.ends[number] = [
                (one, at, own)
                for one, at, own in self.ends[number]
                if one != event or (own and not is_old(at, now_us))
            ]

    def release(self, number: int) -> bool:
        if number not in self.held:
            return False
        self.held.discard(number)
        self.ends[number] = []
        return True

    def release_class(self) -> bool:
        if self.is_class_held:
            self.ends.update({number: [] for number in self.ends if number not in self.held})
        was, self.is_class_held = self.is_class_held, False
        return was


def is_old(at_us: int, now_us: int) -> bool:
    return now_us - at_us > FORGIVEN_SECONDS * 1_000_000


@pytest.mark.parametrize("seed", range(20))
def test_at_random_the_records_hold_what_the_two_tables_say(seed: int) -> None:
    """Over restarts at any moment, too."""
    chance, disk, clock = random.Random(seed), SimulatedDisk(), [0]
    records, account = Quarantine(disk, "/objects"), Account(8)
    for _ in range(300):
        number, event = chance.randrange(8), chance.choice([ADD, ALARM])
        ref, own = of_class(number), chance.random() < 0.6
        clock[0] += chance.randrange(2 * MINUTE_US)
        match chance.choice(["blame"] * 4 + ["succeed"] * 6 + ["restart", "release", "release class"]):
            case "blame":
                records.blame(Left((ref, event), []), clock[0], ended_itself=own)
                account.blame(number, event, clock[0], own)
            case "succeed" if not records.holds(ref):
                if forgive := records.forgiving(ref, lambda: clock[0]):
                    forgive(event)
                account.succeed(number, event, clock[0])
            case "restart":
                records.tend()
                records = Quarantine(disk, "/objects")
            case "release":
                assert records.release(ref) is account.release(number)
            case "release class":
                assert records.release_class("Slow") is account.release_class()
        for one in account.ends:
            assert records.holds(of_class(one)) is (account.is_class_held or one in account.held)


def test_the_processor_time_of_an_objects_code_is_known_while_it_is_in_memory() -> None:
    class Busy(StatefulObject):
        async def compute(self) -> int:
            return sum(range(5_000_000))

        async def wait(self) -> None:
            await asyncio.sleep(5)

    with ObjectNode(Busy) as objects:
        objects.Busy["busy"].compute()
        objects.Busy["idle"].wait()
        live = [objects._life.node.find_live(from_name("Busy", name)) for name in ("busy", "idle")]
        busy_ns, idle_ns = (one.gate.cpu_ns for one in live if one is not None)
        assert busy_ns > 10 * idle_ns > 0


# the page


def test_code_that_runs_within_another_objects_code_gives_the_mark_back() -> None:
    stage = Stage(memoryview(bytearray(8 * SLOT_BYTES)), b"boot")
    inner, outer = InputGate(), InputGate()
    inner.part, outer.part = stage.take(ONE), stage.take(TWO)
    with marked(outer, ALARM):
        with marked(inner, ADD):
            assert stage._words[0] == ADD << 32 | inner.part.number
        assert stage._words[0] == ALARM << 32 | outer.part.number
    assert stage._words[0] == 0


def test_the_next_life_finds_what_ran_in_the_same_boot_only() -> None:
    memory = memoryview(bytearray(8 * SLOT_BYTES))
    stage = Stage(memory, b"one")
    stage.begin()
    parts = [stage.take(ref) for ref in (ONE, TWO)]
    parts[1].alarm_begins(77)
    memory.cast("Q")[0] = ADD << 32 | parts[0].number

    assert Stage(memory, b"one").left == Left((ONE, ADD), [(TWO, 77)])
    for boot in (b"another", None):
        assert Stage(memory, boot).left == Left(None, [])
    stage.give_back(parts[1])
    memory.cast("Q")[0] = 0
    assert Stage(memory, b"one").left == Left(None, [])


def test_who_finds_no_place_is_not_watched() -> None:
    stage = Stage(memoryview(bytearray(3 * SLOT_BYTES)), b"boot")
    long = from_name("C" * 200, "name")
    assert stage.take(long).number == 0
    numbers = [stage.take(from_name("Slow", str(n))) for n in range(3)]
    assert [part.number for part in numbers] == [1, 2, 0]
    numbers[2].alarm_begins(5)
    stage.give_back(numbers[0])
    assert stage.take(from_name("Slow", "n" * 900)).number == 1, "without its name"
    assert stage.left == Left(None, [])


def test_a_full_disk_keeps_no_process_from_starting(tmp_path: Path, monkeypatch: Any) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.posix_fallocate", full)
    stage = map_stage(str(tmp_path / "stage"))
    assert stage.take(ONE).number
