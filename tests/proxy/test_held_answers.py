"""An answer held for inspection, and then replaced by a phase on answers: nobody sees the origin's."""

from types import SimpleNamespace
from typing import Any

import pytest

from edgestead.proxy.answer_watch import AnswerWatch
from edgestead.proxy.exchange import Exchange, Response
from edgestead.proxy.passage import Passage
from edgestead.proxy.phase import Silent
from edgestead.proxy.pipeline import Pipeline
from tests.proxy.made import ask

HEADERS = [(b"content-type", b"text/html"), (b"content-length", b"6")]
REPLACED = Response(451, [(b"x-own", b"1")], b"instead")


class Client:
    """A client's connection, as far as a passage asks it for anything."""

    def __init__(self) -> None:
        self.written = b""
        self.ended = False
        self.counted: list[int] = []
        self.edge = SimpleNamespace(
            ray_line=b"edge-ray: %b\r\n",
            own_lines=lambda ray: b"edge-ray: %b\r\n" % ray,
            is_ending=False,
            count=self.counted.append,
            tools=SimpleNamespace(observer=Silent()),
        )

    def write(self, data: bytes) -> None:
        self.written += data

    def expect_origin(self, seconds: float) -> None:
        pass

    def through(self, passage: Passage) -> None:
        self.ended = True


class Origin:
    """An origin's connection; `outcome` is what became of it."""

    transport = None
    outcome = ""

    def release(self, passage: Passage, *, usable: bool) -> None:
        self.outcome = "released"

    def abort(self) -> None:
        self.outcome = "aborted"


def passage_of(client: Client, origin: Origin, answer: Response | None) -> Passage:
    """A request whose answer is held, looked at by somebody who has nothing against it."""
    exchange = ask()
    exchange.watch = AnswerWatch(64)
    exchange.watch.add(lambda held: iter(()))

    def replaced(exchange: Exchange) -> Response | None:
        return answer

    route: Any = SimpleNamespace(pipeline=Pipeline(exchange.zone, (), (replaced,), 0))
    read: Any = SimpleNamespace(length=0)
    made = Passage(client, exchange, route, read, True, False, False, False, b"", True)
    made._origin = origin
    return made


def answered(passage: Passage, *, ends_first: bool) -> None:
    """The origin answers; its connection is through before the answer was looked at, or after."""
    length = None if ends_first else 6
    passage.head(200, list(HEADERS), dict(HEADERS), length, False)
    for chunk in (b"sec", b"ret"):
        passage.body(chunk)
    passage.flush()
    if not passage.done:
        passage.ended()


@pytest.mark.parametrize("ends_first", [False, True])
def test_a_phase_that_replaces_a_held_answer_is_all_that_the_client_sees(ends_first: bool) -> None:
    client, origin = Client(), Origin()
    passage = passage_of(client, origin, REPLACED)

    answered(passage, ends_first=ends_first)

    assert client.written.startswith(b"HTTP/1.1 451 ")
    assert client.written.endswith(b"\r\n\r\ninstead")
    assert b"secret" not in client.written
    assert (client.ended, client.counted) == (True, [451])
    assert origin.outcome == ("released" if ends_first else "aborted")


@pytest.mark.parametrize("ends_first", [False, True])
def test_one_that_leaves_it_lets_all_of_it_pass(ends_first: bool) -> None:
    client, origin = Client(), Origin()

    answered(passage_of(client, origin, None), ends_first=ends_first)

    assert client.written.startswith(b"HTTP/1.1 200 ")
    assert b"sec" in client.written
    assert b"ret" in client.written
    assert (client.ended, client.counted, origin.outcome) == (True, [200], "released")
