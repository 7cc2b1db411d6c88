"""Objects of several processes: each call finds its object's owner, streams included.

The "processes" are hosts on one loop, with the Unix sockets that real ones would have between them.
"""

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from edgestead import Request, Response, StatefulObject
from edgestead.http1.limits import HEADERS_MAX
from edgestead.http1.protocol import PassingOn
from edgestead.model.budgets.turns import Turns
from edgestead.objects import ids
from edgestead.objects.errors import Overloaded
from edgestead.objects.runtime.admission import Authorise
from edgestead.objects.runtime.calls import error_of, pack_arguments
from edgestead.objects.runtime.classes import describe
from edgestead.objects.runtime.containment import Nowhere
from edgestead.server.objects import layout as layout
from edgestead.server.objects.host import Host, Peers
from edgestead.sqlite.objectlog.files import LocalFiles
from edgestead.sqlite.objectlog.paths import keep_path
from tests.objects.hosts import SEGMENT_BYTES, Client, allow, patient
from tests.objects.logs import entries

COUNT = 3
FRAMING = {"content-length", "transfer-encoding"}


class Counter(StatefulObject):
    async def add(self, by: int = 1) -> int:
        n: int = await self.ctx.storage.get("n", default=0) + by
        await self.ctx.storage.put("n", n)
        return n

    async def add_there(self, name: str, by: int) -> Any:
        return await self.env.Counter[name].add(by=by)

    async def fail(self) -> None:
        raise ValueError("on purpose")

    async def wait(self) -> None:
        await asyncio.sleep(60)

    async def fetch(self, request: Request) -> Response:
        body = await request.body()
        if request.path == "/stream":
            return Response(self._chunks(), headers={"x-length": str(len(body))})
        facts = {
            "path": request.path,
            "query": request.query,
            "client": request.client,
            "host": request.headers.get("host"),
            "length": len(body),
            "headers": request.headers,
        }
        return Response.json(facts)

    async def _chunks(self) -> AsyncIterator[bytes]:
        for number in range(100):
            yield b"%d" % number * 1_000
            await asyncio.sleep(0)


class Table(StatefulObject):
    storage = "sql"

    async def insert(self, value: str) -> None:
        self.ctx.storage.sql.exec("CREATE TABLE IF NOT EXISTS t (value)")
        self.ctx.storage.sql.exec("INSERT INTO t VALUES (?)", value)

    async def values(self) -> list[Any]:
        return [row["value"] for row in self.ctx.storage.sql.exec("SELECT value FROM t ORDER BY value")]


class Alone(Counter):
    durability = "sqlite"

    async def add(self, by: int = 1) -> int:
        return await super().add(by)


class Alarmed(StatefulObject):
    async def alarm(self) -> None:
        pass

    async def forget(self) -> None:
        await self.ctx.storage.delete_alarm()

    async def remind(self, ms: int) -> None:
        await self.ctx.storage.set_alarm(ms)

    async def reminder(self) -> Any:
        return await self.ctx.storage.get_alarm()


CLASSES = {kind.__name__: describe(kind) for kind in (Counter, Table, Alarmed, Alone)}


def name_of(owner: int, count: int = COUNT, class_name: str = "Counter") -> str:
    """A name whose object lives in that process."""
    names = (f"n{number}" for number in range(1_000))
    return next(name for name in names if ids.owner_of(ids.from_name(class_name, name), count) == owner)


def run(
    root: Path,
    count: int,
    script: Callable[[list[Client], list[Host]], Coroutine[Any, Any, Any]],
    *classes: type[StatefulObject],
    authorise: Authorise = allow,
    apart: tuple[str, ...] = (),
    went: Nowhere | None = None,
) -> Any:
    """Run a script against so many hosts; `clients` are connected to one each.

    With `went` the last one is for the classes that went apart by it.
    """
    loaded = CLASSES | {kind.__name__: describe(kind) for kind in classes}
    dealt = count if went is None else count - 1
    folders = [layout.settle(root / "objects", worker, dealt, apart) for worker in range(count)]
    paths = {kind: [str(root / f"{kind}{n}") for n in range(count)] for kind in ("calls", "requests")}

    def listen(path: str) -> socket.socket:
        Path(path).unlink(missing_ok=True)
        made = socket.socket(socket.AF_UNIX)
        made.bind(path)
        made.listen()
        return made

    async def main() -> Any:
        hosts, clients = [], []
        for worker, folder in enumerate(folders):
            host = Host(str(folder), loaded, segment_bytes=SEGMENT_BYTES)
            bound = socket.create_server(("127.0.0.1", 0))
            port = bound.getsockname()[1]
            calls, requests = (listen(paths[kind][worker]) for kind in ("calls", "requests"))
            peers = Peers(
                worker,
                paths["calls"],
                paths["requests"],
                calls,
                requests,
                apart,
                dealt,
                went,
            )
            await host.open([bound], authorise, peers=peers)
            hosts.append(host)
            clients.append(Client(*await asyncio.open_connection("127.0.0.1", port)))
        try:
            async with asyncio.timeout(120):
                return await script(clients, hosts)
        finally:
            for client in clients:
                client.writer.close()
            await asyncio.gather(*(host.close() for host in hosts))

    with patient():
        return asyncio.run(main())


def test_every_process_reaches_every_object(tmp_path: Path) -> None:
    async def script(clients: list[Client], hosts: list[Host]) -> None:
        for owner in range(COUNT):
            said = [await client.call(f"Counter/{name_of(owner)}/add") for client in clients]
            assert said == [1, 2, 3]
            assert [ref.name for ref in hosts[owner].node.live()] == [name_of(owner)]

    run(tmp_path, COUNT, script)


def test_objects_call_objects_of_other_processes(tmp_path: Path) -> None:
    async def script(clients: list[Client], hosts: list[Host]) -> None:
        here, there = name_of(0), name_of(1)
        assert await clients[2].call(f"Counter/{here}/add_there", there, 5) == 5
        assert await clients[0].call(f"Counter/{there}/add") == 6

    run(tmp_path, COUNT, script)


def test_errors_and_refusals_are_the_same_from_every_process(tmp_path: Path) -> None:
    async def script(clients: list[Client], hosts: list[Host]) -> None:
        for path in ("fail", "missing", "fetch", "add?x"):
            said = [await client.ask("POST", f"/objects/Counter/{name_of(0)}/{path}") for client in clients]
            assert said[0][0] == said[1][0] == said[2][0]

    run(tmp_path, COUNT, script)


def test_requests_and_streams_pass_between_processes(tmp_path: Path) -> None:
    async def script(clients: list[Client], hosts: list[Host]) -> None:
        path = f"/objects/Counter/{name_of(0)}/fetch"
        for client in clients:
            status, facts = await client.ask("PUT", f"{path}/a%20b?q=1", b"x" * 300_000, colour="blue")
            assert (status, facts["path"], facts["query"]) == (200, "/a%20b", {"q": "1"})
            assert (facts["client"], facts["length"]) == ("127.0.0.1", 300_000)
            assert facts["headers"]["colour"] == "blue"
            assert "edge-forwarded-client" not in facts["headers"]
            await client.send(
                f"POST {path}/stream HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n"
                "3\r\nabc\r\n0\r\n\r\n".encode()
            )
            status, headers, body = await client.answer()
            assert (status, headers["x-length"]) == (200, "3")
            assert body == b"".join(b"%d" % number * 1_000 for number in range(100))

    run(tmp_path, COUNT, script)


def test_requests_to_another_process_share_its_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[PassingOn] = []
    accept = PassingOn.connection_made

    def accepted(self: PassingOn, transport: asyncio.BaseTransport) -> None:
        made.append(self)
        accept(self, transport)

    monkeypatch.setattr(PassingOn, "connection_made", accepted)

    async def script(clients: list[Client], hosts: list[Host]) -> None:
        path = f"/objects/Counter/{name_of(1)}/fetch"
        for number in range(20):
            status, got = await clients[0].ask("POST", f"{path}/{number}", b"x" * number)
            assert (status, got["path"], got["length"]) == (200, f"/{number}", number)
        assert len(made) == 1

        answers = await asyncio.gather(*(client.ask("GET", path + "/x") for client in clients))
        assert [status for status, _ in answers] == [200] * COUNT
        assert len(made) == 2  # one from each other process

        await clients[0].send(f"GET {path}/stream HTTP/1.1\r\nhost: a\r\n\r\n".encode())
        await clients[0].reader.readuntil(b"\r\n\r\n")
        clients[0].writer.transport.abort()  # in the middle of an answer: nobody gets the rest of it
        for _ in range(20):
            status, got = await clients[2].ask("GET", f"{path}/x")
            assert (status, got["path"]) == (200, "/x")
        for protocol in made:  # as when the other process ends
            protocol.abort()
        await asyncio.sleep(0.01)
        assert (await clients[2].ask("GET", f"{path}/x"))[0] == 200

    run(tmp_path, COUNT, script)


def test_who_asks_through_another_process_takes_the_turn_of_its_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: dict[Turns, list[object]] = {}
    wait = Turns.wait

    def noted(self: Turns, address: object, work: Callable[[], None]) -> None:
        waited.setdefault(self, []).append(address)
        wait(self, address, work)

    monkeypatch.setattr(Turns, "must_wait", lambda self, octets: True)
    monkeypatch.setattr(Turns, "wait", noted)

    async def script(clients: list[Client], hosts: list[Host]) -> None:
        server = hosts[1]._server
        assert server is not None
        assert await clients[0].call(f"Counter/{name_of(1)}/add") == 1
        assert waited[server.processor] == ["127.0.0.1"]
        assert (await clients[0].ask("GET", f"/objects/Counter/{name_of(1)}/fetch/x"))[0] == 200
        assert waited[server.processor] == ["127.0.0.1"] * 2

    run(tmp_path, COUNT, script)


def test_a_call_by_way_of_another_process_ends_as_any_other_when_all_of_them_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("edgestead.server.objects.host.DRAIN_SECONDS", 60.0)
    gate: list[asyncio.Event] = []

    class Slow(StatefulObject):
        async def wait(self) -> str:
            gate.append(asyncio.Event())
            await gate[0].wait()
            return "done"

    async def script(clients: list[Client], hosts: list[Host]) -> None:
        name = name_of(1, class_name="Slow")
        waiting = asyncio.create_task(clients[0].call(f"Slow/{name}/wait"))
        while not gate:  # noqa: ASYNC110 - the class tells
            await asyncio.sleep(0.001)
        ending = asyncio.gather(*(one.close() for one in hosts))
        await asyncio.sleep(1.5)  # longer than such calls had
        gate[0].set()

        assert await waiting == "done"
        await ending

    run(tmp_path, COUNT, script, Slow)


def test_a_caller_hears_when_the_owner_goes_away(tmp_path: Path) -> None:
    async def script(clients: list[Client], hosts: list[Host]) -> None:
        waiting = asyncio.create_task(clients[0].ask("POST", f"/objects/Counter/{name_of(1)}/wait"))
        while not hosts[1].live:  # noqa: ASYNC110 - nothing tells when an object came into memory
            await asyncio.sleep(0.001)
        shards = hosts[0]._shards
        assert shards is not None
        shards._askers[1].close()

        status, answer = await waiting

        assert (status, answer["errors"][0]["code"]) == (503, 10468)
        assert await clients[0].call(f"Counter/{name_of(1)}/add") == 1

    run(tmp_path, COUNT, script)


@pytest.mark.parametrize("counts", [(1, 3, 2, 1)])
def test_another_number_of_processes_keeps_every_object(tmp_path: Path, counts: tuple[int, ...]) -> None:
    names = [f"object-{number}" for number in range(20)]

    async def script(clients: list[Client], hosts: list[Host]) -> None:
        for name in names:
            told[name] = told.get(name, 0) + 1
            assert await clients[0].call(f"Counter/{name}/add") == told[name]
            assert await clients[-1].call(f"Alone/{name}/add") == told[name]
            await clients[-1].call(f"Table/{name}/insert", f"{len(clients)}-{told[name]}")
            assert len(await clients[0].call(f"Table/{name}/values")) == told[name]
        assert await clients[0].call("Alarmed/a/reminder") == (None if told[names[0]] == 1 else 10**13)
        await clients[0].call("Alarmed/a/remind", 10**13)
        for host in hosts:
            positions.update({(e.ref.class_name, e.ref.name): e.head for e in entries(host.log)})
        assert all(positions[key] >= head for key, head in before.items())
        before.update(positions)

    told: dict[str, int] = {}
    positions: dict[Any, int] = {}
    before: dict[Any, int] = {}
    for count in counts:
        run(tmp_path, count, script)

    kept = json.loads((tmp_path / "objects" / "layout.json").read_bytes())
    assert kept == {"generation": len(counts), "processes": 1}
    assert sorted(path.name for path in (tmp_path / "objects").iterdir() if path.is_dir()) == ["4"]


def test_a_start_that_was_cut_off_while_dealing_out_begins_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def write(clients: list[Client], hosts: list[Host]) -> None:
        for number in range(10):
            await clients[0].call(f"Counter/n{number}/add", number)

    async def check(clients: list[Client], hosts: list[Host]) -> None:
        for number in range(10):
            assert await clients[0].call(f"Counter/n{number}/add", 0) == number

    run(tmp_path, 1, write)
    with monkeypatch.context() as broken:
        broken.setattr(layout, "_write", lambda root, made: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            layout.settle(tmp_path / "objects", 0, 2)

    run(tmp_path, 1, check)
    run(tmp_path, 2, check)


def test_a_folder_that_is_being_copied_is_dealt_out_nevertheless(tmp_path: Path) -> None:
    """The copy is of no use then, and says so; objects wait for no backup."""
    copying = []

    async def write(clients: list[Client], hosts: list[Host]) -> None:
        await clients[0].call("Counter/n/add", 5)
        copying.append(LocalFiles().lock(keep_path(str(tmp_path / "objects/1/0"))))

    async def check(clients: list[Client], hosts: list[Host]) -> None:
        assert await clients[0].call("Counter/n/add", 0) == 5

    run(tmp_path, 1, write)
    run(tmp_path, 2, check)
    copying.pop().close()


class Apart(StatefulObject):
    async def add(self, number: int) -> int:
        total = (await self.ctx.storage.get("total") or 0) + number
        await self.ctx.storage.put("total", total)
        return total


def test_a_class_that_went_apart_begins_new_objects_there_and_leaves_old_ones_where_they_are(
    tmp_path: Path,
) -> None:
    went = Nowhere()
    old, new = name_of(0, 2), name_of(1, 2)

    async def script(clients: list[Client], hosts: list[Host]) -> None:
        for name in (old, new):
            for client in clients:
                await client.call(f"Table/{name}/insert", "x")
            assert await clients[2].call(f"Counter/{old}/add_there", name, 1) == 1
        went.classes = frozenset(("Counter",))
        for owner, name in ((0, old), (1, new), (2, f"new {old}"), (2, f"new {new}")):
            path = name.replace(" ", "%20")
            assert [await client.call(f"Counter/{path}/add") for client in clients][-1] == (
                4 if owner < 2 else 3
            )
            assert await clients[1].call(f"Counter/{old}/add_there", name, 1) == (5 if owner < 2 else 4)
            assert hosts[owner].node.find_live(ids.from_name("Counter", name))
            status, got = await clients[0].ask("GET", f"/objects/Counter/{path}/fetch/x")
            assert (status, got["path"]) == (200, "/x")
            assert (await clients[1].ask("GET", f"/operate/objects/Counter/{path}"))[0] == 200
        status, got = await clients[0].ask("GET", "/operate/objects?class=Counter")
        assert (status, len(got["result"])) == (200, 4)
        assert {ref.class_name for ref in hosts[2].node.live()} == {"Counter"}

    run(tmp_path, 3, script, went=went)


def test_an_object_does_not_begin_where_its_class_is_no_longer_apart(tmp_path: Path) -> None:
    """Its home would begin it, too: it may not know yet, or this process not."""
    went = Nowhere()
    went.classes = frozenset(("Counter",))

    async def script(clients: list[Client], hosts: list[Host]) -> None:
        there, here = ids.from_name("Counter", "there"), ids.from_name("Counter", "new")
        assert (await hosts[2].node.call(there, "add", pack_arguments((), {}))).ok
        went.classes = frozenset()
        assert (await hosts[2].node.call(there, "add", pack_arguments((), {}))).ok
        refused = await hosts[2].node.call(here, "add", pack_arguments((), {}))
        assert isinstance(error_of(refused), Overloaded)

    run(tmp_path, 3, script, went=went)


def test_dealing_out_leaves_a_class_apart_that_went(tmp_path: Path) -> None:
    went = Nowhere()
    went.classes = frozenset(("Counter",))

    async def write(clients: list[Client], hosts: list[Host]) -> None:
        for n in range(10):
            assert await clients[0].call(f"Counter/{n}/add") == 1
            await clients[0].call(f"Table/{n}/insert", "x")

    run(tmp_path, 3, write, went=went)
    root = tmp_path / "objects"
    folders = [layout.settle(root, worker, 3, (), went.classes) for worker in range(4)]
    assert [str(one) for one in folders] == layout.folders(root)

    async def read(clients: list[Client], hosts: list[Host]) -> None:
        assert len(list(entries(hosts[3].node.log))) == 10
        for n in range(10):
            assert await clients[1].call(f"Counter/{n}/add") == 2
            assert await clients[1].call(f"Table/{n}/values") == ["x"]

    run(tmp_path, 4, read, went=went)


@pytest.mark.parametrize("before", [1, 2, 3])
def test_classes_that_are_kept_apart_have_the_last_process_to_themselves(tmp_path: Path, before: int) -> None:
    def script(added: int) -> Callable[[list[Client], list[Host]], Coroutine[Any, Any, None]]:
        async def call(clients: list[Client], hosts: list[Host]) -> None:
            for number in range(12):
                for kind in ("Counter", "Apart"):
                    client = clients[number % len(clients)]
                    assert await client.call(f"{kind}/n{number}/add", number) == number * added
            if added == 2:
                kinds = [{entry.ref.class_name for entry in entries(host.log.store.log)} for host in hosts]
                assert kinds == [{"Counter"}, {"Counter"}, {"Apart"}]

        return call

    run(tmp_path, before, script(1), Apart)
    run(tmp_path, 3, script(2), Apart, apart=("Apart",))
    run(tmp_path, 3, script(3), Apart)


def test_a_layout_that_cannot_be_read_stops_the_start(tmp_path: Path) -> None:
    (tmp_path / "layout.json").write_text("{")

    with pytest.raises(OSError, match="cannot be read"):
        layout.settle(tmp_path, 0, 1)


def test_the_client_of_a_request_is_not_what_the_client_says(tmp_path: Path) -> None:
    async def script(clients: list[Client], hosts: list[Host]) -> None:
        for client in clients:
            path = f"/objects/Counter/{name_of(0)}/fetch/"
            _, facts = await client.ask("GET", path, **{"edge-forwarded-client": "203.0.113.1"})
            assert facts["client"] == "127.0.0.1"

    run(tmp_path, COUNT, script)


@pytest.mark.parametrize("owner", range(COUNT))
def test_a_request_is_read_alike_whichever_process_has_its_object(tmp_path: Path, owner: int) -> None:
    async def script(clients: list[Client], hosts: list[Host]) -> None:
        target = f"/objects/Counter/{name_of(owner)}/fetch/".encode()
        most = b"x-many: y\r\n" * (HEADERS_MAX - 1)
        old = b"GET %b HTTP/1.0\r\nconnection: keep-alive\r\n%b\r\n"
        for raw, host in (
            (b"GET %b HTTP/1.1\r\nhost: a\r\n%b\r\n" % (target, most), "a"),
            (old % (target, b"host: a\r\n"), "a"),
            (old % (target, b""), None),
            (old % (target, most), None),
        ):
            await clients[0].send(raw)
            status, headers, body = await clients[0].answer()
            facts = json.loads(body)
            assert (facts["host"], facts["client"]) == (host, "127.0.0.1")
            assert (status, headers.keys() & FRAMING) == (200, {"content-length"})
            assert int(headers["content-length"]) == len(body) > 0

    run(tmp_path, COUNT, script)


def test_one_pass_looks_at_the_objects_of_all_processes_once(tmp_path: Path) -> None:
    async def script(clients: list[Client], hosts: list[Host]) -> None:
        for number in range(9):
            await clients[0].call(f"Counter/n{number}/add", 1)
        for client in clients:
            found, cursor, pages = [], "", 0
            while pages == 0 or cursor:
                status, answer = await client.ask("POST", f"/operate/verify?limit=4&cursor={cursor}")
                assert (status, answer["result_info"]["log_problems"]) == (200, [])
                found += answer["result"]
                cursor, pages = answer["result_info"]["cursor"].replace("/", "%2F"), pages + 1
            assert pages == 3
            assert sorted(one["name"] for one in found) == [f"n{number}" for number in range(9)]
            assert [one["id"] for one in found] == sorted(one["id"] for one in found)
            assert all((one["keys"], one["problems"]) == (1, []) for one in found)

    run(tmp_path, COUNT, script)


@pytest.mark.parametrize("query", ["", "?class=Counter"])
def test_processes_without_an_object_have_no_problem(tmp_path: Path, query: str) -> None:
    async def script(clients: list[Client], hosts: list[Host]) -> None:
        status, answer = await clients[0].ask("POST", f"/operate/verify{query}")
        assert (status, answer["result"], answer["result_info"]["log_problems"]) == (200, [], [])

    run(tmp_path, COUNT, script)
