"""The states of an admission, each by what it depends on."""

import pytest

from edgestead.model.call import Actor
from edgestead.usecases.access.admission import Admission, State
from edgestead.usecases.access.authorise import Identity

ENDS_US = 100
STATES = [  # the epoch moved on, the clock, the lease is live, the state
    (False, ENDS_US - 1, True, State.ADMITTED),
    (False, ENDS_US, True, State.STALE),
    (True, ENDS_US - 1, True, State.STALE),
    (True, ENDS_US, True, State.STALE),
    (False, ENDS_US - 1, False, State.UNKNOWN),
    (True, ENDS_US, False, State.UNKNOWN),
]


def identity(**more):
    return Identity(actor=Actor(kind="user", id="u" * 32), full=True, **more)


@pytest.mark.parametrize(("moved", "now_us", "is_live", "state"), STATES)
def test_an_admission_holds_while_nothing_has_changed(moved, now_us, is_live, state):
    admission = Admission(identity(expires_us=ENDS_US), 7)

    assert admission.state(7 + moved, lambda: now_us, lease_is_live=is_live) is state
    assert admission.holds(7 + moved, lambda: now_us) is (not moved and now_us < ENDS_US)


def test_the_clock_is_not_read_for_who_does_not_end():
    def clock():
        raise AssertionError

    assert Admission(identity(), 7).holds(7, clock)
