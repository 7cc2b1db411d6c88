"""An answer held for inspection, and then replaced by a phase on answers: nobody sees the origin's."""

from collections.abc import Generator
from types import SimpleNamespace
from typing import Any

import pytest

from edgestead.edge.exchanges import turns as inspection_turns
from edgestead.edge.exchanges.answer_watch import AnswerWatch
from edgestead.edge.exchanges.exchange import Exchange, Response
from edgestead.edge.exchanges.later import Later
from edgestead.edge.exchanges.turns import Owner, Turns
from edgestead.edge.http.machine import ExchangeMachine
from edgestead.edge.http.states import Body, State
from edgestead.edge.phases.pipeline import Pipeline
from edgestead.edge.tools.phase import Silent
from tests.edge.made import ask

HEADERS = [(b"content-type", b"text/html"), (b"content-length", b"6")]
REPLACED = Response(451, [(b"x-own", b"1")], b"instead")


class Client:
    """The client's side, and the worker's, as far as an exchange asks for anything of them."""

    def __init__(self) -> None:
        self.said: list[bytes] = []
        self.status = 0
        self.ended = False
        self.counted: list[int] = []
        self.soon, self.date = 1_000.0, b"Sun, 06 Nov 1994 08:49:37 GMT"
        self.count, self.observer = self.counted.append, Silent()
        self.took = lambda arrived_us: None
        self.turns, self.access = Turns(lambda function: None), None

    def head(self, status: int, headers: Any, length: int | None, **about: bool) -> None:
        self.status = status

    def piece(self, piece: bytes) -> None:
        self.said.append(piece)

    def flush(self) -> bool:
        return False

    def end(self, *, drained: bool) -> None:
        self.ended = True

    def answer(self, response: Response, *, drained: bool) -> None:
        assert isinstance(response.body, bytes)
        self.status, self.ended = response.status, True
        self.said.append(response.body)

    def wait(self, seconds: float) -> None:
        pass


class Origin:
    """An origin's connection; `outcome` is what became of it."""

    reused = False
    outcome = ""

    def begin(self, exchange: ExchangeMachine, pieces: list[bytes], *, ended: bool) -> None:
        pass

    def pause(self, *, paused: bool) -> None:
        pass

    def release(self, *, usable: bool) -> None:
        self.outcome = "released"

    def abort(self) -> None:
        self.outcome = "aborted"


def nothing() -> Generator[None, None, Response | None]:
    yield from ()
    return None


def exchange_of(client: Client, origin: Origin, answer: Response | None) -> ExchangeMachine:
    """A request whose answer is held, looked at by somebody who has nothing against it."""
    facts = ask()
    facts.watch = AnswerWatch(64)
    facts.watch.add(lambda held: nothing())

    def replaced(exchange: Exchange) -> Response | None:
        return answer

    route: Any = SimpleNamespace(
        pipeline=Pipeline(facts.zone, (), (replaced,), 0),
        body_bytes_max=0,
        head_seconds=100.0,
        compression="",
    )
    read: Any = SimpleNamespace(length=0)
    worker: Any = client
    made = ExchangeMachine(facts, worker, worker, route, read, b"", False, Body.ENDED, State.CONNECTING)
    made.connected(origin)
    return made


def answered(exchange: ExchangeMachine, *, ends_first: bool) -> None:
    """The origin answers; its connection is through before the answer was looked at, or after."""
    length = None if ends_first else 6
    exchange.answer_head(200, list(HEADERS), dict(HEADERS), length, False)
    for chunk in (b"sec", b"ret"):
        exchange.answer_piece(chunk)
    exchange.flush()
    if exchange.state is not State.DONE:
        exchange.answer_end()


@pytest.mark.parametrize("ends_first", [False, True])
def test_a_phase_that_replaces_a_held_answer_is_all_that_the_client_sees(ends_first: bool) -> None:
    client, origin = Client(), Origin()
    exchange = exchange_of(client, origin, REPLACED)

    answered(exchange, ends_first=ends_first)

    assert (client.status, client.said) == (451, [b"instead"])
    assert (client.ended, client.counted) == (True, [451])
    assert origin.outcome == ("released" if ends_first else "aborted")


@pytest.mark.parametrize("ends_first", [False, True])
def test_one_that_leaves_it_lets_all_of_it_pass(ends_first: bool) -> None:
    client, origin = Client(), Origin()

    answered(exchange_of(client, origin, None), ends_first=ends_first)

    assert (client.status, client.said) == (200, [b"sec", b"ret"])
    assert (client.ended, client.counted, origin.outcome) == (True, [200], "released")


@pytest.mark.parametrize("ends_first", [False, True])
def test_an_answer_for_whose_inspection_there_is_no_room_is_a_503_and_nothing_else(
    ends_first: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inspection_turns, "PER_ADDRESS_MAX", 1)
    client, origin = Client(), Origin()
    exchange = exchange_of(client, origin, None)
    owner = Owner(lambda outcome: None, lambda: None)
    client.turns.wait(exchange.exchange.client, Later(iter(())), owner)

    answered(exchange, ends_first=ends_first)

    assert client.status == 503
    assert b"sec" not in b"".join(client.said)
    assert (client.ended, client.counted) == (True, [503])
    assert client.turns.waiting == 1
