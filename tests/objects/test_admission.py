"""A right that ends while its request waits: for a body, for the object's turn, for the object's process."""

import asyncio
from pathlib import Path
from typing import Any, ClassVar

import pytest

from edgestead import Request, Response, StatefulObject
from edgestead.http1 import messages
from edgestead.model.refusals import EdgeError
from edgestead.model.refusals import object as refusals
from edgestead.server.objects.host import Host
from edgestead.usecases.access.authorise import PLATFORM
from tests.objects.hosts import Client, serve
from tests.objects.test_http_calls import another
from tests.objects.test_shards import name_of, run


class Turn(StatefulObject):
    """Keeps everybody out until the test lets them in, and notes what ran. `slow` ones begin like that."""

    ran: ClassVar[list[str]] = []
    shut: ClassVar[asyncio.Event]
    may_go_on: ClassVar[asyncio.Event]

    async def on_start(self) -> None:
        if (self.ctx.id.name or "").startswith("slow"):
            await self._wait()

    async def block(self) -> None:
        await self.ctx.block_concurrency_while(self._wait)

    async def _wait(self) -> None:
        self.shut.set()
        await self.may_go_on.wait()

    async def act(self) -> str:
        self.ran.append("act")
        return "acted"

    async def fetch(self, request: Request) -> Response:
        self.ran.append("fetch")
        return Response(await request.body())


class Door:
    """Whether callers may; each question gets the first of `answers`, while there are any."""

    def __init__(self) -> None:
        self.refusal: EdgeError | None = None
        self.answers: list[EdgeError | None] = []
        self.asked: asyncio.Queue[None] = asyncio.Queue()

    def __call__(self, request: messages.Request, permission: str) -> EdgeError | None:
        self.asked.put_nowait(None)
        return self.answers.pop(0) if self.answers else self.refusal


def begin() -> None:
    Turn.ran.clear()
    Turn.shut, Turn.may_go_on = asyncio.Event(), asyncio.Event()


WAITING = {"call": "/objects/Turn/{name}/act", "fetch": "/objects/Turn/{name}/fetch/"}
STATUS = {False: 403, True: 200}


@pytest.mark.parametrize("stays", [False, True], ids=["revoked", "kept"])
@pytest.mark.parametrize("path", WAITING.values(), ids=WAITING)
@pytest.mark.parametrize("starts", [False, True], ids=["blocked", "starting"])
def test_who_waited_for_an_object_is_asked_when_its_turn_has_come(
    tmp_path: Path, path: str, starts: bool, stays: bool
) -> None:
    door = Door()

    async def script(client: Client, host: Host) -> int:
        begin()
        name, first = "slow" if starts else "a", await another(client)
        blocking = asyncio.create_task(first.ask("POST", f"/objects/Turn/{name}/block"))
        await door.asked.get()
        await Turn.shut.wait()
        waiting = asyncio.create_task(client.ask("POST", path.format(name=name)))
        await door.asked.get()
        assert not Turn.ran
        door.refusal = None if stays else PLATFORM.denied()
        Turn.may_go_on.set()
        status: int = (await waiting)[0]
        await blocking
        first.writer.close()
        return status

    assert serve(tmp_path, script, Turn, authorise=door) == STATUS[stays]
    assert len(Turn.ran) == stays


@pytest.mark.parametrize("stays", [False, True], ids=["revoked", "kept"])
@pytest.mark.parametrize("path", WAITING.values(), ids=WAITING)
def test_so_is_who_waited_in_another_process(tmp_path: Path, path: str, stays: bool) -> None:
    door = Door()

    async def script(clients: list[Client], hosts: list[Host]) -> int:
        begin()
        name = name_of(1, 2, "Turn")
        blocking = asyncio.create_task(clients[1].ask("POST", f"/objects/Turn/{name}/block"))
        await door.asked.get()
        await Turn.shut.wait()
        headers = {"authorization": "Bearer secret"}
        waiting = asyncio.create_task(clients[0].ask("POST", path.format(name=name), **headers))
        await door.asked.get()
        await asyncio.sleep(0.05)  # on its way: asked before or after the change, it must not run
        door.refusal = None if stays else PLATFORM.denied()
        Turn.may_go_on.set()
        status: int = (await waiting)[0]
        await blocking
        return status

    assert run(tmp_path, 2, script, Turn, authorise=door) == STATUS[stays]
    assert len(Turn.ran) == stays


def test_a_call_that_waits_for_nothing_is_asked_once(tmp_path: Path) -> None:
    door = Door()

    async def script(client: Client, host: Host) -> int:
        begin()
        await client.call("Turn/a/act")
        before = door.asked.qsize()
        await client.call("Turn/a/act")
        return door.asked.qsize() - before

    assert serve(tmp_path, script, Turn, authorise=door) == 1


async def drip(client: Client, door: Door, path: str, portions: list[bytes]) -> Any:
    """Send a body in portions, each when the one before it was asked about."""
    length = sum(map(len, portions))
    head = f"POST {path} HTTP/1.1\r\nhost: h\r\ncontent-length: {length}\r\n\r\n".encode()
    for portion in (head + portions[0], *portions[1:]):
        await client.send(portion)
        await door.asked.get()
    return await client.answer()


@pytest.mark.parametrize("path", WAITING.values(), ids=WAITING)
def test_when_nobody_can_say_for_a_moment_a_body_goes_on(tmp_path: Path, path: str) -> None:
    """A lease that was away ended the request for good, though control was back at once."""
    door = Door()

    async def script(client: Client, host: Host) -> Any:
        begin()
        door.answers = [None, refusals.Unsure(), refusals.Unsure()]
        return await drip(client, door, path.format(name="a"), [b'{"args"', b": []}"])

    status, _, _ = serve(tmp_path, script, Turn, authorise=door)

    assert status == 200
    assert not door.answers


def test_a_body_is_refused_for_good_when_its_right_is_over(tmp_path: Path) -> None:
    door = Door()

    async def script(client: Client, host: Host) -> Any:
        begin()
        door.answers = [None, None, refusals.Unsure(), PLATFORM.denied()]
        return await drip(client, door, "/objects/Turn/a/fetch/", [b"one", b"two"])

    assert serve(tmp_path, script, Turn, authorise=door)[0] == 403
    assert Turn.ran == ["fetch"]
