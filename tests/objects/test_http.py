"""The objects' HTTP address: calls, fetch, refusals."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from edgestead import Request, Response, StatefulObject
from edgestead.http1 import messages
from edgestead.model.refusals import EdgeError, Unauthenticated
from edgestead.model.refusals import object as refusals
from edgestead.model.refusals.request import InvalidHostOrPath
from edgestead.objects.errors import Overloaded
from edgestead.objects.ids import from_name
from edgestead.objects.runtime.calls import error_of, pack_arguments
from edgestead.objects.values.jsonable import NotJson, to_json
from edgestead.server.objects.host import Host
from tests.objects.hosts import Client, serve

JSON: list[tuple[Any, str]] = [
    (None, "null"),
    (True, "true"),
    (2**80, str(2**80)),
    (1.5, "1.5"),
    ("é", '"é"'),
    ([1, (2, {"a": None})], '[1,[2,{"a":null}]]'),
]
NOT_JSON: list[Any] = [float("nan"), float("inf"), b"x", {1: 2}, {1}, "\ud800", [object()], {"a": {None: 1}}]

REFUSALS: list[tuple[str, str, bytes, int, type[EdgeError] | None]] = [
    ("POST", "/objects/Echo/a/missing", b"", 404, refusals.NoSuchMethod),
    ("POST", "/objects/Echo/a/_private", b"", 404, refusals.NoSuchMethod),
    ("POST", "/objects/Echo/a/on_start", b"", 404, refusals.NoSuchMethod),
    ("POST", "/objects/Echo/a/give/more", b"", 404, refusals.NoSuchRoute),
    ("POST", "/objects/Nobody/a/give", b"", 404, refusals.NoSuchClass),
    ("GET", "/objects/Silent/a/fetch/", b"", 404, refusals.NoSuchMethod),
    ("GET", "/", b"", 404, refusals.NoSuchRoute),
    ("GET", "/objects/Echo", b"", 404, refusals.NoSuchRoute),
    ("GET", "/objects/Echo//give", b"", 404, refusals.NoSuchRoute),
    ("GET", "/objects/Echo/a/give", b"", 405, refusals.NotPost),
    ("POST", "/objects/Echo/%ff/give", b"", 400, InvalidHostOrPath),
    ("POST", "/objects/Echo/" + "x" * 1_025 + "/give", b"", 400, refusals.BadCall),
    ("POST", "/objects/Echo/a/give", b"{", 400, refusals.BadCall),
    ("POST", "/objects/Echo/a/give", b"[]", 400, refusals.BadCall),
    ("POST", "/objects/Echo/a/give", b'{"args": {}}', 400, refusals.BadCall),
    ("POST", "/objects/Echo/a/give", b'{"args": ["\xff"]}', 400, refusals.BadCall),
    ("POST", "/objects/Echo/a/give", b'{"kwargs": {"\xff": 1}}', 400, refusals.BadCall),
    ("POST", "/objects/Echo/a/give", b'{"args": ["\xed\xa0\x80"]}', 400, refusals.BadCall),
    ("POST", "/objects/Echo/a/give", b'{"args": ["\\ud800"]}', 400, refusals.BadCall),
    ("POST", "/operate/objects/Echo/a/sql", b'{"query": "\xff"}', 404, refusals.NoSuchObject),
    ("POST", "/objects/Echo/a/give", b'{"arguments": []}', 400, refusals.BadCall),
    ("POST", "/objects/Echo/a/give", b'{"args": [1, 2, 3]}', 422, refusals.CallRaised),
    ("POST", "/objects/Echo/a/fail", b"", 422, refusals.CallRaised),
    ("POST", "/objects/Echo/a/give_set", b"", 422, refusals.ResultNotJson),
    ("POST", "/objects/Echo/a/give_object", b"", 422, refusals.ResultNotJson),
    ("POST", "/objects/Echo/a/store_object", b"", 422, refusals.CallRaised),
    ("POST", "/objects/Echo/a/abort", b"", 503, refusals.WasReset),
    ("POST", "/objects/Echo/a/abort_another", b"", 422, refusals.CallRaised),
    ("POST", "/objects/Echo/a/be_busy", b"", 422, refusals.CallRaised),
    ("GET", "/objects/Echo/a/fetch/raise", b"", 422, refusals.CallRaised),
    ("GET", "/objects/Echo/a/fetch/wrong", b"", 422, refusals.CallRaised),
]
BAD_HEADS: list[tuple[bytes, int]] = [
    (b"GET / HTTP/1.1\r\n\r\n", 400),
    (b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
    (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
    (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400),
    (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +1\r\n\r\n", 400),
    (b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", 400),
    (b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: identity\r\n\r\n", 400),
    (b"POST / HTTP/1.1\r\nHost : a\r\n\r\n", 400),
    (b"nonsense\r\n\r\n", 400),
    (b"GET / HTTP/1.1\r\nHost: a\r\n" + b"X: y\r\n" * 200 + b"\r\n", 431),
    (b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"y" * 70_000, 431),
]


class Silent(StatefulObject):
    async def give(self) -> None:
        pass


class Echo(StatefulObject):
    async def give(self, value: Any = None, *, by_name: Any = None) -> Any:
        return by_name if value is None else value

    async def give_set(self) -> Any:
        await self.ctx.storage.put("stored", True)
        return {1}

    async def stored(self) -> Any:
        return await self.ctx.storage.get("stored")

    async def fail(self) -> None:
        raise ValueError("on purpose")

    async def abort(self) -> None:
        self.ctx.abort("on purpose")

    async def give_object(self) -> Any:
        return object()

    async def store_object(self) -> None:
        await self.ctx.storage.put("object", object())

    async def abort_another(self) -> None:
        await self.env.Echo["another"].abort()

    async def be_busy(self) -> None:
        raise Overloaded("on purpose")

    async def fail_in_my_way(self) -> None:
        raise type("MyError", (Exception,), {})("on purpose")

    async def _private(self) -> None:
        pass

    async def fetch(self, request: Request) -> Any:
        if request.path == "/cookies":
            pairs = [
                ("Set-Cookie", "a=1"),
                ("Set-Cookie", "b=2"),
                ("Content-Type", "application/problem+json"),
            ]
            return Response.json({}, headers=pairs)
        if request.path == "/headers":
            return Response.json(request.headers)
        if request.path == "/raise":
            raise ValueError("on purpose")
        if request.path == "/wrong":
            return "no response"
        if request.path == "/stream":
            return Response(self._chunks(int(request.query["count"])))
        if request.path == "/broken":
            return Response(self._broken())
        body = await request.text()
        facts = {"method": request.method, "path": request.path, "query": request.query, "body": body}
        return Response.json(facts, status=201, headers={"x-from": self.ctx.id.name or ""})

    async def _chunks(self, count: int) -> AsyncIterator[bytes]:
        for number in range(count):
            await self.ctx.storage.put("streamed", number)
            yield b"%d," % number

    async def _broken(self) -> AsyncIterator[bytes]:
        yield b"first"
        raise ValueError("on purpose")


@pytest.mark.parametrize(("value", "text"), JSON)
def test_a_json_value_is_written(value: Any, text: str) -> None:
    assert to_json(value) == text.encode()


@pytest.mark.parametrize("value", NOT_JSON, ids=lambda v: type(v).__name__)
def test_what_json_cannot_hold_is_refused(value: Any) -> None:
    with pytest.raises(NotJson):
        to_json(value)


def test_a_call_is_answered_with_the_envelope(tmp_path: Path) -> None:
    async def script(client: Client, host: Host) -> None:
        path = "/objects/Echo/a%20b%2Fc/give"
        status, answer = await client.ask("POST", path, b'{"args": [{"x": [1, null]}]}')

        assert status == 200
        assert answer == {"result": {"x": [1, None]}, "success": True, "errors": [], "messages": []}
        assert await client.call("Echo/a/give", by_name=5) == 5
        assert (await client.ask("POST", "/objects/Echo/a/give"))[1]["result"] is None
        assert {ref.name for ref in host.node.live()} == {"a b/c", "a"}

    serve(tmp_path, script, Echo)


@pytest.mark.parametrize(("method", "path", "body", "status", "error"), REFUSALS)
def test_a_refusal_has_status_code_and_words(
    tmp_path: Path, method: str, path: str, body: bytes, status: int, error: type[EdgeError]
) -> None:
    async def script(client: Client, host: Host) -> None:
        got, answer = await client.ask(method, path, body)

        assert (got, answer["success"], answer["result"]) == (status, False, None)
        assert answer["errors"][0]["code"] == error.code
        assert await client.call("Echo/a/give", 1) == 1, "the connection goes on"

    serve(tmp_path, script, Echo, Silent)


def test_what_a_method_wrote_stays_when_its_result_is_no_json(tmp_path: Path) -> None:
    async def script(client: Client, host: Host) -> None:
        assert (await client.ask("POST", "/objects/Echo/a/give_set"))[0] == 422
        assert await client.call("Echo/a/stored") is True

    serve(tmp_path, script, Echo)


def test_an_exception_is_called_what_its_class_is_called(tmp_path: Path) -> None:
    async def script(client: Client, host: Host) -> None:
        answer = (await client.ask("POST", "/objects/Echo/a/fail_in_my_way"))[1]
        assert answer["errors"] == [{"code": 10466, "message": "MyError: on purpose"}]

    serve(tmp_path, script, Echo)


@pytest.mark.parametrize("seed", range(4))
def test_no_bytes_of_a_caller_are_the_servers_fault(tmp_path: Path, seed: int) -> None:
    """Whatever a path, query or body is made of: clients repeat what is answered with 5xx."""
    random = Random(seed)
    pieces = [
        b"\xff",
        b"\xed\xa0\x80",
        b"\\ud800",
        b"\\u0000",
        b"1e999",
        b"9" * 30,
        b"[" * 300,
        b'"',
        b"{",
        b"}",
    ]
    bodies = [
        b'{"args": [%s]}',
        b'{"args": ["%s"]}',
        b'{"kwargs": {"%s": 1}}',
        b'{"query": "SELECT \'%s\'"}',
        b'{"query": "%s"}',
        b'{"query": "SELECT ?", "bindings": ["%s"]}',
        b'{"query": "SELECT ?", "bindings": [%s]}',
        b'{"time": %s}',
        b'{"time": "%s"}',
        b'{"bookmark": "%s"}',
        b"%s",
    ]
    odd = [b"%ff", b"%00", b"%ED%A0%80", b"9" * 30, b"-1", b"%C3%A9", b"0001-01-01T00:00:00%2B14:00"]
    paths = [
        ("POST", b"/objects/Echo/%s/give"),
        ("POST", b"/objects/%s/a/give"),
        ("POST", b"/objects/Echo/a/%s"),
        ("GET", b"/operate/objects?limit=%s"),
        ("GET", b"/operate/objects?cursor=%s"),
        ("GET", b"/operate/objects?cursor=Echo/%s"),
        ("GET", b"/operate/objects?class=%s"),
        ("GET", b"/operate/objects/%s/a"),
        ("GET", b"/operate/ids/Echo/%s"),
        ("GET", b"/operate/objects/Echo/a/bookmark?time=%s"),
        ("GET", b"/operate/objects/Echo/a/timeline?since=%s&limit=%s"),
    ]
    of_bodies = ("call?method=give", "sql", "sql-write", "restore", "alarm")
    paths += [
        ("PUT" if one == "alarm" else "POST", b"/operate/objects/Echo/a/" + one.encode()) for one in of_bodies
    ]

    async def script(client: Client, host: Host) -> None:
        await client.ask("POST", "/objects/Echo/a/give_set")
        for _ in range(150):
            method, path = random.choice(paths)
            target = path.replace(b"%s", random.choice(odd))
            body = random.choice(bodies).replace(
                b"%s", b"".join(random.choices(pieces, k=random.randrange(3)))
            )
            await client.send(
                b"%s %s HTTP/1.1\r\nhost: test\r\ncontent-length: %d\r\n\r\n%s"
                % (method.encode(), target, len(body), body)
            )
            status, _, answer = await client.answer()
            assert status < 500, (method, target, body, answer)

    serve(tmp_path, script, Echo)


class Sub(Echo):
    async def own(self) -> None:
        pass

    def plain(self) -> None:
        pass


@pytest.mark.parametrize(
    ("method", "words"),
    [
        ("give", "no method give: it is inherited, and only what Sub declares itself"),
        ("_private", "no method _private: its name begins with an underscore"),
        ("plain", "no method plain: it is not an `async def`"),
        ("nothing", "no method nothing."),
        ("__init__", "no method __init__."),
    ],
)
def test_a_method_that_is_there_and_cannot_be_called_is_told_why(
    tmp_path: Path, method: str, words: str
) -> None:
    async def script(client: Client, host: Host) -> None:
        status, answer = await client.ask("POST", f"/objects/Sub/a/{method}")
        assert status == 404
        assert words in answer["errors"][0]["message"]
        reply = await host.node.call(from_name("Sub", "a"), method, pack_arguments((), {}))
        assert words.partition(": ")[2] in str(error_of(reply)), "between objects, too"

    serve(tmp_path, script, Sub)


def test_a_websocket_is_refused_before_the_class_is_asked(tmp_path: Path) -> None:
    async def script(client: Client, host: Host) -> None:
        status, answer = await client.ask(
            "GET", "/objects/Echo/a/fetch/", connection="Upgrade", upgrade="WebSocket"
        )
        assert (status, answer["errors"][0]["code"]) == (501, 10474)
        assert not host.node.live()

    serve(tmp_path, script, Echo)


def test_a_wrong_verb_is_told_the_right_ones(tmp_path: Path) -> None:
    async def script(client: Client, host: Host) -> None:
        for path, allowed in (
            ("/objects/Echo/a/give", "post"),
            ("/operate/objects/Echo/a", "delete, get, head"),
        ):
            await client.send(f"PATCH {path} HTTP/1.1\r\nhost: test\r\n\r\n".encode())
            status, headers, _ = await client.answer()
            assert (status, headers["allow"]) == (405, allowed)

    serve(tmp_path, script, Echo)


def test_a_header_may_be_given_twice_and_the_type_once(tmp_path: Path) -> None:
    async def script(client: Client, host: Host) -> None:
        await client.send(b"GET /objects/Echo/a/fetch/cookies HTTP/1.1\r\nhost: test\r\n\r\n")
        head = (await client.reader.readuntil(b"\r\n\r\n")).lower().split(b"\r\n")
        for line in (b"set-cookie: a=1", b"set-cookie: b=2", b"content-type: application/problem+json"):
            assert head.count(line) == 1
        assert sum(line.startswith(b"content-type") for line in head) == 1

    serve(tmp_path, script, Echo)


def test_fetch_is_not_given_its_callers_credentials(tmp_path: Path) -> None:
    async def script(client: Client, host: Host) -> None:
        sent = {"authorization": "Bearer good", "X-Auth-Key": "key", "x-auth-email": "a@b", "x-mine": "1"}
        sent |= {"Connection": "keep-alive", "Keep-Alive": "timeout=5"}
        status, raw = await client.ask("GET", "/objects/Echo/a/fetch/headers", **sent)
        assert (status, sorted(raw)) == (200, ["content-length", "host", "x-mine"])

    serve(tmp_path, script, Echo)


def test_nobody_gets_in_without_leave(tmp_path: Path) -> None:
    def authorise(request: messages.Request, permission: str) -> EdgeError | None:
        return None if request.header(b"authorization") == b"Bearer good" else Unauthenticated()

    async def script(client: Client, host: Host) -> None:
        path = "/objects/Echo/a/give"
        assert (await client.ask("POST", path))[0] == 401
        assert (await client.ask("GET", "/objects/Echo/a/fetch/x"))[0] == 401
        assert (await client.ask("POST", path, authorization="Bearer bad"))[0] == 401
        assert host.node.live() == []
        assert (await client.ask("POST", path, authorization="Bearer good"))[0] == 200

    serve(tmp_path, script, Echo, authorise=authorise)


@pytest.mark.parametrize("path", ["/objects/Echo/a/give", "/objects/Echo/a/fetch/x"])
def test_a_caller_whose_right_ends_during_the_body_is_refused(tmp_path: Path, path: str) -> None:
    may: list[EdgeError | None] = [None]

    async def script(client: Client, host: Host) -> None:
        body = b'{"args": [1]}'
        head = f"POST {path} HTTP/1.1\r\nhost: h\r\ncontent-length: {len(body)}\r\n\r\n".encode()
        for ends, expected in ((None, (200, 201)), (Unauthenticated(), (401,))):
            asked.clear()
            await client.send(head + body[:5])
            await asyncio.wait_for(asked.wait(), 60)
            may[0] = ends
            await client.send(body[5:])
            assert (await client.answer())[0] in expected

    asked = asyncio.Event()

    def authorise(request: messages.Request, permission: str) -> EdgeError | None:
        asked.set()
        return may[0]

    serve(tmp_path, script, Echo, authorise=authorise)


def test_fetch_gets_the_request_and_its_answer_is_sent(tmp_path: Path) -> None:
    async def script(client: Client, host: Host) -> None:
        await client.send(
            b"PUT /objects/Echo/a/fetch/p/q?x=1&y=%20 HTTP/1.1\r\nhost: h\r\n"
            b"transfer-encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"
        )
        status, headers, body = await client.answer()

        assert (status, headers["x-from"]) == (201, "a")
        assert json.loads(body) == {
            "method": "PUT",
            "path": "/p/q",
            "query": {"x": "1", "y": " "},
            "body": "abcde",
        }
        await client.send(b"HEAD /objects/Echo/a/fetch HTTP/1.1\r\nhost: h\r\n\r\n")
        assert b"\r\n\r\n" in await client.reader.readuntil(b"\r\n\r\n")
        assert await client.call("Echo/a/give", 1) == 1

    serve(tmp_path, script, Echo)


def test_a_streamed_answer_arrives_in_chunks(tmp_path: Path) -> None:
    async def script(client: Client, host: Host) -> None:
        status, body = await client.ask("GET", "/objects/Echo/a/fetch/stream?count=50")

        assert (status, body) == (200, b"".join(b"%d," % number for number in range(50)))
        with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
            await client.ask("GET", "/objects/Echo/a/fetch/broken")

    serve(tmp_path, script, Echo)


def test_pipelined_requests_are_answered_in_order(tmp_path: Path) -> None:
    async def script(client: Client, host: Host) -> None:
        bodies = [b'{"args": [%d]}' % number for number in range(40)]
        head = b"POST /objects/Echo/%d/give HTTP/1.1\r\nhost: h\r\ncontent-length: %d\r\n\r\n"
        await client.send(b"".join(head % (n % 3, len(body)) + body for n, body in enumerate(bodies)))

        assert [json.loads((await client.answer())[2])["result"] for _ in bodies] == list(range(40))

    serve(tmp_path, script, Echo)


@pytest.mark.parametrize(("head", "status"), BAD_HEADS, ids=lambda v: repr(v)[:60])
def test_a_head_that_can_be_read_in_two_ways_is_refused_and_closed(
    tmp_path: Path, head: bytes, status: int
) -> None:
    async def script(client: Client, host: Host) -> None:
        await client.send(head)

        got, headers, body = await client.answer()
        assert (got, headers["connection"]) == (status, "close")
        assert json.loads(body)["success"] is False
        assert await client.reader.read() == b""

    serve(tmp_path, script, Echo)


def test_a_large_body_is_taken_and_a_larger_one_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def script(client: Client, host: Host) -> None:
        text = "x" * 3_000_000
        assert await client.call("Echo/a/give", text) == text
        monkeypatch.setattr("edgestead.objects.limits.MESSAGE_BYTES_MAX", 1_000)
        status, answer = await client.ask("POST", "/objects/Echo/a/give", b"x" * 2_000)
        assert (status, answer["errors"][0]["code"]) == (413, refusals.CallTooLarge.code)

    serve(tmp_path, script, Echo)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Response("x", status=99),
        lambda: Response("x", status=204),
        lambda: Response(b"x", status=304),
        lambda: Response("x", headers={"a b": "c"}),
        lambda: Response("x", headers={"a": "b\r\nc: d"}),
        lambda: Response("x", headers={"Content-Length": "5"}),
        lambda: Response(5),  # type: ignore[arg-type]
        lambda: Response.json(float("nan")),
    ],
)
def test_a_response_that_http_cannot_carry_is_refused(make: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        make()


def test_a_restart_forgets_nothing(tmp_path: Path) -> None:
    async def write(client: Client, host: Host) -> None:
        await client.ask("POST", "/objects/Echo/a/give_set")

    async def read(client: Client, host: Host) -> None:
        assert await client.call("Echo/a/stored") is True

    serve(tmp_path, write, Echo)
    serve(tmp_path, read, Echo)
