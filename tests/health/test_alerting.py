"""The states of an alert: a table of schedules, and random ones against what must always hold."""

import itertools
import random

import msgspec
import pytest

from edgestead.health import alerting
from edgestead.health.alerting import Alert, Alerting, Terms
from edgestead.health.rows import Row

HOLD, REPEAT = 10, 100


def row(state="fail", check="disk", subject=""):
    return Row(check, subject, state, "the disk is full", "Make space.", 5)


def made(hold=HOLD, repeat=REPEAT, level="warn", checks=(), stored=()):
    ids = itertools.count(1)
    return Alerting(Terms(frozenset(checks), level, hold, repeat), lambda: f"id{next(ids)}", stored)


def states(machine):
    return [alert.state for alert in machine.alerts.values()]


def deliver(machine):
    items = machine.due()
    machine.trying(items)
    machine.delivered(items)
    return [(item.kind, item.number) for item in items]


# Steps: "f" not well, "w" a warning, "o" well, "?" unknown, each for so many seconds; "d" delivered, "x"
# tried in vain. Then the state, and what is due.
SCHEDULES = {
    "what ends within the hold is never sent": ("f9 o20", [], []),
    "what lasts is to be sent": ("f9 f1", ["firing"], ["firing"]),
    "what is unknown changes nothing": ("f9 ?500", ["pending"], []),
    "delivered once": ("f10 d f50", ["sent"], []),
    "repeated on schedule": ("f10 d f100", ["repeating"], ["repeating"]),
    "and again after that": ("f10 d f100 d f99", ["sent"], []),
    "resolved after the hold": ("f10 d o9 o1", ["resolving"], ["resolving"]),
    "a short recovery is none": ("f10 d o9 f1 o9", ["sent"], []),
    "then it is quiet": ("f10 d o10 d", [], []),
    "what was never tried ends without a word": ("f10 o10", [], []),
    "what was tried may have arrived": ("f10 x o10", ["resolving"], ["resolving"]),
    "worse is sent at once": ("w10 d f1", ["firing"], ["firing"]),
    "less bad is not": ("f10 d w50", ["sent"], []),
    "back before the resolution was delivered": ("f10 d o10 f1", ["firing"], ["firing"]),
    "what flaps fires after some rounds": ("f5 o5 f5 o5 f5", ["firing"], ["firing"]),
    "what flaps seldom does not": ("f5 o15 f5 o15 f5", ["pending"], []),
    "repeated, and well meanwhile": ("f10 d f100 o10", ["resolving"], ["resolving"]),
}


@pytest.mark.parametrize(("steps", "expected", "due"), SCHEDULES.values(), ids=SCHEDULES)
def test_a_schedule_ends_in_its_state(steps, expected, due):
    machine = made()
    for step in steps.split():
        if step == "d":
            assert deliver(machine)
        elif step == "x":
            machine.trying(machine.due())
        else:
            rows = {"f": [row()], "w": [row("warn")], "o": [row("ok")], "?": None}[step[0]]
            for _ in range(int(step[1:])):
                machine.look(rows, 1.0)

    assert states(machine) == expected
    assert [item.kind for item in machine.due()] == due


def test_messages_of_one_alert_are_numbered_and_a_new_one_has_another_id():
    machine = made(hold=0)
    machine.look([row()], 1)
    assert deliver(machine) == [("firing", 1)]
    machine.look([row("ok")], 1)
    assert deliver(machine) == [("resolving", 2)]
    machine.look([row()], 1)
    assert [(item.id, item.number) for item in machine.due()] == [("id2", 1)]


def test_a_receiver_gets_the_checks_and_the_level_that_it_wants():
    machine = made(hold=0, level="fail", checks=("disk", "clock"))

    machine.look([row(), row("warn", "clock"), row(check="backups"), row(subject="objects")], 1)

    assert [item.row.key for item in machine.due()] == ["disk", "disk/objects"]


def test_rows_are_grouped_in_one_message_the_worst_first():
    machine = made(hold=0)
    machine.look([row("warn", "clock"), row("warn", "feed")], 1)
    deliver(machine)
    machine.look([row("warn", "backups"), row("fail", "disk"), row("warn", "clock")], 1)

    assert [(item.row.key, item.kind) for item in machine.due()] == [
        ("disk", "firing"),
        ("backups", "firing"),
        ("feed", "resolving"),
    ]


def test_what_changes_while_a_message_is_under_way_has_one_to_come():
    machine = made(hold=0)
    machine.look([row("warn")], 1)
    items = machine.due()
    machine.trying(items)
    machine.look([row("fail")], 1)
    machine.delivered(items)
    assert [(item.kind, item.number, item.row.state) for item in machine.due()] == [("firing", 2, "fail")]

    items = machine.due()
    machine.trying(items)
    machine.look([row("ok")], 1)
    machine.delivered(items)
    assert [(item.kind, item.number) for item in machine.due()] == [("resolving", 3)]


def test_there_are_no_more_alerts_than_have_a_place():
    machine = made(hold=0)
    machine.look([row(subject=str(n)) for n in range(alerting.ALERTS_MAX + 5)], 1)

    assert len(machine.due()) == alerting.ALERTS_MAX


def test_looks_say_when_something_is_to_be_stored():
    machine = made(hold=2)

    assert [machine.look([row()], 1) for _ in range(3)] == [False, True, False]
    assert [machine.look([row("ok")], 1) for _ in range(3)] == [False, True, False]


class World:
    """A row that comes and goes, a receiver that works or not, a process that is killed at any moment."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.stored = b"[]"
        self.state = "ok"
        self.well_seconds = 0.0
        self.heard = []  # (id, number, kind, state)
        self.ids = itertools.count(1)
        self.start()

    def start(self):
        alerts = msgspec.json.decode(self.stored, type=list[Alert])
        terms = Terms(frozenset(), "warn", 3, 40)
        self.machine = Alerting(terms, lambda: str(next(self.ids)), alerts)

    def store(self):
        self.stored = msgspec.json.encode(list(self.machine.alerts.values()))

    def look(self):
        if self.random.random() < 0.2:
            self.state = self.random.choice(["ok", "ok", "warn", "fail"])
        self.well_seconds = self.well_seconds + 1 if self.state == "ok" else 0
        if self.machine.look(None if self.random.random() < 0.1 else [row(self.state)], 1):
            self.store()

    def send(self):
        """Each crash is at a moment of its own; what was stored is what goes on."""
        items = self.machine.due()
        if not items:
            return
        self.machine.trying(items)
        if self.random.random() < 0.1:
            return self.start()
        self.store()
        if self.random.random() < 0.1:
            return self.start()
        if self.random.random() < 0.4:
            if self.random.random() < 0.5:  # it arrived, and its answer did not
                self.heard += items
            return None
        self.heard += items
        if self.random.random() < 0.1:
            return self.start()
        self.machine.delivered(items)
        if self.random.random() < 0.1:
            return self.start()
        self.store()
        return None

    def settle(self, state):
        self.state = state
        for _ in range(20):
            self.machine.look([row(state)], 1)
            items = self.machine.due()
            self.machine.trying(items)
            self.machine.delivered(items)
            self.heard += items


@pytest.mark.parametrize("seed", range(150))
def test_a_receiver_knows_in_the_end_whatever_fails_on_the_way(seed):
    world = World(seed)
    for _ in range(400):
        world.look()
        world.send()
    world.settle("fail")

    assert world.heard[-1].kind in ("firing", "repeating")
    assert world.heard[-1].row.state == "fail"
    world.settle("ok")
    assert world.heard[-1].kind == "resolving", "and that it is over"
    assert world.machine.alerts == {}

    numbers = {}
    for item in world.heard:
        assert item.number >= numbers.get(item.id, 0), "numbers of an alert never fall"
        numbers[item.id] = item.number
