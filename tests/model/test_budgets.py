"""Accounts: what may be drawn, what is given back, what is counted, and how many there can be."""

import logging
from random import Random

import pytest

from edgestead.model.budgets import table
from edgestead.model.budgets.ledger import EVENT_SECONDS, Holding, Ledger, Levels, Windows
from edgestead.model.budgets.table import BUDGETS, SPARE_BYTES, TRACKED_MAX, Resource, Subject
from tests.support.sources import unnamed

EACH, TOTAL = table.HTTP_BYTES_ADDRESS, table.HTTP_BYTES
SECOND_US = 1_000_000


@pytest.fixture
def ledger():
    return Ledger(tell=lambda *_: None)


def levels(ledger, limit, total):
    return Levels(ledger, EACH, TOTAL, limit=limit, total_limit=total)


def test_each_row_has_a_name_of_its_own_a_reason_and_what_its_peer_meets():
    assert len({budget.name for budget in BUDGETS}) == len(BUDGETS)
    assert all(budget.why and budget.answer and budget.unit for budget in BUDGETS)
    assert all(budget.limit > 0 or budget.setting for budget in BUDGETS)
    assert {budget.subject for budget in BUDGETS} == set(Subject)
    assert {budget.resource for budget in BUDGETS} == set(Resource)


def test_a_subject_has_its_limit_and_what_it_gives_back_can_be_drawn_again(ledger):
    held = levels(ledger, 100, 1_000)

    assert held.draw("a", 100) is None
    assert held.draw("a", 1).budget is EACH
    assert held.draw("b", 1) is None
    held.release("a", 1)
    assert held.draw("a", 1) is None
    assert (ledger.refused(EACH), ledger.refused(TOTAL)) == (1, 0)


def test_what_was_refused_is_not_drawn(ledger):
    held = levels(ledger, 100, 150)
    held.draw("a", 100)

    assert held.draw("a", 50).limit == 100
    assert held.draw("b", 51).budget is TOTAL
    assert (held.held, held.total) == ({"a": 100}, 100)


def test_when_all_together_have_too_much_whoever_holds_little_is_still_taken(ledger):
    held = levels(ledger, 10 * SPARE_BYTES, 10 * SPARE_BYTES)
    greedy, modest = Holding(held, "greedy", 0), Holding(held, "modest", 0)

    assert greedy.hold(10 * SPARE_BYTES) is None
    assert modest.hold(SPARE_BYTES) is None
    assert modest.hold(SPARE_BYTES + 1).budget is TOTAL
    assert modest.drawn == SPARE_BYTES


def test_one_draw_alone_may_be_as_long_as_it_is(ledger):
    held = levels(ledger, 100, 1_000)
    alone, other = Holding(held, "a", 1), Holding(held, "a", 1)

    assert alone.hold(150) is None
    assert other.hold(2).budget is EACH
    alone.close()
    other.hold(30)
    assert Holding(held, "a", 1).hold(120).budget is EACH


def test_a_subject_that_holds_nothing_has_no_account(ledger):
    held, random = levels(ledger, 1_000, 100_000), Random(1)
    open_ones = [Holding(held, random.randrange(50), 10) for _ in range(500)]
    for _ in range(5_000):
        random.choice(open_ones).hold(random.randrange(200))
    assert held.total == sum(held.held.values()) == sum(one.drawn for one in open_ones)
    for one in open_ones:
        one.close()
        one.close()

    assert (held.held, held.total) == ({}, 0)


def test_a_window_is_of_its_seconds_and_no_more_subjects_are_counted_than_may_be(ledger):
    windows = Windows(ledger, table.ADDRESS_GUESSES, 2)
    end_us = table.ADDRESS_GUESSES.seconds * SECOND_US

    assert [windows.spend("a", 0) is None for _ in range(3)] == [True, True, False]
    assert windows.seconds_left("a", end_us - 1) == 1
    assert windows.spend("a", end_us) is None
    for number in range(3 * TRACKED_MAX):
        windows.spend(number, end_us)
    assert len(windows) == TRACKED_MAX
    assert ledger.refused(table.ADDRESS_GUESSES) == 1


def test_no_limit_counts_nobody(ledger):
    windows = Windows(ledger, table.CREDENTIALS_QUOTA)

    assert [windows.spend("a", 0) for _ in range(100)] == [None] * 100
    assert len(windows) == 0


def test_a_flood_of_refusals_is_a_line_now_and_then_and_each_is_counted(caplog):
    now = [0.0]
    ledger = Ledger(clock=lambda: now[0])
    with caplog.at_level(logging.WARNING, "edgestead.server"):
        for _ in range(1_000):
            ledger.refuse(EACH, "192.0.2.1")
        ledger.refuse(TOTAL, "192.0.2.1")
        now[0] += EVENT_SECONDS
        ledger.refuse(EACH, "x" * 10_000)

    first, total, later = caplog.messages
    assert "http_bytes_address is spent" in first
    assert "192.0.2.1" in first
    assert "http_bytes is spent" in total
    assert "as were 999 since" in later
    assert len(later) < 400
    assert (ledger.refused(EACH), ledger.refused(TOTAL)) == (1_001, 1)


def test_every_row_is_drawn_on_somewhere():
    rows = [name for name, row in vars(table).items() if isinstance(row, table.Budget)]

    assert unnamed((rf"\b{name}\b" for name in rows), table) == []
