"""Events from a worker's decision to a search's answer."""

import json
import os
from pathlib import Path

import msgspec
import pytest

from edgestead.edge import events as writing
from edgestead.edge.events import EventFiles, EventLog
from edgestead.model.events import Contribution, Decision, Event
from edgestead.usecases import events
from edgestead.usecases.events import Wanted
from tests.edge.made import NOW_US, ZONE_ID, ask

BLOCK = Decision("http_request_firewall_custom", "block", 403, "s" * 32, "r" * 32, "no admins")
decode = msgspec.json.Decoder(Event).decode


class Counts:
    def __init__(self):
        self.actions, self.lost = [], 0

    def event(self, action):
        self.actions.append(action)

    def dropped(self):
        self.lost += 1


class Ticks:
    """A clock that a test moves."""

    us = NOW_US

    def __call__(self):
        self.us += 1
        return self.us


@pytest.fixture
def folder(tmp_path):
    return tmp_path


@pytest.fixture
def files(folder):
    folder_fd = os.open(folder, os.O_RDONLY)
    made = EventFiles(folder_fd, 0)
    yield made
    made.close()
    os.close(folder_fd)


@pytest.fixture
def clock():
    return Ticks()


@pytest.fixture
def counts():
    return Counts()


@pytest.fixture
def open_log(folder, clock, counts):
    """Opens logs on the folder, and closes what a test leaves open."""
    opened = []
    folder_fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)

    def make(worker=0, **more):
        sizes = {name: more.pop(name) for name in ("octets_max", "files_max") if name in more}
        log = EventLog(
            EventFiles(folder_fd, worker, **sizes), worker=worker, counts=counts, now_us=clock, **more
        )
        opened.append(log)
        return log

    yield make
    for log in opened:
        log.close()
    os.close(folder_fd)


def found(folder: Path, **wanted):
    members = {name: wanted.pop(name) for name in list(wanted) if name in Event.__struct_fields__}
    answer = events.search(folder, ZONE_ID, Wanted(members, **wanted))
    return [decode(item) for item in answer.items]


def test_a_decision_is_read_back_with_all_that_was_known(open_log, folder):
    log = open_log()
    log.decided(
        ask("/admin?token=abc&q=1", headers=[(b"user-agent", b"curl/8\x1b[0m"), (b"cookie", b"secret=1")]),
        BLOCK,
    )
    log.close()

    (event,) = found(folder)
    assert event.zone_id == ZONE_ID
    assert event.occurred_on == "2023-11-14T22:13:20.250001Z"
    assert (event.phase, event.action, event.status) == (BLOCK.phase, "block", 403)
    assert (event.ruleset_id, event.rule_id, event.description) == ("s" * 32, "r" * 32, "no admins")
    assert (event.client, event.ray_id, event.method, event.scheme) == ("192.0.2.7", "ray-1", "GET", "http")
    assert (event.host, event.path, event.query) == ("www.example.com", "/admin", "token=***&q=1")
    assert event.user_agent == "curl/8\\x1b[0m"
    assert (event.score, event.contributions, event.dropped) == (None, (), 0)
    assert b"secret" not in b"".join(path.read_bytes() for path in folder.iterdir())


def test_a_managed_rules_decision_names_what_contributed(open_log, folder):
    log = open_log()
    parts = (Contribution("1" * 32, "942100: SQL", 5, "ARGS:q", "' or 1=1\n"),
             Contribution("2" * 32, "920", 3, "REQUEST_HEADERS:Authorization", "Basic abc"))  # fmt: skip
    log.decided(
        ask(),
        Decision(
            "http_request_firewall_managed", "block", 403, score=8, threshold=5, contributions=parts * 40
        ),
    )
    log.close()

    (event,) = found(folder)
    assert (event.score, event.threshold) == (8, 5)
    assert event.contributions[0] == Contribution("1" * 32, "942100: SQL", 5, "ARGS:q", "' or 1=1\\n")
    assert event.contributions[1].matched == "***"
    assert len(event.contributions) == writing.CONTRIBUTIONS_MAX


def test_refusals_and_failures_are_events_too(open_log, folder, counts):
    log = open_log()
    log.zone_id_of = {b"www.example.com": ZONE_ID}.get
    log.refused("192.0.2.9", b"ray-2", 400, "two lengths", b"POST", b"\xffhost", b"/a?password=x")
    log.refused("192.0.2.9", b"ray-3", 400, "two lengths", b"", b"WWW.Example.com.:8080", b"/b")
    log.failed(ask("/b"), 522, "the origin did not answer")
    log.close()

    lines = [json.loads(line) for path in folder.iterdir() for line in path.read_text().splitlines()]
    assert [(line["action"], line["status"], line["zone_id"]) for line in lines] == [
        ("refuse", 400, None),
        ("refuse", 400, ZONE_ID),
        ("fail", 522, ZONE_ID),
    ]
    assert (lines[0]["method"], lines[0]["host"], lines[0]["query"], lines[0]["reason"]) == (
        "POST",
        "\\xffhost",
        "password=***",
        "two lengths",
    )
    assert [event.phase for event in found(folder)] == ["origin", "http"]  # what names no zone is nobody's
    assert counts.actions == ["refuse", "refuse", "fail"]


def test_texts_are_bounded_whatever_comes(open_log, folder):
    log = open_log()
    log.decided(
        ask("/" + "\x01" * 60_000 + "?" + "a" * 60_000, headers=[(b"user-agent", b"\xff" * 60_000)],
            method=b"M" * 9_000, host=b"h" * 9_000),
        Decision("p", "block", reason="r" * 9_000, description="d" * 9_000),
    )  # fmt: skip
    log.close()
    (event,) = found(folder)
    assert sum(len(str(getattr(event, name))) for name in Event.__struct_fields__) < 12_000
    assert event.query.endswith("…")


def test_more_events_than_anybody_reads_are_dropped_and_counted(open_log, folder, counts, clock):
    log = open_log(per_second_max=3)
    for _ in range(10):
        log.decided(ask(), BLOCK)
    clock.us += 1_000_000
    log.decided(ask(), BLOCK)
    log.close()

    assert [event.dropped for event in found(folder)] == [7, 0, 0, 0]
    assert len(counts.actions) == 11
    assert counts.lost == 7


def test_redirects_leave_room_for_other_events(open_log, folder, counts, monkeypatch):
    monkeypatch.setattr(writing, "REDIRECTS_PER_SECOND_MAX", 2)
    log = open_log(per_second_max=3)
    for _ in range(10):
        log.decided(ask(), Decision("always_use_https", "redirect", 301))
    log.decided(ask(), BLOCK)
    log.close()

    assert [(event.action, event.dropped) for event in found(folder)] == [
        ("block", 8),
        ("redirect", 0),
        ("redirect", 0),
    ]
    assert (len(counts.actions), counts.lost) == (11, 8)


def test_what_cannot_be_written_is_counted_and_told_once(open_log, folder, counts, monkeypatch):
    told = []
    log = open_log(failed=told.append)

    def refuse(*about):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(EventFiles, "write", refuse)
    log.decided(ask(), BLOCK)
    log.close()
    assert counts.lost == 1
    assert told == ["No space left on device"]


def test_a_line_that_a_full_disk_tore_does_not_spoil_the_next(open_log, folder, files, monkeypatch):
    log = open_log()
    log.decided(ask("/one"), BLOCK)
    log.close()
    really_write = os.write
    pieces = iter([5, OSError(28, "No space left on device")])

    def takes_little(descriptor, content):
        match next(pieces, len(content)):
            case OSError() as full:
                raise full
            case length:
                return really_write(descriptor, content[:length])

    monkeypatch.setattr(os, "write", takes_little)
    (line, _) = (next(iter(folder.iterdir())).read_bytes()).split(b"\n")
    with pytest.raises(OSError, match="No space"):
        files.write([line], "1")
    files.write([line.replace(b"/one", b"/two")], "2")

    assert [event.path for event in found(folder)] == ["/two", "/one"]


def test_a_torn_line_that_cannot_be_ended_yet_is_ended_before_the_next_is_written(
    open_log, folder, files, monkeypatch
):
    log = open_log()
    log.decided(ask("/one"), BLOCK)
    log.close()
    (path,) = folder.iterdir()
    line = path.read_bytes().rstrip()
    path.write_bytes(path.read_bytes() + b'{"id":"torn')

    def full(descriptor, content):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", full)
        with pytest.raises(OSError, match="No space"):
            files.write([line], "1")
    files.write([line.replace(b"/one", b"/two")], "2")

    assert [event.path for event in found(folder)] == ["/two", "/one"]


def test_files_rotate_and_the_oldest_goes(open_log, folder):
    for number in range(6):
        log = open_log(octets_max=1, files_max=3)
        log.decided(ask(f"/{number}"), BLOCK)
        log.close()
    assert [event.path for event in found(folder)] == ["/5", "/4", "/3"]
    assert len(list(folder.iterdir())) == 3


def test_a_new_life_goes_on_with_the_newest_file_and_a_torn_line_is_left(open_log, folder):
    log = open_log()
    log.decided(ask("/one"), BLOCK)
    log.close()
    (path,) = folder.iterdir()
    path.write_bytes(path.read_bytes() + b'{"id":"torn')
    log = open_log()
    log.decided(ask("/two"), BLOCK)
    log.close()

    assert list(folder.iterdir()) == [path]
    assert [event.path for event in found(folder)] == ["/two", "/one"]


def test_ids_sort_by_time_even_when_the_clock_goes_back(open_log, folder, clock):
    log = open_log()
    log.decided(ask("/one"), BLOCK)
    clock.us -= 5_000_000
    log.decided(ask("/two"), BLOCK)
    log.close()
    assert [event.path for event in found(folder)] == ["/two", "/one"]


def test_a_new_life_with_a_clock_that_was_set_back_goes_on_after_the_last_event(open_log, folder, clock):
    """With the rate of its own clock: every event is written, and found in order."""
    for path in ("/one", "/two"):
        log = open_log(octets_max=1, files_max=9)
        log.decided(ask(path), BLOCK)
        log.close()
    clock.us -= 3_600_000_000
    log = open_log(octets_max=1, files_max=9, per_second_max=2)
    for number in range(6):
        log.decided(ask(f"/{number}"), BLOCK)
        clock.us += 500_000
    log.close()

    assert [event.path for event in found(folder)] == ["/5", "/4", "/3", "/2", "/1", "/0", "/two", "/one"]


def test_the_open_file_stays_whatever_its_name_says(tmp_path):
    for number in range(5):
        (tmp_path / f"edge-0-{number:032x}.jsonl").write_bytes(b"x\n")
    folder_fd = os.open(tmp_path, os.O_RDONLY)
    files = EventFiles(folder_fd, 0, octets_max=1, files_max=3)
    files.write([b"{}"], "-")
    files.close()
    os.close(folder_fd)

    assert (tmp_path / "edge-0--.jsonl").exists()
    assert len(list(tmp_path.iterdir())) == 3


@pytest.fixture
def many(open_log, folder, clock):
    """Twelve events of three workers in turns, a second apart, in several files."""
    for number in range(12):
        action = "block" if number % 2 else "log"
        log = open_log((0, 1, 10)[number % 3], octets_max=1, files_max=99)
        log.decided(
            ask(f"/{number}", client=f"192.0.2.{number % 2}"), msgspec.structs.replace(BLOCK, action=action)
        )
        log.close()
        clock.us += 1_000_000
    return folder


def numbers(found_events):
    return [int(event.path[1:]) for event in found_events]


SEARCHES = [
    ({}, [11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0]),
    ({"descending": False}, list(range(12))),
    ({"limit": 3}, [11, 10, 9]),
    ({"action": "block"}, [11, 9, 7, 5, 3, 1]),
    ({"client": "192.0.2.0", "limit": 2}, [10, 8]),
    ({"action": "block", "client": "192.0.2.0"}, []),
    ({"path_prefix": "/1"}, [11, 10, 1]),
    ({"rule_id": "r" * 32, "limit": 1}, [11]),
    ({"status": 200}, []),
    ({"since_us": NOW_US + 9_000_000}, [11, 10, 9]),
    ({"until_us": NOW_US + 2_000_000}, [1, 0]),
    ({"since_us": NOW_US + 3_000_000, "until_us": NOW_US + 5_000_000, "descending": False}, [3, 4]),
]


@pytest.mark.parametrize(("wanted", "expected"), SEARCHES)
def test_a_search_answers_what_fits_in_order(many, wanted, expected):
    assert numbers(found(many, **wanted)) == expected


@pytest.mark.parametrize("descending", [True, False])
def test_pages_of_a_search_join_without_gap_or_repetition(many, descending):
    seen, after, pages = [], None, 0
    while pages == 0 or (after is not None and pages < 9):
        answer = events.search(many, ZONE_ID, Wanted({}, descending=descending, after=after, limit=5))
        seen += numbers(map(decode, answer.items))
        pages += 1
        after = answer.after
    assert sorted(seen) == list(range(12))
    assert seen == sorted(seen, reverse=descending)
    assert pages == 3


def test_a_long_search_stops_and_goes_on(many, monkeypatch):
    monkeypatch.setattr(events, "SCANNED_LINES_MAX", 4)
    answer = events.search(many, ZONE_ID, Wanted({"path": "/0"}))
    assert (answer.items, answer.after is not None) == ([], True)
    pages = 1
    while not answer.items and pages < 9:
        answer = events.search(many, ZONE_ID, Wanted({"path": "/0"}, after=answer.after))
        pages += 1
    assert pages == 3


def test_other_zones_events_and_damaged_lines_are_not_answered(many):
    assert events.search(many, "6" * 32, Wanted({})).items == []
    path = min(many.iterdir())
    line = path.read_bytes()
    (many / "edge-7-x.jsonl").write_bytes(
        b"\xff\xfe\n{}\n\n" + line[:60] + b"\n" + line.replace(b'"status":403', b'"status":"x"')
    )
    (many / "other.jsonl").write_bytes(line)
    (many / "edge-8-.jsonl").write_bytes(b"")
    assert len(found(many)) == 12


def test_no_folder_holds_no_events(tmp_path):
    assert events.search(tmp_path / "none", ZONE_ID, Wanted({})).items == []
    assert events.search(None, ZONE_ID, Wanted({})).items == []
