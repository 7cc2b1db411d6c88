"""What is known of files of events: which parts a search reads, and the last day by rule and by scores."""

import os
import random

import pytest

from edgestead.model import events as model
from edgestead.usecases import event_index, events
from edgestead.usecases.event_index import HOUR_US, HOURS, EventIndex
from edgestead.usecases.events import Wanted

ZONE, OTHER = "a" * 32, "b" * 32
NOW_US = 500_000 * HOUR_US + HOUR_US // 2
MANAGED = "http_request_firewall_managed"


def event(id_, rule="r1", zone=ZONE, **more):
    usual = {
        "id": id_,
        "occurred_on": model.time_of(id_),
        "zone_id": zone,
        "ray_id": id_[-16:],
        "phase": "p",
        "action": "block",
        "status": 403,
        "ruleset_id": "set",
        "rule_id": rule,
        "description": "",
        "reason": "",
        "client": "192.0.2.1",
        "method": "GET",
        "scheme": "http",
        "host": "h",
        "path": "/",
        "query": "",
        "user_agent": "",
        "score": None,
        "threshold": None,
        "contributions": (),
        "dropped": 0,
    }
    return model.encode(model.Event(**(usual | more)))


def write(folder, worker, *lines):
    """A file of a worker: (microseconds before now, members) each."""
    ids = [model.event_id(NOW_US - ago_us, worker, number) for number, (ago_us, _) in enumerate(lines)]
    path = folder / f"{model.file_prefix(worker)}{ids[0]}{model.SUFFIX}"
    path.write_bytes(b"".join(event(id_, **more) + b"\n" for id_, (_, more) in zip(ids, lines, strict=True)))
    return path


def follow(index, folder, now_us=NOW_US):
    while not index.follow(folder, now_us):
        pass
    return index


def rules(index, zone=ZONE):
    return index.rules_of(zone, NOW_US).rules


def test_events_of_the_last_day_are_counted_by_rule(tmp_path):
    old = (HOURS + 1) * HOUR_US
    write(tmp_path, 0, (old, {}), (HOUR_US, {}), (2, {"rule": "r2"}), (1, {"zone": OTHER}))
    write(tmp_path, 1, (2 * HOUR_US, {}), (HOUR_US, {"rule": None}))

    found = follow(EventIndex(), tmp_path).rules_of(ZONE, NOW_US)

    assert (found.rules, found.rulesets, found.complete) == ({"r1": 2, "r2": 1}, {"set": 3}, True)
    assert found.since == model.time_of(model.event_id((500_000 - HOURS + 1) * HOUR_US, 0, 0))


def test_what_comes_later_is_added_once_and_what_is_old_goes(tmp_path):
    path = write(tmp_path, 0, (HOUR_US, {}))
    index = follow(EventIndex(), tmp_path)
    assert rules(follow(index, tmp_path)) == {"r1": 1}

    line = event(model.event_id(NOW_US, 0, 9), "fresh")
    with path.open("ab") as stream:
        stream.write(line[:40])
    assert rules(follow(index, tmp_path)) == {"r1": 1}, "half a line is none"
    with path.open("ab") as stream:
        stream.write(line[40:] + b"\n")
    assert rules(follow(index, tmp_path)) == {"r1": 1, "fresh": 1}
    assert index.rules_of(ZONE, NOW_US + 23 * HOUR_US).rules == {"fresh": 1}
    path.unlink()
    assert rules(follow(index, tmp_path)) == {}
    assert (index._room.blocks, index._room.rows) == (event_index.BLOCKS_MAX, event_index.ROWS_MAX)


@pytest.mark.parametrize("at_once", [1, 2, 3, 100])
def test_following_goes_on_in_parts(tmp_path, monkeypatch, at_once):
    monkeypatch.setattr(event_index, "LINES_AT_ONCE", at_once)
    write(tmp_path, 0, *((HOUR_US - number, {}) for number in range(7)))
    index = EventIndex()

    assert index.follow(tmp_path, NOW_US) is (at_once > 7)
    assert index.rules_of(ZONE, NOW_US).complete is (at_once > 7)
    assert rules(follow(index, tmp_path)) == {"r1": 7}


def test_rows_have_a_limit_and_damaged_lines_are_passed_over(tmp_path, monkeypatch):
    monkeypatch.setattr(event_index, "ROWS_MAX", 2)
    path = write(tmp_path, 0, *((HOUR_US - number, {"rule": f"r{number % 4}"}) for number in range(8)))
    with path.open("ab") as stream:
        stream.write(b'{"id":"x"}\n\n\xff\n{"id":\n')

    assert rules(follow(EventIndex(), tmp_path)) == {"r0": 2, "r1": 2}
    assert rules(follow(EventIndex(), None)) == {}


def scored(status, threshold, **scores):
    contributions = tuple(model.Contribution(rule, "", score) for rule, score in scores.items())
    total = sum(scores.values())
    about = {"status": status, "score": total, "threshold": threshold, "contributions": contributions}
    return {"phase": MANAGED, **about}


def test_requests_that_were_scored_alike_are_one_kind(tmp_path, monkeypatch):
    write(
        tmp_path,
        0,
        (9, scored(403, 5, a=5)),
        (8, scored(403, 5, a=5) | {"path": "/new"}),
        (7, scored(0, 9, a=5)),
    )
    write(tmp_path, 1, (6, scored(403, 5, a=3, b=2)), (5, scored(403, 5, a=5) | {"zone": OTHER}), (4, {}))

    found = follow(EventIndex(), tmp_path).kinds_of(ZONE, NOW_US)

    assert (found.complete, found.uncounted) == (True, 0)
    assert sorted((one.count, one.stopped, len(one.scores), one.newest.path) for one in found.kinds) == [
        (1, False, 1, "/"),
        (1, True, 2, "/"),
        (2, True, 1, "/new"),
    ]
    monkeypatch.setattr(event_index, "KINDS_SHOWN_MAX", 1)
    assert follow(EventIndex(), tmp_path).kinds_of(ZONE, NOW_US).uncounted == 2
    monkeypatch.setattr(event_index, "KINDS_MAX", 1)
    assert follow(EventIndex(), tmp_path).kinds_of(ZONE, NOW_US).uncounted == 3


def test_a_kind_of_two_files_has_what_is_left_when_one_is_gone(tmp_path):
    newest = write(tmp_path, 0, (9, scored(403, 5, a=5)), (1, scored(403, 5, a=5) | {"path": "/newest"}))
    write(
        tmp_path,
        1,
        (8, scored(403, 5, a=5) | {"path": "/left"}),
        ((HOURS + 1) * HOUR_US, scored(403, 5, b=5)),
    )
    index = follow(EventIndex(), tmp_path)
    (kind,) = index.kinds_of(ZONE, NOW_US).kinds
    assert (kind.count, kind.newest.path) == (3, "/newest")

    newest.unlink()

    (kind,) = follow(index, tmp_path).kinds_of(ZONE, NOW_US).kinds
    assert (kind.count, kind.newest.path) == (1, "/left")


def test_scores_of_files_that_are_gone_leave_room_for_others(tmp_path, monkeypatch):
    monkeypatch.setattr(event_index, "KINDS_MAX", 2)
    first = write(tmp_path, 0, (9, scored(403, 5, a=5)), (8, scored(403, 5, b=5)))
    index = follow(EventIndex(), tmp_path)
    assert len(index.kinds_of(ZONE, NOW_US).kinds) == 2
    first.unlink()
    follow(index, tmp_path)
    write(tmp_path, 0, (7, scored(403, 5, c=5)), (6, scored(403, 5, d=5)))

    found = follow(index, tmp_path).kinds_of(ZONE, NOW_US)

    assert {one.scores[0].rule_id for one in found.kinds} == {"c", "d"}
    assert found.uncounted == 0


def test_hours_that_left_the_day_take_no_room_from_those_that_are_asked_for(tmp_path, monkeypatch):
    monkeypatch.setattr(event_index, "KINDS_MAX", 3)
    monkeypatch.setattr(event_index, "ROWS_MAX", 3)
    days = [(day * HOURS * HOUR_US, scored(403, 5, a=5) | {"rule": "a"}) for day in range(30, 0, -1)]
    write(
        tmp_path, 0, *days, *((9 - n, scored(403, 5, **{f"s{n}": 5}) | {"rule": f"r{n}"}) for n in range(5))
    )

    index = follow(EventIndex(), tmp_path)

    held = index.kinds_of(ZONE, NOW_US)
    assert (sum(one.count for one in held.kinds), held.uncounted, held.complete) == (3, 2, True)
    counted = index.rules_of(ZONE, NOW_US)
    assert (counted.rules, counted.complete) == ({"r0": 1, "r1": 1, "r2": 1}, False)
    later = NOW_US + HOURS * HOUR_US
    write(
        tmp_path, 1, *((9 - n - HOURS * HOUR_US, scored(403, 5, c=n) | {"rule": f"c{n}"}) for n in range(3))
    )
    follow(index, tmp_path, later)
    held = index.kinds_of(ZONE, later)
    assert (sum(one.count for one in held.kinds), held.uncounted, held.complete) == (3, 0, True)
    assert (len(index.rules_of(ZONE, later).rules), index.rules_of(ZONE, later).complete) == (3, True)


def test_a_clock_that_goes_back_has_all_of_its_day_counted_again(tmp_path):
    many(tmp_path)
    write(tmp_path, 1, (2 * HOUR_US, scored(403, 5, a=5)))
    index = follow(EventIndex(), tmp_path)
    before = rules(index)
    far = NOW_US + 3 * HOURS * HOUR_US
    assert follow(index, tmp_path, far).rules_of(ZONE, far).rules == {}
    assert not index.rules_of(ZONE, NOW_US).complete

    follow(index, tmp_path)

    assert (rules(index), index.rules_of(ZONE, NOW_US).complete) == (before, True)
    assert len(index.kinds_of(ZONE, NOW_US).kinds) == 1


def test_a_file_that_still_grows_is_followed_whatever_its_name_says(tmp_path):
    """A clock was set back: what is written to now has the older name."""
    write(tmp_path, 0, (1, {"rule": "newer"}))
    path = write(tmp_path, 0, (9, {"rule": "older"}))
    index = follow(EventIndex(), tmp_path)
    os.utime(path, ns=(1, 1))
    follow(index, tmp_path)
    with path.open("ab") as stream:
        stream.write(event(model.event_id(NOW_US - 8, 0, 7), "later") + b"\n")
    os.utime(path, ns=(1, 1))

    assert rules(follow(index, tmp_path)) == {"newer": 1, "older": 1, "later": 1}
    assert len(found(tmp_path, {"rule_id": "later"}, index, descending=True)) == 1


def test_a_request_is_of_one_kind_whatever_was_decided_on_the_way(tmp_path):
    same = {"ray_id": "same", "path": "/same"}
    write(
        tmp_path,
        0,
        (9, scored(0, 5, a=5) | {"path": "/before"}),
        (8, scored(0, 1, a=5) | same),
        (7, scored(403, 5, a=5) | same),
        (6, scored(0, 5, b=1) | {"ray_id": "again"}),
        (5, scored(0, 5, b=1, c=2) | {"ray_id": "again"}),
        (4, scored(415, 5) | {"action": "refuse", "reason": "content-encoding"}),
        (3, scored(0, 5) | {"action": "log", "reason": "content-encoding"}),
    )

    kinds = follow(EventIndex(), tmp_path).kinds_of(ZONE, NOW_US).kinds

    assert sorted((one.count, one.stopped, len(one.scores), one.newest.path) for one in kinds) == [
        (1, False, 1, "/before"),
        (1, False, 2, "/"),
        (1, True, 1, "/same"),
    ]


def many(folder):
    """Three files, of which two are full; what each line has, in order of time."""
    seeded = random.Random(7)
    held = []
    ago_us = 10_000_000
    for worker, count in ((0, 60), (0, 40), (1, 70)):
        lines = []
        for _ in range(count):
            ago_us -= 1
            zone, path = seeded.choice((ZONE, OTHER)), f"/{seeded.choice('abc')}/{seeded.randrange(40)}"
            client = f"192.0.2.{seeded.randrange(30)}"
            lines.append(
                (ago_us, {"zone": zone, "path": path, "client": client, "status": seeded.choice((0, 403))})
            )
        write(folder, worker, *lines)
        held += lines
    return [more for _, more in held]


SEARCHES = [
    {"client": "192.0.2.7"},
    {"client": "192.0.2.99"},
    {"status": 0},
    {"status": 403, "client": "192.0.2.3"},
    {"path_prefix": "/a"},
    {"path_prefix": "/b/1"},
    {"path_prefix": "/b/17"},
    {"path_prefix": "/"},
    {"path_prefix": "/none"},
    {},
]


def fits(more, wanted):
    members = {name: value for name, value in wanted.items() if name != "path_prefix"}
    begins = more["path"].startswith(wanted.get("path_prefix", ""))
    return more["zone"] == ZONE and begins and all(more[name] == value for name, value in members.items())


def found(folder, wanted, index, *, descending):
    members = {name: value for name, value in wanted.items() if name != "path_prefix"}
    asked = Wanted(members, wanted.get("path_prefix", ""), descending=descending, limit=1_000)
    answer = events.search(folder, ZONE, asked, index.spans)
    assert answer.after is None
    return [model.decode(item) for item in answer.items]


@pytest.mark.parametrize("descending", [True, False])
@pytest.mark.parametrize("state", ["followed", "half", "fresh", "restarted"])
@pytest.mark.parametrize("wanted", SEARCHES, ids=str)
def test_a_search_finds_all_and_only_what_fits(tmp_path, monkeypatch, wanted, state, descending):
    """However much is known of the files."""
    monkeypatch.setattr(event_index, "BLOCK_LINES", 8)
    monkeypatch.setattr(event_index, "LINES_AT_ONCE", 8)
    held = many(tmp_path)
    index = EventIndex()
    if state == "half":
        for _ in range(9):
            index.follow(tmp_path, NOW_US)
    elif state != "fresh":
        follow(index, tmp_path)
    if state == "restarted":
        index = EventIndex()
        index.follow(tmp_path, NOW_US)

    answer = found(tmp_path, wanted, index, descending=descending)

    expected = [(more["client"], more["path"]) for more in held if fits(more, wanted)]
    assert [(one.client, one.path) for one in answer] == (expected[::-1] if descending else expected)


def test_few_blocks_are_read_for_what_is_rare(tmp_path, monkeypatch):
    monkeypatch.setattr(event_index, "BLOCK_LINES", 8)
    write(tmp_path, 0, *((1_000 - n, {"client": f"192.0.2.{n}", "path": f"/{n}/x"}) for n in range(160)))
    index = follow(EventIndex(), tmp_path)
    (path,) = events.files_of(tmp_path)["0"]

    def blocks(prefix="", **members):
        return [one for one in index.spans(path, members, prefix, "0", "g") if one.end is not None]

    assert len(blocks()) == 20
    assert len(blocks(client="192.0.2.77")) == 1
    assert len(blocks(client="192.0.2.200")) == 0
    assert len(blocks("/150/x")) == 1
    assert len(blocks(zone_id=OTHER)) == 0
    first = model.event_id(NOW_US - 1_000 + 80, 0, 0)
    assert {one.start for one in index.spans(path, {}, "", "0", first)} < {one.start for one in blocks()} | {
        path.stat().st_size
    }


def test_what_is_known_of_a_full_file_outlives_a_restart_and_is_made_again_where_it_is_wrong(
    tmp_path, monkeypatch
):
    many(tmp_path)
    before = rules(follow(EventIndex(), tmp_path))
    (kept,) = tmp_path.glob("index-*")
    assert kept.stat().st_mode & 0o777 == 0o600
    monkeypatch.setattr(event_index, "lines_from", lambda path, start: pytest.fail(str(path)))
    loaded = event_index._loaded(events.files_of(tmp_path)["0"][0], NOW_US // HOUR_US)
    assert loaded is not None
    monkeypatch.undo()

    whole = kept.read_bytes()
    marks = whole.index(loaded.blocks[0].marks)
    flipped = whole[:marks] + bytes([whole[marks] ^ 1]) + whole[marks + 1 :]
    for wrong in (b"", b"x" * 99, whole[:-9], bytes(500), flipped):
        kept.write_bytes(wrong)
        assert rules(follow(EventIndex(), tmp_path)) == before
        assert event_index._loaded(events.files_of(tmp_path)["0"][0], NOW_US // HOUR_US) == loaded, (
            "it is there again"
        )
    (tmp_path / "index-9-none").write_bytes(b"")
    events.files_of(tmp_path)["0"][0].unlink()
    follow(EventIndex(), tmp_path)
    assert list(tmp_path.glob("index-*")) == []


def test_without_room_for_marks_everything_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(event_index, "BLOCK_LINES", 8)
    monkeypatch.setattr(event_index, "BLOCKS_MAX", 1)
    held = many(tmp_path)
    index = follow(EventIndex(), tmp_path)

    answer = found(tmp_path, {"client": "192.0.2.7"}, index, descending=False)

    assert len(answer) == sum(fits(more, {"client": "192.0.2.7"}) for more in held)


def test_a_disk_without_room_costs_only_the_index(tmp_path, monkeypatch):
    many(tmp_path)

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(event_index.os, "fsync", full)
    assert rules(follow(EventIndex(), tmp_path))
    assert list(tmp_path.glob("index-*")) == []
