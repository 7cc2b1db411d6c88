"""Which of two control processes takes an office that a third one was asked to leave."""

import pytest

from edgestead.cluster.members import ADMITTED, Row
from edgestead.cluster.office import State
from edgestead.cluster.seat import GIVE_WAY_MS, Admit, Claim, Poll, Register, Seat, View

OWN, WANTED = 7, 8


def waited_ms(every_ms):
    """How long a process leaves a free office to one that was wanted and does not come."""
    now = [0.0]
    seat = Seat(lambda: now[0])
    view = View(None, {OWN: Row(0, ADMITTED), WANTED: Row(0, ADMITTED)}, wanted=WANTED)

    def answer(ask):
        return {Register: OWN, Poll: view, Admit: True}.get(type(ask), True)

    while now[0] < 2 * GIVE_WAY_MS:
        asked, steps = None, seat.round()
        try:
            asked = next(steps)
            while not isinstance(asked, Claim):
                asked = steps.send(answer(asked))
            return now[0]
        except StopIteration:
            now[0] += every_ms
    assert seat.office.state is State.JOINING
    raise AssertionError("it claims never")


@pytest.mark.parametrize("every_ms", [30, 250])
def test_who_is_wanted_has_ten_seconds_however_often_others_look(every_ms):
    """Processes whose leader is gone look every 30 ms: another one took over after two seconds."""
    assert GIVE_WAY_MS <= waited_ms(every_ms) <= GIVE_WAY_MS + 2 * every_ms
