"""What a control process does with the outcome of its rounds, against a clerk that answers from memory."""

import asyncio
import threading
from concurrent.futures import Future
from types import SimpleNamespace

import apsw
import psycopg
import pytest

from edgestead.cluster.members import ADMITTED, JOINING, Row
from edgestead.cluster.office import Holder, State
from edgestead.cluster.seat import Admit, Claim, Poll, Register, View
from edgestead.server.cluster import membership as module
from edgestead.server.cluster import part
from edgestead.server.cluster.membership import Membership
from edgestead.store.controllog import NotLeader, Position

OTHER = View(Holder(1, 5), {1: Row(5, ADMITTED), 2: Row(0, JOINING)}, "127.0.0.1:1")
NOBODY = View(None, {2: Row(0, JOINING)})


class Clerk:
    """This process is number 2."""

    has_one_copy = False

    def __init__(self, view):
        self.view = view

    def answer(self, ask):
        match ask:
            case Register():
                return 2
            case Poll():
                return self.view
            case Claim():
                self.view = View(Holder(2, 0), {2: Row(0, ADMITTED)})
        return True

    def leave(self, number):
        pass

    def close(self):
        pass


class Store:
    position = Position(3, b"chain")

    def take_office(self, number):
        failed = Future()
        failed.set_exception(apsw.FullError("database or disk is full"))
        return failed

    def resign(self):
        pass


async def rounds(membership, count):
    for _ in range(count):
        await membership._round()
        membership._after_round()
        await asyncio.sleep(0)


def make(clerk, fatal):
    log = SimpleNamespace(read=lambda after: [])
    return Membership(Store(), log, clerk, None, applied=None, live=None, fatal=fatal)


def test_a_node_that_still_starts_holds_up_no_write(monkeypatch):
    """A leader's writes wait for each process that has a link to it."""
    dialled = []

    class Following:
        def __init__(self, store, member, address, number, **more):
            dialled.append((address, number))

        async def run(self):
            await asyncio.sleep(3_600)

    monkeypatch.setattr(module, "Following", Following)

    async def main():
        made = make(Clerk(OTHER), fatal=None)
        await rounds(made, 5)
        assert dialled == []

        made.may_link = True
        await rounds(made, 2)
        await made.close()

    asyncio.run(main())
    assert dialled == [(("127.0.0.1", 1), 2)]


def test_who_cannot_take_the_office_does_not_keep_it_from_others():
    """As on a full disk."""
    ended = []

    async def main():
        made = make(Clerk(NOBODY), fatal=ended.append)
        await rounds(made, 3)
        assert made.seat.office.state is State.CLAIMING
        await made._taking
        await made.close()

    asyncio.run(main())
    assert [str(error) for error in ended[:1]] == ["database or disk is full"]


def test_who_loses_its_link_to_the_leader_looks_often_for_a_while_who_leads(monkeypatch):
    """The leader may be dead, and its host about to free the office."""
    links = []

    class Following:
        was_admitted, is_linked = False, True

        def __init__(self, *arguments, **more):
            self.ended = asyncio.Event()
            links.append(self)

        async def run(self):
            await self.ended.wait()
            raise EOFError

    monkeypatch.setattr(module, "Following", Following)

    async def main():
        made, paces = make(Clerk(OTHER), fatal=None), []
        made.may_link = True
        for was_admitted in (False, True):  # it is what tells a lost link from one that never came to be
            await rounds(made, 2)
            links[-1].was_admitted = was_admitted
            links[-1].ended.set()
            await made._link
            paces.append(made.pause_seconds)
        await made.close()
        assert made._hurries_until <= asyncio.get_running_loop().time() + module.HURRY_SECONDS
        return paces

    assert asyncio.run(main()) == [0.25, module.HURRY_PAUSE_SECONDS]


def test_a_leader_that_loses_a_follower_looks_often_for_a_while():
    """A write waits for it until its row is gone."""

    async def main():
        made = make(Clerk(OTHER), fatal=None)
        made.leading._on_unlinked()
        await made.close()
        return made.pause_seconds

    assert asyncio.run(main()) == module.HURRY_PAUSE_SECONDS


def test_a_question_that_fails_as_nobody_thought_is_one_whose_outcome_is_unknown(caplog):
    """A process that was to be admitted begins again: its row may say so, and nobody would tell it."""

    class Odd(Clerk):
        registered = 0

        def answer(self, ask):
            if isinstance(ask, Register):
                self.registered += 1
                return 1 + self.registered
            if isinstance(ask, Admit) and ask.number == 2:
                raise ZeroDivisionError
            return super().answer(ask)

    async def main():
        made = make(Odd(OTHER), fatal=None)
        states = []
        for _ in range(2):
            await rounds(made, 1)
            made.seat.admitted(1)
            await rounds(made, 1)
            states.append((made.seat.office.number, made.seat.office.state))
        await made.close()
        return states

    assert asyncio.run(main()) == [(2, State.OUTSIDE), (3, State.FOLLOWING)]
    assert "ZeroDivisionError" in caplog.text


def test_who_cannot_write_what_it_read_from_the_log_ends():
    """As on a full disk: it would fall behind, and say nothing."""
    ended = []

    class Full(Store):
        def apply(self, entries):
            return self.take_office(2)

    async def main():
        made = make(Clerk(OTHER), fatal=ended.append)
        made._store = Full()
        made._control_log.read = lambda after: ["an entry"]
        await rounds(made, 2)
        await asyncio.wait([made._polling])
        await made.close()

    asyncio.run(main())
    assert [str(error) for error in ended] == ["database or disk is full"]


class Behind(Store):
    """A copy that lacks entries 4 and 5 of the log; the log says what it was asked."""

    def __init__(self):
        self.asked, self.applied = [], []

    def take_office(self, number):
        self.asked.append("office")
        done = Future()
        if self.position.sequence < 5:
            done.set_exception(NotLeader())
        else:
            done.set_result(None)
        return done

    def apply(self, entries):
        self.asked.append("apply")
        self.position = Position(entries[-1], b"chain")
        done = Future()
        done.set_result(None)
        return done


def test_who_has_all_of_the_log_reads_it_no_more_before_it_takes_the_office():
    async def main(position):
        store = Behind()
        store.position = position
        made = make(Clerk(NOBODY), fatal=None)
        made._store = store
        made._control_log = SimpleNamespace(read=lambda after: store.asked.append("read") or [after + 1])
        await rounds(made, 3)
        await made._taking
        assert made.leads
        await made.close()
        return store.asked

    assert asyncio.run(main(Position(5, b"chain"))) == ["office"]
    assert asyncio.run(main(Position(3, b"chain"))) == ["office", "read", "apply"] * 2 + ["office"]


def test_a_database_that_hangs_is_asked_for_the_log_by_one_thread(monkeypatch):
    """Everything else that runs on threads, as reads of large files do, would wait for the others."""
    monkeypatch.setattr(module, "POLL_SECONDS", 0.0)
    asked, answered = [], threading.Event()

    def read(after):
        asked.append(after)
        answered.wait()
        return []

    async def main():
        made = make(Clerk(OTHER), fatal=None)
        made._control_log = SimpleNamespace(read=read)
        try:
            await rounds(made, 5)
            await asyncio.to_thread(lambda: None)
            assert len(asked) == 1
        finally:
            answered.set()
        await made._polling
        await rounds(made, 1)
        await made._polling
        assert len(asked) == 2
        await made.close()

    asyncio.run(main())


def test_a_leaders_duties_begin_though_they_failed_as_nobody_thought(monkeypatch, caplog):
    monkeypatch.setattr(module, "POLL_SECONDS", 0.0)
    store, faults, begun = Behind(), [ZeroDivisionError(), ZeroDivisionError()], []
    store.position = Position(5, b"chain")

    async def open_():
        if faults:
            raise faults.pop()
        begun.append(True)

    async def main():
        made = make(Clerk(NOBODY), fatal=None)
        made._store = store
        made.duties = SimpleNamespace(open=open_, close=lambda: None)
        await rounds(made, 3)
        await made._taking
        await made._on_duty
        await made.close()

    asyncio.run(main())
    assert begun == [True]
    assert sum("duties could not begin" in line for line in caplog.messages) == 1, "not one each second"


class _Ended(BaseException):
    pass


def test_the_list_of_nodes_is_read_again_whatever_one_look_met(monkeypatch):
    """A node that was removed would be let in for good."""
    monkeypatch.setattr(part, "LIST_SECONDS", 0.0)
    looks = [psycopg.errors.InternalError_(), ZeroDivisionError(), {}, _Ended()]

    def nodes():
        found = looks.pop(0)
        if isinstance(found, BaseException):
            raise found
        return found

    made = object.__new__(part.ClusterPart)
    made._registry = SimpleNamespace(nodes=nodes)
    made._membership = SimpleNamespace(leads=True, may_answer=lambda: False)
    made._nodes, made._port = {"removed": None}, None

    with pytest.raises(_Ended):
        asyncio.run(made._list_for_ever())
    assert made._nodes == {}


@pytest.mark.parametrize("is_linked", [True, False], ids=["silent for a moment", "not reached"])
def test_only_of_a_leader_that_cannot_be_dialled_nothing_is_waited_for(monkeypatch, is_linked):
    """One whose link was silent may only be busy: what it was asked goes on."""

    class Following:
        was_admitted = False

        def __init__(self, store, member, address, number, **more):
            self.is_linked = is_linked

        async def run(self):
            raise TimeoutError

    monkeypatch.setattr(module, "Following", Following)

    async def main():
        unreached = []
        membership = make(Clerk(OTHER), None)
        membership.may_link = True
        membership.on_unreached = unreached.append
        await rounds(membership, 3)
        await membership.close()
        return unreached

    assert set(asyncio.run(main())) == (set() if is_linked else {1})


def test_what_wakes_it_during_a_round_begins_another_one_at_once(monkeypatch):
    """The office was lost meanwhile, say, and the round knows nothing of it."""
    monkeypatch.setattr(module, "RENEW_MS", 3_600_000)

    async def main():
        made, begun, again = make(Clerk(OTHER), fatal=None), [], asyncio.Event()

        async def one():
            begun.append(1)
            if len(begun) == 1:
                made._lose("")
            else:
                again.set()

        made._round = one
        made.open()
        try:
            await asyncio.wait_for(again.wait(), 60)
        finally:
            await made.close()

    asyncio.run(main())
