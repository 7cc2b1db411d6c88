"""How a request is passed on to the leader, and its answer back, without sockets."""

import asyncio
from types import SimpleNamespace

import pytest

from edgestead.http1.client import Answer, ExchangeError
from edgestead.http1.messages import Body, BodyBroken, Request
from edgestead.server.cluster import gate as module
from edgestead.server.cluster.gate import GATHERED_BYTES_MAX, Gate, _response
from edgestead.store.answered import Answers

HEADERS = [(b"content-type", b"text/plain"), (b"date", b"of the leader")]


async def chunks(*parts, broken=False):
    for part in parts:
        yield part
    if broken:
        raise BodyBroken


def passed_back(*parts, length=None, broken=False, is_whole=True, ends=False):
    headers = [
        *HEADERS,
        (b"content-length", str(sum(map(len, parts)) if length is None else length).encode()),
    ]
    return asyncio.run(
        _response(Answer(200, headers, chunks(*parts, broken=broken), ends), is_whole=is_whole)
    )


def test_a_short_answer_of_the_leader_leaves_in_one_piece():
    answer = passed_back(b"one", b"two")

    assert (answer.status, answer.body) == (200, b"onetwo")
    assert answer.headers == [(b"content-type", b"text/plain")]


@pytest.mark.parametrize(
    ("length", "is_whole"), [(GATHERED_BYTES_MAX + 1, True), (6, False)], ids=["long", "HEAD"]
)
def test_a_long_answer_and_that_to_head_go_on_with_their_length(length, is_whole):
    answer = passed_back(b"", length=length, is_whole=is_whole)

    assert not isinstance(answer.body, bytes)
    assert answer.length == length


def test_where_the_leader_ends_its_connection_the_clients_ends_too():
    """A body above the limit: nobody has read the rest of it."""
    assert passed_back(b"too large", ends=True).close
    assert passed_back(b"", length=GATHERED_BYTES_MAX + 1, ends=True).close
    assert not passed_back(b"one").close


def test_of_a_short_answer_that_breaks_off_nothing_is_passed_back():
    with pytest.raises(ExchangeError):
        passed_back(b"one", length=6, broken=True)


def waiting_for_a_leader(monkeypatch, happens):
    """The answer to a write that is passed on to leader 1, who never answers, while something happens."""
    asked = asyncio.Event()

    async def never(to, *request):
        asked.set()
        await asyncio.sleep(3_600)

    async def main():
        monkeypatch.setattr(module, "exchange", never)
        monkeypatch.setattr(module, "LOST_SECONDS_MAX", 0.01)
        membership = SimpleNamespace(
            leads=False,
            leader_address="127.0.0.1:1",
            leader_number=1,
            seat=SimpleNamespace(may_answer=None),
            answers=Answers(),
        )
        gate = Gate(lambda request: None, membership, None)
        request = Request("POST", b"/client/v4/zones", [], "192.0.2.1", Body(lambda: None, ended=True))
        answer = asyncio.ensure_future(gate(request))
        await asked.wait()
        await happens(membership, answer)
        return await answer

    return asyncio.run(main())


def test_who_waits_for_a_process_that_has_lost_the_office_is_answered_at_once(monkeypatch):
    """It may be dead, and its host keep the connection open for the next one."""

    async def happens(membership, answer):
        membership.on_other_leader()
        await asyncio.sleep(0)
        assert not answer.done()
        membership.leader_number = 2
        membership.on_other_leader()

    answer = waiting_for_a_leader(monkeypatch, happens)
    assert answer.status == 503
    assert b"may have been written" in answer.body


def test_who_waits_for_a_leader_that_is_not_reached_is_answered_though_nobody_else_leads(monkeypatch):
    """The way to it is cut, and the database goes on knowing it."""

    async def happens(membership, answer):
        membership.on_unreached(0)
        await asyncio.sleep(0)
        assert not answer.done(), "one of before"
        membership.on_unreached(1)

    answer = waiting_for_a_leader(monkeypatch, happens)
    assert answer.status == 503
    assert b"may have been written" in answer.body


def test_who_asks_a_dead_leader_what_became_of_a_request_asks_the_next_one_at_once(monkeypatch):
    asked = asyncio.Event()

    async def never(to, *request):
        asked.set()
        await asyncio.sleep(3_600)

    async def main():
        monkeypatch.setattr(module, "exchange", never)
        monkeypatch.setattr(module, "ASK_SECONDS_MAX", 3_600)
        membership = SimpleNamespace(
            leads=False, leader_address="127.0.0.1:1", leader_number=1, seat=SimpleNamespace(may_answer=None)
        )
        gate = Gate(lambda request: None, membership, None)
        found = asyncio.ensure_future(gate._ask_settled())
        await asked.wait()
        membership.leader_number = 2
        membership.on_other_leader()
        assert await asyncio.wait_for(found, 60) is None
        assert gate._asking == {}

    asyncio.run(main())
