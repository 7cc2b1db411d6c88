"""The states of an exchange, and of its request's body.

Owns  the drawings (`machine` has them on its top) as data.
Not   what happens in a state.
"""

from enum import Enum


class State(Enum):
    GATHERING = "gathering"
    DECIDING = "deciding"
    CLEARING = "clearing"
    CONNECTING = "connecting"
    ASKED = "asked"
    HOLDING = "holding"
    JUDGING = "judging"
    ANSWERING = "answering"
    TUNNELLING = "tunnelling"
    DONE = "done"
    CUT = "cut"


class Body(Enum):
    COMING = "coming"
    STOPPED = "stopped"
    ENDING = "ending"
    ENDED = "ended"


# The drawing as data: the test of random schedules holds the machine to it. DONE and CUT end every row.
MOVES: dict[State, frozenset[State]] = {
    State.GATHERING: frozenset({State.DECIDING}),
    State.DECIDING: frozenset({State.CLEARING, State.CONNECTING}),
    State.CLEARING: frozenset({State.CONNECTING}),
    State.CONNECTING: frozenset({State.ASKED}),
    State.ASKED: frozenset({State.CONNECTING, State.HOLDING, State.ANSWERING}),
    State.HOLDING: frozenset({State.JUDGING}),
    State.JUDGING: frozenset({State.ANSWERING}),
    State.ANSWERING: frozenset({State.TUNNELLING}),
    State.TUNNELLING: frozenset(),
    State.DONE: frozenset(),
    State.CUT: frozenset(),
}
BODY_MOVES: dict[Body, frozenset[Body]] = {
    Body.COMING: frozenset({Body.STOPPED, Body.ENDED}),
    Body.STOPPED: frozenset({Body.COMING, Body.ENDING}),
    Body.ENDING: frozenset({Body.ENDED}),
    Body.ENDED: frozenset({Body.ENDING}),
}
