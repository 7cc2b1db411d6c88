"""Each route of the objects' address, and a token that ends while its request waits: nothing is done."""

import asyncio
import json
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import pytest

from edgestead import Request, Response, StatefulObject
from edgestead.feed.lease import Grant, Lease
from edgestead.http1 import messages
from edgestead.model.permissions import BY_NAME
from edgestead.model.refusals import EdgeError
from edgestead.objects import ids
from edgestead.rest.guesses import Guesses
from edgestead.rest.routing import ANY, Route
from edgestead.server.objects.access import Gatekeeper
from edgestead.server.objects.host import Host
from edgestead.tables.accounts import UserRow
from edgestead.tables.tokens import TokenRow
from edgestead.usecases.access.authorise import secret_hash
from edgestead.usecases.access.identities import FedAccess
from tests.objects.hosts import Client, serve
from tests.objects.test_http_calls import another
from tests.server.test_objects_routes import BODIES, CALL, FAR_MS, ROWS, named
from tests.support.revocations import REVOCATIONS

ACCOUNT, SECRET, KEY, EMAIL = "a" * 32, "s" * 40, "k" * 40, "admin@example.com"
ADMIN = {"x-auth-email": EMAIL, "x-auth-key": KEY}
USER = UserRow("u" * 32, EMAIL, EMAIL, secret_hash(KEY), 0)
GROUPS = ("Objects Invoke", "Objects Read", "Objects Write")
POLICY = {
    "id": "p" * 32,
    "effect": "allow",
    "permission_groups": [{"id": BY_NAME[group].id} for group in GROUPS],
    "resources": {"com.cloudflare.api.account.*": "*"},
}
TOKEN = TokenRow(
    id="7" * 32,
    owner_kind="user",
    owner_id=USER.id,
    name="t",
    hash=secret_hash(SECRET),
    status="active",
    policies=msgspec.json.encode([POLICY]).decode(),
    condition=None,
    not_before_us=None,
    expires_us=None,
    issued_us=0,
    modified_us=0,
)
# What does not wait for an object that keeps others out: facts, the log, and what resets it.
AT_ONCE = (
    "",
    "{of_class}",
    "apart",
    "classes",
    "contents",
    "where",
    "bookmark",
    "timeline",
    "restore",
    "undo",
    "quarantine",
    "objects",
    "verify",
    "backup",
)
AT_ONCE_WITH = {("GET", "alarm")}


class Ledger(StatefulObject):
    """Keeps everybody out until the test lets them in."""

    storage = "sql"
    shut: ClassVar[asyncio.Event]
    may_go_on: ClassVar[asyncio.Event]

    async def put(self, value: int) -> int:
        await self.ctx.storage.put("k", await self.ctx.storage.get("k", default=0) + value)
        return value

    async def block(self) -> None:
        await self.ctx.block_concurrency_while(self._wait)

    async def _wait(self) -> None:
        self.shut.set()
        await self.may_go_on.wait()

    async def alarm(self) -> None:
        await self.ctx.storage.put("alarm", True)

    async def fetch(self, request: Request) -> Response:
        await request.body()
        return Response(str(await self.put(1)))


class Door:
    """The gatekeeper of a process, what it knows, and who has asked."""

    def __init__(self) -> None:
        self.fed, lease = FedAccess(), Lease(lambda: 0)
        lease.grant = Grant(1, -1)
        self.keeper = Gatekeeper(self.fed, lease, lambda: 2_000_000, Guesses(0))
        self._asked = False
        self.fed.accounts = (ACCOUNT,)
        self.give()

    def __call__(self, request: messages.Request, permission: str) -> EdgeError | None:
        if request.header(b"authorization") is not None:
            self._asked = True
        return self.keeper(request, permission)

    def ready(self) -> None:
        """For the next request."""
        self.give()
        self._asked = False

    async def asked(self) -> None:
        """The request's head is here, and was let in."""
        while not self._asked:  # noqa: ASYNC110 - whoever asks may not run on a task of this loop's
            await asyncio.sleep(0)

    def give(self) -> None:
        self.fed.table.load([USER], [TOKEN])

    def end(self, how: str) -> None:
        """The token, as the feed says it."""
        left = REVOCATIONS[how](TOKEN)
        self.fed.table.load([USER], [] if left is None else [left])


class Asking:
    """One route asked for one object that has stored something."""

    def __init__(self, row: Route, name: str, admin: Client, caller: Client) -> None:
        self.name, self.admin = name, admin
        self.base = f"/operate/objects/Ledger/{name}"
        self.turn_to(row, caller)

    def turn_to(self, row: Route, caller: Client) -> None:
        self.row, self.caller = row, caller
        self.last = row.path.rpartition("/")[2]

    async def prepare(self) -> None:
        await self.manage("POST", f"/objects/Ledger/{self.name}/put", CALL)
        await self.manage("PUT", f"{self.base}/alarm", {"time": FAR_MS})
        self.bookmark = await self.manage("GET", f"{self.base}/bookmark")
        await self.manage("POST", f"{self.base}/restore", self.bookmark)

    async def manage(self, method: str, path: str, body: Any = None) -> Any:
        octets = b"" if body is None else json.dumps(body).encode()
        status, answer = await self.admin.ask(method, path, octets, **ADMIN)
        assert status == 200, (path, answer)
        return answer["result"] if isinstance(answer, dict) else answer

    async def stored(self) -> tuple[Any, ...]:
        """All that there is of the object: every row, and its alarm."""
        facts = await self.manage("GET", self.base)
        with closing(sqlite3.connect(":memory:")) as db:
            db.deserialize(await self.manage("GET", f"{self.base}/export"))
            rows = tuple(db.iterdump())
        return rows, facts["alarm"], facts["tables"]

    @property
    def octets(self) -> bytes:
        body = self.bookmark if self.last == "restore" else BODIES.get(self.last) if self.row.takes else None
        return b"sent" if self.row.method == ANY else b"" if body is None else json.dumps(body).encode()

    @property
    def head(self) -> bytes:
        object_id = ids.from_name("Ledger", self.name).id
        path = self.row.path.replace("*}", "}").format(
            class_name="Ledger", of_class="Ledger", name=self.name, id=object_id, method="put", path="a/b"
        )
        query = "?method=put" if self.last == "call" else ""
        method = "POST" if self.row.method == ANY else self.row.method
        head = f"{method} {path}{query} HTTP/1.1\r\nhost: h\r\nauthorization: Bearer {SECRET}\r\n"
        return f"{head}content-length: {len(self.octets)}\r\n\r\n".encode()

    @property
    def waits_its_turn(self) -> bool:
        return (
            self.last not in AT_ONCE
            and (self.row.method, self.last) not in AT_ONCE_WITH
            and not self.is_whole
        )

    @property
    def is_whole(self) -> bool:
        """An object as a whole: it is deleted at once, and reset."""
        return self.last in ("{name}", "{id}")


Moment = Callable[[Asking, Door, Callable[[], None]], Awaitable[bool]]


async def in_its_head(asking: Asking, door: Door, end: Callable[[], None]) -> bool:
    head = asking.head
    await asking.caller.send(head[: len(head) // 2])
    end()
    await asking.caller.send(head[len(head) // 2 :] + asking.octets)
    return True


async def in_its_body(asking: Asking, door: Door, end: Callable[[], None]) -> bool:
    octets = asking.octets
    if not octets:
        return False
    await asking.caller.send(asking.head + octets[: len(octets) // 2])
    await door.asked()
    end()
    await asking.caller.send(octets[len(octets) // 2 :])
    return True


async def before_its_turn(asking: Asking, door: Door, end: Callable[[], None]) -> bool:
    if not asking.waits_its_turn:
        return False
    first = await another(asking.admin)
    Ledger.shut, Ledger.may_go_on = asyncio.Event(), asyncio.Event()
    path = f"/objects/Ledger/{asking.name}/block"
    blocking = asyncio.create_task(first.ask("POST", path, b"", **ADMIN))
    await Ledger.shut.wait()
    await asking.caller.send(asking.head + asking.octets)
    await door.asked()
    end()
    Ledger.may_go_on.set()
    assert (await blocking)[0] == 200
    first.writer.close()
    return True


MOMENTS: dict[str, tuple[Moment, int]] = {  # and how many routes meet it, at least
    "head": (in_its_head, len(ROWS)),
    "body": (in_its_body, 12),
    "turn": (before_its_turn, 15),
}


@pytest.mark.parametrize("moment", MOMENTS)
def test_nothing_is_done_for_a_token_that_ended(tmp_path: Path, moment: str) -> None:
    """In each way at each route: what it asked for would show in an object that nobody else changes."""
    send, rows_min = MOMENTS[moment]
    door, met = Door(), []

    async def script(client: Client, host: Host) -> None:
        asking = Asking(ROWS[0], "one", client, client)
        await asking.prepare()
        before = await asking.stored()
        for how in REVOCATIONS:
            for row in ROWS:
                asking.turn_to(row, await another(client))
                if await send(asking, door, partial(door.end, how)):
                    status, _, body = await asking.caller.answer()
                    met.append(row)
                    assert status in (401, 403), (named(row), body)
                asking.caller.writer.close()
                door.ready()
            assert await asking.stored() == before, how

    serve(tmp_path, script, Ledger, authorise=door)
    assert len(met) >= rows_min * len(REVOCATIONS)


@pytest.mark.parametrize("moment", ["body", "turn"])
def test_a_change_that_leaves_the_token_alone_lets_every_request_go_on(tmp_path: Path, moment: str) -> None:
    send, rows_min = MOMENTS[moment]
    door, met = Door(), []

    async def script(client: Client, host: Host) -> None:
        for number, row in enumerate(row for row in ROWS if "{id}" not in row.path):
            asking = Asking(row, f"n{number}", client, await another(client))
            await asking.prepare()
            if await send(asking, door, door.give):
                status, _, body = await asking.caller.answer()
                met.append(row)
                assert status == 200, (named(row), body)
            asking.caller.writer.close()
            door.ready()

    serve(tmp_path, script, Ledger, authorise=door)
    assert len(met) >= rows_min // 2
