"""What users' code does that would end a process: exceptions beyond Exception, forks, other threads."""

import asyncio
import json
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from edgestead import Request, Response, StatefulObject
from edgestead.objects.errors import ObjectReset, RemoteError
from edgestead.objects.runtime.loader import LoadError, load
from edgestead.server.objects.host import Host
from edgestead.testing.node import ObjectNode
from tests.objects.hosts import Client, serve

ENDS: dict[str, type[BaseException]] = {
    kind.__name__: kind
    for kind in (SystemExit, KeyboardInterrupt, GeneratorExit, asyncio.CancelledError, BaseException)
}
WAYS = ("call", "call_later", "task", "transaction", "sync", "other")


class Wordless(Exception):
    def __str__(self) -> str:
        raise ENDS.get(self.args[0], ValueError)("no words")


class Ending(StatefulObject):
    """Raises what it is told to, in the way it is told to."""

    storage = "sql"

    async def on_start(self) -> None:
        if "start" in (self.ctx.id.name or "") and not await self.ctx.storage.get("started"):
            await self.ctx.storage.put("started", True)
            await self.ctx.storage.sync()
            raise ENDS[(self.ctx.id.name or "").partition(" ")[2]]

    async def ok(self) -> int:
        return await self.ctx.storage.get("count") or 0

    async def call(self, end: str) -> None:
        await self.ctx.storage.put("count", 1)
        raise ENDS[end]("on purpose")

    async def call_later(self, end: str) -> None:
        await asyncio.sleep(0)
        await self.call(end)

    async def task(self, end: str) -> None:
        await asyncio.create_task(self.call(end))

    async def transaction(self, end: str) -> None:
        async with self.ctx.storage.transaction() as txn:
            await txn.put("count", 7)
            raise ENDS[end]("on purpose")

    async def sync(self, end: str) -> None:
        def body() -> None:
            raise ENDS[end]("on purpose")

        self.ctx.storage.transaction_sync(body)

    async def other(self, end: str) -> None:
        await self.env.Ending["another"].call(end)

    async def block(self, end: str) -> None:
        async def closure() -> None:
            raise ENDS[end]("on purpose")

        await self.ctx.block_concurrency_while(closure)

    async def wordless(self, end: str = "") -> None:
        raise Wordless(end)

    async def half(self) -> None:
        raise ValueError("half a pair: \ud800")

    async def arm(self, end: str) -> None:
        await self.ctx.storage.put("end", end)
        await self.ctx.storage.set_alarm(0)

    async def alarm(self, info: Any) -> None:
        if not info.is_retry:
            raise ENDS[await self.ctx.storage.get("end")]("on purpose")
        await self.ctx.storage.put("count", 2)

    async def fetch(self, request: Request) -> Response:
        if request.path == "/stream":
            return Response(self._chunks(request.query_string))
        raise ENDS[request.query_string]("on purpose")

    async def _chunks(self, end: str) -> AsyncIterator[bytes]:
        yield b"first"
        raise ENDS[end]("on purpose")


class EndsAtOnce(StatefulObject):
    def __init__(self, ctx: Any, env: Any) -> None:
        super().__init__(ctx, env)
        raise ENDS[ctx.id.name]("on purpose")

    async def ok(self) -> None:
        pass


@pytest.mark.parametrize("end", ENDS)
def test_what_would_end_a_process_ends_the_call(tmp_path: Path, end: str) -> None:
    async def script(client: Client, host: Host) -> None:
        body = json.dumps({"args": [end]}).encode()
        for way in WAYS:
            async with asyncio.timeout(120):
                status, answer = await client.ask("POST", f"/objects/Ending/{way}/{way}", body)
            code, message = answer["errors"][0]["code"], answer["errors"][0]["message"]
            assert (way, status, code) == (way, 422, 10466)
            assert end in message
            written = 0 if way in ("transaction", "sync", "other") else 1
            assert await client.call(f"Ending/{way}/ok") == written, "the object lives on"

    serve(tmp_path, script, Ending)


@pytest.mark.parametrize("end", ENDS)
def test_where_no_call_is_to_be_answered_the_process_lives_on_too(tmp_path: Path, end: str) -> None:
    async def script(client: Client, host: Host) -> None:
        async with asyncio.timeout(120):
            for path in (f"Ending/start%20{end}/ok", f"EndsAtOnce/{end}/ok"):
                status, answer = await client.ask("POST", f"/objects/{path}")
                assert (path, status) == (path, 503)
                assert end in answer["errors"][0]["message"]
            status, answer = await client.ask(
                "POST", "/objects/Ending/a/block", json.dumps({"args": [end]}).encode()
            )
            assert status == (422 if end in ("GeneratorExit", "CancelledError") else 503)
            assert await client.call(f"Ending/start%20{end}/ok") == 0, "the next call begins a new life"
            status, answer = await client.ask("GET", f"/objects/Ending/a/fetch/?{end}")
            assert (status, answer["errors"][0]["code"]) == (422, 10466)

    serve(tmp_path, script, Ending, EndsAtOnce)


@pytest.mark.parametrize("end", [end for end in ENDS if end != "KeyboardInterrupt"])
def test_an_alarm_that_would_end_the_process_is_a_failed_one(end: str) -> None:
    with ObjectNode(Ending) as objects:
        one = objects.Ending["one"]
        one.arm(end)
        objects.advance(1)
        assert one.ok() == 0
        objects.advance(3)
        assert one.ok() == 2, "its retry came"


def test_ctrl_c_in_a_test_is_a_persons(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signal, "getsignal", {signal.SIGINT: signal.default_int_handler}.get)
    with ObjectNode(Ending) as objects:
        with pytest.raises(KeyboardInterrupt):
            objects.Ending["one"].call("KeyboardInterrupt")
        with pytest.raises(RemoteError, match="SystemExit: on purpose"):
            objects.Ending["two"].call("SystemExit")


@pytest.mark.parametrize(
    ("method", "words"), [("wordless", "which has no text"), ("half", "\\ud800")], ids=["wordless", "half"]
)
@pytest.mark.parametrize("end", [None, "SystemExit", "KeyboardInterrupt"])
def test_an_exception_that_cannot_be_told_is_told_all_the_same(
    tmp_path: Path, method: str, words: str, end: str | None
) -> None:
    async def script(client: Client, host: Host) -> None:
        body = json.dumps({"args": [end] if end and method == "wordless" else []}).encode()
        status, answer = await client.ask("POST", f"/objects/Ending/a/{method}", body)
        assert (status, answer["errors"][0]["code"]) == (422, 10466)
        assert words in answer["errors"][0]["message"]
        assert await client.call("Ending/a/ok") == 0

    serve(tmp_path, script, Ending)


def test_a_file_that_ends_the_process_when_it_is_imported_is_named(tmp_path: Path) -> None:
    file = tmp_path / "ends.py"
    file.write_text("import sys\nsys.exit(3)\n")
    with pytest.raises(LoadError, match=r"ends\.py:2: SystemExit: 3"):
        load([str(file)])


class Speechless(StatefulObject):
    """Begins its second life only; a block that fails is to end that."""

    lives = 0

    def __init__(self, ctx: Any, env: Any) -> None:
        super().__init__(ctx, env)
        Speechless.lives += 1
        if ctx.id.name == "made" and Speechless.lives == 1:
            raise Wordless("")

    async def on_start(self) -> None:
        if self.ctx.id.name == "started" and Speechless.lives == 1:
            raise Wordless("")

    async def block(self) -> None:
        async def closure() -> None:
            raise Wordless("")

        await self.ctx.block_concurrency_while(closure)

    async def n(self) -> int:
        return Speechless.lives


@pytest.mark.parametrize(("name", "method"), [("made", "n"), ("started", "n"), ("blocked", "block")])
def test_an_end_that_cannot_be_told_is_an_end_all_the_same(
    monkeypatch: pytest.MonkeyPatch, name: str, method: str
) -> None:
    monkeypatch.setattr(Speechless, "lives", 0)
    with ObjectNode(Speechless) as objects:
        with pytest.raises(ObjectReset, match="Wordless, which has no text"):
            getattr(objects.Speechless[name], method)()
        assert objects.Speechless[name].n() == 2


class Sleepy(StatefulObject):
    """Waits for a day before its first event."""

    async def on_start(self) -> None:
        await asyncio.sleep(86_400)

    async def n(self) -> int:
        return 1


def test_a_start_that_takes_too_long_ends_its_life_and_answers_who_waits() -> None:
    with ObjectNode(Sleepy) as objects, pytest.raises(ObjectReset, match=r"on_start\(\) may take 30 s"):
        objects.Sleepy["a"].n()
