"""The picture of a connection's states is the table's."""

from pathlib import Path

from edgestead.http1.connection import SECONDS, TABLE, Event, State

NOTE = Path(__file__).parents[2] / "docs" / "design" / "0026-one-http1.md"


def drawn():
    """The steps of TABLE as Mermaid draws them; that a client leaves is said below the picture."""
    yield "[*] --> WAITING: connected"
    for state, steps in TABLE.items():
        for then in dict.fromkeys(steps.values()):
            events = [event.value for event, to in steps.items() if to is then and event is not Event.LOST]
            if events:
                yield f"{state.value} --> {then.value}: {' / '.join(events)}"


def test_the_picture_is_the_table():
    picture = NOTE.read_text().partition("stateDiagram-v2\n")[2].partition("```")[0]

    assert [line.strip() for line in picture.splitlines()] == list(drawn())


def test_every_state_is_in_the_table_with_its_time_and_ends_when_the_client_leaves():
    assert set(TABLE) == set(State) == set(SECONDS)
    assert all(steps[Event.LOST] is State.CLOSED for steps in TABLE.values())


def test_every_event_happens_somewhere():
    assert {event for steps in TABLE.values() for event in steps} == set(Event)
