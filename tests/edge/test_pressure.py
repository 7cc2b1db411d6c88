"""What challenges ask for: more in a flood, more of who leaves them unanswered, more of programs."""

import pytest

from edgestead.edge.tools.clearance import KINDS
from edgestead.edge.tools.pressure import MEMORY_SECONDS, NETWORKS_MAX, WINDOW_SECONDS, Demand, Pressure
from tests.edge.made import BROWSER, ask, rule
from tests.edge.test_challenges import PATH, token_of
from tests.edge.test_clearance import solved

NOW = 1_700_000_000
JS, MANAGED, CLICK = (KINDS[name] for name in ("js_challenge", "managed_challenge", "challenge"))
HEADLESS = [(b"user-agent", b"X HeadlessChrome/130 Y"), *BROWSER[1:]]


def by(number, headers=BROWSER, **about):
    return ask(client=f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}", headers=headers, **about)


@pytest.mark.parametrize(
    ("kind", "headers", "demand"),
    [
        (JS, BROWSER, Demand(14, click=False)),
        (JS, HEADLESS, Demand(15, click=False)),
        (MANAGED, BROWSER, Demand(17, click=False)),
        (MANAGED, HEADLESS, Demand(18, click=True)),
        (MANAGED, BROWSER[:2], Demand(18, click=True)),
        (CLICK, HEADLESS, Demand(0, click=False)),
    ],
)
def test_a_program_that_says_so_is_asked_for_more(kind, headers, demand):
    assert Pressure().demand(kind, by(1, headers), NOW) == demand


def test_who_leaves_challenges_unanswered_is_asked_for_more_until_one_is_solved():
    pressure = Pressure()
    seen = [pressure.demand(MANAGED, by(1), NOW) for _ in range(40)]
    assert [seen[at] for at in (0, 2, 3, 10, 30)] == [
        Demand(17, click=False),
        Demand(17, click=False),
        Demand(18, click=True),
        Demand(19, click=True),
        Demand(20, click=True),
    ]
    assert pressure.demand(MANAGED, by(1 << 8), NOW) == Demand(17, click=False), "another network"
    pressure.solved("managed_challenge", by(1))
    assert pressure.demand(MANAGED, by(1), NOW) == Demand(17, click=False)


def test_what_was_left_unanswered_is_forgotten():
    pressure = Pressure()
    for _ in range(40):
        pressure.demand(JS, by(1), NOW)
    assert pressure.demand(JS, by(1), NOW + MEMORY_SECONDS - 1).bits == 17
    assert pressure.demand(JS, by(1), NOW + MEMORY_SECONDS).bits == 14


def test_in_a_flood_everybody_works_more_and_afterwards_no_more():
    pressure = Pressure()
    bits = [pressure.demand(JS, by(number << 8), NOW).bits for number in range(10_002)]
    assert [bits[at] for at in (0, 99, 100, 999, 1_000, 10_000)] == [14, 14, 15, 15, 16, 17]
    last = 20_000 << 8
    assert pressure.demand(JS, by(last), NOW + WINDOW_SECONDS).bits == 17, "the window before counts"
    assert pressure.demand(JS, by(last + 256), NOW + 3 * WINDOW_SECONDS).bits == 14


def test_no_more_than_so_much_is_asked_for_and_remembered():
    pressure = Pressure()
    for number in range(10_002):
        pressure.demand(MANAGED, by(number << 8), NOW)
    worst = [pressure.demand(MANAGED, by(1, HEADLESS), NOW) for _ in range(40)][-1]
    assert worst == Demand(22, click=True)
    for number in range(NETWORKS_MAX):
        pressure.demand(JS, by(number << 8), NOW)
    assert len(pressure._networks) <= NETWORKS_MAX


def answered(edge, token, bits, more=""):
    query = f"kind=managed_challenge&token={token}&solution={solved(token, bits).decode()}{more}"
    return edge.ask(f"{PATH}?{query}", method=b"POST", headers=HEADLESS).status


def test_a_click_that_is_asked_for_has_to_be_said_and_the_work_done(edge):
    edge.serve(zone=[rule("managed_challenge")])
    page = edge.ask("/wanted", headers=HEADLESS)
    token = token_of(page)
    assert b'"click": true' in page.body
    assert answered(edge, token, 18) == 403
    assert answered(edge, token.replace("18c", "18"), 18, "&clicked=1") == 403, "it is signed"
    assert answered(edge, token.replace("18c", "1c"), 1, "&clicked=1") == 403
    assert answered(edge, token, 18, "&tells=driver") == 403
    assert answered(edge, token, 18, "&clicked=1&tells=driver") == 204
    assert edge.tools.pressure.counts == {
        "managed_challenge shown": 1,
        "managed_challenge failed": 4,
        "managed_challenge solved": 1,
    }
