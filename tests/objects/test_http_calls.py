"""Calls over HTTP run in the tasks that serve them: what a call may not see of that, and not do to it."""

import asyncio
from contextvars import ContextVar
from pathlib import Path

from edgestead import StatefulObject
from edgestead.server.objects.host import Host
from tests.objects.hosts import Client, serve

noted: ContextVar[str] = ContextVar("noted", default="nothing")


class Gate(StatefulObject):
    """Calls that wait until another one opens the gate, or ends the object's life."""

    def __init__(self, ctx: object, env: object) -> None:
        super().__init__(ctx, env)  # type: ignore[arg-type]
        self.opened = asyncio.Event()
        self.waiting = asyncio.Event()
        self.through = asyncio.Event()

    async def wait(self) -> str:
        self.waiting.set()
        await self.opened.wait()
        await self.ctx.storage.put("passed", True)
        self.through.set()
        return "passed"

    async def arrived(self) -> None:
        await self.waiting.wait()

    async def open(self) -> None:
        self.opened.set()

    async def end(self) -> None:
        self.ctx.abort("on purpose")

    async def cancel(self) -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(60)

    async def passed(self) -> bool:
        await self.through.wait()
        stored: bool = await self.ctx.storage.get("passed", default=False)
        return stored

    async def note(self) -> str:
        before = noted.get()
        noted.set("by the call before")
        return before


class Slow(StatefulObject):
    async def on_start(self) -> None:
        await asyncio.sleep(0.1)
        self.ready = True

    async def is_ready(self) -> bool:
        return hasattr(self, "ready")


async def another(client: Client) -> Client:
    """A second connection to the same host."""
    return Client(*await asyncio.open_connection(*client.writer.get_extra_info("peername")))


def test_a_first_call_waits_for_the_start(tmp_path: Path) -> None:
    async def script(client: Client, host: Host) -> None:
        assert await client.call("Slow/a/is_ready") is True

    serve(tmp_path, script, Slow)


def test_a_reset_answers_each_waiting_call_and_keeps_its_connection(tmp_path: Path) -> None:
    async def script(client: Client, host: Host) -> None:
        waiter = await another(client)
        waiting = asyncio.create_task(waiter.ask("POST", "/objects/Gate/a/wait"))
        await client.call("Gate/a/arrived")

        assert (await client.ask("POST", "/objects/Gate/a/end"))[0] == 503
        status, answer = await waiting

        assert status == 503
        assert "on purpose" in answer["errors"][0]["message"]
        assert await waiter.call("Gate/b/open") is None
        assert await client.call("Gate/a/open") is None
        waiter.writer.close()

    serve(tmp_path, script, Gate)


def test_a_call_that_cancels_itself_is_answered_and_keeps_its_connection(tmp_path: Path) -> None:
    async def script(client: Client, host: Host) -> None:
        assert (await client.ask("POST", "/objects/Gate/a/cancel"))[0] == 503
        assert await client.call("Gate/a/open") is None

    serve(tmp_path, script, Gate)


def test_a_client_that_goes_away_does_not_stop_its_call(tmp_path: Path) -> None:
    async def script(client: Client, host: Host) -> None:
        leaving = await another(client)
        await leaving.send(b"POST /objects/Gate/a/wait HTTP/1.1\r\nhost: h\r\ncontent-length: 0\r\n\r\n")
        await client.call("Gate/a/arrived")
        leaving.writer.close()
        await leaving.writer.wait_closed()

        await client.call("Gate/a/open")

        assert await client.call("Gate/a/passed")

    serve(tmp_path, script, Gate)


def test_a_call_inherits_nothing_from_the_one_before_it(tmp_path: Path) -> None:
    async def script(client: Client, host: Host) -> None:
        head = b"POST /objects/Gate/a/note HTTP/1.1\r\nhost: h\r\ncontent-length: 0\r\n\r\n"
        await client.send(head * 2)  # the second one waits while the first is served

        answers = [(await client.answer())[2] for _ in range(2)]

        assert all(b'"result":"nothing"' in answer for answer in answers)
        assert await client.call("Gate/a/note") == "nothing"

    serve(tmp_path, script, Gate)
