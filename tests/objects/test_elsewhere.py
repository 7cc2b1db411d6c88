"""Objects whose log answers later than at once, and may refuse: as one does that other machines share."""

import asyncio
from typing import Any

import pytest

from edgestead import StatefulObject
from edgestead.objects import ids, limits
from edgestead.objects.errors import ObjectReset
from edgestead.objects.runtime.engine import Engine
from edgestead.objects.runtime.node import Node
from edgestead.store.objectlog import Lease, ObjectRef, Told, WrongOwner
from tests.objects.logs import Logs, leased
from tests.objects.nodes import run

REF = ids.from_name("Plain", "a")
ACQUIRING_SECONDS = 0.5
REFUSED = "calls wait for the object already"


class Plain(StatefulObject):
    async def put(self, value: Any) -> None:
        await self.ctx.storage.put("key", value)

    async def get(self) -> Any:
        return await self.ctx.storage.get("key")

    async def tell(self, name: str, value: Any) -> None:
        await self.env.Plain[name].put(value)


class Elsewhere:
    """A node whose log is on another machine now."""

    def __init__(self, node: Node) -> None:
        self.acquired = 0
        self.leases: list[Lease] = []
        self.refuses: WrongOwner | None = None
        self.is_owner = True
        acquire = node.log.acquire

        def later(ref: ObjectRef, done: Told[Lease]) -> None:
            self.acquired += 1

            def told(lease: Lease | None, error: Any) -> None:
                if lease is not None:
                    self.leases.append(lease)
                done(lease, error)

            def answer() -> None:
                if self.refuses is not None:
                    done(None, self.refuses)
                else:
                    acquire(ref, told)

            asyncio.get_running_loop().call_later(ACQUIRING_SECONDS, answer)

        node.log.acquire = later  # type: ignore[method-assign]
        node.log.may_answer = lambda: self.is_owner  # type: ignore[method-assign]


def test_calls_that_come_while_an_object_is_acquired_find_one_life(logs: Logs) -> None:
    async def script(node: Node) -> None:
        elsewhere, plain = Elsewhere(node), node.env.Plain["a"]
        await asyncio.gather(plain.put(1), plain.put(2), plain.put(3))
        assert await plain.get() in (1, 2, 3)
        assert elsewhere.acquired == 1

    run(logs, script, Plain)


def test_no_more_calls_wait_for_an_object_that_is_acquired_than_for_one_in_memory(
    logs: Logs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "CALLS_WAITING_MAX", 3)

    async def script(node: Node) -> None:
        Elsewhere(node)
        for _ in range(2):
            calls = (node.env.Plain["a"].put(n) for n in range(5))
            ends = await asyncio.gather(*calls, return_exceptions=True)
            assert sorted(map(str, ends)) == [f"3 {REFUSED}"] * 2 + ["None"] * 3
            assert node.evict(("Plain", REF.id))
            assert not node._waiting

    run(logs, script, Plain)


def test_a_lease_that_nobody_waits_for_any_more_is_given_back(logs: Logs) -> None:
    async def script(node: Node) -> None:
        elsewhere = Elsewhere(node)
        visit = asyncio.ensure_future(node.visit(REF, asyncio.sleep))  # type: ignore[arg-type]
        await asyncio.sleep(ACQUIRING_SECONDS / 2)
        visit.cancel()
        await asyncio.sleep(ACQUIRING_SECONDS)
        (lease,) = elsewhere.leases
        with pytest.raises(Exception, match="somebody else"):
            lease.release({})
        await node.env.Plain["a"].put(1)
        assert await node.env.Plain["a"].get() == 1

    run(logs, script, Plain)


def test_a_visitor_is_asked_again_when_acquiring_took_a_while(logs: Logs) -> None:
    async def script(node: Node) -> None:
        Elsewhere(node)
        asked, done = [], []

        async def ask_again() -> None:
            asked.append(asyncio.get_running_loop().time())
            if len(asked) == 2:
                raise PermissionError

        async def write(engine: Engine) -> None:
            done.append(engine)

        with pytest.raises(PermissionError):
            await node.visit(REF, write, ask_again=ask_again)
        assert (asked[1] - asked[0], done) == (pytest.approx(ACQUIRING_SECONDS), [])
        await node.visit(REF, write)

    run(logs, script, Plain)


def test_who_calls_a_process_that_is_not_the_owner_is_told_so(logs: Logs) -> None:
    async def script(node: Node) -> None:
        elsewhere = Elsewhere(node)
        elsewhere.refuses = WrongOwner("another process owns it", 7)
        with pytest.raises(WrongOwner) as refusal:
            await node.call(REF, "get", b"")
        assert refusal.value.version == 7
        elsewhere.refuses = None
        assert await node.env.Plain["a"].get() is None

    run(logs, script, Plain)


def test_no_answer_and_no_message_leaves_that_the_next_owner_does_not_know(logs: Logs) -> None:
    async def script(node: Node) -> None:
        elsewhere, plain = Elsewhere(node), node.env.Plain["a"]
        await plain.put(1)
        elsewhere.is_owner = False
        for use in (plain.get(), plain.put(2), plain.tell("b", 3), node.visit(REF, nothing)):
            with pytest.raises(ObjectReset, match="another process"):
                await use
        with pytest.raises(ObjectReset, match="another process"):
            await node.visit(ids.from_name("Plain", "c"), nothing)
        assert node.find_live(ids.from_name("Plain", "b")) is None
        elsewhere.is_owner = True
        assert await plain.get() == 2

    async def nothing(engine: Engine) -> None: ...

    run(logs, script, Plain)


def test_a_node_that_closes_waits_for_what_it_acquires(logs: Logs) -> None:
    async def script(node: Node) -> None:
        elsewhere = Elsewhere(node)
        call = asyncio.ensure_future(node.env.Plain["a"].get())
        await asyncio.sleep(ACQUIRING_SECONDS / 2)
        await node.close()
        with pytest.raises(ObjectReset, match="closing"):
            await call
        assert len(elsewhere.leases) == 1
        assert node.live_count == 0

    run(logs, script, Plain)


def test_an_object_whose_lease_was_ended_can_leave_memory(logs: Logs) -> None:
    async def script(node: Node) -> None:
        await node.env.Plain["a"].put(1)
        leased(node.log, REF)

        assert node.evict((REF.class_name, REF.id))

        assert node.live_count == 0
        assert await node.env.Plain["a"].get() == 1

    run(logs, script, Plain)
